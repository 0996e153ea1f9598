"""Every argument and option of every command says in ``--help`` what it is, and what stands where it is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from privcov import cli

SAID = re.compile(r"\[(default: .+|no default)\]$")


def walk(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Every command below one, by its full name."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, click.Context(below, info_name=name, parent=context))
    yield context.command_path, command


COMMANDS = dict(walk(cli.privcov, click.Context(cli.privcov, info_name="privcov")))


def faults(command: click.Command) -> list[str]:
    """What ``--help`` leaves open: an argument that no sentence names, an option without words or without a default."""
    found = []
    for given in command.params:
        if isinstance(given, click.Argument):
            if not re.search(rf"\b{given.name.upper()}\b", command.help or ""):
                found.append(f"{given.name}: the text does not say what it is")
            continue
        words = given.help or ""
        if not re.search(r"\w.*[.\]]$", words):
            found.append(f"{given.opts[-1]}: no sentence")
        shown = given.show_default or given.required or given.is_flag or SAID.search(words)
        if not shown:
            found.append(f"{given.opts[-1]}: no default is said")
    return found


def test_every_argument_and_option_says_what_it_is_and_its_default():
    assert {name: wrong for name, command in COMMANDS.items() if (wrong := faults(command))} == {}


def test_every_command_shows_an_example():
    assert [name for name, command in COMMANDS.items() if f"{name} " not in f"{command.help} "] == []


@pytest.mark.parametrize("width", [60, 80])
def test_an_example_stands_on_one_line_so_that_it_can_be_copied(width):
    broken = []
    for name, command in COMMANDS.items():
        shown = command.get_help(click.Context(command, info_name=name, terminal_width=width)).splitlines()
        source = re.findall(r"^ *(Example: .*)$", command.help or "", re.MULTILINE)
        broken += [name for example in source if f"  {example}" not in shown]
    assert broken == []


def test_the_walk_meets_every_command():
    assert {"privcov release", "privcov ledger init", "privcov schema explain"} <= COMMANDS.keys()


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        (click.Option(["--rows"], help="The number of rows."), "--rows: no default is said"),
        (click.Option(["--rows"], default=3, show_default=True), "--rows: no sentence"),
        (click.Argument(["path"]), "path: the text does not say what it is"),
    ],
)
def test_a_command_that_leaves_something_open_is_found(option, fault):
    assert faults(click.Command("read", help="Read a file.", params=[option])) == [fault]
