"""The private frame in front of a release: which rounds, at which price, and the schema that comes of them.

Rounds are chosen by public facts and by answers that were paid for. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, get_args

from privcov.errors import ParameterError
from privcov.frame.counting import Look, Paid, Scales, ask, numbers_of
from privcov.frame.fitting import Fit, Question, Rule
from privcov.frame.shaping import Sums, expected_edge
from privcov.frame.spending import Purse, as_rho
from privcov.mechanisms.base import AdditiveMechanism, Mechanism
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, Loss, PureDP
from privcov.releases.certificate import Interval, Round
from privcov.repair import MOST_REHEARSED
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid, framed_grid
from privcov.schema.names import quoted
from privcov.schema.shape import MOST_SHAPED
from privcov.summing.engines import Engine
from privcov.text.grammar import brief

Word = Literal["auto", "declared", "scales", "shape"]


SHAPES = (Fraction(1, 50), Fraction(1, 20))
"""Of the loss, for the coarse matrix that a shape follows from: the first where it is enough."""
HIDDEN = 0.05
"""It is where its noise hides at most this share of a column's variance in a direction."""
MOST_COLUMNS = 4_096
"""Beyond them a grid could be too coarse for what rounds answer."""


class Detail(NamedTuple):
    """How closely a table is looked at."""

    share: Fraction
    """Of the loss, for one look at all columns."""
    bins: int
    """The cells of the histogram of a column."""
    most: int
    """How many looks at the columns there may be."""
    radius: Fraction = Fraction(1, 20)
    """Of the loss, for the histogram of norms."""
    margin: int = 1
    """How many times what noise hides a cell of an evenly spread column must hold."""
    means: Fraction = Fraction(1, 10)
    """Of the loss, for the sums of the columns."""


DETAILS = (
    Detail(Fraction(1, 50), 16, 3, radius=Fraction(1, 50), margin=10),
    Detail(Fraction(1, 20), 16, 3),
    Detail(Fraction(1, 10), 16, 3),
    Detail(Fraction(1, 5), 16, 2),
    Detail(Fraction(1, 5), 8, 2),
    Detail(Fraction(1, 5), 4, 2),
)
"""In this order: the first at which noise leaves cells to be seen."""
_MEANS_FIRST = Fraction(1, 2)
"""Of the loss, for the sums of the columns, where means matter most."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What a release is made under, once everything before it was chosen and paid for."""

    schema: Schema
    mechanism: Mechanism
    rest: Loss
    """What is left of the loss for the matrix."""
    rounds: tuple[Round, ...] = ()

    @cached_property
    def grid(self) -> Grid:
        return Grid.of(self.schema)


