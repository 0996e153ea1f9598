"""Which mechanisms can keep a promise for a schema, and which one ``auto`` takes: from public facts alone.

A pure mechanism is a candidate under (ε, δ) too: its promise is the stronger one, and with few columns its noise
is also the smaller one. ``auto`` compares laws of noise and nothing else: mechanisms whose error depends on the
table lost to additive noise with repair at every point we measured (``privcov bench choice``), and without a
law there are no honest intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from privcov.errors import ParameterError
from privcov.mechanisms import MECHANISMS, find
from privcov.mechanisms.base import DataDrivenMechanism, Mechanism
from privcov.noise.laws import NoiseLaw
from privcov.planning.purpose import Purpose
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.schema import Schema
from privcov.schema.grid import Grid

MOST_REHEARSED = 64
"""Columns beyond which a mechanism whose error must be simulated is left out of a plan, unless it is named: from there
most of them have no exact arithmetic, and their simulation takes longer than everything else together."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mechanism with the loss it would promise: the one asked for, or a stronger one."""

    mechanism: Mechanism
    loss: Loss
    chosen_for: str = ""
    """The purpose it was chosen for, where ``auto`` did."""

    @property
    def options(self) -> dict[str, str]:
        """What the certificate says of the choice."""
        return {"auto": self.chosen_for} if self.chosen_for else {}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A mechanism that cannot be had here, and why."""

    name: str
    reason: str


def candidate(name: str, *, loss: Loss, grid: Grid, rehearsed: bool = True, **options: Any) -> Candidate:
    """One mechanism by name under this loss or a stronger one; refused for the reasons a release would give.

    Unless ``rehearsed`` is asked for, one whose error must be simulated is refused for that, before it looks for more.
    """
    kind = MECHANISMS.get(name)
    if kind is not None and isinstance(loss, ApproxDP) and kind.kinds == ("pure",):
        loss = PureDP(epsilon=loss.epsilon, neighbours=loss.neighbours)
    found = find(name, loss=loss, **options)
    found.check_width(grid.dimension)
    found.check_strata(grid)
    if not rehearsed and isinstance(found, DataDrivenMechanism):
        reason = f"its error has to be simulated; beyond {MOST_REHEARSED} columns that is done only if you name it."
        raise ParameterError("E209", reason)
    try:
        _rehearse(found, loss, grid)
    except ParameterError:
        if options or found.arithmetic != "exact":
            raise
        found = found.idealized()
        _rehearse(found, loss, grid)
    return Candidate(mechanism=found, loss=loss)


def candidates(*, loss: Loss, grid: Grid) -> tuple[list[Candidate], list[Refusal]]:
    """Every mechanism of the registry that can keep this promise here, and the others with the reason."""
    able, refused = [], []
    for name in MECHANISMS:
        try:
            few = grid.dimension <= MOST_REHEARSED
            able.append(candidate(name, loss=loss, grid=grid, rehearsed=few))
        except ParameterError as error:
            refused.append(Refusal(name=name, reason=error.sentence))
    return able, refused


def choose(
    *,
    loss: Loss,
    grid: Grid,
    purpose: str | Purpose = "covariance",
    as_asked: bool = False,
    law_of: Callable[[Candidate], NoiseLaw] | None = None,
    **options: Any,
) -> Candidate:
    """What ``mechanism="auto"`` means: the law with the least noise for the purpose.

    ``as_asked`` keeps to the kind of loss asked for, where a stronger promise would cost more: a ledger that
    counts ρ pays far more for pure ε than for a Gaussian of the same (ε, δ). ``law_of`` says what is left on a matrix
    that has not all of the loss: half of a pure ε is twice the noise, half of ρ only √2 times it.

    >>> from privcov.privacy import ApproxDP
    >>> loss = ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
    >>> few, many = (Grid(dimension=d, exponent=19, squared_norm_bound=2**38) for d in (6, 13))
    >>> choose(loss=loss, grid=few).mechanism.name, choose(loss=loss, grid=many).mechanism.name
    ('symmetric-wishart', 'gaussian')
    """
    wanted = Purpose.parse(purpose)
    wanted.check(grid.dimension)
    best: tuple[float, Candidate] | None = None
    for name in CONTENDERS:
        try:
            able = candidate(name, loss=loss, grid=grid, **{**_focus(name, wanted), **options})
        except ParameterError:
            continue
        if as_asked and able.loss != loss:
            continue
        law = able.mechanism.law(loss=able.loss, grid=grid) if law_of is None else law_of(able)
        assert law is not None
        size = _size(law, wanted)
        if best is None or size < best[0]:
            best = size, replace(able, chosen_for=str(wanted))
    if best is None:  # say why, in the words of the mechanism for this kind of loss
        find({"pure": "symmetric-wishart"}.get(loss.kind, "gaussian"), loss=loss, **options)
        raise ParameterError("E209", "no mechanism can give this promise with these options.")
    return best[1]


def decide(
    mechanism: str | Mechanism,
    *,
    loss: Loss,
    schema: Schema,
    purpose: str | Purpose,
    as_asked: bool = False,
    grid: Grid | None = None,
    law_of: Callable[[Candidate], NoiseLaw] | None = None,
    **options: Any,
) -> Candidate:
    """The mechanism a release means: by name, as given, or by the rule of ``auto``, on the schema's grid or another."""
    loss.check_asked()
    if mechanism == "auto":
        facts: Any = {"loss": loss, "grid": grid or Grid.of(schema), "purpose": purpose, "law_of": law_of}
        return choose(as_asked=as_asked, **facts, **options)
    Purpose.parse(purpose)
    found = find(mechanism, loss=loss, **options)
    found.check_width(schema.summed_dimension)
    found.check_strata(grid or Grid.of(schema))
    return Candidate(mechanism=found, loss=loss)


CONTENDERS = ("symmetric-wishart", "gaussian", "joint-gaussian", "frobenius")
"""The additive mechanisms that are best somewhere; the others are dominated, see their proof pages."""


def _focus(name: str, purpose: Purpose) -> dict[str, str]:
    """The option by which a mechanism spares the sums, where means matter most."""
    return {"focus": "mean"} if name == "joint-gaussian" and purpose.kind == "means" else {}


def _size(law: NoiseLaw, purpose: Purpose) -> float:
    """What a purpose wants small: the whole error, the error on a sum, on a product, or the largest eigenvalue."""
    if purpose.kind == "covariance":
        return law.rms_frobenius
    if purpose.kind == "means":
        return math.sqrt(law.sums_variance)
    return math.sqrt(law.offdiagonal_variance)


def _rehearse(mechanism: Mechanism, loss: Loss, grid: Grid) -> None:
    """What a release would refuse before it reads: the law, or the draw up to its first bit where there is no law."""
    if mechanism.law(loss=loss, grid=grid) is None:
        mechanism.refuse_early(loss=loss, grid=grid)
