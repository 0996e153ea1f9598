"""Gaussian noise or separate Gaussians, whichever a private trace promises less of (Dong, Liang and Yi 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from privcov.accounting import gaussian_mu
from privcov.mechanisms.base import DataDrivenMechanism, Draw, Mechanism, Upper
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.sensitivity import Sensitivity, sqrt_up
from privcov.mechanisms.separate import EXACT_COLUMNS, Separate
from privcov.noise.exact import rounded_normals
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram, Sealed

FAILURE = 0.1
"""β of the bounds that guide the choices; it tunes them and no guarantee."""
TRACE_SHARE = Fraction(1, 8)
_ROOT = 2**40
Way = Literal["either", "gaussian", "separate"]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A loss in three: a pure ε for a walk over radii, and two Gaussian mechanisms, for a trace and a matrix.

    Guarantee: together they cost the loss. As zCDP the walk counts for ε²/2. For (ε, δ) the walk takes its share
    of ε, and the Gaussians have the μ whose exact profile is within what is left: ρ here means μ²/2.
    """

    walk: PureDP | None
    trace: ZCDP
    rest: ZCDP

    @classmethod
    def of(cls, loss: Loss, *, walk: Fraction, trace: Fraction) -> Parts:
        """In these shares of the whole; without a walk where its share is 0."""
        if isinstance(loss, ApproxDP):
            epsilon, whole = walk * loss.epsilon, 1 - walk
            mu = gaussian_mu(epsilon=loss.epsilon - epsilon, delta=loss.delta)
            rho = mu**2 / 2
        else:
            rho, whole = loss.amounts["rho"], Fraction(1)
            epsilon = Fraction(math.isqrt(int(2 * walk * rho * _ROOT**2)), _ROOT)
        return cls(
            walk=PureDP(epsilon=epsilon, neighbours=loss.neighbours) if walk else None,
            trace=ZCDP(rho=rho * trace / whole, neighbours=loss.neighbours),
            rest=ZCDP(rho=rho * (1 - walk - trace) / whole, neighbours=loss.neighbours),
        )


