"""What a failure tells to a service that records the variables of every frame: nothing of rows, sums or used noise.

An exception is planted at lines of privcov by a trace function, and everything that can be reached from the variables
of every frame of the failure, its causes and its contexts is looked at. A secret is: the exact sum, the noise of a draw
that has answered, a sum over rows that a private choice looks at, and a person's cell.
"""

from __future__ import annotations

import copy
import functools
import itertools
import multiprocessing
import pickle
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privcov as pc
from privcov import errors
from privcov import ledger as ledger_module
from privcov.errors import InputError, InternalError, without_frames, without_reasons
from privcov.frame import counting, walk
from privcov.ledger import Request
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.adaptive import PrivateTrace
from privcov.mechanisms.base import Draw
from privcov.noise import randomness
from privcov.noise.randomness import rehearsal
from privcov.publish import paying
from privcov.releases import certificate
from privcov.schema.grid import Grid
from privcov.summing.engines import AnyFragment, Engine, Local, Work, attempt
from privcov.summing.gram import Gram, Sealed
from privcov.table import Table, open_table
from privcov.unbounded import entry, estimate, moments
from privcov_lab.bench import recording

HOME = str(Path(pc.__file__).parent)
BRIDGES = (
    "publish/release.py",
    "sequence.py",
    "row_norm.py",
    "entry.py",
    "paying.py",
    "errors.py",
    "choice.py",
    "walk.py",
    "framing.py",
    "counting.py",
    "shaping.py",
)
"""The files whose frames a failure can leave once something secret is known."""
MARK = (37.28125, 61.40625)
"""A person's two cells, which no other number in this file equals."""
SCHEMA = pc.Schema.from_dict({"columns": {c: {"lower": 0, "upper": 100} for c in "ab"}})
LOSSES = {
    "pure": pc.PureDP(epsilon=1, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one"),
    "zcdp": pc.ZCDP(rho=1, neighbours="replace-one"),
}


class Planted(Exception):
    """Raised where nothing fails by itself."""


class Interrupted(BaseException):
    """The same, as Ctrl-C or a signal raises it."""


# --- what spends a budget -----------------------------------------------------------------------------


class Elsewhere(Engine):
    """Partial sums travel as bytes, as they do in a cluster; ``processes`` makes them in other processes."""

    name = "elsewhere"

    def __init__(self, *, processes: bool = False) -> None:
        self.processes = processes

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Any, None, None]:
        task = functools.partial(attempt, work)
        if not self.processes:
            yield from map(task, fragments)
            return
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield from pool.map(task, fragments)


def releasing(mechanism: str, **options: Any) -> Callable[..., Any]:
    loss = LOSSES[options.pop("kind", MECHANISMS[mechanism].kinds[0])]

    def spend(data: Any, **asked: Any) -> Any:
        return pc.release(data, schema=SCHEMA, loss=loss, mechanism=mechanism, **options, **asked)

    return spend


def stratified(mechanism: str, **options: Any) -> Callable[..., Any]:
    """The same rows with a third column, by which they fall into two strata, and some into none."""
    loss = LOSSES[MECHANISMS[mechanism].kinds[0]]
    columns = {**{c: {"lower": 0, "upper": 100} for c in "ab"}, "s": {"levels": [1, 2]}}
    schema = pc.Schema.from_dict({"columns": columns})

    def spend(data: Any, **asked: Any) -> Any:
        header, *lines = Path(data).read_text().splitlines()
        path = Path(f"{data}.strata.csv")
        path.write_text(f"{header},s\n" + "".join(f"{row},{i % 3}\n" for i, row in enumerate(lines)))
        return pc.release(
            str(path), schema=schema, loss=loss, mechanism=mechanism, by="s", **options, **asked
        )

    return spend


def weighted(data: Any, **asked: Any) -> Any:
    """The same rows with a third column, which says what a row counts as, behind a private frame."""
    schema = pc.Schema.from_dict(
        {"columns": {c: {"lower": 0, "upper": 100} for c in "ab"}, "weight": "w", "largest_weight": 3}
    )
    header, *lines = Path(data).read_text().splitlines()
    path = Path(f"{data}.weights.csv")
    path.write_text(f"{header},w\n" + "".join(f"{row},{i % 4}\n" for i, row in enumerate(lines)))
    return pc.release(str(path), schema=schema, loss=LOSSES["zcdp"], frame="scales", **asked)