@dataclass(frozen=True, kw_only=True)
class Framing:
    """A frame of centres, scales and a radius, in front of a mechanism with a law.

    Guarantee: the rounds and the matrix together cost ``loss``, however many of the rounds are asked.
    """

    loss: Loss
    mechanism: Mechanism
    schema: Schema
    detail: Detail
    emphasis: tuple[str, ...] = ()
    shape: Fraction | None = None
    """Of the loss, for the coarse matrix that a shape follows from; None where none is asked for."""

    @property
    def purse(self) -> Purse:
        return Purse.of(self.loss, self.mechanism)

    @property
    def prices(self) -> list[PureDP | ZCDP]:
        """The most that may be asked: every histogram of the columns, and each of the others once."""
        looks = [self.purse.part(self.detail.share)] * self.detail.most
        return [*looks, *map(self.purse.part, self._last.values())]

    @property
    def shares(self) -> dict[str, Fraction]:
        """The most that each kind of round takes of the loss."""
        return {"scales": self.detail.most * self.detail.share, **self._last}

    @property
    def _last(self) -> dict[str, Fraction]:
        """The shares of the rounds that are always asked, once, after the looks at the columns."""
        shape = {} if self.shape is None else {"shape": self.shape}
        return {**shape, "radius": self.detail.radius, "means": self.detail.means}

    @property
    def rest(self) -> Loss:
        """What is left for the matrix if all of the rounds are asked."""
        return self.purse.rest(self.prices)

    def rho_with(self, mechanism: Mechanism) -> Fraction | None:
        """What rounds and matrix cost as zCDP, however many of the rounds are asked; None where that is not known.

        Where ρ adds up it is the whole. Pure parts cost the more as ρ the fewer they are, so each number is reckoned.
        """
        if self.purse.unit is ZCDP:
            return self.purse.total
        most, prices = self.detail.most, self.prices
        paths = [[*prices[:count], *prices[most:]] for count in range(1, most + 1)]
        costs = [(path, mechanism.as_zcdp(self.purse.rest(path))) for path in paths]
        found = [sum(map(as_rho, path), start=rest) for path, rest in costs if rest is not None]
        return max(found) if len(found) == len(paths) else None

    @property
    def options(self) -> dict[str, str]:
        """As they are written on the certificate."""
        return frame_options(self.emphasis, shaped=self.shape is not None)

    def grids(self, _: Schema) -> list[Grid]:
        """What the matrix is calibrated to: public, and the same whatever the rounds answer."""
        return [framed_grid(self.schema)]

    @classmethod
    def before(
        cls,
        mechanism: Mechanism,
        loss: Loss,
        *,
        word: str,
        schema: Schema,
        rows: int | None,
        emphasis: tuple[str, ...] = (),
        means_first: bool = False,
    ) -> Framing | None:
        """The frame asked for; None for the declared one, which ``auto`` takes where another would not pay."""
        if word not in get_args(Word):
            raise ParameterError("E218", f"frame must be auto, declared, scales or shape, got {brief(word)}.")
        if word == "declared":
            return None
        reason = refusal(schema, mechanism, shaped=word == "shape", emphasis=emphasis)
        if word == "auto" and reason:
            return None
        if reason:
            other = "declared" if refusal(schema, mechanism) else "scales"
            raise ParameterError("E218", f"a private frame needs {reason}.", f'Use frame = "{other}".')
        made = [
            cls(loss=loss, mechanism=mechanism, schema=schema, detail=detail, emphasis=emphasis)
            for detail in (one._replace(means=_MEANS_FIRST) if means_first else one for one in DETAILS)
        ]
        seen = [made[2]] if rows is None else [one for one in made if one.sees(rows)]
        if not seen and word == "auto":
            return None
        taken = seen[0] if seen else made[-1]
        if word != "shape":
            return taken
        share = taken.shape_share(rows)
        # Where means come first the matrix has little: then a shape takes its share from that of the means.
        less = share if means_first else 0
        return replace(taken, shape=share, detail=taken.detail._replace(means=taken.detail.means - less))

    def shape_share(self, rows: int | None) -> Fraction:
        """What a shape is worth paying, by public facts."""
        if rows is None:
            return SHAPES[-1]
        hidden = expected_edge(
            self.purse.part(SHAPES[0]),
            columns=len(numbers_of(self.schema)),
            rows=rows,
            rows_per_person=self.schema.max_rows_per_person,
        )
        return SHAPES[0] if hidden <= HIDDEN else SHAPES[-1]

    def sees(self, rows: int) -> bool:
        """Whether a column that is spread evenly over its bounds stands clear of the noise on its histogram."""
        look = Scales(schema=self.schema, bins=self.detail.bins)
        clear = Rule.of(self.prices[0]).clear * look.std(self.prices[0])
        return self.detail.margin * clear <= rows / look.bins

    def fit(
        self, data: Any, *, schema: Schema, mechanism: Mechanism, randomness: Randomness, engine: Engine
    ) -> Fitted:
        """Ask the rounds, and return what the release is made under. Reads the table once for each of them."""
        prices = {"scales": self.purse.part(self.detail.share)}
        prices |= {name: self.purse.part(share) for name, share in self._last.items()}
        public = self.loss.neighbours.count_is_public(schema.max_rows_per_person)
        fit = Fit(
            declared=schema,
            bins=self.detail.bins,
            most=self.detail.most,
            emphasis=self.emphasis,
            means=prices["means"],
            shaped=self.shape is not None,
        )
        while asked := fit.next_looks():
            priced = [(one, prices[one.name]) for one in asked]
            rounds, rows = _answers(priced, data, randomness=randomness, engine=engine)
            fit = fit.after(*rounds, rows=rows if public else None)
        return framed(mechanism, self.loss, fit)


def _answers(
    asked: Sequence[tuple[Question, Paid]], data: Any, *, randomness: Randomness, engine: Engine
) -> tuple[tuple[Round, ...], int]:
    """Ask some questions in one reading; one for a shape is asked alone. Also how many rows there are."""
    counts = [(one, price) for one, price in asked if isinstance(one, Look)]
    if counts:
        return ask(counts, data, randomness=randomness, engine=engine)
    ((shape, price),) = ((one, price) for one, price in asked if isinstance(one, Sums))
    answer, rows = shape.ask(data, loss=price, randomness=randomness, engine=engine)
    return (answer,), rows


def frame_options(emphasis: tuple[str, ...], *, shaped: bool) -> dict[str, str]:
    """What the certificate says of a frame beside its rounds."""
    word = "shape" if shaped else "scales"
    return {"frame": word, **({"emphasis": ", ".join(map(quoted, emphasis))} if emphasis else {})}


