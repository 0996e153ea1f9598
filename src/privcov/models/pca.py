"""Principal components from a release: directions, explained variance with intervals, a rank the noise allows.

Components come from the repaired covariance. Intervals and the choice of the rank come from the raw matrix,
which is unbiased, and from the law of the noise. Columns are scaled to [-1, 1] unless ``scaled=False``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from privcov.devices import eigh, eigvalsh
from privcov.errors import ParameterError
from privcov.models import perturbation, selection
from privcov.models.summary import REHEARSAL
from privcov.released import Release
from privcov.shown import Shown

Floats = NDArray[np.float64]
EDGE_LEVEL = 0.95  # pure noise passes for a component in at most one release in twenty


def pca(
    release: Release,
    *,
    rank: int | None = None,
    centred: bool = True,
    scaled: bool = True,
    repair: str = "auto",
) -> PCAFit:
    """Principal components of the columns of a release.

    Assumes an intercept where ``centred`` or original units are asked for. Without a ``rank`` as many components
    are kept as raw eigenvalues stand above the noise edge, which may be none; all where the noise has no law.

    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> pc.pca(release).rank
    1
    """
    if centred or (not scaled and any(feature.middle for feature in release.schema.features)):
        selection.needs_intercept(release, "this PCA")
    if not release.schema.intercept and release.rows is None:
        selection.needs_intercept(release, "the count behind a PCA")
    columns = len(release.columns) - release.schema.intercept
    whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool)
    if rank is not None and not (whole and 1 <= rank <= columns):
        raise ParameterError(
            "E253",
            f"rank must be a whole number from 1 to {columns}, got {rank!r}.",
            "Leave it out to choose it.",
        )
    if rank is None and release.certificate.law is not None:
        perturbation.known_law(release, "the choice of a rank")
    fit = PCAFit(release=release, asked=rank, centred=centred, scaled=scaled, repair=repair)
    if not (np.diag(fit.covariance) > selection.NO_VARIANCE * fit._widths**2).any():
        raise ParameterError(
            "E254", "the release shows no variance in any column.", "Ask for a less noisy release."
        )
    return fit


@dataclass(frozen=True, kw_only=True, eq=False)
class PCAFit(Shown):
    """Principal components; ``components`` has one direction a row."""

    release: Release
    asked: int | None
    centred: bool
    scaled: bool
    repair: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.release.columns[place] for place in self._places)

    @property
    def rehearsal(self) -> bool:
        """Whether the release had repeatable noise, so that nothing here may be published."""
        return self.release.certificate.randomness == "rehearsal"

    @cached_property
    def rank(self) -> int:
        """How many components are kept."""
        if self.asked is not None:
            return int(self.asked)
        return (
            len(self.columns) if self.noise_edge is None else int((self.raw_variance > self.noise_edge).sum())
        )

    @property
    def components(self) -> Floats:
        """Orthonormal directions, one a row, the largest variance first; their largest entry is positive."""
        return self._spectrum[1][: self.rank]

    @property
    def explained_variance(self) -> Floats:
        """The variance along each component, from the repaired covariance."""
        return self._spectrum[0][: self.rank]

    @property
    def explained_share(self) -> Floats:
        return self.explained_variance / self.total_variance

    @property
    def total_variance(self) -> float:
        return float(self._spectrum[0].sum())

    @cached_property
    def covariance(self) -> Floats:
        """The repaired covariance (or mean second moment) that is decomposed."""
        moment = self.release.second_moment(scaled=True, repair=self.repair)
        return self._reduced(moment) / self._divisor(self.release.count(repair=self.repair))

    @cached_property
    def mean(self) -> Floats:
        """What is taken from a row before projecting, in the units of the PCA."""
        if not self.centred:
            return np.zeros(len(self.columns))
        return self.release.mean(scaled=self.scaled, repair=self.repair)

    @cached_property
    def raw_variance(self) -> Floats:
        """Descending eigenvalues of the raw matrix: unbiased entries, possibly negative values."""
        raw = perturbation.public_raw(self.release, self._everywhere)
        return np.asarray(eigvalsh(self._reduced(raw))[::-1] / self._divisor(self._raw_count))

    @cached_property
    def noise_edge(self) -> float | None:
        """The 95 % quantile of the largest eigenvalue that noise alone would show; None where it is not simulated."""
        law = self.release.certificate.law
        if law is None or not perturbation.can_be_rehearsed(self.release):
            return None
        count = perturbation.enough(law, EDGE_LEVEL)
        draws = perturbation.rehearsed_noise(self.release, self._everywhere, law=law, count=count)
        carry = self._carry
        if self.centred:  # noise of a centred matrix is (−μ, I) N (−μ, I)ᵀ, but for a term of order N²/n
            raw = perturbation.public_raw(self.release, self._everywhere)
            carry[:, 0] = -self._widths * raw[0, 1:] / max(1.0, float(raw[0, 0]))
        largest = np.asarray(eigvalsh(carry @ draws @ carry.T)[:, -1])
        return perturbation.bound(largest, EDGE_LEVEL) / self._divisor(self._raw_count)

    def intervals(self, level: float = 0.95) -> Floats:
        """Low and high end for the variance of each kept component of the true matrix, all at once.

        Conservative (Weyl): with probability at least ``level`` the noise is between −q and q times the
        identity, and then every ordered eigenvalue is between those of the raw matrix with q taken off and put
        on. Sampling of people is not in it: the truth is the covariance of the table that was released.
        """
        level = perturbation.check_level(level)
        law = perturbation.known_law(self.release, "an interval for explained variance")
        count = perturbation.enough(law, level)
        draws = perturbation.rehearsed_noise(self.release, self._everywhere, law=law, count=count)
        size = perturbation.bound(perturbation.spectral_norms(draws), level)
        raw = perturbation.public_raw(self.release, self._everywhere)
        ends, noisy_count = [], 0.0 if self._count_is_public else size
        for sign in (-1, 1):
            moved = raw + sign * size * np.eye(len(raw))
            people = self._raw_count - sign * noisy_count
            if (self.centred and moved[0, 0] <= 0) or people <= 2:  # the noise may be all there is
                ends.append(np.full(len(self.columns), 0.0 if sign < 0 else np.inf))
            else:
                ends.append(eigvalsh(self._reduced(moved))[::-1] / self._divisor(people))
        return np.asarray(np.maximum(np.stack(ends, axis=1)[: self.rank], 0.0))

    def transform(self, rows: Any) -> Floats:
        """Scores of new rows given in original units: an array in the order of ``columns``, or named columns."""
        table = selection.read_rows(self.release, self._places, rows)
        if self.scaled:
            table = (table - self._middles) / self._half_widths
        return np.asarray((table - self.mean) @ self.components.T)

    def inverse_transform(self, scores: Any) -> Floats:
        """Rows in original units with these scores and nothing outside the components."""
        given = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        if given.shape[1] != self.rank:
            raise ParameterError("E257", f"scores need {self.rank} columns, got shape {given.shape}.")
        table = given @ self.components + self.mean
        return np.asarray(table * self._half_widths + self._middles if self.scaled else table)

    def captured_variance(self, basis: Any) -> float:
        """The share of the variance in the span of some directions, one a row, in the units of the PCA."""
        directions = np.atleast_2d(np.asarray(basis, dtype=np.float64))
        if directions.shape[1] != len(self.columns) or not np.isfinite(directions).all():
            raise ParameterError(
                "E257", f"a basis has {len(self.columns)} finite numbers a row, got shape {directions.shape}."
            )
        span = scipy.linalg.orth(directions.T)
        return float(np.trace(span.T @ self.covariance @ span)) / self.total_variance

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Everything a program may want; ``intervals`` is None where noise has no law or is not simulated."""
        ends = self.intervals(level) if perturbation.can_be_rehearsed(self.release) else None
        return {
            "columns": list(self.columns),
            "rank": self.rank,
            "rank_chosen": self.asked is None,
            "units": "scaled" if self.scaled else "original",
            "centred": self.centred,
            "labels": [REHEARSAL] if self.rehearsal else [],
            "rehearsal": self.rehearsal,
            "explained_variance": self.explained_variance.tolist(),
            "explained_share": self.explained_share.tolist(),
            "total_variance": self.total_variance,
            "level": level,
            "intervals": None
            if ends is None
            else [[low, high if np.isfinite(high) else None] for low, high in ends.tolist()],
            "noise_edge": self.noise_edge,
            "components": self.components.tolist(),
            "mean": self.mean.tolist(),
            "mechanism": self.release.certificate.mechanism,
            "guarantee": str(self.release.certificate.loss),
        }

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}PCAFit: {self.rank} of {len(self.columns)} components>"

    @property
    def _places(self) -> tuple[int, ...]:
        return tuple(range(int(self.release.schema.intercept), len(self.release.columns)))

    @property
    def _everywhere(self) -> tuple[int, ...]:
        """The places whose noise matters: the intercept's too, which carries count and means."""
        return tuple(range(len(self.release.columns)))

    @property
    def _carry(self) -> Floats:
        """What takes a scaled row, its constant included, to the units of the PCA, uncentred."""
        carry = np.diag(self._widths)
        if not self.release.schema.intercept:
            return carry
        moved = np.zeros(len(self.columns)) if self.scaled else self._middles
        return np.hstack([moved[:, None], carry])

    @property
    def _half_widths(self) -> Floats:
        return np.array([self.release.schema.features[place].half_width for place in self._places])

    @property
    def _middles(self) -> Floats:
        return np.array([self.release.schema.features[place].middle for place in self._places])

    @property
    def _widths(self) -> Floats:
        return np.ones(len(self.columns)) if self.scaled else self._half_widths

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        values, vectors = eigh(self.covariance)
        values, rows = np.maximum(values[::-1], 0.0), vectors.T[::-1]
        largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
        return values, np.asarray(rows * np.sign(largest)[:, None])

    def _reduced(self, moment: Floats) -> Floats:
        """The centred or plain sums of products behind a scaled moment matrix, in the units of the PCA."""
        if self.centred:
            return np.asarray(perturbation.centred(moment) * np.outer(self._widths, self._widths))
        return np.asarray(self._carry @ moment @ self._carry.T)

    def _divisor(self, count: float) -> float:
        return max(1.0, count - 1) if self.centred else max(1.0, count)

    @property
    def _count_is_public(self) -> bool:
        fixed = self.release.structure.fixed
        return not self.release.schema.intercept or (0, 0) in list(map(tuple, fixed))

    @property
    def _raw_count(self) -> float:
        if not self.release.schema.intercept:
            return float(self.release.rows or 0)
        return float(perturbation.public_raw(self.release, [0])[0, 0])


def principal_angles(
    first: Sequence[Sequence[float]] | Floats, second: Sequence[Sequence[float]] | Floats
) -> Floats:
    """Angles in radians between the spans of two sets of directions, one a row, the largest first.

    >>> principal_angles([[1.0, 0.0]], [[0.0, 2.0]]).round(4)
    array([1.5708])
    """
    a, b = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (first, second))
    if a.shape[1] != b.shape[1] or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ParameterError(
            "E257", f"directions need finite numbers and equal lengths, got {a.shape} and {b.shape}."
        )
    return np.asarray(scipy.linalg.subspace_angles(a.T, b.T))