def estimating(**options: Any) -> Callable[..., Any]:
    def spend(data: Any, **asked: Any) -> Any:
        return pc.estimate_gaussian(
            data, loss=LOSSES["zcdp"], largest_variance=1000, columns=["a", "b"], **options, **asked
        )

    return spend


SPENDERS: dict[str, Callable[..., Any]] = {
    **{name: releasing(name) for name in MECHANISMS},
    "idealized": releasing("gaussian", arithmetic="idealized"),
    "row norm": releasing("gaussian", row_norm="private"),
    "frame": releasing("gaussian", frame="scales"),
    "pure frame": releasing("laplace", frame="scales", engine=Elsewhere()),
    "shape": releasing("gaussian", frame="shape"),
    "pure shape": releasing("laplace", frame="shape", engine=Elsewhere()),
    "threads": releasing("gaussian", engine=Local(workers=2)),
    "bytes": releasing("gaussian", engine=Elsewhere()),
    "strata": stratified("gaussian"),
    "strata and total": stratified("gaussian", total_share="0.3"),
    "strata bytes": stratified("laplace", engine=Elsewhere()),
    "strata frame": stratified("laplace", frame="shape"),
    "weights frame": weighted,
    "coinpress": estimating(mean_radius=100),
    "truncated": estimating(method="truncated"),
    "preconditioned": estimating(method="preconditioned", smallest_variance="0.1", known_mean=[50, 50]),
}
"""A new way to spend is one more line."""


# --- the recorder -------------------------------------------------------------------------------------