def replayed(
    mechanism: Mechanism,
    loss: Loss,
    *,
    schema: Schema,
    rows: int | None,
    rounds: tuple[Round, ...],
    emphasis: tuple[str, ...] = (),
) -> Fitted:
    """What the rounds of a release say it was made under; refuses rounds that are none of ours."""
    columns = [replace(c, centre=None, scale=None) if isinstance(c, Numeric) else c for c in schema.columns]
    looks = sum(one.name == "scales" for one in rounds)
    fit = Fit(
        declared=replace(schema, columns=tuple(columns), row_norm_bound=None, shape=None),
        most=looks,
        emphasis=emphasis,
        means=next((one.loss for one in rounds if one.name == "means"), None),
        shaped=any(one.name == "shape" for one in rounds),
    )
    if reason := refusal(fit.declared, mechanism, shaped=fit.shaped, emphasis=emphasis):
        raise ParameterError("E218", f"a private frame needs {reason}.")
    told = iter(rounds)
    while True:
        bins = 1 if fit.radii else max(1, _next_answers(fit, rounds) // len(numbers_of(schema)))
        asked = replace(fit, bins=bins).next_looks()
        if not asked:
            break
        stated = [next(told, None) for _ in asked]
        for look, one in zip(asked, stated, strict=True):
            _check(look, one)
        fit = fit.after(*(one for one in stated if one is not None), rows=rows)
    if next(told, None) is not None:
        raise ParameterError("E218", "the rounds of the certificate are not those of a frame.")
    return framed(mechanism, loss, fit)


def _next_answers(fit: Fit, rounds: tuple[Round, ...]) -> int:
    """How many answers the next round of a certificate has."""
    return len(rounds[len(fit.rounds)].answers) if len(fit.rounds) < len(rounds) else 0


def _check(look: Question, one: Round | None) -> None:
    """Refuse a round that is not the one that comes next."""
    if one is None or look.name != one.name or look.cells != len(one.answers):
        raise ParameterError("E218", "the rounds of the certificate are not those of a frame.")
    asked = look.answered(one.loss, one.answers)
    if abs(one.std - asked.std) > 2.0**-40 * one.std or one.unit != asked.unit:
        raise ParameterError("E218", "the noise of a round is not the one that its price calls for.")
    pairs = zip_longest(one.intervals, asked.intervals, fillvalue=_NO_INTERVAL)
    if not all(_same(stated, found) for stated, found in pairs):
        raise ParameterError(
            "E218", "the intervals of a round are not those that follow from the rounds before it."
        )


_NO_INTERVAL = Interval(0.0, 0.0, 0.0, 0.0)


def _same(stated: Interval, found: Interval) -> bool:
    """Whether two intervals are the same, but for the last digits, in which machines may differ."""
    width = found.upper / 2 - found.lower / 2
    return all(abs(a / 2 - b / 2) <= 2.0**-40 * width for a, b in zip(stated, found, strict=True))


def framed(mechanism: Mechanism, loss: Loss, fit: Fit) -> Fitted:
    """What follows from the answers of all rounds: public, so that ``verify`` can ask it again."""
    rest = Purse.of(loss, mechanism).rest([one.loss for one in fit.rounds])
    law = mechanism.law(loss=rest, grid=framed_grid(fit.declared))
    assert law is not None
    return Fitted(schema=fit.framed(law), mechanism=mechanism, rest=rest, rounds=fit.rounds)


def refusal(
    schema: Schema, mechanism: Mechanism, *, shaped: bool = False, emphasis: tuple[str, ...] = ()
) -> str:
    """What a private frame lacks here, in a few words; empty where it lacks nothing."""
    if shaped and not 2 <= len(numbers_of(schema)) <= MOST_SHAPED:
        return f"2 to {MOST_SHAPED} numeric columns for a shape, and there are {len(numbers_of(schema))}"
    if shaped and schema.dimension > MOST_REHEARSED:
        return f"at most {MOST_REHEARSED:,} columns with their levels for a shape"
    if shaped and emphasis:
        return "columns that weigh alike for a shape, without an emphasis"
    if not schema.intercept:
        return "an intercept, which carries the means"
    if not numbers_of(schema):
        return "a numeric column"
    if schema.dimension > MOST_COLUMNS:
        return f"at most {MOST_COLUMNS:,} columns"
    if schema.row_norm_bound is not None or any(
        c.centre is not None or c.scale is not None for c in numbers_of(schema)
    ):
        return "a schema without row_norm_bound, centre and scale: it finds them itself"
    if not isinstance(mechanism, AdditiveMechanism):
        return f"a mechanism whose noise has a law, and {mechanism.name} has none"
    if mechanism.options.get("constants") == "published":
        return "the tight constants of a mechanism, not those of a paper"
    return ""
