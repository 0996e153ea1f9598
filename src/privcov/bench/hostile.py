"""Damaged and hostile files for every command that reads one: no traceback, no hang, no value of the data in a word.

Inputs are valid files with bytes flipped, cut, repeated, or replaced by pieces that parsers have tripped over. Every
value of the table is a number that nobody else would print, so a message that contains one is found.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from privcov.ledger import Ledger
from privcov.privacy import PureDP
from privcov.randomness import rehearsal

T = TypeVar("T")

SCHEMA = """[columns.age]
lower = 0
upper = 100
[columns.group]
levels = ["a", "b"]
[columns.income]
lower = 0
upper = 100000
"""
SECRETS = re.compile(r"73\.91\d|84\.26\d|91357|68241|hush-hush")
"""What stands in the table, and in no message."""
LOSS = ["--epsilon", "1", "--neighbours", "replace-one"]
SECONDS = 5.0
_PIECES = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"nan",
    b"inf",
    b"-1e999",
    b"1e-400",
    b'"',
    b"'",
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"[[",
    b"{" * 200,
    b"9" * 400,
    b"0x10",
    b"1_000",
    b"true",
    b"null",
    b"=",
    b"#",
    b"[columns.x]\n",
    b"levels = []\n",
    b'"sha256"',
    b"PAR1",
    b"SQLite format 3\x00",
    "٣٤".encode(),
    "é".encode("latin-1"),
]


class Chance:
    """Repeatable choices, for damage and for moments; nothing here is noise of a release."""

    def __init__(self, seed: int) -> None:
        self._source = rehearsal(seed)

    def below(self, count: int) -> int:
        """A whole number from 0 to below ``count``."""
        return int(self._source.words(1)[0]) % count

    def of(self, options: Sequence[T]) -> T:
        """One of some options."""
        return options[self.below(len(options))]

    def up_to(self, most: float) -> float:
        """A number between 0 and ``most``."""
        return most * float(self._source.uniforms(1)[0])


@dataclass(frozen=True)
class Shell:
    """The command line, called in this process."""

    main: Callable[[list[str]], int]

    def call(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command. More than ``SECONDS`` is exit code -9."""
        out, err = io.StringIO(), io.StringIO()
        with _alarm(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = self.main(list(words))
            except _TooLong:
                code = -9
            except BaseException as error:  # nothing may come out of main but a code
                err.write(f"Traceback: {type(error).__name__}")
                code = -1
        return code, out.getvalue(), err.getvalue()


class Corpus:
    """Valid files to damage: a schema, a table in CSV and Parquet, a release, a ledger."""

    FILES = ("people.toml", "people.csv", "people.parquet", "people.json", "people.ledger")

    @staticmethod
    def write(shell: Shell) -> None:
        """The files, in the working directory."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [(f"73.91{i % 10}", "ab"[i % 2], f"91357.{i}") for i in range(30)]
        rows += [(f"84.26{i % 10}", "hush-hush", f"68241.{i}") for i in range(10)]
        Path("people.toml").write_text(SCHEMA)
        Path("people.csv").write_text("age,group,income\n" + "".join(f"{a},{g},{x}\n" for a, g, x in rows))
        columns = {
            "age": [float(a) for a, _, _ in rows],
            "group": [g for _, g, _ in rows],
            "income": [float(x) for _, _, x in rows],
        }
        pq.write_table(pa.table(columns), "people.parquet")
        common = ["release", "people.csv", "--schema", "people.toml", *LOSS]
        Ledger.init("people.ledger", PureDP(epsilon=10, neighbours="replace-one"))
        for words in (["-o", "people.json"], ["--ledger", "people.ledger", "-o", "paid.json"]):
            code, _, err = shell.call(*common, *words)
            assert code == 0, err


READERS: dict[str, list[list[str]]] = {
    "people.toml": [
        ["schema", "check", "{}"],
        ["plan", "--schema", "{}", "--rows", "50", *LOSS, "--mechanism", "laplace"],
    ],
    "people.csv": [["release", "{}", "--schema", "people.toml", *LOSS, "-o", "out.json", "--force"]],
    "people.parquet": [["release", "{}", "--schema", "people.toml", *LOSS, "-o", "out.json", "--force"]],
    "people.json": [["show", "{}"], ["verify", "{}"], ["ols", "{}", "income ~ age"]],
    "people.ledger": [
        ["ledger", "show", "{}"],
        ["ledger", "verify", "{}"],
        [
            "release",
            "people.csv",
            "--schema",
            "people.toml",
            *LOSS,
            "--ledger",
            "{}",
            "-o",
            "out.json",
            "--force",
        ],
    ],
}


def fuzz(shell: Shell, inputs: int, seed: int) -> dict[str, Any]:
    """Damaged files, evenly over the kinds, through the commands that read them."""
    Corpus.write(shell)
    chance, found, codes, slowest = Chance(seed), list[str](), dict[str, int](), 0.0
    good = {name: Path(name).read_bytes() for name in Corpus.FILES}
    for number in range(inputs):
        name = Corpus.FILES[number % len(Corpus.FILES)]
        bad = Path("bad" + Path(name).suffix)
        bad.write_bytes(_damaged(good[name], chance))
        words = [word.format(bad) for word in chance.of(READERS[name])]
        start = time.monotonic()
        code, out, err = shell.call(*words)
        slowest = max(slowest, time.monotonic() - start)
        codes[str(code)] = codes.get(str(code), 0) + 1
        found += [f"input {number}, {name}: {fault}" for fault in _faults(code, out, err)]
        for left in Path().glob("bad.ledger*"):
            left.unlink()
    shown = ", ".join(f"{count} × {code}" for code, count in sorted(codes.items()))
    return {
        "part": "hostile files",
        "what": f"{inputs} damaged inputs: exit codes {shown}; slowest {slowest:.2f} s",
        "codes": codes,
        "slowest": slowest,
        "faults": len(found),
        "found": found,
    }


def neighbours(shell: Shell) -> dict[str, Any]:
    """Tables that differ in one row: everything but the release itself must be the same."""
    rows = [
        "50,a,500",
        "1e308,a,-1e308",
        "nan,,inf",
        "x,y,z",
        "0,b,0",
        '"unclosed,a,1',
        "50,a",
        "50,a,500,9,9",
        "",
    ]
    told = []
    for number, row in enumerate(rows):
        Path("people.toml").write_text(SCHEMA)
        # Three names of one length, since messages echo the name that was given.
        Path("t.csv").write_text("age,group,income\n" + "40,b,400\n" * 20 + row + "\n" + "40,b,400\n" * 20)
        Path("t.ledger").unlink(missing_ok=True)
        for rest in Path().glob("t.ledger-*"):
            rest.unlink()
        Ledger.init("t.ledger", PureDP(epsilon=2, neighbours="replace-one"))
        answers = []
        for relation in ("replace-one", "add-remove"):
            loss = ["--epsilon", "1", "--neighbours", relation]
            paid = ["--ledger", "t.ledger"] if relation == "replace-one" else []
            code, out, err = shell.call(
                "release", "t.csv", "--schema", "people.toml", *loss, *paid, "-o", "t.json", "--force"
            )
            answers.append((code, out, err, sorted(_fields(Path("t.json").read_text()))))
        entries = [(entry.kind, len(str(entry.facts))) for entry in Ledger.open("t.ledger").log()]
        told.append((number, answers, entries, os.path.getsize("t.ledger")))
    first = told[0][1:]
    found = [
        f"row {number}: something but the release differs" for number, *rest in told if tuple(rest) != first
    ]
    return {
        "part": "neighbours",
        "what": f"{len(rows)} tables that differ in one row, two relations: words, codes, fields, ledgers equal",
        "faults": len(found),
        "found": found,
    }


def _faults(code: int, out: str, err: str) -> Iterator[str]:
    if code not in (0, 2, 3, 4):
        yield f"exit code {code}: {err.strip()[-160:]}"
    if "Traceback" in err or "Traceback" in out:
        yield "a traceback"
    if (
        code
        and not re.fullmatch(r"(?:neighbours: .*\n|[^\n]*\n)*privcov: (?:E\d{3} )?.*\n", err)
        and code != 4
    ):
        yield f"no message with a code: {err.strip()[-160:]}"
    if SECRETS.search(err) or SECRETS.search(out):
        yield "a value of the data in a message"


def _damaged(whole: bytes, chance: Chance) -> bytes:
    made = bytearray(whole)
    for _ in range(chance.of((1, 1, 2, 5, 20))):
        place = chance.below(len(made) + 1)
        chance.of(_WAYS)(made, place, chance)
        del made[1_000_000:]
    return bytes(made)


def _flip(made: bytearray, place: int, chance: Chance) -> None:
    if place < len(made):
        made[place] ^= 1 << chance.below(8)


def _cut(made: bytearray, place: int, chance: Chance) -> None:
    del made[place : place + chance.of((1, 3, 40, 10_000))]


def _splice(made: bytearray, place: int, chance: Chance) -> None:
    made[place:place] = chance.of(_PIECES)


def _repeat(made: bytearray, place: int, chance: Chance) -> None:
    made[place:place] = bytes(made[place : place + chance.of((2, 30, 500))])


def _overwrite(made: bytearray, place: int, chance: Chance) -> None:
    piece = chance.of(_PIECES)
    made[place : place + len(piece)] = piece


_WAYS: list[Callable[[bytearray, int, Chance], None]] = [_flip, _cut, _splice, _repeat, _overwrite]


def _fields(text: str) -> set[str]:
    """The names in a release, and the values that are not its numbers or its date."""
    kept = re.sub(r'"upper":\[[^\]]*\]', "", text)
    return set(re.sub(r'"(created|value)":"[^"]*"', "", kept).split(","))


class _TooLong(BaseException):
    pass


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