@dataclass(frozen=True, kw_only=True)
class Adaptive(DataDrivenMechanism):
    """A private trace, a private radius by a sparse vector walk, then ``gaussian`` or ``separate`` at that radius.

    Guarantee: an eighth of the budget each for trace and walk, the rest for the matrix; they compose to the
    whole. ``release`` says what the matrix comes from: ``either`` lets the trace decide, and a certificate names
    what was taken. The walk needs rows and is in ``privcov.frame.walk``; given a Gram matrix alone, this mechanism
    takes the radius as it is. ``constants="published"`` is the 2022 paper, under replace-one.
    Proof: docs/proofs/adaptive.md.
    """

    name = "adaptive"
    kinds = ("zcdp", "approximate")
    summary = "chooses a row norm privately, then uses gaussian or separate, whichever has less noise"
    best_at = "tables whose rows are mostly far shorter than their bound (the 2022 paper)"
    proof = "docs/proofs/adaptive.md"
    as_published = {"constants": "published"}  # noqa: RUF012 - a constant of the class
    row_norm = "sparse-vector"

    release: Way = "either"
    constants: Literal["tight", "published"] = "tight"

    def check(self, loss: Loss) -> None:
        super().check(loss)
        for part in self._parts().values():
            part.check(loss)

    def law(self, *, loss: Loss, grid: Grid) -> NoiseLaw | None:  # type: ignore[override]
        """That of ``gaussian`` once it was taken."""
        return self._gaussian.law(loss=loss, grid=grid) if self.release == "gaussian" else None

    def as_zcdp(self, loss: Loss) -> Fraction:
        """The sum of its Gaussians, whatever the loss was said in; the walk before it has a price of its own."""
        if self.release != "either":
            return (
                self._gaussian.as_zcdp(loss) if self.release == "gaussian" else self._separate.as_zcdp(loss)
            )
        parts = Parts.of(loss, walk=Fraction(0), trace=TRACE_SHARE)
        return parts.trace.rho + parts.rest.rho

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Draw:
        self.check(loss)
        self.check_grid(grid)
        parts = self._parts()
        if self.release != "either":
            return parts[self.release].draw(loss=loss, grid=grid, randomness=randomness)
        shares = Parts.of(loss, walk=Fraction(0), trace=TRACE_SHARE)
        trace = PrivateTrace.draw(shares.trace, grid, randomness)
        draws = {
            name: part.draw(loss=shares.rest, grid=grid, randomness=randomness)
            for name, part in parts.items()
        }
        return _Draw(self, shares.rest, grid, trace, draws)

    def check_grid(self, grid: Grid) -> None:
        """Refuse more columns than exact eigenvalues are practical for."""
        if self.release != "gaussian":
            self.check_columns(grid.dimension, most=EXACT_COLUMNS, instead="gaussian with a private row norm")

    def predicted(self, *, loss: Loss, grid: Grid, trace: float) -> dict[Way, float]:
        """The error of every way that ``release`` allows, for a matrix of this trace; both in scaled units.

        A guide, no guarantee: for ``separate`` the larger of what we measured over many spectra, or the bounds of
        the paper's code.
        """
        separate, unit, d = self._separate, float(grid.unit), grid.dimension
        law = self._gaussian.law(loss=loss, grid=grid)
        vectors, values = (float(std) * unit for std in separate.stds(loss=loss, grid=grid))
        errors: dict[Way, float]
        if self.constants == "published":
            errors = {
                "gaussian": law.scale * _frobenius_bound(d),
                "separate": math.sqrt(4 * trace * vectors * _operator_bound(d)) / 6 + values * _norm_bound(d),
            }
        else:
            turned = min(trace * vectors * math.sqrt(2 * d) / 4, vectors**2 * d * (d - 1) / 2)
            errors = {"gaussian": law.rms_frobenius, "separate": math.sqrt(turned + d * values**2)}
        return {name: error for name, error in errors.items() if self.release in ("either", name)}

    def _parts(self) -> dict[Way, Mechanism]:
        return {"gaussian": self._gaussian, "separate": self._separate}

    @property
    def _gaussian(self) -> Gaussian:
        return Gaussian(arithmetic=self.arithmetic, constants=self.constants)

    @property
    def _separate(self) -> Separate:
        return Separate(arithmetic=self.arithmetic, constants=self.constants)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PrivateTrace(Sealed):
    """The noise of one trace, drawn before data is read: a Gaussian mechanism of the given ρ."""

    _refusal = Draw._refusal

    noise: int
    std: Fraction
    largest_row: int
    public_rows: bool

    @classmethod
    def draw(cls, loss: ZCDP, grid: Grid, randomness: Randomness) -> PrivateTrace:
        std = Sensitivity.of(grid, loss.neighbours).trace * sqrt_up(1 / (2 * loss.rho))
        return cls(
            noise=int(rounded_normals(randomness, count=1, std=std)[0]),
            std=std,
            largest_row=grid.squared_norm_bound,
            public_rows=loss.neighbours.count_is_public(grid.max_rows_per_person),
        )

    def answer(self, trace: int, *, rows: int) -> int:
        """The trace plus noise and a margin, so that it is seldom too small: in grid units, at least 0."""
        margin = math.ceil(self.std * Fraction(math.sqrt(2 * math.log(8 / FAILURE))))
        noisy = max(0, trace + self.noise + margin)
        return min(noisy, rows * self.largest_row) if self.public_rows else noisy


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(Draw):
    """All noise is drawn already; the trace says which of the two is used. The other is forgotten."""

    mechanism: Adaptive
    loss: ZCDP
    grid: Grid
    trace: PrivateTrace
    draws: dict[Way, Draw]

    def _answer(self, gram: Gram) -> Upper:
        diagonal = np.equal(*np.triu_indices(self.grid.dimension))
        private = self.trace.answer(
            int(gram.reveal_to_mechanism()[diagonal].astype(object).sum()), rows=gram.rows
        )
        errors = self.mechanism.predicted(
            loss=self.loss, grid=self.grid, trace=float(private * self.grid.unit)
        )
        return self.draws[min(errors, key=errors.__getitem__)].answer(gram)


def _frobenius_bound(d: int) -> float:
    """Of ‖W‖_F for independent normal entries above the diagonal, as the 2022 code has it."""
    log = math.log(2 / (0.75 * FAILURE))
    return math.sqrt(d * d + 2 * math.sqrt(d * log) * (1 + math.sqrt(2 * (d - 1))) + 6 * log)


def _operator_bound(d: int) -> float:
    """Of ‖W‖ for the same."""
    if d == 1:
        return math.sqrt(2 * math.log(4 / (0.75 * FAILURE)))
    theta = min((math.log(d) / d) ** 0.3, 0.5)
    spread = 2 * math.sqrt(d) + 6 * math.sqrt(math.log(d) / math.log1p(theta))
    return (1 + theta) * spread + math.sqrt(2 * math.log(4 / (0.75 * FAILURE)))


def _norm_bound(d: int) -> float:
    """Of the length of d normals (Laurent and Massart)."""
    log = math.log(2 / (0.75 * FAILURE))
    return math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)
