"""Bounded rows and their Gram matrix on a device: the same integers as ``Bounding`` and ``Gram``, bit for bit.

Every operation is the one ``Bounding`` does, on one element, rounded once; products are of whole numbers that float64
holds exactly, whatever the order; sums of products are int64. PyTorch turns a division by a number, or of a number,
into a product with a reciprocal, which rounds twice: here both sides of a division are tensors. Freivalds' check
confirms the sum. Proof: docs/proofs/exact-gram.md.

A GPU copies by itself only from pinned memory. So threads copy the numbers into pinned staging buffers, in turn; the
device empties one buffer while the next is filled, and while it computes with the block before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.devices import Device, cores
from privcov.schema import Schema
from privcov.schema.grid import BLOCK_ROWS, Grid
from privcov.schema.recovery import corners
from privcov.schema.shape import BITS
from privcov.schema.weights import root
from privcov.summing.bounding import Bounding, Clip, Turn, Weighing, part_of
from privcov.summing.check import Check, exactness_probe
from privcov.summing.gram import WORD, Gram, Stack, Sums
from privcov.table.blocks import Block, Coded

if TYPE_CHECKING:
    from privcov.summing.sum import Split

_BUFFER, _BUFFERS = 2**23, 3
"""Numbers in one buffer, which is 64 MiB, and how many buffers there are."""
_WORTH_A_THREAD = 2**16
_SUMS_THERE = 2**29
"""Numbers in sums of strata that stay on the device, which is 4 GiB; more of them stay here, and products come."""

Lines = Sequence[NDArray[np.float64]] | NDArray[np.float64]
"""Vectors of one length, or a matrix whose rows they are."""


class Sender:
    """Sends matrices to one device, one after the other. A matrix stays as it came until two more are sent."""

    def __init__(self, device: Device) -> None:
        self._torch, self._place = device.torch, device.place
        self._wire = _Wire(device) if self._place.type == "cuda" else _NoWire()
        self._buffers: list[tuple[Any, Any]] = []
        self._landings = [self._floats(0), self._floats(0)]
        self._pool = ThreadPoolExecutor(cores())

    def send(self, lines: Lines) -> Any:
        """The lines as a matrix on the device."""
        count, length = len(lines), len(lines[0])
        there, fresh = self._land(count * length)
        there = there.view(count, length)
        step = max(1, _BUFFER // length)
        with self._wire.sending(wait=fresh):
            for first in range(0, count, step):
                some = lines[first : first + step]
                buffer = self._free_buffer(len(some) * length)
                filled = buffer[: len(some) * length].view(len(some), length)
                self._copy(some, filled.numpy())
                there[first : first + step].copy_(filled, non_blocking=True)
                self._buffers.append((buffer, self._wire.mark()))
        return there

    def _land(self, size: int) -> tuple[Any, bool]:
        """Where the next matrix goes, and whether that place is new."""
        self._landings.reverse()
        fresh = len(self._landings[0]) < size
        if fresh:
            self._landings[0] = self._floats(size)
        return self._landings[0][:size], fresh

    def _free_buffer(self, size: int) -> Any:
        if len(self._buffers) < _BUFFERS:
            return self._floats(max(size, _BUFFER), pinned=True)
        buffer, emptied = self._buffers.pop(0)
        emptied.synchronize()
        return buffer if len(buffer) >= size else self._floats(size, pinned=True)

    def _copy(self, lines: Lines, here: NDArray[np.float64]) -> None:
        parts = max(1, min(cores(), len(lines), here.size // _WORTH_A_THREAD))
        edges = [len(lines) * part // parts for part in range(parts + 1)]

        def copy(part: int) -> None:
            some = slice(edges[part], edges[part + 1])
            if isinstance(lines, np.ndarray):
                here[some] = lines[some]
            else:
                np.concatenate(lines[some], out=here[some].reshape(-1))

        if parts == 1:
            copy(0)
        else:
            list(self._pool.map(copy, range(parts)))

    def _floats(self, size: int, *, pinned: bool = False) -> Any:
        gpu = self._place.type == "cuda"
        place = "cpu" if pinned else self._place
        return self._torch.empty(size, dtype=self._torch.float64, device=place, pin_memory=pinned and gpu)


class _Wire:
    """The order in which a GPU fetches and computes: side by side, and nothing before what it needs."""

    def __init__(self, device: Device) -> None:
        self._cuda, self._place = device.torch.cuda, device.place
        self._stream: Any = self._cuda.Stream(self._place)
        self._used: Any = None

    @contextmanager
    def sending(self, *, wait: bool) -> Iterator[None]:
        computing = self._cuda.current_stream(self._place)
        if wait:
            self._stream.wait_stream(computing)
        elif self._used is not None:  # all that used the matrix before the last, which this one replaces
            self._stream.wait_event(self._used)
        self._used = computing.record_event()
        with self._cuda.stream(self._stream):
            yield
        computing.wait_stream(self._stream)

    def mark(self) -> Any:
        return self._stream.record_event()


class _NoWire:
    """The processor of this machine, which has copied when it says so."""

    @contextmanager
    def sending(self, *, wait: bool) -> Iterator[None]:
        yield

    def mark(self) -> _NoWire:
        return self

    def synchronize(self) -> None:
        pass


_HALF = 2**16
"""Freivalds' numbers of 32 bits go in halves, whose products with rows float64 holds exactly."""


