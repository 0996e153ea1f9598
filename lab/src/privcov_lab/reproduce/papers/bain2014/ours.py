"""The library's own release and least squares on the same moments, for the same (ε, δ), add-remove.

The report's sensitivity of one row holds for a row that comes or goes, so that is the relation here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privcov import mechanisms
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import AdditiveMechanism
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import Randomness
from privcov.privacy import Amount, ApproxDP
from privcov.releases.certificate import Certificate
from privcov.releases.release import Release
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov_lab.reproduce.papers.bain2014.published import DELTA, Scaled


@dataclass(frozen=True, kw_only=True)
class Ours:
    """The ``gaussian`` mechanism at one loss, for columns whose bounds are those the report takes from its data."""

    schema: Schema
    epsilon: Amount
    as_published: bool = False
    """The classical σ on every entry, with the sensitivity that the bounds really give."""

    @classmethod
    def of(
        cls, table: Scaled, names: tuple[str, ...], *, epsilon: Amount, as_published: bool = False
    ) -> Ours:
        """In the units of a table."""
        ends = zip(names, table.lows.tolist(), table.ranges.tolist(), strict=True)
        columns = {name: {"lower": low, "upper": low + width} for name, low, width in ends}
        return cls(schema=Schema.from_dict({"columns": columns}), epsilon=epsilon, as_published=as_published)

    @classmethod
    def unit(cls, attributes: int, *, epsilon: Amount) -> Ours:
        """In units of the columns' half ranges: one schema for many tables."""
        columns = {f"x{i}": {"lower": -1, "upper": 1} for i in range(1, attributes)}
        return cls(
            schema=Schema.from_dict({"columns": {**columns, "y": {"lower": -1, "upper": 1}}}), epsilon=epsilon
        )

    @cached_property
    def grid(self) -> Grid:
        return Grid.of(self.schema)

    @cached_property
    def loss(self) -> ApproxDP:
        return ApproxDP(epsilon=self.epsilon, delta=DELTA, neighbours="add-remove")

    @cached_property
    def mechanism(self) -> AdditiveMechanism:
        found = mechanisms.find("gaussian", loss=self.loss, as_published=self.as_published)
        assert isinstance(found, AdditiveMechanism)
        return found

    @cached_property
    def law(self) -> NoiseLaw:
        return self.mechanism.law(loss=self.loss, grid=self.grid)

    def release(self, table: Scaled, randomness: Randomness) -> Release:
        """A rehearsal with idealized noise, of the table's moments in [-1, 1] units."""
        noisy = centred(table.moments) + self.law.simulate(randomness)
        integers = noisy[np.triu_indices(len(noisy))] * 4.0**self.grid.exponent
        return Release(
            schema=self.schema,
            rows=None,
            upper=tuple(round(value) for value in integers.tolist()),
            certificate=Certificate(
                mechanism=self.mechanism.name,
                options=self.mechanism.options,
                loss=self.loss,
                law=self.law,
                arithmetic="idealized",
                randomness="rehearsal",
                proof=self.mechanism.proof,
                timing=self.mechanism.timing_note,
            ),
        )


def centred(moments: Floats) -> Floats:
    """Moments of [0, 1] columns as moments of [-1, 1] columns, the intercept first."""
    units = np.eye(len(moments)) * 2
    units[:, 0] = -1.0
    units[0, 0] = 1.0
    return np.asarray(units @ moments @ units.T)


def in_units_of(table: Scaled, coefficients: Floats) -> Floats:
    """Coefficients between columns in half ranges about their middles, in the table's units."""
    half = table.ranges / 2
    about = Scaled(moments=table.moments, lows=table.lows + half, ranges=half)
    slope, shift = about.back
    return np.asarray(slope @ coefficients + shift)
