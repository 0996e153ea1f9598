"""Iterative eigenvector sampling (Amin, Dick, Kulesza, Muñoz Medina and Vassilvitskii, NeurIPS 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from typing import Literal, Self

from privcov.errors import ParameterError
from privcov.mechanisms.base import DataDrivenMechanism, Draw, Upper
from privcov.mechanisms.budget import Budget
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.spectral import SPECTRAL
from privcov.noise.exact.envelope import proposals_needed
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

EXACT_COLUMNS = 64
TIMING_SHARE = Fraction(1, 2)
"""The share of δ that padded timing may use up."""


@dataclass(frozen=True, kw_only=True)
class Eigenvectors(DataDrivenMechanism):
    """Private vectors one by one from exp(c·θᵀCθ), each orthogonal to those before, and a private value each.

    Guarantee: a draw with exponent c moves its log density by at most c·(λ₁(D) − λ_d(D)), so c = ηᵢ/spread
    makes it ηᵢ-bounded-range: ηᵢ of pure ε, or ηᵢ²/8 of ρ. The paper's exponent is twice as cautious as its
    guarantee needs. The last vector of a full basis is free. ``values="rayleigh"`` releases θᵀCθ of the
    vectors drawn, the best values for them, in place of eigenvalues. Proof: docs/proofs/eigenvectors.md.
    """

    name = "eigenvectors"
    kinds = ("pure", "approximate", "zcdp")
    summary = "draws eigenvectors one by one (exponential mechanism), then a noisy value for each"
    best_at = "a few leading eigenvectors (rank); the 2018 and 2019 papers"
    proof = "docs/proofs/eigenvectors.md"
    as_published = {"exponent": "paper", "values": "eigenvalues"}  # noqa: RUF012 - a constant of the class

    split: Literal["adaptive", "uniform"] = "adaptive"
    values: Literal["rayleigh", "eigenvalues"] = "rayleigh"
    exponent: Literal["tight", "paper"] = "tight"
    timing: Literal["unprotected", "padded"] = "unprotected"
    rank: int | None = None

    @property
    def timing_note(self) -> str:
        if self.timing == "padded":
            return (
                "every vector takes a fixed public number of proposals; "
                "half of delta pays for the chance that none is accepted"
            )
        return "the promise is for an observer who does not see how long the draw took, which depends on the data"

    def check(self, loss: Loss) -> None:
        super().check(loss)
        if self.timing == "padded" and not isinstance(loss, ApproxDP):
            raise ParameterError(
                "E209", "padded timing needs a delta: with a fixed number of proposals, all may be rejected.",
                "Give --delta, or leave timing unprotected.",
            )  # fmt: skip
        if self.timing == "padded" and self.arithmetic == "idealized":
            raise ParameterError("E209", "padded timing exists in exact arithmetic only.")

    def idealized(self) -> Self:
        """Without padding, which has no float64 variant and is not an error of the matrix."""
        return replace(self, arithmetic="idealized", timing="unprotected")

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        d = grid.dimension
        rank = self.rank_of(self.rank, d)
        self.check_columns(d, most=EXACT_COLUMNS)
        draws, proposals = min(rank, d - 1), None
        if self.timing == "padded" and isinstance(loss, ApproxDP) and draws:
            proposals = proposals_needed(d, _failure(loss) / draws)
            loss = ApproxDP(
                epsilon=loss.epsilon, delta=loss.delta * (1 - TIMING_SHARE), neighbours=loss.neighbours
            )
        budget, sensitivity = Budget.of(loss, draws=draws), Sensitivity.of(grid, loss.neighbours)
        shares = self._shares(draws)
        noise = {
            what: budget.part(share).value_noise(randomness, sensitivity, d if what == "spectrum" else rank)
            for what, share in shares.items()
            if what != "vectors"
        }
        return _Draw(self, budget, shares, sensitivity, rank, proposals, noise, randomness)

    def _shares(self, draws: int) -> dict[str, Fraction]:
        """How the budget is divided: the spectrum that guides the split, the vectors, their values."""
        if not draws:  # one column: the only vector is known
            return {"values": Fraction(1)}
        half, quarter = Fraction(1, 2), Fraction(1, 4)
        if self.values == "eigenvalues":
            return {"spectrum": half, "vectors": half}
        if self.split == "adaptive":
            return {"spectrum": quarter, "vectors": half, "values": quarter}
        return {"vectors": half, "values": half}


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(Draw):
    """Value noise already drawn; the vectors cannot be drawn before the matrix is there."""

    mechanism: Eigenvectors
    budget: Budget
    shares: dict[str, Fraction]
    sensitivity: Sensitivity
    rank: int
    proposals: int | None
    noise: dict[str, Upper]
    randomness: Randomness

    def _answer(self, gram: Gram) -> Upper:
        d = self.sensitivity.dimension
        opened = SPECTRAL[self.mechanism.arithmetic](gram.reveal_to_mechanism(), d)
        spectrum = []
        if "spectrum" in self.shares:
            noisy = [
                value + int(noise)
                for value, noise in zip(opened.eigenvalues(), self.noise["spectrum"], strict=True)
            ]
            spectrum = sorted(noisy, reverse=True)
        exponents = self._exponents([max(0, value) for value in spectrum], draws=min(self.rank, d - 1))
        vectors = opened.chain(self.randomness, exponents, self.rank, self.proposals)
        values = spectrum[: self.rank]
        if "values" in self.shares:
            values = [
                q + int(n) for q, n in zip(opened.quotients(vectors), self.noise["values"], strict=True)
            ]
        return opened.assemble(vectors, values)

    def _exponents(self, spectrum: Sequence[int], *, draws: int) -> list[Fraction]:
        """The coefficient of each draw, from public facts and the private spectrum."""
        if not draws:
            return []
        weights = [1.0] * draws
        if self.mechanism.split == "adaptive":
            unit = float(self.sensitivity.squared_norm * self.sensitivity.rows_per_person)
            guide = self.budget.part(self.shares["spectrum"])
            weights = guide.weights([value / unit for value in spectrum], self.sensitivity)[:draws]
        ranges = self.budget.part(self.shares["vectors"]).ranges(weights)
        paper = 4 * self.sensitivity.operator
        return [
            eta / (self.sensitivity.spread if self.mechanism.exponent == "tight" else paper) for eta in ranges
        ]


def _failure(loss: ApproxDP) -> Fraction:
    """β with (1 + e^ε)·β at most the share of δ that timing may use."""
    return TIMING_SHARE * loss.delta / (1 + Fraction(exp(min(float(loss.epsilon), 700.0)) * (1 + 1e-12)))
