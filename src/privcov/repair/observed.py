"""A noisy matrix together with everything public about it: the one argument of ``repair``."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import symmetrized
from privcov.noise.laws import NoiseLaw
from privcov.repair.facts import PublicFacts
from privcov.repair.structure import Structure


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

    def fitted(self) -> Observed:
        """Return the same observation after its structure has been used, with the noise that is left.

        Returns
        -------
        Observed
            The nearest matrix with the structure; itself where there is none.
        """
        if self.structure is None:
            return self
        left = math.sqrt(self.structure.noise_left(self.law))
        return dataclasses.replace(
            self,
            matrix=self.structure.fit(self.matrix, self.law),
            law=dataclasses.replace(self.law, scale=self.law.scale * left),
        )
