"""The lines of Figure 1, with the constants the paper prints and with ours; then the lines that are ours alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.mechanisms import find
from privcov.mechanisms.base import AdditiveMechanism, answer
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.repair import Observed, repair
from privcov_lab.reproduce.papers.amin2019.place import Place

DELTAS = {"16": "1e-16", "10": "1e-10", "3": "1e-3"}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A mechanism and its options, the δ of its promise if it needs one, and what is made of its answer."""

    mechanism: str
    delta: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    repaired: bool = False

    def loss(self, epsilon: float) -> Loss:
        if self.delta is None:
            return PureDP(epsilon=epsilon, neighbours="replace-one")
        return ApproxDP(epsilon=epsilon, delta=self.delta, neighbours="replace-one")

    def release(
        self, randomness: Randomness, place: Place, *, epsilon: float, as_published: bool = False
    ) -> Floats:
        """One private matrix in idealized arithmetic, its eigenvalues rounded to [0, n] or repaired."""
        loss = self.loss(epsilon)
        mechanism = find(
            self.mechanism, loss=loss, as_published=as_published, arithmetic="idealized", **self.options
        )
        if not isinstance(mechanism, AdditiveMechanism):
            drawn = mechanism.draw(loss=loss, grid=place.grid, randomness=randomness)
            return place.rounded(place.matrix(answer(drawn, place.gram)[0]))
        law = mechanism.law(loss=loss, grid=place.grid)
        noisy = place.truth + law.simulate(randomness)
        if not self.repaired:
            return place.rounded(noisy)
        return np.asarray(repair(Observed(matrix=noisy, law=law, rows=place.rows, squared_norm_bound=1.0)))


PAPER: dict[str, Method] = {
    "AD": Method(mechanism="eigenvectors"),
    "IT-U": Method(mechanism="eigenvectors", options={"split": "uniform"}),
    "KT": Method(mechanism="kapralov-talwar"),
    "L": Method(mechanism="laplace"),
    **{f"G-{name}": Method(mechanism="gaussian", delta=delta) for name, delta in DELTAS.items()},
}
"""The paper's methods under its own names."""

OURS: dict[str, Method] = {
    "symmetric-wishart": Method(mechanism="symmetric-wishart"),
    "symmetric-wishart repaired": Method(mechanism="symmetric-wishart", repaired=True),
    **{
        f"G-{name} repaired": Method(mechanism="gaussian", delta=delta, repaired=True)
        for name, delta in DELTAS.items()
    },
    **{f"separate-{name}": Method(mechanism="separate", delta=delta) for name, delta in DELTAS.items()},
}
"""What the paper did not have."""

METHODS = PAPER | OURS
