"""The command line: one small file per command or pair of them; each parses, calls one function, prints.

Results go to stdout, notes and progress to stderr. Exit codes: 0 done, 2 bad usage or input, 3 budget
refused, 4 verification or audit failed, 70 internal error.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from privcov.cli.output import complain, warn
from privcov.errors import ParameterError, PrivcovError
from privcov.publish.ending import last, settle
from privcov.version import __version__

# Where each command lives, by its own name or as "command"; imported when it is called, so that --help stays fast.
COMMANDS = {
    "demo": ("privcov.cli.demo", "Release an invented table and show what came out."),
    "schema": ("privcov.cli.schema", "Draft and check the public facts about a table."),
    "plan": ("privcov.cli.plan", "See the accuracy before you spend, or the budget that an accuracy needs."),
    "check": ("privcov.cli.check", "See whether a release would be accepted, and its price, without paying."),
    "inspect": (
        "privcov.cli.inspect:inspect",
        "Count the cells that a release could not read. Sensitive: for you only.",
    ),
    "convert": ("privcov.cli.inspect:convert", "Turn a CSV file whose cells hold line breaks into Parquet."),
    "release": ("privcov.cli.release", "Release a private second-moment matrix of a table."),
    "estimate": ("privcov.cli.estimate", "Estimate a private covariance of data without bounds."),
    "keygen": ("privcov.cli.signing:keygen", "Make a key pair to sign releases with."),
    "verify": (
        "privcov.cli.signing:verify",
        "Check a file: its signature, and that its certificate is consistent.",
    ),
    "ledger": ("privcov.cli.ledger", "Keep a budget that cannot be overspent."),
    "show": ("privcov.cli.show", "Show a release: its matrix, its noise and its promise."),
    "ols": ("privcov.cli.ols", "Fit a regression from a release, with honest standard errors."),
    "ridge": ("privcov.cli.ridge", "Fit ridge regression from a release, with a bound on its error."),
    "pca": ("privcov.cli.pca", "Principal components of a release, with intervals."),
    "report": (
        "privcov.cli.report",
        "Write an HTML page about a release: promise, matrix, models, citation.",
    ),
    "serve": ("privcov.cli.serve", "Open the workbench: a local web page to plan, release and read."),
    "mechanisms": ("privcov.cli.mechanisms:mechanisms", "List every mechanism, its guarantee and its proof."),
    "proof": ("privcov.cli.mechanisms:proof", "Print the proof page that a certificate names."),
    "audit": ("privcov.cli.audit", "Try to refute what a mechanism promises."),
}
LABORATORY = {
    "reproduce": "Run the papers' experiments again, with a verdict on every claim.",
    "bench": "Measure accuracy and speed as ratios.",
}
"""Commands of the distribution ``privcov-lab``, which registers them as entry points."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *LABORATORY]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name][0].partition(":")
            command: click.Command = getattr(import_module(module), name or "command")
            return _with_whole_examples(command)
        return _added(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except (
            click.UsageError
        ):  # click proposes names that it knows, and knows none that are imported when called
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])
        with formatter.section("Laboratory (pip install privcov-lab)"):
            formatter.write_dl(list(LABORATORY.items()))


def _with_whole_examples(command: click.Command) -> click.Command:
    """A command whose ``--help`` breaks no example into lines: a terminal of any width shows one that can be copied."""
    command.help = re.sub(r"\n\n( *)(?=Example: )", "\n\n\\1\b\n\\1", command.help or "")
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        _with_whole_examples(below)
    return command


def _added(name: str) -> click.Command | None:
    """A command that another distribution adds under ``privcov.commands``; None where there is none of that name."""
    from importlib.metadata import entry_points  # late: it reads what is installed, and --help is to be quick

    for point in entry_points(group="privcov.commands", name=name):
        command: click.Command = point.load()
        return _with_whole_examples(command)
    if name in LABORATORY:
        raise ParameterError(
            "E217",
            f"privcov {name} is a command of the package privcov-lab.",
            "Install it: pip install privcov-lab.",
        )
    return None


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="privcov")
def privcov() -> None:
    """Publish a differentially private covariance matrix once; answer every later question from it for free.

    Try it without any data of your own: privcov demo
    """


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code. One line on stderr says what went wrong and what to do."""
    try:
        outcome: Any = privcov.main(args=arguments, prog_name="privcov", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.UsageError as error:
        if isinstance(
            error, getattr(click.exceptions, "NoArgsIsHelpError", ())
        ):  # click 8.1 has none, and prints it
            warn(error.format_message())
            return 2
        where = error.ctx.command_path if error.ctx else "privcov"
        return _complain(f"E200 {_without_addresses(error, arguments)} See {where} --help.", 2)
    except click.Abort:
        return _complain("interrupted.", 130)
    except click.ClickException as error:
        return _complain(f"E200 {_without_addresses(error, arguments)}", 2)
    except PrivcovError as error:
        return _complain(str(error), error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception:  # a fault of ours: its text could carry a value, so it is not shown
        return _complain("E900 internal error; nothing was released.", 70)


def _without_addresses(error: click.ClickException, arguments: list[str] | None) -> str:
    """What click says, without what it repeats where that may be the address of a ledger, and hold a password.

    A shell cuts an address without quotes into words: where one of them looks like a part, no stray word is repeated.

    >>> _without_addresses(click.UsageError("Got unexpected extra argument (secret)"), ["password=my", "secret"])
    'Got unexpected extra argument (…). It may hold a password, so it is not repeated.'
    """
    said = error.format_message()
    given = sys.argv[1:] if arguments is None else arguments
    words = {part for word in given for part in (word, word.partition("=")[2] if word[:1] == "-" else word)}
    parts = [word for word in words if re.search(r"://|@|^\w*\s*=", word)]
    if isinstance(error, click.BadParameter | click.NoSuchOption):  # of one word only
        parts = [word for word in parts if word in said or repr(word)[1:-1] in said]
    kept = re.sub(r"\(.*\)|'.*'|\".*\"", "(…)", said, flags=re.DOTALL).rstrip(".")
    return (
        f"{kept}. It may hold a password, so it is not repeated."
        if parts and kept != said.rstrip(".")
        else said
    )


def _complain(message: str, exit_code: int) -> int:
    complain(message)
    return exit_code


def run() -> None:
    """The console script. A signal that comes when all is done does not change how it ended."""
    last()
    code = main()
    settle()
    sys.exit(code)
