"""Free improvement of a noisy second-moment matrix, from the release and public facts alone.

A release is a true matrix plus noise whose law is printed on the certificate. The true matrix is positive
semi-definite, its trace is bounded, and the schema may fix some entries; repair uses all of that. It never
sees data, so it costs no privacy. What each method does, and when ``auto`` prefers which, is told in
docs/explain/repair.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import composed, eigh
from privcov.linalg.triangle import symmetrized
from privcov.noise.laws import NoiseLaw
from privcov.repair import spectra
from privcov.repair.choose import auto, rehearsed, towards_guess
from privcov.repair.facts import PublicFacts, Usual, within_reach
from privcov.repair.structure import Structure

__all__ = ["METHODS", "MOST_REHEARSED", "Observed", "PublicFacts", "Structure", "Usual", "repair"]

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
        "auto", which mixes them by rehearsal, and leans to what is usual as far as noise drowns the rest. Beyond
        1,447 columns "auto" is "shrink".

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
    if method == "none":
        return observed.fitted().matrix.copy()
    fitted = observed.fitted(smooth=True)
    eigenvalues, vectors = eigh(fitted.matrix)
    way = rehearsed(eigenvalues, fitted.facts) if method == "auto" else METHODS[method]
    result = composed(vectors, way(eigenvalues[None, :], fitted.facts)[0])
    if fitted.structure is not None:
        result = fitted.structure.fit_positive(result)
    if method == "auto" and observed.usual is not None:

        def remake(matrices: Floats) -> Floats:
            values, vectors = eigh(matrices)
            return np.asarray((vectors * way(values, fitted.facts)[:, None, :]) @ vectors.transpose(0, 2, 1))

        result = towards_guess(result, fitted.matrix, observed.law, observed.usual, remake)
    if method == "auto" and observed.reaches is not None:
        result = within_reach(result, observed.reaches)
    return result


def repair_without_law(
    matrix: Floats,
    *,
    rows: int | None,
    squared_norm_bound: float,
    structure: Structure | None,
    method: str = "auto",
) -> Floats:
    """Eigenvalues clipped to [0, rows · R²], and the nearest such matrix of the public structure, if any is given."""
    if method == "none":
        return matrix.copy()
    if method not in ("auto", "clip"):
        raise ParameterError(
            "E279",
            f"the repair {method!r} needs the distribution of the noise, which is not known for this mechanism.",
            "Use auto, clip or none.",
        )
    largest = math.inf if rows is None else rows * squared_norm_bound
    eigenvalues, vectors = eigh(matrix)
    result = composed(vectors, np.clip(eigenvalues, 0.0, largest))
    return result if structure is None else structure.fit_positive(result)


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """A noisy symmetric second-moment matrix, the law of its noise, and public facts. All in scaled units.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        The noisy sum over rows of zzᵀ.
    law : NoiseLaw
        The law of its noise.
    rows : float or None
        The count where it is public, or a noisy count released before. None where nothing is known of it.
    squared_norm_bound : float
        The bound on the squared norm of a row.
    structure : Structure, optional
        What the schema makes certain about the matrix.
    usual : Usual, optional
        What numeric columns are like, beside an intercept in column 0, where the structure says nothing about them.
        Where the noise drowns their products, "auto" leans to that: no correlation, and usual variances.
    reaches : ndarray of shape (d,), optional
        How far each column can be from zero, beside an intercept in column 0; infinite where a structure says more.
        "auto" leaves no column a variance beyond that.

    Raises
    ------
    ParameterError
        The shapes disagree, or a number is out of range (E27x, E281).

    Examples
    --------
    >>> import numpy as np
    >>> from privcov.noise.laws import GaussianEnsemble
    >>> from privcov.repair import Observed
    >>> law = GaussianEnsemble(dimension=2, scale=1.0)
    >>> observed = Observed(matrix=np.eye(2), law=law, rows=10, squared_norm_bound=1.0)
    >>> observed.facts.trace_cap, observed.fitted() is observed
    (10.0, True)
    """

    matrix: Floats
    law: NoiseLaw
    rows: float | None
    squared_norm_bound: float
    structure: Structure | None = None
    usual: Usual | None = None
    reaches: Floats | None = None

    def __post_init__(self) -> None:
        given, d = np.asarray(self.matrix, dtype=np.float64), self.law.dimension
        if given.shape != (d, d):
            raise ParameterError("E273", f"the noise law has dimension {d}, the matrix shape {given.shape}.")
        if not np.isfinite(given).all():
            raise ParameterError("E274", "the matrix to repair has entries that are not finite.")
        matrix, difference = symmetrized(given)
        if not difference <= 1e-9 * float(np.abs(given).max(initial=0.0)):
            raise ParameterError("E275", "the matrix to repair is not symmetric.")
        if self.structure is not None and self.structure.dimension != d:
            raise ParameterError(
                "E281", f"the structure has dimension {self.structure.dimension}, the matrix {d}."
            )
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)
        _ = self.facts  # validates what is left

    @property
    def facts(self) -> PublicFacts:
        """Everything besides the matrix that a repair may use."""
        return PublicFacts(law=self.law, rows=self.rows, squared_norm_bound=self.squared_norm_bound)

    def fitted(self, *, smooth: bool = False) -> Observed:
        """Return the same observation after its structure has been used, with the noise that is left.

        Parameters
        ----------
        smooth : bool, default False
            Whether to shrink what columns of levels have to do with others, too.

        Returns
        -------
        Observed
            The nearest matrix with the structure; itself where there is none.
        """
        if self.structure is None:
            return self
        made = self.structure.smoothed if smooth else self.structure.fit
        matrix, left = made(self.matrix, self.law), self.structure.noise_left(self.law, smooth=smooth)
        law = dataclasses.replace(self.law, scale=self.law.scale * math.sqrt(left))
        return dataclasses.replace(self, matrix=matrix, law=law)