class Seen(recording.Seen):
    """Everything that can be reached from the variables of the frames of a failure, but for those of this file."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__(failure, but=__file__)

    def leaks(self, secrets: Secrets) -> list[str]:
        """Which secrets can be had from this."""
        made = [f"a sequence: {what}" for what, values in secrets.sequences if values in self.sequences]
        made += [f"a number: {what}" for what, value in secrets.numbers if value in self.numbers]
        if any(self.matrix_follows(exact) for what, exact in secrets.sequences if what == "exact sum"):
            made.append("noise and noisy sum")
        for cell in MARK:
            if cell in self.numbers or any(str(cell).encode() in text for text in self.texts):
                made.append("a cell")
        if secrets.keys & self.texts and secrets.fingerprints & self.texts:
            made.append("a fingerprint and its key")
        return made


class Secrets:
    """What is noted where it is made, to be looked for in failures."""

    def __init__(self) -> None:
        self.sequences: list[tuple[str, tuple[Any, ...]]] = []
        self.numbers: list[tuple[str, Any]] = []
        self.keys: set[bytes] = set()
        self.fingerprints: set[bytes] = set()

    def sequence(self, what: str, values: Any) -> None:
        if len(values) == 1:  # a small number may stand anywhere; a sum in grid units is never small
            self.numbers += [(what, value) for value in values if abs(value) > 10**6]
        else:
            self.sequences.append((what, tuple(np.asarray(values).ravel().tolist())))


def arrays_in(found: Any) -> Iterator[Any]:
    """Arrays of a draw that were random: its integers and reals, not the public facts beside them."""
    if isinstance(found, np.ndarray) and found.dtype != object:
        yield found
    elif isinstance(found, np.ndarray):
        yield found.ravel()
    elif isinstance(found, dict):
        for value in found.values():
            yield from arrays_in(value)
    elif isinstance(found, tuple | list):
        for value in found:
            yield from arrays_in(value)
    elif isinstance(found, PrivateTrace):
        yield [found.noise]
    elif type(found).__name__ == "LazyReals":
        yield from (value for value in vars(found).values() if isinstance(value, np.ndarray))


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    noted = Secrets()

    def watch(where: Any, name: str, note: Callable[..., None]) -> None:
        real = getattr(where, name)

        def watched(*given: Any, **named: Any) -> Any:
            made = real(*given, **named)
            note(made, *given)
            return made

        monkeypatch.setattr(where, name, watched)

    def used(draw: Draw, *_: Any) -> None:
        for values in arrays_in(vars(draw)):
            noted.sequence("noise", values)

    def fingerprint(made: str, key: bytes) -> None:
        noted.fingerprints.add(made.encode("ascii"))
        noted.keys.add(key)

    def cut(made: Any, *_: Any) -> None:
        noted.sequence("what is cut off", made.totals)
        noted.sequence("trace", [made.trace])

    watch(Gram, "reveal_to_mechanism", lambda made, *_: noted.sequence("exact sum", list(made)))
    watch(Gram, "fingerprint", lambda made, _, key, *__: fingerprint(made, key))
    watch(entry, "fingerprint", lambda made, _, __, key: fingerprint(made, key))
    watch(Draw, "taken", used)
    watch(PrivateTrace, "answer", lambda _, trace, *__: noted.sequence("noise", [trace.noise]))
    watch(moments, "discrete_gaussian", lambda made, *_: noted.sequence("noise", made))
    watch(walk, "cut_off", cut)
    real = counting._Noise.added_to

    def added(self: counting._Noise, totals: list[list[int]]) -> list[tuple[int, ...]]:
        for total, drawn in zip(totals, self.integers, strict=True):
            noted.sequence("sums over rows", total)
            noted.sequence("noise", list(drawn))
        return real(self, totals)

    monkeypatch.setattr(counting._Noise, "added_to", added)
    return noted


# --- planting -----------------------------------------------------------------------------------------

Place = tuple[str, int]


class Tracing:
    """Counts the lines of privcov that run after the first random bit; raises at one of them."""

    def __init__(
        self,
        place: Place | None = None,
        *,
        at: int = 1,
        kind: type[BaseException] = Planted,
        wanted: Callable[[str], bool] = lambda file: file.startswith(HOME),
    ) -> None:
        self.counts: Counter[Place] = Counter()
        self._place, self._at, self._kind = place, at, kind
        self._wanted = wanted if place is None else place[0].__eq__
        self.drawn = False

    def __call__(self, frame: types.FrameType, event: str, _: Any) -> Any:
        if frame.f_code is randomness.Kernel.words.__code__:
            self.drawn = True
        return self.line if self._wanted(frame.f_code.co_filename) else None

    def line(self, frame: types.FrameType, event: str, _: Any) -> Any:
        if event == "line" and self.drawn:
            place = frame.f_code.co_filename, frame.f_lineno
            self.counts[place] += 1
            if place == self._place and self.counts[place] == self._at:
                raise self._kind("planted")
        return self.line

    @contextmanager
    def on(self) -> Iterator[None]:
        before, before_in_threads = sys.gettrace(), threading.gettrace()
        threading.settrace(self)
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before_in_threads)  # type: ignore[arg-type]


def full_disk(_: object) -> None:
    raise OSError("no space left on device")


@pytest.fixture
def table(tmp_path: Path) -> str:
    rows = np.random.default_rng(3).uniform(0, 100, (40, 2))
    rows[7] = MARK
    path = tmp_path / "people.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows.tolist()))
    return str(path)


def failure(spend: Callable[[], Any], tracing: Tracing | None = None) -> BaseException | None:
    try:
        with nullcontext() if tracing is None else tracing.on():
            spend()
    except (Planted, Interrupted, pc.PrivcovError, OSError) as caught:
        return caught
    return None


def swept(spend: Callable[[], Any], secrets: Secrets, *files: str) -> int:
    """Plant at the first and the last time that each line of the files runs, two kinds in turn; how often it failed."""
    baseline = Tracing(wanted=lambda file: file.startswith(HOME) and file.endswith(files or (".py",)))
    failure(spend, baseline)
    failed = 0
    for number, place in enumerate(sorted(baseline.counts)):
        for at in {1, baseline.counts[place]}:
            kind = (Planted, Interrupted)[(number + at) % 2]
            secrets.__init__()  # type: ignore[misc]
            caught = failure(spend, Tracing(place, at=at, kind=kind))
            if caught is not None:
                failed += 1
                seen = Seen(caught)
                assert seen.leaks(secrets) == [], (place, at, kind, seen.frames)
    return failed


# --- the tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPENDERS)
def test_a_full_disk_gives_no_secret_away(name: str, table: str, secrets: Secrets, tmp_path: Path) -> None:
    ledger = pc.Ledger.init(
        tmp_path / "people.ledger", pc.ApproxDP(epsilon=99, delta="0.1", neighbours="replace-one")
    )
    caught = failure(lambda: SPENDERS[name](table, deliver=full_disk, ledger=ledger))
    assert isinstance(caught, OSError)
    seen = Seen(caught)
    assert {"release", "estimate_gaussian"} & set(seen.frames)
    assert len(secrets.sequences) > 1
    # To be recorded with the release, without the key; of strata there is a chain, and the last of it is.
    recorded = secrets.fingerprints & seen.texts
    assert (
        len(recorded) == min(1, len(secrets.fingerprints))
        if "strata" in name
        else recorded == secrets.fingerprints
    )
    assert seen.leaks(secrets) == []


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.long) for name in ("frame", "shape", "strata and total")),
        "coinpress",
    ],
)
def test_no_line_of_the_bridges_can_be_left_with_a_secret(name: str, table: str, secrets: Secrets) -> None:
    """In the quick suite one of each kind, and of the lines those that are left with something known."""
    spend = functools.partial(SPENDERS[name], table)
    assert swept(spend, secrets, *BRIDGES) > 25


@pytest.mark.slow
@pytest.mark.parametrize("name", SPENDERS)
def test_no_line_at_all_can_be_left_with_a_secret(name: str, table: str, secrets: Secrets) -> None:
    spend = functools.partial(SPENDERS[name], table)
    assert swept(spend, secrets) > 150


@pytest.mark.slow  # processes take seconds to start
def test_partial_sums_of_other_processes_are_in_no_frame(table: str, secrets: Secrets) -> None:
    spend = releasing("gaussian", engine=Elsewhere(processes=True))
    caught = failure(lambda: spend(table, deliver=full_disk))
    assert caught is not None
    assert Seen(caught).leaks(secrets) == []


def test_the_recorder_sees_a_draw_that_outlives_its_answer(
    table: str, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keeping(work: Any, bill: Any, draw: Draw, frame: Any) -> Any:
        work.draw = draw
        return work(bill, draw, frame)

    monkeypatch.setattr(Draw, "taken", lambda draw: draw)
    monkeypatch.setattr("privcov.publish.sequence.without_reasons", keeping)
    caught = failure(lambda: SPENDERS["gaussian"](table, deliver=full_disk))
    assert caught is not None
    assert set(Seen(caught).leaks(secrets)) == {"noise and noisy sum"}


def test_the_recorder_sees_frames_that_a_failure_takes_along(
    table: str, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "_let_go", lambda work, *given: work(*given))
    with pytest.raises(AssertionError, match="noise"):
        swept(functools.partial(SPENDERS["gaussian"], table), secrets, "mechanisms/base.py")


def test_a_failure_takes_no_frame_cause_or_context_of_the_secret_work_along() -> None:
    def work(secret: list[int]) -> None:
        try:
            raise ValueError(secret)
        except ValueError as cause:
            raise InputError("E108", "the table has no rows.") from cause

    for door, kind in itertools.product((without_reasons, without_frames), (InputError, KeyboardInterrupt)):
        with pytest.raises(kind) as caught:
            door(work if kind is InputError else interrupted, [123456, 654321])
        error = caught.value
        assert error.__cause__ is None
        assert error.__context__ is None
        assert (123456, 654321) not in Seen(error).sequences
        assert not {"work", "interrupted"} & {frame.rsplit(".", 1)[-1] for frame in Seen(error).frames}


def interrupted(secret: list[int]) -> None:
    raise KeyboardInterrupt


def test_what_interrupts_the_letting_go_is_let_go_of_too() -> None:
    """Two faults: the work fails, and Ctrl-C comes at any line of the handling of it."""

    def work() -> None:
        secret = [123456, 654321]
        raise ValueError(secret)

    def spend() -> None:
        randomness.kernel().words(1)
        without_reasons(work)

    baseline = Tracing(wanted=errors.__file__.__eq__)
    failure(spend, baseline)
    handling = [(place, at + 1) for place, count in baseline.counts.items() for at in range(count)]
    assert len(handling) > 15
    for place, at in handling:
        caught = failure(spend, Tracing(place, at=at, kind=Interrupted))
        assert isinstance(caught, Interrupted)
        assert (123456, 654321) not in Seen(caught).sequences, (place, at)


def test_draws_refuse_to_be_seen_and_answer_once() -> None:
    grid = Grid.of(SCHEMA)
    gram = Gram.of_public(grid, np.array([10**15] * 6, dtype=object), rows=10**4)
    for name, kind in MECHANISMS.items():
        draw = kind().draw(loss=LOSSES[kind.kinds[0]], grid=grid, randomness=rehearsal(1))
        assert isinstance(draw, Sealed)
        attempts: list[Callable[[Any], Any]] = [
            repr, str, "{}".format, bool, list, len, np.asarray, pickle.dumps, copy.copy, copy.deepcopy, hash,
            lambda it: it == it, lambda it: it != it, lambda it: np.add(it, 1),
        ]  # fmt: skip
        for attempt_to_see in attempts:
            with pytest.raises(TypeError):
                attempt_to_see(draw)
        draw.answer(gram)
        assert vars(draw) == {}, name
        with pytest.raises(InternalError):
            draw.answer(gram)


def test_a_kernel_keeps_no_word_that_it_gave() -> None:
    source = randomness.kernel()
    given = set(source.words(100).tolist())
    buffer = source._buffer
    assert not given & set(buffer.tolist())
    assert buffer.base is not None
    assert not given & set(buffer.base.tolist())


# --- time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "row norm", "adaptive", "coinpress"])
def test_when_it_was_made_is_when_it_was_asked_for_however_long_paying_and_reading_take(
    name: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [datetime(2026, 1, 1, tzinfo=UTC)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return clock[0]

    def slow(real: Callable[..., Any]) -> Callable[..., Any]:
        def taking_an_hour(*given: Any, **named: Any) -> Any:
            clock[0] += timedelta(hours=1)
            return real(*given, **named)

        return taking_an_hour

    for module in (paying, certificate, estimate):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(Table, "blocks", slow(Table.blocks))
    monkeypatch.setattr(pc.Ledger, "pay", slow(pc.Ledger.pay))
    account = pc.ApproxDP(epsilon=99, delta="0.1", neighbours="replace-one")
    made = SPENDERS[name](table, ledger=pc.Ledger.init(tmp_path / "people.ledger", account))
    assert clock[0].hour >= 2
    assert made.certificate.created == "2026-01-01T00:00:00Z"


def test_a_certificate_is_not_younger_than_its_payment(table: str, tmp_path: Path) -> None:
    ledger = pc.Ledger.init(tmp_path / "people.ledger", pc.PureDP(epsilon=9, neighbours="replace-one"))
    made = SPENDERS["laplace"](table, ledger=ledger)
    (paid,) = [line for line in ledger.log() if line.kind == "paid"]
    assert made.certificate.created <= paid.created


def test_no_line_that_looks_for_a_header_can_be_left_with_the_rows_below_it(
    table: str, secrets: Secrets
) -> None:
    def spend() -> None:
        randomness.kernel().words(1)
        open_table(table, SCHEMA)

    assert swept(spend, secrets, "headers.py") > 5


# --- the ledger's secret ------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["init", "pay", "quote", "done", "balance", "log", "verify"])
def test_no_failure_of_a_ledger_takes_its_secret_along(
    act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused for want of budget where that can be; else planted where the secret is known."""
    path, budget = tmp_path / "people.ledger", LOSSES["pure"]
    made: list[bytes] = []

    def noted(size: int, real: Any = ledger_module._random) -> Any:
        text = real(size)
        made.extend([bytes.fromhex(text)] * (size == 32))
        return text

    def planted(*_: Any, **__: Any) -> Any:
        raise Planted("planted")

    monkeypatch.setattr(ledger_module, "_random", noted)
    ledger = pc.Ledger.init(path, budget)
    request = Request(loss=LOSSES["pure"], mechanism="laplace")
    receipt = ledger.pay(request)
    acts: dict[str, tuple[str, Callable[[], Any]]] = {
        "init": ("_chained", lambda: pc.Ledger.init(tmp_path / "new.ledger", budget)),
        "pay": ("", lambda: ledger.pay(request)),
        "quote": ("", lambda: ledger.quote(request)),
        "done": ("entry_text", lambda: ledger.done(receipt, digest="0", fingerprint="1")),
        "balance": ("Balance", ledger.balance),
        "log": ("read_entries", ledger.log),
        "verify": ("underpriced", ledger.verify),
    }
    where, call = acts[act]
    if where:
        monkeypatch.setattr(ledger_module, where, planted)
    caught = failure(call)
    assert caught is not None
    assert len(made) == 1 + (act == "init")
    seen = Seen(caught)
    for secret in made:
        assert not {secret, secret.hex().encode()} & seen.texts
