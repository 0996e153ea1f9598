"""A partial sum on its way from a worker to the process that merges: the one form in which a Gram matrix travels.

The bytes hold exact sums over people, as sensitive as the rows. They go between processes of one cluster, which is
inside the trust boundary with the files it reads (docs/explain/cluster.md), and nowhere else: nothing writes them
to a disk, prints them or logs them.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

_FORMAT = "privcov/summing/wire/1"
_DIGEST_BYTES = 16
_WORD = np.dtype("<i8")


def encode_sensitive_sum(gram: Gram) -> bytes:
    """The exact sum as bytes: public facts, upper triangle in one or two words per entry, digest."""
    low, high, reach = gram.words_for_transport()
    facts = {
        "format": _FORMAT,
        "dimension": gram.grid.dimension,
        "exponent": gram.grid.exponent,
        "bound": gram.grid.squared_norm_bound,
        "rows": gram.rows,
        "reach": reach,
        "words": 1 if high is None else 2,
    }
    body = json.dumps(facts).encode("ascii") + b"\n" + low.astype(_WORD).tobytes()
    if high is not None:
        body += high.astype(_WORD).tobytes()
    return _digest(body) + body


def decode_sensitive_sum(sent: bytes, grid: Grid) -> Gram:
    """The sum again. Bytes that were damaged on the way, belong to another grid, or are no sum of rows never are."""
    try:
        gram = _decoded(sent, grid)
    except (ValueError, TypeError, LookupError, OverflowError):
        raise InternalError from None
    if not gram.is_possible():
        raise InternalError
    return gram


def _decoded(sent: bytes, grid: Grid) -> Gram:
    digest, body = sent[:_DIGEST_BYTES], sent[_DIGEST_BYTES:]
    if digest != _digest(body):
        raise InternalError()
    line, _, words = body.partition(b"\n")
    facts = json.loads(line)
    expected = (_FORMAT, grid.dimension, grid.exponent, grid.squared_norm_bound)
    if tuple(facts[name] for name in ("format", "dimension", "exponent", "bound")) != expected:
        raise InternalError()
    if not all(type(facts[name]) is int for name in ("rows", "reach", "words")):
        raise InternalError()
    entries: NDArray[np.int64] = np.frombuffer(words, _WORD).astype(np.int64).reshape(facts["words"], -1)
    high = entries[1] if facts["words"] == 2 else None
    return Gram.from_transport(grid, entries[0], high, rows=facts["rows"], reach=facts["reach"])


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
