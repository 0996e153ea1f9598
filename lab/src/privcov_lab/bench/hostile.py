"""Damaged and hostile files for every command that reads one: no traceback, no hang, no flood, no value of the data.

Inputs are valid files with bytes flipped, cut, repeated, or replaced by pieces that parsers have tripped over; and
documents whose seal holds and whose fields lie. Every command runs in a child with limits of time and memory. Every
value of the table is a number that nobody else would print, so a message that contains one is found; so is a message
with a character that a terminal obeys.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from privcov.ledger import Ledger
from privcov.noise.randomness import rehearsal
from privcov.privacy import ApproxDP, PureDP
from privcov.publish.release import release
from privcov.releases import keyfiles
from privcov.releases.documents import to_text
from privcov.releases.signing import seal
from privcov.schema import Schema
from privcov.text.grammar import printable
from privcov_lab.bench.limited import each

T = TypeVar("T")

LIES: list[Any] = [
    None, True, 0, -1, 10**17, 10**400, 10**4000, "", "x", [], {}, [[]], "a" * 100_000, ["a"] * 100_000, [0] * 300,
    "1e999999999", "-1e999999999", "1e-999999999", "1e308", "1e-308", "nan", "inf", "1_0", "0x10", "٣", "007", "-0",
    "9" * 59, "9" * 99, "9" * 4000, "9" * 100_000, "1/3", "1/0", "1/" + "3" * 1500, "1/" + "7" * 100_000,
    "0." + "1" * 1900, "sqrt(4)", "sqrt(" + "9" * 5000 + ")", "2^-999999999",
    "gaussian", "laplace", "zcdp", "add-remove", "kernel",
    "\x1b[2J\x1b[1;1Hholds everything", "a\x9b2J", "a\nholds", "a\r\x1b[K", "\u202eevil", "a\u200bb", "\ud800", "\x7f",
    "<script>alert(1)</script>", "';--", "../../etc/passwd", "%s%n", "{0}", "\ufffd" * 3,
]  # fmt: skip
"""Values that readers have tripped over, in the place of true ones."""
SHARP = [10**400, "1e999999999", "9" * 59, "1/" + "7" * 100_000, "\x1b[2J\x1b[1;1Hholds everything"]
"""Those that once hung, flooded or deceived."""
_NAMES = ["note", "\x1b[2J", "body", "upper", "levels", "numbers", "signature", "a" * 5000]
SERVER = b"postgresql://steward:hush-hush@127.0.0.1:1/"
"""Of a ledger that is not there: what is damaged is the rest of its address, so that no other host is ever asked."""
ESTIMATE = ["--rho", "1", "--largest-variance", "1e9", "--mean-radius", "1e6"]

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
MEGABYTES = 400.0
"""By which one command may raise the peak of its process: libraries are loaded by the first that needs them."""
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
        """Exit code, stdout and stderr of a command. More than ``SECONDS`` of processor time is exit code -9."""
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


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command said, and what it cost."""

    code: int
    out: str
    err: str
    seconds: float
    """Of processor time."""
    megabytes: float
    """By which the peak of memory grew."""

    def faults(self) -> Iterator[str]:
        """What no answer to any file may be."""
        if self.code not in (0, 2, 3, 4):
            yield f"exit code {self.code}: {self.err.strip()[-160:]}"
        if "Traceback" in self.err or "Traceback" in self.out:
            yield "a traceback"
        if self.code not in (0, 4) and not re.fullmatch(
            r"(?:neighbours: .*\n|[^\n]*\n)*privcov: (?:E\d{3} )?.*\n", self.err
        ):
            yield f"no message with a code: {self.err.strip()[-160:]}"
        if SECRETS.search(self.err) or SECRETS.search(self.out):
            yield "a value of the data in a message"
        if not printable((self.out + self.err).replace("\n", "")):
            yield "a character that a terminal obeys"
        if self.megabytes > MEGABYTES:
            yield f"{self.megabytes:.0f} MB of memory"
        if self.seconds > SECONDS:
            yield f"{self.seconds:.1f} s of processor time"


def answers(shell: Shell, commands: int, command: Callable[[int], Sequence[str]]) -> Iterator[Answer]:
    """What the commands 0, 1, … say, each made and called in a child with limits."""

    def call(number: int) -> tuple[int, str, str]:
        try:
            return shell.call(*command(number))
        finally:
            _tidy()

    for outcome in each(call, commands, seconds=SECONDS):
        code, out, err = outcome.made or (-1, "", f"the process died: {outcome.died}")
        yield Answer(code=code, out=out, err=err, seconds=outcome.seconds, megabytes=outcome.megabytes)


