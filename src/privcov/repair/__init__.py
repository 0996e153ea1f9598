"""Free improvement of a noisy second-moment matrix, from the release and public facts alone.

A release is a true matrix plus noise whose law is printed on the certificate. The true matrix is positive
semi-definite, its trace is bounded, and the schema may fix some entries; repair uses all of that. It never
sees data, so it costs no privacy. What each method does, and when ``auto`` prefers which, is told in
docs/explain/repair.md.
"""

from __future__ import annotations

from collections.abc import Callable

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import composed, eigh
from privcov.repair import spectra
from privcov.repair.choose import auto
from privcov.repair.facts import PublicFacts
from privcov.repair.observed import Observed
from privcov.repair.structure import Structure

__all__ = ["METHODS", "MOST_REHEARSED", "Observed", "PublicFacts", "Structure", "repair"]

MOST_REHEARSED = 1_447
"""Columns of a release that is not wide. Beyond, nothing is rehearsed: ``auto`` is ``shrink``, which with so many
eigenvalues needs no help; a rehearsal would decompose the matrix dozens of times."""

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


def repair(observed: Observed, *, method: str = "auto") -> Floats:
    """Return the matrix most worth using in place of a noisy second-moment matrix.

    Deterministic, and from public facts alone, so it costs no privacy. What each method does is told in
    docs/explain/repair.md.

    Parameters
    ----------
    observed : Observed
        The noisy matrix in scaled units, the law of its noise, and public facts.
    method : str, default "auto"
        A name of ``METHODS``: "none", "clip", "trace", "believed", "shrink", "spiked", "isotropic", "zero", or
        "auto", which mixes them by rehearsal. Beyond 1,447 columns "auto" is "shrink".

    Returns
    -------
    ndarray of shape (d, d)
        The repaired matrix, in scaled units: positive semi-definite, but for "none". Where the observation has a
        structure, its equalities hold in the result, for "none" too.

    Raises
    ------
    ParameterError
        There is no such repair (E272), or the matrix is too wide for "spiked" (E268).

    Examples
    --------
    >>> import numpy as np
    >>> from privcov.noise.laws import WishartDifference
    >>> from privcov.repair import Observed, repair
    >>> noisy = np.array([[300.0, 350.0], [350.0, 200.0]])
    >>> bool(np.linalg.eigvalsh(noisy).min() < 0)
    True
    >>> law = WishartDifference(dimension=2, scale=10.0)
    >>> repaired = repair(Observed(matrix=noisy, law=law, rows=1000, squared_norm_bound=1.0))
    >>> bool(np.linalg.eigvalsh(repaired).min() > -1e-9)
    True
    """
    if method not in METHODS:
        raise ParameterError(
            "E272", f"there is no repair called {method!r}.", f"Choose one of {', '.join(METHODS)}."
        )
    if observed.law.dimension > MOST_REHEARSED:
        if method == "spiked":
            raise ParameterError(
                "E268",
                f"the repair 'spiked' takes at most {MOST_REHEARSED:,} columns, got {observed.law.dimension:,}.",
                "Use auto or shrink.",
            )
        method = "shrink" if method == "auto" else method
    fitted = observed.fitted()
    if method == "none":
        return fitted.matrix.copy()
    eigenvalues, vectors = eigh(fitted.matrix)
    repaired = METHODS[method](eigenvalues[None, :], fitted.facts)[0]
    result = composed(vectors, repaired)
    return result if fitted.structure is None else fitted.structure.fit_positive(result)