class _Pile:
    """The running sum of qqᵀ of one stratum, or of all rows, on its device until it is asked for."""

    def __init__(self, grid: Grid, device: Device, *, waits: bool, kept_here: bool) -> None:
        self._torch, self._grid = device.torch, grid
        self._place = self._torch.device("cpu") if kept_here else device.place
        shape = (grid.dimension, grid.dimension)
        self.low = self._torch.zeros(shape, dtype=self._torch.int64, device=self._place)
        self._total: Gram | None = None
        self._rows = self._reach = self._waiting = 0
        self._waits = waits
        self._gathered: Any = None

    def add(self, rows: Any) -> None:
        """Add at most ``BLOCK_ROWS`` rows of whole numbers, one a column.

        Where they wait, it is until there are enough for a product: one of few rows costs more in adding than in
        multiplying.
        """
        if not self._waits or (not self._waiting and rows.shape[1] == BLOCK_ROWS):
            self._multiply(rows)
            return
        if self._gathered is None:
            self._gathered = rows.new_empty((len(rows), BLOCK_ROWS))
        for part in rows.tensor_split([BLOCK_ROWS - self._waiting], dim=1):
            self._gathered[:, self._waiting : self._waiting + part.shape[1]] = part
            self._waiting += part.shape[1]
            if self._waiting == BLOCK_ROWS:
                self._multiply_waiting()

    def gram(self) -> Gram:
        """The sum, back in this process."""
        self._multiply_waiting()
        return self._carry()

    def _multiply_waiting(self) -> None:
        if self._waiting:
            self._multiply(self._gathered[:, : self._waiting])
        self._waiting = 0

    def _multiply(self, rows: Any) -> None:
        reach = rows.shape[1] * self._grid.squared_norm_bound
        if self._reach + reach > WORD:
            self._carry()
        self._reach += reach
        self._rows += rows.shape[1]
        self.low += (rows @ rows.T).to(self._torch.int64).to(self._place)

    def _carry(self) -> Gram:
        """Hand what is summed so far to the process, whose sum never overflows; returns that one."""
        words = self.low.cpu().numpy()
        if self._place.type == "cpu":
            words = words.copy()
        part = Gram.from_transport(self._grid, words, None, rows=self._rows, reach=self._reach)
        if self._total is None:
            self._total = part
        else:
            self._total.merge(part)
        self.low.zero_()
        self._reach = self._rows = 0
        return self._total


