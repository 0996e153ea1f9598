"""Numbers computed from a released matrix that may tell two neighbouring tables apart.

Any function of an output is a fair test: a statistic can miss a leak, never invent one. These are the nominal
log-likelihood ratios of the additive mechanisms, what spectra give away (supports, leading directions), single
entries, and the low bits that arithmetic may leave behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.audit.neighbours import Pair
from privcov.linalg.arrays import Floats

_MOST_ENTRIES = 6
_MOST_BITS = 16

Scores = dict[str, Floats]


def scores(outputs: NDArray[Any], pair: Pair) -> Scores:
    """Every statistic of outputs (integers of upper triangles, one a row), in units of the squared norm bound."""
    d, unit = pair.grid.dimension, float(pair.grid.squared_norm_bound)
    rows, columns = np.triu_indices(d)
    weights = np.where(rows == columns, 1.0, 2.0)
    whole = [pair.upper(which).astype(np.float64) / unit for which in (0, 1)]
    released = outputs.astype(np.float64) / unit
    change = whole[0] - whole[1]
    left = [released - truth for truth in whole]  # what the noise would be, were either table the true one
    trace = released[:, rows == columns].sum(axis=1)
    along = released @ (weights * change)
    moved_trace = float(change[rows == columns].sum())
    found: Scores = {
        "⟨o, D⟩": along,
        "⟨o, D⟩ + tr o · tr D": along + moved_trace * trace,
        "trace": trace,
        "ℓ1 distance": np.abs(left[1]).sum(1) - np.abs(left[0]).sum(1),
        "Frobenius distance": np.sqrt(left[1] ** 2 @ weights) - np.sqrt(left[0] ** 2 @ weights),
    }
    if d > 1:
        spectra: list[Any] = [np.linalg.eigvalsh(_full(part, d)) for part in left]
        found["nuclear distance"] = np.abs(spectra[1]).sum(1) - np.abs(spectra[0]).sum(1)
        for values, which in zip(spectra, ("C", "C′"), strict=True):
            found[f"λ_min(o − {which})"] = values[:, 0]
            found[f"λ_max(o − {which})"] = values[:, -1]
        # The sign of the largest eigenvalue in size would otherwise decide which end is called leading.
        leading = np.linalg.eigh(_full(released, d))[1][:, :, -1]
        found["uᵀDu, u leading"] = ((leading[:, rows] * leading[:, columns]) * weights) @ change
    moved = np.flatnonzero(np.abs(change) > 1e-6)[:_MOST_ENTRIES]
    for place in moved if d > 1 else ():
        found[f"entry {rows[place] + 1},{columns[place] + 1}"] = released[:, place]
    if np.issubdtype(outputs.dtype, np.integer):
        found["low bit"] = (outputs[:, moved] & 1).sum(axis=1).astype(np.float64)
        for side, name in ((0, "C"), (1, "C′")):
            found[f"trailing zeros of o − {name}"] = _trailing_zeros(outputs - pair.upper(side))
    return found


def _full(upper: Floats, d: int) -> Floats:
    full = np.empty((len(upper), d, d))
    rows, columns = np.triu_indices(d)
    full[:, rows, columns] = full[:, columns, rows] = upper
    return full


def _trailing_zeros(values: NDArray[Any]) -> Floats:
    """The fewest zero bits that any entry of a row ends in: what noise from a coarse grid leaves."""
    low = values & (2**_MOST_BITS - 1) | 2**_MOST_BITS
    return np.asarray(np.log2(low & -low).min(axis=1), dtype=np.float64)