class Corpus:
    """Valid files to damage: of every kind that a command reads."""

    FILES = (
        "people.toml",
        "people.csv",
        "people.parquet",
        "people.json",
        "signed.json",
        "wide.json",
        "estimate.json",
        "steward.pub",
        "steward.key",
        "people.ledger",
        "address.txt",
    )
    DOCUMENTS = ("people.json", "signed.json", "wide.json", "estimate.json")

    @staticmethod
    def write(shell: Shell) -> None:
        """The table, its schema, its ledger and two releases, in the working directory."""
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

    @staticmethod
    def write_documents(shell: Shell) -> None:
        """The rest: keys, a signed release, a wide one, an estimate, the address of a ledger."""
        import numpy as np

        Path("address.txt").write_bytes(SERVER + b"budget?options=-csearch_path%3Done")
        for words in (
            ["keygen", "steward"],
            ["keygen", "mallory"],
            [*_RELEASE[:-2], "signed.json", "--sign", "mallory.key"],
            ["estimate", "people.csv", "--columns", "age,income", *ESTIMATE, "-o", "estimate.json"],
        ):
            code, _, err = shell.call(*words)
            assert code == 0, err
        names = [f"c{i}" for i in range(1448)]
        schema = Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in names}})
        loss = ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
        release(np.zeros((3, len(names))), schema=schema, loss=loss, mechanism="gaussian").save("wide.json")


_RELEASED = [["show", "{}"], ["verify", "{}"], ["verify", "{}", "--key", "steward.pub"]]
_RELEASE = ["release", "people.csv", "--schema", "people.toml", *LOSS, "-o", "out.json", "--force"]
READERS: dict[str, list[list[str]]] = {
    "people.toml": [
        ["schema", "check", "{}"],
        ["plan", "--schema", "{}", "--rows", "50", *LOSS, "--mechanism", "laplace"],
    ],
    "people.csv": [["release", "{}", *_RELEASE[2:]]],
    "people.parquet": [["release", "{}", *_RELEASE[2:]]],
    "people.json": [
        *_RELEASED,
        ["ols", "{}", "income ~ age"],
        ["pca", "{}"],
        ["ridge", "{}", "--target", "income"],
        ["report", "{}", "-o", "out.html", "--force"],
    ],
    "signed.json": _RELEASED,
    "wide.json": [["verify", "{}"], ["verify", "{}", "--key", "steward.pub"]],
    "estimate.json": [["verify", "{}"], ["report", "{}", "-o", "out.html", "--force"]],
    "steward.pub": [["verify", "signed.json", "--key", "{}"]],
    "steward.key": [[*_RELEASE, "--sign", "{}"]],
    "people.ledger": [["ledger", "show", "{}"], ["ledger", "verify", "{}"], [*_RELEASE, "--ledger", "{}"]],
    "address.txt": [["ledger", "show", "{}"]],
}


def fuzz(shell: Shell, inputs: int, seed: int) -> dict[str, Any]:
    """Damaged files, evenly over the kinds, through the commands that read them, within limits of time and memory."""
    good = written(shell)

    def command(number: int) -> list[str]:
        name = Corpus.FILES[number % len(Corpus.FILES)]
        chance = Chance(seed * 1_000_003 + number)
        return _given(name, _damaged(good[name], chance, name), chance.of(READERS[name]))

    def about(number: int) -> str:
        return f"input {number}, {Corpus.FILES[number % len(Corpus.FILES)]}"

    return _report("hostile files", "damaged inputs", inputs, about, answers(shell, inputs, command))