class DeviceSum:
    """Bounded rows and their Gram matrix on a device, or one a stratum: ``HostSum`` there, to the same integers."""

    def __init__(self, schema: Schema, grid: Grid, device: Device, split: Split | None = None) -> None:
        check_device(device)
        self._torch, self._place = device.torch, device.place
        self._bounding, self._grid, self._split = Bounding.of(schema, grid), grid, split
        self._numbers = [
            (numbers, *map(self._sent, (numbers.middles, numbers.steps, numbers.least, numbers.most)))
            for numbers in self._bounding.numbers
        ]
        clip = self._bounding.clip
        self._rooms = () if clip is None else tuple(map(self._sent, clip.rooms))
        if (turn := self._bounding.turn) is not None:
            self._before, self._integers = tuple(map(self._sent, turn.clip.rooms)), self._sent(turn.integers)
        count = 1 if split is None else split.count
        crowded = count > 1 and count * grid.dimension**2 > _SUMS_THERE
        self.piles = [_Pile(grid, device, waits=split is None, kept_here=crowded) for _ in range(count)]
        self._check = Check(grid.dimension)
        weights = self._check.weights.view(np.uint32).astype(np.int64)
        self._halves = self._sent(np.stack([weights % _HALF, weights // _HALF], axis=1).astype(np.float64))
        self._expected = self._torch.zeros(grid.dimension, dtype=self._torch.int64, device=self._place)
        self._sender = Sender(device)

    def add(self, block: Block) -> None:
        """Bound the rows of a block and add them."""
        ends: NDArray[np.intp] = np.array([len(block[0])])
        if self._split is not None:
            block, ends = self._split.ordered(block, np.empty(len(block) * len(block[0])))
        for start in range(0, len(block[0]), BLOCK_ROWS):
            part = part_of(block, start, start + BLOCK_ROWS)
            if isinstance(part, Coded):
                part = part.whole()
            if isinstance(part, np.ndarray) and abs(part.strides[0]) < abs(part.strides[1]):
                cells = self._sender.send(part.T).T  # a table whose rows lie one after the other
            else:
                cells = self._sender.send(part)
            self.add_cells(cells, np.clip(ends - start, 0, len(part[0])))

    def add_cells(self, cells: Any, ends: NDArray[np.intp] | None = None) -> None:
        """The same for at most ``BLOCK_ROWS`` rows whose cells are a tensor, one row of it for each column.

        Rows of several strata stand stratum by stratum, and ``ends`` says where each ends.
        """
        rows = self.bounded(cells)
        begin = 0
        for pile, end in zip(self.piles, [rows.shape[1]] if ends is None else ends.tolist(), strict=True):
            if end > begin:
                pile.add(rows[:, begin:end])
            begin = end
        self._see(rows)

    def bounded(self, cells: Any) -> Any:
        """Whole-number rows, one for each column of the result: ``Bounding.rows``, step by step."""
        torch, bounding, schema = self._torch, self._bounding, self._bounding.schema
        one = bounding.one
        made = torch.empty((self._grid.dimension, cells.shape[1]), dtype=torch.float64, device=self._place)
        if schema.exhaustive:
            cells = cells.clone()
        for _, place, column in bounding.levels:
            if column.exhaustive:
                cells[place].masked_fill_(cells[place] < 0, bounding.unmatched(column))
        missing = ~torch.isfinite(cells)
        for numbers, middles, steps, least, most in self._numbers:
            scaled = torch.sub(cells[numbers.run], middles, out=made[numbers.features])
            scaled.div_(steps).clamp_(least, most).round_().masked_fill_(missing[numbers.run], 0.0)
            for row, fill in enumerate(numbers.fills.tolist()):
                if fill:
                    scaled[row].masked_fill_(missing[numbers.places[row]], fill)
        made[: int(schema.intercept)] = one
        for at, place, column in bounding.levels:
            found = cells[place]
            if column.exhaustive:
                found = found.masked_fill(missing[place], bounding.last_resort(column)).long()
                corner = self._sent(corners(column.width, self._grid.exponent))
                made[at : at + column.summed_width] = corner[:, found]
                continue
            if column.fill is not None:
                found = found.masked_fill(missing[place], float(column.levels.index(column.fill)))
            for position in range(len(column.levels)):
                torch.mul(found == position, one, out=made[at + position])
        for place, feature in bounding.indicators:
            torch.mul(missing[place], one, out=made[feature])
        if bounding.emptying:
            made.masked_fill_(missing[sorted(bounding.emptying)].any(dim=0), 0.0)
        if bounding.turn is not None:
            self._turn(made, bounding.turn)
        if bounding.clip is not None:
            self._shrink(made, bounding.clip, self._rooms)
        if (weighing := bounding.weighing) is not None:
            self._weigh(made, weighing, cells[weighing.place].masked_fill(missing[weighing.place], 0.0))
        # Unreachable, and cheap to check on every row, as in ``Bounding``.
        return made.masked_fill_(~(_squares(made) <= self._grid.squared_norm_bound), 0.0)

    def gram(self) -> Gram:
        """The one sum, where there are no strata."""
        gram = self.sums()
        assert isinstance(gram, Gram)
        return gram

    def sums(self) -> Sums:
        """The sums, back in this process, if Freivalds' check confirms the sum of them."""
        grams = tuple(pile.gram() for pile in self.piles)
        sums = grams[0] if self._split is None else Stack.of(grams)
        self._check.expect(self._expected.cpu().numpy())
        if not sums.agrees_with(self._check.weights, self._check.expected):
            raise InternalError()
        return sums

    def _see(self, rows: Any) -> None:
        """Add Σ q(q·v) modulo 2^32, in halves of 16 bits: sums below 2^20 · 2^16 · max(rows, columns) < 2^53."""
        low, high = (rows.T @ self._halves).to(self._torch.int64).unbind(dim=1)
        seen = (low + (high % _HALF) * _HALF) % _HALF**2
        halves = self._torch.stack([seen % _HALF, seen // _HALF], dim=1).to(self._torch.float64)
        low, high = (rows @ halves).to(self._torch.int64).unbind(dim=1)
        self._expected += low + (high % _HALF) * _HALF

    def _turn(self, made: Any, turn: Turn) -> None:
        cells = made[turn.places]
        self._shrink(cells, turn.clip, self._before)
        made[turn.places] = (self._integers @ cells).mul_(2.0**-BITS).round_()

    def _weigh(self, made: Any, weighing: Weighing, weights: Any) -> None:
        torch = self._torch
        shares = weights.clamp(0.0, weighing.largest) / torch.full_like(weights, weighing.largest)
        found = root(shares, weighing.power, torch.sqrt)
        counted = (shares > 0) & (made[0] != 0)
        ones = torch.ones_like(shares)
        roots = torch.where(counted, ones if found is None else found, torch.zeros_like(shares))
        made[weighing.feature] = (roots * roots).sub_(0.5).mul_(weighing.one).round_()
        made.mul_(roots).round_()

    def _shrink(self, made: Any, clip: Clip, rooms: tuple[Any, ...]) -> None:
        torch = self._torch
        squared = sum(_squares(made[run]) for run in clip.features)
        available, radius = rooms
        if clip.indicators:
            taken = (made[list(clip.indicators)] != 0).sum(dim=0)
            available, radius = available[taken], radius[taken]
        factor = torch.where(squared > available, radius / torch.sqrt(squared), torch.ones_like(squared))
        for run in clip.features:
            made[run].mul_(factor).round_()

    def _sent(self, values: Any) -> Any:
        return self._torch.from_numpy(np.array(values)).to(self._place)


def _squares(rows: Any) -> Any:
    """Σ q² over the first axis: whole numbers up to 2^52, exact in any order."""
    return (rows * rows).sum(dim=0)


@cache
def check_device(device: Device) -> None:
    """Once for every device: a product at the bound of exactness, compared with integers.

    A library may compute float64 products from smaller ones; one that loses a bit anywhere is refused here.
    """
    rows, expected = exactness_probe()
    torch = device.torch
    sent = torch.from_numpy(rows).to(device.place)
    made = (sent.T @ sent).to(torch.int64).cpu().numpy()
    if made[np.triu_indices(rows.shape[1])].tolist() != expected:
        raise InternalError()
