"""Numbers from this computer's memory to a device, as fast as the wire between them allows.

A GPU copies by itself only from pinned memory. So threads copy the numbers into pinned staging buffers, in turn; the
device empties one buffer while the next is filled, and while it computes with the block before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.devices import Device, cores

_BUFFER, _BUFFERS = 2**23, 3
"""Numbers in one buffer, which is 64 MiB, and how many buffers there are."""
_WORTH_A_THREAD = 2**16

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
