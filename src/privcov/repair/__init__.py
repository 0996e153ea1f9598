"""Free improvement of a noisy second-moment matrix, from the release and public facts alone.

A release is a true matrix plus noise whose law is printed on the certificate. The true matrix is positive
semi-definite, its trace is bounded, and the schema may fix some entries; repair uses all of that. It never sees
data, so it costs no privacy. What each method does and when ``auto`` prefers which: docs/explain/repair.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from privcov.errors import ParameterError
from privcov.noise import NoiseLaw
from privcov.repair import spectra
from privcov.repair.choose import auto
from privcov.repair.facts import Floats, PublicFacts
from privcov.repair.structure import Structure

__all__ = ["METHODS", "PublicFacts", "Structure", "repair"]

METHODS: dict[str, Callable[[Floats, PublicFacts], Floats]] = {
    "none": spectra.none,
    "clip": spectra.clip,
    "trace": spectra.trace,
    "believed": spectra.believed,
    "shrink": spectra.shrink,
    "spiked": spectra.spiked,
    "isotropic": spectra.isotropic,
    "zero": spectra.zero,
    "auto": auto,
}


def repair(
    matrix: ArrayLike,
    *,
    law: NoiseLaw,
    rows: float | None,
    squared_norm_bound: float,
    method: str = "auto",
    structure: Structure | None = None,
) -> Floats:
    """The matrix most worth using in place of a noisy second-moment matrix; deterministic.

    All in scaled units. ``rows`` is the count when it is public, else None. Every method but ``none`` returns a
    positive semi-definite matrix; with a ``structure`` its equalities hold as well, for ``none`` too.

    >>> from privcov.noise import WishartDifference
    >>> law = WishartDifference(dimension=2, scale=10.0)
    >>> noisy = [[300.0, 350.0], [350.0, 200.0]]
    >>> np.linalg.eigvalsh(noisy).round(1).tolist()
    [-103.6, 603.6]
    >>> repaired = repair(noisy, law=law, rows=1000, squared_norm_bound=1.0)
    >>> bool(np.linalg.eigvalsh(repaired).min() >= 0)
    True
    """
    if method not in METHODS:
        raise ParameterError(
            "E272", f"there is no repair called {method!r}.", f"Choose one of {', '.join(METHODS)}."
        )
    noisy = _checked(matrix, law)
    if structure is not None:
        noisy = structure.fit(noisy, law)
        law = dataclasses.replace(law, scale=law.scale * math.sqrt(structure.noise_left(law)))
    if method == "none":
        return noisy
    facts = PublicFacts(law=law, rows=rows, squared_norm_bound=squared_norm_bound)
    eigenvalues, vectors = np.linalg.eigh(noisy)
    repaired = METHODS[method](eigenvalues[None, :], facts)[0]
    result = (vectors * repaired) @ vectors.T
    result = (result + result.T) / 2
    return result if structure is None else structure.fit_positive(result)


def _checked(matrix: ArrayLike, law: NoiseLaw) -> Floats:
    noisy = np.array(matrix, dtype=np.float64)
    if noisy.shape != (law.dimension, law.dimension):
        raise ParameterError(
            "E273", f"the noise law has dimension {law.dimension}, the matrix shape {noisy.shape}."
        )
    if not np.isfinite(noisy).all():
        raise ParameterError("E274", "the matrix to repair has entries that are not finite.")
    if not np.allclose(noisy, noisy.T, rtol=0, atol=1e-9 * max(1.0, float(np.abs(noisy).max()))):
        raise ParameterError("E275", "the matrix to repair is not symmetric.")
    return (noisy + noisy.T) / 2
