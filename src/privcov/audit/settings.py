"""The settings in which a mechanism is asked to keep its promises: as it was named, and where faults show best.

A promise holds at every loss and number of columns, so an audit may choose those at which a fault is easiest to
see: two columns and a larger ε, or one column, where a mechanism that divides its budget spends it all on one
value. A private vector is looked at by itself, through a mechanism of rank one given twice the loss: half of that
is the vector's share. Bounds found in any setting are bounds on that setting's own claim.

Everything a mechanism's proof page promises at one loss: often more than the loss itself says.

At (1, 1e-6) no feasible number of runs sees noise that is halved: the violation hides where δ is compared with a
millionth. But a Gaussian mechanism promises a whole trade-off curve, others an exact profile or a zCDP budget
behind their (ε, δ), and in the middle of those curves a fault is plain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privcov.accounting import gaussian_mu
from privcov.audit.claims import Claim, Delta, Epsilon, Gaussian, Rho
from privcov.audit.distinguish import Scored
from privcov.audit.neighbours import Pair, pairs, schema_of, weighted_pairs, weighted_schema
from privcov.audit.sampling import Outputs, Sampler, Source
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import DataDrivenMechanism, Mechanism
from privcov.mechanisms.eigenvectors import Eigenvectors
from privcov.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss, sketch_delta
from privcov.mechanisms.matrix_bingham import MatrixBingham
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.wishart import Wishart, cheapest_delta
from privcov.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP
from privcov.schema.grid import Grid

TELLING_EPSILON = 3
"""About where the tables of two columns are easiest to tell apart, for the claimed ε."""
VIEW_UNIT = 2**40

View = Callable[[Outputs], Outputs]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A sampler, the pairs it is run on, what is looked at, and the claims about it."""

    label: str
    sampler: Sampler
    pairs: tuple[Pair, ...]
    claims: tuple[Claim, ...]
    view: View | None = None
    """Post-processing of the output before statistics are taken; the claims are about what is left."""
    scored: Scored | None = None
    """What makes statistics of the outputs, where they are no matrices."""

    def seen(self, outputs: Outputs) -> Outputs:
        return outputs if self.view is None else self.view(outputs)


def settings(mechanism: Mechanism, loss: Loss, dimension: int, *, source: Source) -> tuple[Setting, ...]:
    """What an audit of a mechanism at a loss looks at, in order."""
    asked = _whole("as promised", mechanism, loss, dimension, source=source, points=True)
    found = [asked]
    rank = getattr(mechanism, "rank", None) or 1  # a mechanism of higher rank does not exist in fewer columns
    if isinstance(loss, PureDP) and dimension > 1 and rank <= 2:
        more = math.ceil(TELLING_EPSILON / loss.epsilon)
        if (more, dimension) != (1, 2):
            found.append(_whole("where a fault shows best", mechanism, more * loss, 2, source=source))
    if isinstance(mechanism, DataDrivenMechanism):
        if dimension > 1 and rank == 1:
            found.append(_whole("one column", mechanism, loss, 1, source=source))
        vector = first_vector(mechanism, loss, dimension, source=source)
        found += [] if vector is None else [vector]
    return tuple(found)


def weighted_settings(
    mechanism: Mechanism, loss: Loss, dimension: int, *, source: Source
) -> tuple[Setting, ...]:
    """What an audit of weighted rows looks at: weights as they are and evened out; of pure losses, a larger one."""
    asked = {(loss, dimension, Fraction(1)): "as promised", (loss, 3, Fraction(1, 2)): "power 1/2"}
    if isinstance(loss, PureDP):
        more = math.ceil(TELLING_EPSILON / loss.epsilon)
        asked.setdefault((more * loss, 3, Fraction(1)), "where a fault shows best")
    found = []
    for (at, columns, power), label in asked.items():
        schema = weighted_schema(columns, power)
        grid = Grid.of(schema)
        found.append(
            Setting(
                label=f"weighted rows, {label}: {_words(at)}, {_columns(columns)}",
                sampler=Sampler(mechanism=mechanism, loss=at, grid=grid, source=source),
                pairs=weighted_pairs(schema, grid, at.neighbours),
                claims=promises(mechanism, at, grid),
            )
        )
    return tuple(found)


def _whole(
    label: str, mechanism: Mechanism, loss: Loss, dimension: int, *, source: Source, points: bool = False
) -> Setting:
    """The released matrix as it is."""
    dimension = max(dimension, 1 + mechanism.needs_intercept)
    grid = Grid.of(schema_of(dimension, intercept=mechanism.needs_intercept))
    claims = promises(mechanism, loss, grid)
    data_driven = isinstance(mechanism, DataDrivenMechanism) and dimension > 1
    return Setting(
        label=f"{label}: {_words(loss)}, {_columns(dimension)}",
        sampler=Sampler(mechanism=mechanism, loss=loss, grid=grid, source=source),
        pairs=pairs(grid, loss.neighbours, bases=(0, 2) if data_driven else (0,)),
        claims=(*claims, *(profile(claims, loss) if points else ())),
    )


