"""Noise that mechanisms draw before they see the data, part by part, with the law their proof pages give it.

A mechanism that divides its budget hides a fault of one part behind the slack of the others: an end-to-end test
passes eigenvalue noise that is halved. The parts are drawn before the data, so they can be looked at alone. The
scales below are written down from the proof pages and not taken from the code that draws; they leave out what
that code adds for rounding, at most one part in 2^20.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privcov.accounting import gaussian_mu
from privcov.audit.marginals import Marginal, laplace, marginals, normal
from privcov.audit.sampling import Outputs
from privcov.mechanisms.base import Mechanism
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.laws import GaussianEnsemble, NoiseLaw, WishartDifference
from privcov.privacy import ApproxDP, Loss
from privcov.schema.grid import Grid


@dataclass(frozen=True, kw_only=True)
class Part:
    """Integers of a draw, in grid units, and the laws of numbers taken from them."""

    label: str
    take: Callable[[Any], Any]
    laws: list[Marginal]


def parts(mechanism: Mechanism, draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    """The parts of a mechanism of the registry; none for one whose parts are not known here."""
    makers = {
        "eigenvectors": _eigenvectors,
        "kapralov-talwar": _kapralov_talwar,
        "power-method": _power_method,
        "matrix-bingham": _matrix_bingham,
        "separate": _separate,
    }
    maker = makers.get(mechanism.name)
    return [] if maker is None else maker(draw, loss, grid)


def overspent(draw: Any) -> Fraction:
    """What the shares of a divided budget add up to; 1 where a mechanism does not divide it."""
    shares: dict[str, Any] = getattr(draw, "shares", {})
    amounts = [sum(share) if isinstance(share, list) else share for share in shares.values()]
    return Fraction(sum(amounts)) if amounts else Fraction(1)


def _eigenvectors(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    return [
        Part(
            label=f"noise of the {what}",
            take=lambda d, w=what: d.noise[w],  # type: ignore[misc]
            laws=_values(draw.budget, draw.shares[what], Sensitivity.of(grid, loss.neighbours)),
        )
        for what in draw.noise
    ]


def _kapralov_talwar(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    moved = Sensitivity.of(grid, loss.neighbours).operator
    scale = moved * 2 * grid.dimension / loss.amounts["epsilon"]
    return [
        Part(
            label="noise of the values", take=lambda d: d.noise, laws=_each("Laplace", laplace(float(scale)))
        )
    ]


def _power_method(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    sensitivity = Sensitivity.of(grid, loss.neighbours)
    found = [
        Part(
            label="noise of the values",
            take=lambda d: d.values,
            laws=_values(draw.budget, draw.shares["values"][0], sensitivity),
        )
    ]
    if draw.noises:
        rank = draw.noises[0].shape[1]
        moved = sensitivity.operator if rank == 1 else sensitivity.frobenius
        amount = draw.budget.amount * draw.shares["steps"][0]
        if draw.budget.kind == "pure":
            law = _each("Laplace", laplace(math.sqrt(grid.dimension * rank) * float(moved / amount)))
        else:
            law = _each("normal", normal(float(moved) / math.sqrt(2 * amount)))
        found.append(Part(label="noise of the first step", take=lambda d: d.noises[0].ravel(), laws=law))
    return found


def _matrix_bingham(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    sensitivity = Sensitivity.of(grid, loss.neighbours)
    amount = float(draw.budget.amount * draw.shares["block"])
    law: NoiseLaw = WishartDifference(dimension=draw.rank, scale=float(sensitivity.nuclear) / (2 * amount))
    if draw.budget.kind != "pure":
        law = GaussianEnsemble(
            dimension=draw.rank, scale=float(sensitivity.frobenius) / math.sqrt(2 * amount)
        )
    return [Part(label="noise of the block", take=lambda d: d.noise, laws=marginals(law))]


def _separate(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    moved = float(Sensitivity.of(grid, loss.neighbours).frobenius)
    if isinstance(loss, ApproxDP):
        std = moved * math.sqrt(2) / float(gaussian_mu(epsilon=loss.epsilon, delta=loss.delta))
    else:
        std = moved / math.sqrt(loss.amounts["rho"])
    ensemble = GaussianEnsemble(dimension=grid.dimension, scale=std)
    return [
        Part(label="noise for the vectors", take=lambda d: d.for_vectors, laws=marginals(ensemble)),
        Part(label="noise for the values", take=lambda d: d.for_values, laws=_each("normal", normal(std))),
    ]


def _values(budget: Any, share: Fraction, sensitivity: Sensitivity) -> list[Marginal]:
    amount = budget.amount * share
    if budget.kind == "pure":
        return _each("Laplace", laplace(float(sensitivity.nuclear / amount)))
    return _each("normal", normal(float(sensitivity.frobenius) / math.sqrt(2 * amount)))


def _each(label: str, cdf: Callable[[Any], Any]) -> list[Marginal]:
    """Independent values of one law: all of them are looked at together."""
    return [Marginal(label=label, take=lambda x: x.ravel(), cdf=cdf)]


def taken(parts: list[Part], draw: Any) -> list[Outputs]:
    """The integers of every part of one draw."""
    return [np.asarray(part.take(draw), dtype=object) for part in parts]
