"""Reads a page of the manual as a newcomer types it: runs its blocks in order and compares what they print.

How a page marks things, visibly, for its readers and for this file alike:

* a ``console`` block holds commands after ``$`` and what they print, standard error included. It must agree
  to the letter. ``…`` stands for lines left out (on a line of its own) or for the rest of a line;
* ``# noisy`` after a command says that noise is in its numbers: they may differ, all else may not;
* a command that ends with an exit code other than 0 is followed by ``$ echo $?``;
* ``# not run here: REASON`` as the first line of a block says why nobody runs it;
* a ``toml`` or ``csv`` block whose first line is ``# NAME`` is the file of that name;
* an ``output`` block is what the ``python`` block before it prints;
* a line ``Files: `a`, `b` from [the steward's tutorial](…)`` names what is there at the start.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privcov.cli import main

_FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"<?[-−+±]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?|(?<= )(?:\*{1,3}|\.)(?= |$)")
_NOT_RUN = "# not run here: "


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why nobody runs it, if nobody does."""
        first = self.text.splitlines()[0] if self.text else ""
        return first.removeprefix(_NOT_RUN) if first.startswith(_NOT_RUN) else None

    @property
    def file(self) -> str | None:
        """The name of the file this block is."""
        named = re.match(r"# ([\w.-]+\.(?:toml|csv))\n", self.text)
        return named[1] if named and self.language in ("toml", "csv") else None


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(language, text) for language, text in _FENCE.findall(page)]


def files_at_the_start(page: str) -> list[str]:
    """The files that a page says it begins with."""
    said = re.search(r"^Files: (.*)$", page, re.MULTILINE)
    return re.findall(r"`([\w.-]+)`", said[1]) if said else []


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, what it prints) of a console block; a line that ends with a backslash goes on."""
    command, printed = "", list[str]()
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(printed)
            command, printed = line[2:], []
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
        elif command:
            printed.append(line)
        else:
            raise AssertionError(f"a console block begins with a command after $, got {line!r}")
    if command:
        yield command, "\n".join(printed)


def walk(page: str, start: Path | None = None) -> None:
    """Do what the page says, in the current directory; an ``AssertionError`` says what was different."""
    for name in files_at_the_start(page):
        assert start is not None
        shutil.copy(start / name, name)
    names: dict[str, object] = {"__name__": "__main__"}
    printed = code = ""
    for block in blocks(page):
        if block.reason is not None:
            continue
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            code, out = block.text, io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, "<page>", "exec"), names)
            printed = out.getvalue()
        elif block.language == "output":
            compare(block.text, printed, noisy="# noisy" in code, what=code)
        elif block.language == "console":
            _converse(block.text)


def _converse(text: str) -> None:
    exit_code = 0
    for command, expected in commands(text):
        if command == "echo $?":
            compare(expected, str(exit_code), noisy=False, what=command)
            exit_code = 0
            continue
        assert exit_code == 0, f"exit code {exit_code} is not shown before: {command}"
        exit_code, printed = run(command)
        compare(expected, printed, noisy="# noisy" in command, what=command)
    assert exit_code == 0, f"exit code {exit_code} is not shown"


def run(command: str) -> tuple[int, str]:
    """Exit code and output, both streams as one, of ``privcov …`` in this process or of anything else in a shell."""
    if not command.startswith("privcov "):
        done = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        exit_code = main(shlex.split(command, comments=True)[1:])
    return exit_code, out.getvalue()


def compare(expected: str, printed: str, *, noisy: bool, what: str) -> None:
    """Line by line; ``…`` stands for anything, and in a noisy block every number for any number."""
    wanted, seen = _lines(expected, noisy), _lines(printed, noisy)
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else ".*?".join(map(re.escape, line.split("…"))) + r"\n"
        for line in wanted
    )
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in seen)) is None:
        shown = "\n".join(difflib.unified_diff(wanted, seen, "the page", "what happened", lineterm="", n=1))
        raise AssertionError(f"{what}\n{shown}")


def _lines(text: str, noisy: bool) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return [_masked(line) for line in lines] if noisy else lines


def _masked(line: str) -> str:
    """Numbers, and the white space, rules and brackets that follow from them, without their particulars."""
    line = _NUMBER.sub(lambda found: "" if found[0][0] in "*." else "#", line).replace("(#)", "#")
    return re.sub(r"[ ─]+", " ", line).rstrip()


@contextlib.contextmanager
def inside(directory: Path) -> Iterator[None]:
    """Work in this directory for a while."""
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)
