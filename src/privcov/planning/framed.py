"""The error of correlations in the private frame that ``auto`` would fit, beside the one in the declared frame.

In a frame a column is measured in its own standard deviations, whatever they are, so the error hardly depends on how
wide the bounds are: it follows from the number of rows and columns and the loss. The radius is the one that the frame
would choose for normal columns: docs/explain/planning.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from privcov.errors import ParameterError
from privcov.frame.terms import Terms, count_std, has_forecast, numbers_of, sum_std
from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw
from privcov.planning.candidates import Candidate, decide
from privcov.planning.purpose import Purpose
from privcov.privacy import ApproxDP, Loss, Neighbours, PureDP
from privcov.releases.certificate import RADII
from privcov.releases.rounds import Norms, width_of
from privcov.schema import Schema
from privcov.schema.grid import framed_grid, framed_weight

if TYPE_CHECKING:
    from privcov.planning.plan import Plan

AnyTerms = TypeVar("AnyTerms", bound=Terms)
GUESSED = 1.4
"""By what the error is larger where deviations are guessed from means: seen on columns like normal ones."""
_FAR_LESS = 0.75
"""Of the noise with a δ, below which a pure mechanism is taken: of those tried it erred 0.66 to 0.93 times as much."""
_LESS_ON_SUMS = 0.62
"""The same for the noise that half of the loss leaves on sums, where means matter most: of those tried it erred 0.4 to
0.7 times as much."""
FILLED = 0.2
"""The share of its bounds that a column fills in the second example: bounds five times too wide."""


@dataclass(frozen=True, kw_only=True)
class Framed:
    """How far the correlation of two numeric columns would be off, in root mean square.

    Attributes
    ----------
    private : float
        In the private frame that "auto" fits, for columns like normal ones: noise, and the bias of shortened rows.
    even : float
        In the declared frame, for columns that are spread evenly over their bounds.
    narrow : float
        In the declared frame, for columns spread evenly over a fifth of their bounds.
    mechanism : str
        What adds the noise in the private frame.
    share : float
        Of the loss, what the frame takes if one look at the columns is enough.
    counted : bool
        Whether intervals would count what is cut off rows, which is part of the price.
    stratum : float, optional
        The rows of the stratum that this is about, where there is a matrix for each of several.
    """

    private: float
    even: float
    narrow: float
    mechanism: str
    share: float
    counted: bool = False
    stratum: float | None = None

    def __str__(self) -> str:
        counting = " --cut counted" * self.counted
        where = "" if self.stratum is None else f" in a stratum of {self.stratum:,.0f} rows"
        more = " (more where rows are few and bounds far too wide)" * (self.private < 1)
        return (
            f"With --frame auto{counting}, which fits a private frame first for {100 * self.share:.2g} % of the loss "
            f"or a little more, a correlation{where} would be off by {_off('about ', self.private)}{more}; "
            f"as declared by {_off('', self.even)} where columns "
            f"fill their bounds, and by {_off('', self.narrow)} where they fill a fifth of them."
            + " Intervals of regressions then count what is cut off long rows, and are wider for it."
            * self.counted
        )


def _off(about: str, error: float) -> str:
    """How far a correlation is off, which is between −1 and 1."""
    return f"{about}±{error:.2g}" if error < 1 else "as much as it can be"


def framed(plan: Plan) -> Framed | None:
    """What a frame would do for a plan; None where "auto" would take none."""
    return in_frame(
        plan.declared or plan.schema,
        law=plan.choice.law,
        rows=plan.rows,
        loss=plan.loss,
        purpose=plan.purpose,
        cut=plan.cut,
        emphasis=plan.emphasis,
    )


def in_frame(
    schema: Schema,
    *,
    law: NoiseLaw | None,
    rows: int,
    loss: Loss,
    purpose: str | Purpose,
    word: str = "auto",
    cut: str = "told",
    strata: int | None = None,
    emphasis: tuple[str, ...] = (),
) -> Framed | None:
    """What the frame of "auto" would do, or of another word; None where that is the declared one, or refused.

    ``law`` is that of the noise in the declared frame. Of a shape the price is counted and not what it gains, which
    depends on how columns are correlated. Of several ``strata``, equally large, it is about one; with an ``emphasis``
    about the columns that matter.
    """
    if law is None or not has_forecast(schema):
        return None
    facts: Any = {"rows": rows, "loss": loss, "purpose": purpose, "cut": cut}
    terms = terms_of(word, schema, **facts, strata=strata, emphasis=emphasis)
    if terms is None:
        return None
    mine = rows / (strata or 1)
    even = math.sqrt(law.offdiagonal_variance) / mine * 3
    return Framed(
        private=error_by_rows(terms, rows=rows)(mine),
        even=even,
        narrow=even / FILLED**2,
        mechanism=terms.mechanism.name,
        share=float(sum(terms.shares.values()) - (terms.detail.most - 1) * terms.detail.share),
        counted=bool(terms.detail.squares),
        stratum=None if strata is None else mine,
    )


def error_by_rows(terms: Terms, *, rows: int) -> Callable[[float], float]:
    """How far a correlation would be off behind a frame, in root mean square, by the rows of the matrix.

    ``rows`` is the number of all rows, which the frame is fitted on. The noise of K strata together is √K times that of
    one, so their sum has the error of a stratum of ``rows`` / √K.
    """
    noise = math.sqrt(_noise(terms))
    norms = Norms(
        counts=_normal_norms(len(numbers_of(terms.schema))),
        noise_std=0.0,
        width=width_of(terms.schema, terms.emphasis),
        weight=float(framed_weight(terms.schema)),
        entry_std=noise * (terms.strata or 1),
        rows=float(rows),
    )
    # The radius is chosen from noisy counts, in which a tail cannot be excluded: it is larger than it would be.
    price, most = terms.purse.part(terms.detail.radius), terms.schema.max_rows_per_person
    seen = replace(
        norms,
        noise_std=count_std(price, per_row=1, rows_per_person=most) / rows,
        laplace=isinstance(price, PureDP),
    )
    radius, guessed = seen.radius, 1 if terms.detail.most else GUESSED

    def error(mine: float) -> float:
        return replace(norms, entry_std=noise * rows / max(mine, 1e-9)).error(radius) * guessed

    return error


def terms_of(
    word: str,
    schema: Schema,
    *,
    rows: int,
    loss: Loss,
    purpose: str | Purpose,
    cut: str = "told",
    strata: int | None = None,
    emphasis: tuple[str, ...] = (),
) -> Terms | None:
    """The frame in front of the mechanism that ``auto`` takes; None where that is the declared one, or refused."""
    public = loss.neighbours.count_is_public(schema.max_rows_per_person)
    try:
        found = framed_terms(
            Terms,
            partial(decide, "auto", loss=loss, schema=schema),
            word=word,
            schema=schema,
            rows=rows if public else None,
            purpose=Purpose.parse(purpose),
            cut=cut,
            strata=strata,
            emphasis=emphasis,
        )
    except ParameterError:
        return None
    return None if found is None else found[1]


def framed_terms(
    kind: type[AnyTerms],
    asked: Callable[..., Candidate],
    *,
    word: str,
    schema: Schema,
    rows: int | None,
    purpose: Purpose,
    emphasis: tuple[str, ...] = (),
    cut: str = "told",
    strata: int | None = None,
    stronger: bool = True,
) -> tuple[Candidate, AnyTerms] | None:
    """The terms of a frame and the mechanism behind it, for the squared norm that rows have there; None as declared.

    Where a δ is allowed, a pure mechanism with pure rounds is taken if it has far less noise, as with few columns: on
    the sums where means matter most, and on the matrix under add-remove. Its rounds have longer tails than Gaussian
    ones, and lose a little of that again; on the matrix under replace-one they lose all of it. ``stronger``: whether
    such a promise may stand for the one asked for, as it may not where a ledger counts ρ.
    """
    facts: dict[str, Any] = {
        "grid": framed_grid(schema, strata=strata is not None),
        "purpose": purpose.of_matrix,
        "law_of": None,
    }
    before = partial(
        kind.before,
        word=word,
        schema=schema,
        rows=rows,
        emphasis=emphasis,
        means_first=purpose.kind == "means",
        cut=cut,
        strata=strata,
    )
    decided = asked(**facts, as_asked=True)
    found = before(decided.mechanism, decided.loss)
    if found is None:
        return None
    loss, means = decided.loss, purpose.kind == "means"
    if stronger and isinstance(loss, ApproxDP) and (means or loss.neighbours is Neighbours.ADD_REMOVE):
        try:
            other = asked(**facts, loss=PureDP(epsilon=loss.epsilon, neighbours=loss.neighbours))
        except ParameterError:  # of a mechanism that was named
            return decided, found
        pure = before(other.mechanism, other.loss)
        if pure is not None and _far_less(pure, found, means=means):
            return other, pure
    return decided, found


def _far_less(pure: Terms, found: Terms, *, means: bool) -> bool:
    """Whether pure noise is so much less than that with a δ that it is worth its longer tails."""
    if not means or "means" not in pure.price_of or "means" not in found.price_of:
        few = pure.loss.neighbours is Neighbours.ADD_REMOVE
        return few and _noise(pure) < _FAR_LESS**2 * _noise(found)
    schema = pure.schema
    one, other = (
        sum_std(
            terms.purse.part(Fraction(1, 2)),
            columns=len(numbers_of(schema)),
            rows_per_person=schema.max_rows_per_person,
        )
        for terms in (pure, found)
    )
    return one < _LESS_ON_SUMS * other


def _noise(terms: Terms) -> float:
    """The variance of the noise on the product of two columns, if one look at the columns is enough."""
    law = terms.mechanism.law(
        loss=terms.likely_rest, grid=framed_grid(terms.schema, strata=terms.strata is not None)
    )
    assert law is not None  # a frame stands in front of additive mechanisms alone
    return law.offdiagonal_variance


def _normal_norms(columns: int) -> Floats:
    """The share of rows of independent normal columns in each cell of the histogram of norms (Wilson and Hilferty).

    >>> shares = _normal_norms(6)
    >>> round(float(shares.sum()), 6), round(float(shares[:7].sum()), 2)
    (1.0, 0.59)
    """
    mean, std = 1 - 2 / (9 * columns), math.sqrt(2 / (9 * columns))
    below = [(1 + math.erf((radius ** (2 / 3) - mean) / std / math.sqrt(2))) / 2 for radius in RADII]
    return np.diff([0.0, *below, 1.0])