def lies(shell: Shell, inputs: int) -> dict[str, Any]:
    """Documents with one field replaced by a value that once hung, flooded or deceived, and a seal that holds.

    Every field of every document, every such value, every command: or so many of them, evenly spread.
    """
    good = written(shell)
    cases = [
        (name, kind, lie, words)
        for name in Corpus.DOCUMENTS
        for kind in sorted({kind for kind, _ in _places(json.loads(good[name].partition(b"\n")[0]))})
        for lie in range(len(SHARP))
        for words in READERS[name]
    ]
    count = min(inputs, len(cases))
    chosen = [cases[len(cases) * number // count] for number in range(count)]

    def command(number: int) -> list[str]:
        name, kind, lie, words = chosen[number]
        head, newline, body = good[name].partition(b"\n")
        document = json.loads(head)
        holder, step = next(place for found, place in _places(document) if found == kind)
        holder[step] = SHARP[lie]
        return _given(
            name, _resealed(document, "mallory.key" if number % 2 else None) + newline + body, words
        )

    def about(number: int) -> str:
        name, kind, lie, words = chosen[number]
        return f"{words[0]} {name}, {kind} = {str(SHARP[lie])[:20]!a}"

    return _report("lying documents", "forged documents", count, about, answers(shell, count, command))


def written(shell: Shell) -> dict[str, bytes]:
    """The contents of the corpus, written by a child: whoever forks must not read tables, which starts threads."""

    def write(_: int) -> None:
        Corpus.write(shell)
        Corpus.write_documents(shell)

    (written,) = each(write, 1, seconds=600)
    assert not written.died, written.died
    return {name: Path(name).read_bytes() for name in Corpus.FILES}


def _given(name: str, content: bytes, words: Sequence[str]) -> list[str]:
    """The command on a file with this content; an address is a word of the command itself."""
    if name == "address.txt":
        return [word.format(_argument(content)) for word in words]
    given = Path("bad" + Path(name).suffix)
    given.write_bytes(content)
    given.chmod(0o600)
    return [word.format(given) for word in words]


def _report(
    part: str, what: str, count: int, about: Callable[[int], str], given: Iterator[Answer]
) -> dict[str, Any]:
    found, codes, slowest, largest = list[str](), dict[str, int](), 0.0, 0.0
    for number, answer in enumerate(given):
        slowest, largest = max(slowest, answer.seconds), max(largest, answer.megabytes)
        codes[str(answer.code)] = codes.get(str(answer.code), 0) + 1
        found += [f"{about(number)}: {fault}" for fault in answer.faults()]
    shown = ", ".join(f"{times} × {code}" for code, times in sorted(codes.items()))
    return {
        "part": part,
        "what": f"{count} {what}: exit codes {shown}; at most {slowest:.2f} s and {largest:.0f} MB",
        "codes": codes,
        "slowest": slowest,
        "megabytes": largest,
        "faults": len(found),
        "found": found,
    }


def _tidy() -> None:
    for left in Path().glob("bad*"):
        left.unlink()


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


def _damaged(whole: bytes, chance: Chance, name: str) -> bytes:
    """A file in other bytes, or, where it is a document, often one whose seal holds and whose fields lie."""
    if name.endswith(".json") and chance.below(3):
        return _forged(whole, chance)
    if whole.startswith(SERVER):
        return SERVER + _damaged(whole.removeprefix(SERVER), chance, name)
    if name.endswith((".toml", ".txt")) and chance.below(2):
        return _renumbered(whole, chance)
    made = bytearray(whole)
    for _ in range(chance.of((1, 1, 2, 5, 20))):
        place = chance.below(min(len(made), 100_000) + 1)
        chance.of(_WAYS)(made, place, chance)
        if not name.startswith("wide"):
            del made[1_000_000:]
    return bytes(made)


def _forged(whole: bytes, chance: Chance) -> bytes:
    """A document with values replaced, and a fresh seal: a digest, or the signature of a stranger."""
    head, newline, body = whole.partition(b"\n")
    document = json.loads(head)
    for _ in range(chance.of((1, 1, 2))):
        kinds: dict[str, list[tuple[Any, Any]]] = {}  # entries of one list are fields of one kind
        for kind, place in _places(document):
            kinds.setdefault(kind, []).append(place)
        holder, step = chance.of(kinds[chance.of(sorted(kinds))])
        holder[step] = chance.of(chance.of((LIES, SHARP)))
        if isinstance(holder, dict) and not chance.below(8):
            holder[chance.of(_NAMES)] = chance.of(LIES)
    return _resealed(document, chance.of((None, "mallory.key"))) + newline + body


def _resealed(document: dict[str, Any], key: str | None) -> bytes:
    """The document on one line, with a digest or with the signature of a stranger."""
    inside = {word: value for word, value in document.items() if word != "signature"}
    by = None if key is None else keyfiles.read_private(key)
    sealed = {**inside, "signature": seal(to_text(inside).encode("ascii"), by)}
    return to_text(sealed).encode("ascii").rstrip(b"\n")


def _places(value: Any, above: str = "") -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Where every value of a document is, with a name that the entries of a list share."""
    steps = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        name = f"{above}/{step if isinstance(value, dict) else '*'}"
        yield name, (value, step)
        yield from _places(value[step], name)


def _renumbered(whole: bytes, chance: Chance) -> bytes:
    """A text with one of its values replaced by another."""
    places = list(re.finditer(rb"(?<=[= \[/:@])[^\s,\]\[=/:@]+", whole))
    place = chance.of(places)
    lie = chance.of([lie for lie in LIES if isinstance(lie, str | int)])
    text = str(lie) if isinstance(lie, str) or lie < 10**999 else f"{lie:#x}"
    new = chance.of((text, json.dumps(text))).encode("utf-8", "surrogatepass")
    return whole[: place.start()] + new + whole[place.end() :]


def _argument(content: bytes) -> str:
    """Bytes as a word of a command line, in which there is no zero, and of a format, which would take braces."""
    return os.fsdecode(content.translate(None, b"\0{}"))


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

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
