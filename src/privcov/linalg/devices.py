"""Where large matrices are multiplied and decomposed: NumPy on this processor, or PyTorch on a GPU.

Sums of rows are the same integers on every device (``summing/gpu.py``). Decompositions and sampled eigenvectors, which
only post-processing and idealized mechanisms use, agree to rounding. ``using`` sets the device for those of a block of
code; ``torch`` is PyTorch on this processor: the same code path, for tests and for machines without a GPU.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import symmetrized

SMALL = 512
"""Below so many columns a matrix is decomposed before a GPU has seen it."""


class Eigen(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors in columns."""

    eigenvalues: Floats
    eigenvectors: Floats


@dataclass(frozen=True, kw_only=True)
class Device:
    """A place to compute: ``cpu`` (NumPy), ``cuda`` or ``cuda:1`` (a GPU), ``torch`` (PyTorch on this processor)."""

    name: str

    @classmethod
    def named(cls, word: str, *, tell: Callable[[str], object] = warnings.warn) -> Device:
        """The device of a name. Without a GPU, ``cuda`` becomes ``cpu`` and ``tell`` is told so: never silently.

        >>> Device.named("cpu").name
        'cpu'
        """
        if not isinstance(word, str) or not re.fullmatch(r"cpu|torch|cuda(:\d{1,2})?", word):
            raise ParameterError("E215", f"device must be cpu, cuda, cuda:N or torch, got {word!r}.")
        if word == "cpu":
            return cls(name=word)
        if find_spec("torch") is None:
            raise ParameterError(
                "E215", f"the device {word} needs PyTorch.", "Install it with: pip install 'privcov[torch]'"
            )
        made = cls(name=word)
        if word == "torch":
            return made
        count = made.torch.cuda.device_count() if made.torch.cuda.is_available() else 0
        if count == 0:
            tell(f"PyTorch finds no GPU: using cpu instead of {word}, with the same result.")
            return cls(name="cpu")
        if int(word.partition(":")[2] or 0) >= count:
            raise ParameterError("E215", f"there is no GPU {word}; this machine has {count}.")
        return made

    @property
    def torch(self) -> Any:
        """PyTorch, imported when it is first needed: it takes seconds."""
        import torch

        return torch

    @property
    def place(self) -> Any:
        """What PyTorch calls this device."""
        return self.torch.device("cpu" if self.name == "torch" else self.name)


def cores() -> int:
    """The cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def free_memory() -> int:
    """Bytes of memory that the machine, or the container of this process, could still hand out; 0 where nobody says."""
    try:
        machine = 1024 * _numbers("/proc/meminfo")["MemAvailable:"]
    except (OSError, ValueError, LookupError):
        return 0
    try:
        most = int(Path("/sys/fs/cgroup/memory.max").read_text("ascii"))
        used = int(Path("/sys/fs/cgroup/memory.current").read_text("ascii"))
        spare = _numbers("/sys/fs/cgroup/memory.stat")[
            "inactive_file"
        ]  # of files, and given up when asked for
    except (OSError, ValueError, LookupError):  # no container, or one without a limit
        return machine
    return max(0, min(machine, most - used + spare))


def _numbers(path: str) -> dict[str, int]:
    """The second word of each line by the first."""
    lines = [line.split() for line in Path(path).read_text("ascii").splitlines()]
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


CPU = Device(name="cpu")
_current: ContextVar[Device] = ContextVar("privcov_device", default=CPU)


@contextmanager
def using(device: Device | str) -> Iterator[None]:
    """Decompose large matrices on this device in the block.

    >>> with using("cpu"):
    ...     eigh(np.eye(2)).eigenvalues.tolist()
    [1.0, 1.0]
    """
    token = _current.set(Device.named(device) if isinstance(device, str) else device)
    try:
        yield
    finally:
        _current.reset(token)


def device_for(columns: int) -> Device | None:
    """Where a matrix of so many columns is worked on, if it is not this processor."""
    device = _current.get()
    return None if device.name == "cpu" or columns < SMALL else device


def elsewhere(matrix: Floats) -> bool:
    """Whether a matrix would be decomposed on another device than this processor."""
    return device_for(matrix.shape[-1]) is not None


def eigh(matrix: Floats) -> Eigen:
    """Eigenvalues and eigenvectors of a symmetric matrix, or of a stack of them; only lower triangles are read."""
    device = device_for(matrix.shape[-1])
    if device is None:
        return Eigen(*np.linalg.eigh(matrix))
    values, vectors = device.torch.linalg.eigh(sent(matrix, device))
    return Eigen(received(values), received(vectors))


def eigvalsh(matrix: Floats) -> Floats:
    """Eigenvalues alone, ascending."""
    device = device_for(matrix.shape[-1])
    if device is None:
        return np.asarray(np.linalg.eigvalsh(matrix))
    return received(device.torch.linalg.eigvalsh(sent(matrix, device)))


def composed(vectors: Floats, values: Floats) -> Floats:
    """V diag(values) Vᵀ, symmetric to the last bit.

    >>> composed(np.eye(2), np.array([3.0, 2.0])).tolist()
    [[3.0, 0.0], [0.0, 2.0]]
    """
    device = device_for(len(vectors))
    if device is None:
        return symmetrized((vectors * values) @ vectors.T)[0]
    there = sent(vectors, device)
    made = (there * sent(values, device)) @ there.T
    return received((made + made.T) / 2)


def sent(values: Floats, device: Device) -> Any:
    """A copy on a device."""
    return device.torch.from_numpy(np.array(values, dtype=np.float64)).to(device.place)


def sent_like(values: Floats, there: Any) -> Any:
    """A copy where another tensor is."""
    return there.new_tensor(np.ascontiguousarray(values))


def received(tensor: Any) -> Floats:
    """A tensor back here."""
    return np.asarray(tensor.cpu().numpy())
