"""A release watched from outside: what every sampler was asked for, and the exact whole numbers that met its noise.

Two tables that differ in one person are released with the same noise, the second with the answers of the first: then
everything that is chosen between rounds is the same, and what differs is what noise has to hide. What a draw spends on
that difference follows from the law of its sampler alone: no sensitivity, price or grid of the library is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import log_ndtr, ndtr

import privcov as pc
from privcov.frame import counting
from privcov.mechanisms import base, frobenius, gaussian, joint_gaussian, laplace, symmetric_wishart
from privcov.noise.randomness import NoBits, rehearsal

SAMPLERS = (
    (counting, ("discrete_laplace", "discrete_cube", "rounded_normals")),
    (laplace, ("discrete_laplace",)),
    (frobenius, ("frobenius_ball",)),
    (gaussian, ("gaussian_ensemble", "discrete_gaussian")),
    (symmetric_wishart, ("wishart_difference",)),
    (joint_gaussian, ("rounded_normals", "gaussian_ensemble")),
)
Asked = tuple[tuple[str, dict[str, Any]], ...]
"""The names of samplers, and what they were asked for."""


@dataclass
class Watch:
    """What was drawn, in order, what each draw was added to, and what came of it."""

    told: Sequence[tuple[int, ...]] = ()
    """Answers that rounds are to give, whatever they count."""
    drawn: list[tuple[Asked, Any]] = field(default_factory=list)
    handed: list[tuple[int, ...]] = field(default_factory=list)
    answers: list[tuple[int, ...]] = field(default_factory=list)

    def answered(self, exact: Sequence[int], found: Sequence[int]) -> tuple[int, ...]:
        place = len(self.answers)
        self.handed.append(tuple(map(int, exact)))
        self.answers.append(self.told[place] if place < len(self.told) else tuple(map(int, found)))
        return self.answers[-1]


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """While this lasts, ``watch`` sees every draw that is made and every sum that meets one."""
    asked: list[tuple[str, dict[str, Any]]] = []
    patches = []

    def seen(name: str, honest: Any) -> Any:
        def sampler(randomness: Any, **words: Any) -> Any:
            made = honest(randomness, **words)
            asked.append((name, {word: value for word, value in words.items() if word not in ("count",)}))
            return made

        return sampler

    for module, names in SAMPLERS:
        patches += [patch.object(module, name, seen(name, getattr(module, name))) for name in names]
    draw_look, draw, added, answer = (
        counting.Look.draw,
        base.AdditiveMechanism.draw,
        counting._Noise.added_to,
        base.Noise._answer,
    )

    def look_draw(self: Any, loss: Any, randomness: Any) -> Any:
        asked.clear()
        made = draw_look(self, loss, randomness)
        watch.drawn.append((tuple(asked), loss))
        return made

    def matrix_draw(self: Any, *, loss: Any, grid: Any, randomness: Any) -> Any:
        asked.clear()
        made = draw(self, loss=loss, grid=grid, randomness=randomness)
        if not isinstance(randomness, NoBits):  # else it is asked what it would refuse
            watch.drawn.append((tuple(asked), loss))
        return made

    def added_to(self: Any, totals: Any) -> Any:
        return [watch.answered(*pair) for pair in zip(totals, added(self, totals), strict=True)]

    def noise_answer(self: Any, gram: Any) -> Any:
        return np.array(watch.answered(gram.reveal_to_mechanism(), answer(self, gram)), dtype=object)

    patches += [
        patch.object(counting.Look, "draw", look_draw),
        patch.object(base.AdditiveMechanism, "draw", matrix_draw),
        patch.object(counting._Noise, "added_to", added_to),
        patch.object(base.Noise, "_answer", noise_answer),
    ]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in reversed(patches):
            one.stop()


def watched(data: Any, told: Sequence[tuple[int, ...]] = (), **order: Any) -> tuple[Any, Watch]:
    """A release, and what was seen of it."""
    watch = Watch(told)
    with watching(watch):
        made = pc.release(data, randomness=rehearsal(1), **order)
    assert len(watch.drawn) == len(watch.handed)
    return made, watch


def rounds_of(made: Any, watch: Watch) -> list[tuple[int, ...]]:
    """The answers that came before the matrices."""
    matrices = len(getattr(made, "uppers", [0])) + (getattr(made, "pooled", None) is not None)
    return watch.answers[: len(watch.answers) - matrices]


def spent_on(left: Any, right: Any, **order: Any) -> tuple[float, Any]:
    """The share of the promise that a release spends on telling two tables apart, and the release of the first."""
    made, one = watched(left, **order)
    other, two = watched(right, told=rounds_of(made, one), **order)
    public = [
        (m.schema, m.rows, m.certificate.rounds, m.certificate.options, m.certificate.law)
        for m in (made, other)
    ]
    assert public[0] == public[1]
    assert one.drawn == two.drawn
    parts = [
        (*cost_of(asked, [after - before for before, after in zip(*sums, strict=True)]), loss)
        for (asked, loss), *sums in zip(one.drawn, one.handed, two.handed, strict=True)
    ]
    return share_of(parts, made.certificate.loss), made


def cost_of(asked: Asked, moved: Sequence[int]) -> tuple[str, Fraction]:
    """ε or ρ of noise from these samplers for a change of what it is added to: by the laws that they say they draw."""
    names, words = tuple(name for name, _ in asked), [own for _, own in asked]
    if names == ("discrete_laplace",):
        return "epsilon", sum(map(abs, moved)) / Fraction(words[0]["scale"])
    if names == ("discrete_cube",):
        return "epsilon", max(map(abs, moved)) / Fraction(words[0]["scale"])
    if names == ("rounded_normals",):
        return "rho", sum(value * value for value in moved) / (2 * Fraction(words[0]["std"]) ** 2)
    matrix = symmetric(moved)
    if names == (
        "wishart_difference",
    ):  # of n × (n + 1) normals of variance s: density e^(-‖·‖_*/2s), or flatter
        length = np.abs(np.linalg.eigvalsh(matrix.astype(float))).sum()
        return "epsilon", Fraction(float(length)) / (2 * words[0]["scale"])
    if names == ("frobenius_ball",):
        return "epsilon", Fraction(math.sqrt(int((matrix**2).sum()))) / words[0]["scale"]
    if names == ("gaussian_ensemble",):
        return "rho", _ensemble(words[0], matrix)
    if names == ("discrete_gaussian", "discrete_gaussian"):
        on = int((np.diag(matrix) ** 2).sum())
        off = int((matrix**2).sum() - on) // 2
        return "rho", on / (2 * words[0]["variance"]) + off / (2 * words[1]["variance"])
    assert names == ("rounded_normals", "gaussian_ensemble")
    assert matrix[0, 0] == 0  # the count is told without noise
    sums = int((matrix[0, 1:] ** 2).sum()) / (2 * Fraction(words[0]["std"]) ** 2)
    return "rho", sums + _ensemble(words[1], matrix[1:, 1:])


def _ensemble(words: dict[str, Any], matrix: Any) -> Fraction:
    """Normals of one deviation on the diagonal, whose mean keeps a share of itself, and of another one beside it."""
    diagonal = [Fraction(int(value)) for value in np.diag(matrix)]
    mean, beside = sum(diagonal) / len(diagonal), int((matrix**2).sum() - (np.diag(matrix) ** 2).sum())
    apart = (
        sum((value - mean) ** 2 for value in diagonal) + len(diagonal) * mean**2 / words["trace_keep"] ** 2
    )
    return (apart / words["diagonal_std"] ** 2 + Fraction(beside, 2) / words["offdiagonal_std"] ** 2) / 2


def symmetric(upper: Sequence[int]) -> Any:
    size = (math.isqrt(8 * len(upper) + 1) - 1) // 2
    made = np.zeros((size, size), dtype=object)
    made[np.triu_indices(size)] = upper
    return made + np.triu(made, 1).T


def share_of(parts: Sequence[tuple[str, Fraction, Any]], loss: Any) -> float:
    """What share of a promise parts of ε and ρ are together; above 1 it is broken."""
    epsilon = sum(cost for unit, cost, _ in parts if unit == "epsilon")
    rho = sum(cost for unit, cost, _ in parts if unit == "rho")
    if isinstance(loss, pc.ZCDP):
        pure = [float(cost) for unit, cost, _ in parts if unit == "epsilon"]
        return (float(rho) + sum(one * math.tanh(one / 2) for one in pure)) / float(loss.rho)
    if not rho:
        return float(epsilon / loss.epsilon)
    assert isinstance(loss, pc.ApproxDP)
    if not epsilon:
        return float(rho) / rho_of(loss)
    # Pure parts before one Gaussian of its own (ε′, δ): by the sum of ε.
    (rest,) = {own for unit, _, own in parts if unit == "rho"}
    share = share_of([part for part in parts if part[0] == "rho"], rest)
    return max(share, float((epsilon + rest.epsilon) / loss.epsilon))


def rho_of(loss: Any) -> float:
    """μ²/2 of the largest Gaussian whose profile keeps (ε, δ): δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), by bisection."""
    epsilon, low, high = float(loss.epsilon), 2.0**-30, 64.0
    while high - low > 2.0**-50 * high:
        mu = (low + high) / 2
        delta = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
        low, high = (mu, high) if delta <= float(loss.delta) else (low, mu)
    return low**2 / 2