def first_vector(mechanism: Mechanism, loss: Loss, dimension: int, *, source: Source) -> Setting | None:
    """The private direction alone; None for a mechanism without one that can be isolated."""
    if dimension < 2 or not isinstance(mechanism, Eigenvectors | MatrixBingham):
        return None
    alone = replace(mechanism, rank=1)
    if isinstance(alone, Eigenvectors):
        alone = replace(alone, split="uniform", values="rayleigh", timing="unprotected")
    if isinstance(loss, ApproxDP):
        loss = PureDP(epsilon=loss.epsilon, neighbours=loss.neighbours)
    grid = Grid.of(schema_of(dimension))
    return Setting(
        label=f"the first vector alone: {_words(loss)}, {_columns(dimension)}",
        sampler=Sampler(mechanism=alone, loss=2 * loss, grid=grid, source=source),
        pairs=pairs(grid, loss.neighbours, bases=(0, 1, 3))[:3],
        claims=(Epsilon(allowed=range_of(loss)),)
        if isinstance(loss, PureDP)
        else (*promises(alone, loss, grid), Epsilon(allowed=range_of(loss))),
        view=direction(dimension),
    )


def range_of(loss: Loss) -> float:
    """The η that a whole loss buys for one draw: ε, or √(8ρ). Such a draw is η-private, whoever paid for it."""
    amount = next(iter(loss.amounts.values()))
    return float(amount) if isinstance(loss, PureDP) else math.sqrt(8 * amount)


def vector_strength(mechanism: Mechanism, loss: Loss, grid: Grid) -> Fraction:
    """The coefficient c of exp(c·uᵀGu) that the proof page allows a whole loss, in grid units."""
    sensitivity = Sensitivity.of(grid, loss.neighbours)
    paper = getattr(mechanism, "exponent", "tight") == "paper"
    return Fraction(range_of(loss)) / (4 * sensitivity.operator if paper else sensitivity.spread)


def direction(dimension: int) -> View:
    """uuᵀ from the released v·uuᵀ, whatever its value v, in units of 2^-40."""
    rows, columns = np.triu_indices(dimension)

    def view(outputs: Outputs) -> Outputs:
        floats = outputs.astype(np.float64)
        trace: Floats = floats[:, rows == columns].sum(axis=1, keepdims=True)
        safe = np.where(trace == 0, 1.0, trace)
        return np.rint(np.where(trace == 0, 0.0, floats / safe) * VIEW_UNIT).astype(np.int64)

    return view


def _words(loss: Loss) -> str:
    return ", ".join(f"{name} {float(amount):g}" for name, amount in loss.amounts.items())


def _columns(dimension: int) -> str:
    return "1 column" if dimension == 1 else f"{dimension} columns"


GAUSSIAN = ("gaussian", "separate", "joint-gaussian")
"""The mechanisms whose proof gives the trade-off curve of a Gaussian."""


def promises(mechanism: Mechanism, loss: Loss, grid: Grid) -> tuple[Claim, ...]:
    """The loss as a claim, first; then the sharper claims of the mechanism's own proof."""
    if isinstance(loss, PureDP):
        return (Epsilon(allowed=float(loss.epsilon)),)
    curved = mechanism.name in GAUSSIAN and getattr(mechanism, "noise", "rounded") == "rounded"
    if isinstance(loss, ZCDP):
        found: tuple[Claim, ...] = (Rho(allowed=float(loss.rho)),)
        return (*found, Gaussian(allowed=math.sqrt(2 * loss.rho))) if curved else found
    found = (Epsilon(allowed=float(loss.epsilon), at_delta=float(loss.delta)),)
    if curved:
        return (*found, Gaussian(allowed=float(gaussian_mu(epsilon=loss.epsilon, delta=loss.delta))))
    rho = mechanism.as_zcdp(loss)
    behind = () if rho is None else (Rho(allowed=float(rho)),)
    return (*found, *behind, *_exact_profile(mechanism, loss, grid))


def profile(claims: tuple[Claim, ...], loss: Loss) -> tuple[Delta, ...]:
    """Points of the privacy profile δ(ε), each with the least δ that any of the claims implies.

    None where the claims are points of an exact profile already.
    """
    if any(isinstance(claim, Delta) for claim in claims):
        return ()
    top = float(loss.amounts.get("epsilon", 0)) or math.sqrt(float(loss.amounts.get("rho", 1)))
    points = [0.0, top / 4, top / 2, top]
    return tuple(
        Delta(allowed=min(claim.delta(point) for claim in claims), at_epsilon=point) for point in points
    )


def _exact_profile(mechanism: Mechanism, loss: ApproxDP, grid: Grid) -> tuple[Claim, ...]:
    """Points of the exact accountants of the two mechanisms that have one."""
    found, moved = [], Sensitivity.of(grid, loss.neighbours).operator
    for share in (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4)):
        epsilon = share * loss.epsilon
        if isinstance(mechanism, JohnsonLindenstrauss):
            least = sketch_delta(
                ratio=moved / mechanism.ridge(loss=loss, grid=grid),
                sketch_rows=mechanism.rows(grid),
                epsilon=epsilon,
                replaced=loss.neighbours is Neighbours.REPLACE_ONE and grid.dimension > 1,
            )
        elif isinstance(mechanism, Wishart):
            law = replace(mechanism, centred="yes").law(loss=loss, grid=grid)
            assert law is not None
            least = cheapest_delta(
                shift=moved * grid.unit / Fraction(law.scale),
                epsilon=epsilon,
                freedom=law.degrees - grid.dimension + 1,
                neighbours=loss.neighbours,
            )
        else:
            return ()
        found.append(Delta(allowed=float(least), at_epsilon=float(epsilon)))
    return tuple(found)
