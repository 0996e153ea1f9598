"""The terms on which a private frame is fitted: which rounds, at which price, and where it is refused: public facts.

``framing.py`` carries them out; a plan reads them before anything is spent. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Self, get_args

from privcov.errors import ParameterError
from privcov.frame.spending import Purse, as_rho
from privcov.linalg.triangle import is_wide
from privcov.mechanisms.base import AdditiveMechanism, Mechanism
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.sensitivity import counts_l1, counts_l2, sqrt_up, sums_l2, sums_sup
from privcov.mechanisms.symmetric_wishart import SymmetricWishart
from privcov.privacy import ZCDP, Loss, PureDP
from privcov.repair import MOST_REHEARSED
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid, framed_grid
from privcov.schema.names import quoted
from privcov.schema.shape import MOST_SHAPED
from privcov.schema.weights import declared
from privcov.text.grammar import brief

Word = Literal["auto", "declared", "scales", "shape"]
Cut = Literal["told", "counted"]
"""What becomes of the length that a frame cuts off rows: it is told, or intervals count it too."""

SHAPE_RADIUS = Fraction(9, 4)
"""The squared norm that rows are shortened to, for each numeric column, in the scales found: a typical row has 1."""
SHAPES = (Fraction(1, 50), Fraction(1, 20))
"""Of the loss, for the coarse matrix that a shape follows from: the first where it is enough."""
HIDDEN = (0.25, 1.0)
"""It is where its noise hides at most this share of a column's variance in a direction. Where the second price leaves
more than the second share hidden, ``auto`` asks for no shape."""
MOST_KEPT = 2**27
"""Numeric cells beyond which ``auto`` asks for no shape: they are not kept in memory, so another reading is dear."""
MOST_COLUMNS = 4_096
"""Beyond them a grid could be too coarse for what rounds answer."""


class Detail(NamedTuple):
    """How closely a table is looked at."""

    share: Fraction
    """Of the loss, for one look at all columns."""
    most: int
    """How many looks at the columns there may be."""
    radius: Fraction = Fraction(1, 20)
    """Of the loss, for the histogram of norms."""
    margin: int = 6
    """How many times the standard deviation of the noise on a count the number of rows must be."""
    means: Fraction = Fraction(1, 8)
    """Of the loss, for the sums of the columns."""
    squares: Fraction = Fraction(0)
    """Of the loss, for the sums of their squared distances from their centres; 0 where the cut is not counted."""
    unsure: float = 0.125
    """Where no column is looked at: how far noise may move a mean, over half the width of the bounds."""

    def for_means(self) -> Detail:
        """The same where means matter most; squares are part of what they take.

        >>> [(float(one.means), one.most) for one in map(Detail.for_means, DETAILS)]
        [(0.6, 3), (0.6, 3), (0.6, 3), (0.5, 2), (0.6, 0), (0.5, 2)]
        """
        most = min(self.most, _LOOKS_FIRST)
        room = 1 - _LEFT - most * self.share - self.radius
        means = min(_MEANS_FIRST, room) - self.squares
        return self._replace(most=most, means=means, unsure=_UNSURE_FIRST)


MEANS_ALONE = Detail(Fraction(0), 0, means=Fraction(1, 4))
"""Means within the declared bounds come first, and no column is looked at: deviations follow by public formulas."""
DETAILS = (
    Detail(Fraction(1, 50), 4, radius=Fraction(1, 50), margin=150),
    Detail(Fraction(1, 20), 4, radius=Fraction(1, 50), margin=40),
    Detail(Fraction(1, 10), 4, margin=12),
    Detail(Fraction(1, 5), 2, margin=8),
    MEANS_ALONE,
    Detail(Fraction(1, 5), 2, margin=6),
)
"""In this order: the first at which noise lets columns be seen."""
_MEANS_FIRST = Fraction(3, 5)
"""Of the loss, for the sums of the columns and of their squares, where means matter most; less where looks are dear."""
_LOOKS_FIRST = 3
"""How many looks at the columns there may be then, at most."""
_LEFT = Fraction(1, 20)
"""Of the loss, the least that is left for the matrix then."""
_UNSURE_FIRST = 0.25
"""How far noise may move a mean then, over half the width of the bounds: the declared frame knows less of it."""
_COUNTED = Fraction(1, 20)
"""Of the loss, for the sums of squares, where intervals are to count what is cut."""


COUNT_STD = math.sqrt(2)
"""The standard deviation of pure noise of scale 1 on a count."""


def count_noise(loss: PureDP | ZCDP, *, per_row: int, rows_per_person: int) -> Fraction:
    """The scale of the noise on counts of rows: whole for a pure loss, else the standard deviation of normal noise."""
    people = {"per_row": per_row, "rows_per_person": rows_per_person}
    if isinstance(loss, PureDP):
        return Fraction(math.ceil(counts_l1(loss.neighbours, **people) / loss.epsilon))
    return counts_l2(loss.neighbours, **people) * sqrt_up(1 / (2 * loss.rho))


def count_std(loss: PureDP | ZCDP, *, per_row: int, rows_per_person: int) -> float:
    """The standard deviation of the noise on counts of rows."""
    noise = float(count_noise(loss, per_row=per_row, rows_per_person=rows_per_person))
    return noise * (COUNT_STD if isinstance(loss, PureDP) else 1.0)


def cube_std(columns: int) -> float:
    """The standard deviation of the law of a cube of scale 1, for so many columns.

    Uniform in a cube of half-width r, r the sum of ``columns`` + 1 exponential variables.
    """
    return math.sqrt((columns + 1) * (columns + 2) / 3)


def sum_std(loss: PureDP | ZCDP, *, columns: int, rows_per_person: int) -> float:
    """The standard deviation of the noise on a sum of cells of at most 1, where so many columns are added up."""
    people = {"largest": 1, "rows_per_person": rows_per_person}
    if isinstance(loss, PureDP):
        return cube_std(columns) * sums_sup(loss.neighbours, **people) / float(loss.epsilon)
    return float(sums_l2(loss.neighbours, columns=columns, **people)) / math.sqrt(2 * float(loss.rho))


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a frame of centres, scales and a radius may cost, in front of a mechanism with a law.

    Guarantee: the rounds and the matrix together cost ``loss``, however many of the rounds are asked.
    """

    loss: Loss
    mechanism: Mechanism
    schema: Schema
    detail: Detail
    emphasis: tuple[str, ...] = ()
    shape: Fraction | None = None
    """Of the loss, for the coarse matrix that a shape follows from; None where none is asked for."""
    strata: int | None = None
    """How many matrices there are, where there is one for each stratum: all in one frame, without a round of means."""

    @property
    def purse(self) -> Purse:
        return Purse.of(self.loss, self.mechanism)

    @property
    def prices(self) -> list[PureDP | ZCDP]:
        """The most that may be asked: every histogram of the columns, and each of the others once."""
        times = {"scales": self.detail.most}
        return [price for name, price in self.price_of.items() for _ in range(times.get(name, 1))]

    @property
    def price_of(self) -> dict[str, PureDP | ZCDP]:
        """What each kind of round costs every time that it is asked."""
        looks = {"scales": self.detail.share} if self.detail.most else {}
        return {name: self.purse.part(share) for name, share in {**looks, **self._last}.items()}

    @property
    def shares(self) -> dict[str, Fraction]:
        """The most that each kind of round takes of the loss."""
        looks = {"scales": self.detail.most * self.detail.share} if self.detail.most else {}
        return {**looks, **self._last}

    @property
    def _last(self) -> dict[str, Fraction]:
        """The shares of the rounds that are always asked, once, after the looks at the columns."""
        shape = {} if self.shape is None else {"shape": self.shape}
        detail = self.detail
        if not detail.squares:
            means = {"means": detail.means} if detail.means else {}
            return {**shape, "radius": detail.radius, **means}
        return {**shape, "means": detail.means, "squares": detail.squares, "radius": detail.radius}

    @property
    def rest(self) -> Loss:
        """What is left for the matrix if all of the rounds are asked."""
        return self.purse.rest(self.prices)

    @property
    def likely_rest(self) -> Loss:
        """What is left for the matrix if one look at the columns is enough."""
        return self.purse.rest(self.prices[max(0, self.detail.most - 1) :])

    def rho_with(self, mechanism: Mechanism) -> Fraction | None:
        """What rounds and matrix cost as zCDP, however many of the rounds are asked; None where that is not known.

        Where ρ adds up it is the whole. Pure parts cost the more as ρ the fewer they are, so each number is reckoned.
        """
        if self.purse.unit is ZCDP:
            return self.purse.total
        most, prices = self.detail.most, self.prices
        paths = [[*prices[:count], *prices[most:]] for count in range(min(1, most), most + 1)]
        costs = [(path, mechanism.as_zcdp(self.purse.rest(path))) for path in paths]
        found = [sum(map(as_rho, path), start=rest) for path, rest in costs if rest is not None]
        return max(found) if len(found) == len(paths) else None

    @property
    def options(self) -> dict[str, str]:
        """As they are written on the certificate."""
        return frame_options(self.emphasis, shaped=self.shape is not None, counted=bool(self.detail.squares))

    def grids(self, _: Schema) -> list[Grid]:
        """What the matrix is calibrated to: public, and the same whatever the rounds answer."""
        return [framed_grid(self.schema, strata=self.strata is not None)]

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
        cut: str = "told",
        strata: int | None = None,
    ) -> Self | None:
        """The frame asked for; None for the declared one, which ``auto`` takes where another would not pay.

        Strata share one frame, found from all rows, and rows with weights one that counts each of them as one. Means of
        all rows are not those of a stratum, nor weighted means, so none are asked there.
        """
        if word not in get_args(Word):
            raise ParameterError("E218", f"frame must be auto, declared, scales or shape, got {brief(word)}.")
        if word == "declared":
            return None
        counted = cut == "counted"
        reason = refusal(schema, mechanism, shaped=word == "shape", counted=counted, emphasis=emphasis)
        if word == "auto" and (reason or not has_forecast(schema)):
            return None
        if reason:
            other = "declared" if refusal(schema, mechanism) else "scales"
            raise ParameterError("E218", f"a private frame needs {reason}.", f'Use frame = "{other}".')
        squares = _COUNTED if counted else Fraction(0)
        alike = strata is None and schema.weight is None
        # Means alone find no deviations, which a shape and a cut that is counted are told from.
        details = [one for one in DETAILS if one.most or (alike and not (word == "shape" or squares))]
        details = [one._replace(squares=squares) for one in details]
        means_first = means_first and alike
        if not alike:
            details = [one._replace(means=Fraction(0)) for one in details]
        elif means_first:
            details = [one.for_means() for one in details]
        facts: Any = {"loss": loss, "mechanism": mechanism, "schema": schema, "emphasis": emphasis}
        made = [cls(detail=one, strata=strata, **facts) for one in details]
        seen = [made[2]] if rows is None else [one for one in made if one.sees(rows)]
        if not seen and word == "auto":
            return None
        taken = seen[0] if seen else made[-1]
        if word == "auto":
            return taken if means_first else replace(taken, shape=taken.likely_shape(rows))
        if word == "scales":
            return taken
        share = taken.shape_share(rows) or SHAPES[-1]
        # Where means come first the matrix has little: then a shape takes its share from that of the means.
        less = share if means_first else 0
        return replace(taken, shape=share, detail=taken.detail._replace(means=taken.detail.means - less))

    def likely_shape(self, rows: int | None) -> Fraction | None:
        """What ``auto`` pays for a shape; None where it asks for none."""
        columns = len(numbers_of(self.schema))
        if not self.detail.most or rows is None or rows * columns > MOST_KEPT:
            return None
        if refusal(self.schema, self.mechanism, shaped=True, emphasis=self.emphasis):
            return None
        return self.shape_share(rows)

    def shape_share(self, rows: int | None) -> Fraction | None:
        """The least price at which a shape can be seen through its noise, by public facts; None where there is none."""
        if rows is None:
            return None
        for share, most in zip(SHAPES, HIDDEN, strict=True):
            hidden = expected_edge(
                self.purse.part(share),
                columns=len(numbers_of(self.schema)),
                rows=rows,
                rows_per_person=self.schema.max_rows_per_person,
            )
            if hidden <= most:
                return share
        return None

    def sees(self, rows: int) -> bool:
        """Whether so many rows stand clear enough of the noise on a count, or on a mean where no cell is counted."""
        most, columns = self.schema.max_rows_per_person, len(numbers_of(self.schema))
        if not self.detail.most:
            return (
                sum_std(self.price_of["means"], columns=columns, rows_per_person=most)
                <= self.detail.unsure * rows
            )
        std = count_std(self.price_of["scales"], per_row=columns, rows_per_person=most)
        return self.detail.margin * std <= rows


def check_cut(cut: str, frame: str) -> None:
    """Refuse a word for the cut that is none, or one that the declared frame has no use for."""
    if cut not in get_args(Cut):
        raise ParameterError("E218", f"cut must be told or counted, got {brief(cut)}.")
    if cut == "counted" and frame == "declared":
        raise ParameterError(
            "E218",
            "no frame cuts rows here, so there is no cut to be counted.",
            "Leave cut out, or fit a private frame.",
        )


def frame_options(emphasis: tuple[str, ...], *, shaped: bool, counted: bool) -> dict[str, str]:
    """What the certificate says of a frame beside its rounds."""
    said = {"frame": "shape" if shaped else "scales"}
    if counted:
        said["cut"] = "counted"
    return said | ({"emphasis": ", ".join(map(quoted, emphasis))} if emphasis else {})


def has_forecast(schema: Schema) -> bool:
    """Whether a plan can tell what a frame would do: for the correlations of numeric columns, and no wide matrix."""
    return len(numbers_of(schema)) > 1 and not is_wide(schema.dimension)


def refusal(
    schema: Schema,
    mechanism: Mechanism,
    *,
    shaped: bool = False,
    counted: bool = False,
    emphasis: tuple[str, ...] = (),
) -> str:
    """What a private frame lacks here, in a few words; empty where it lacks nothing."""
    if shaped and not 2 <= len(numbers_of(schema)) <= MOST_SHAPED:
        return f"2 to {MOST_SHAPED} numeric columns for a shape, and there are {len(numbers_of(schema))}"
    if shaped and schema.dimension > MOST_REHEARSED:
        return f"at most {MOST_REHEARSED:,} columns with their levels for a shape"
    if shaped and emphasis:
        return "columns that weigh alike for a shape, without an emphasis"
    if schema.weight is not None and (shaped or counted):
        return "rows that count alike, without a weight, " + (
            "for a shape" if shaped else "for a cut that is counted"
        )
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


def numbers_of(schema: Schema) -> list[Numeric]:
    """The numeric columns but for a weight, in order."""
    return [column for column in declared(schema) if isinstance(column, Numeric)]


def shape_grid(columns: int, exponent: int, rows_per_person: int) -> Grid:
    """What the sums of a shape are on: an intercept and numeric columns, of rows of a public norm."""
    room = SHAPE_RADIUS * columns
    return Grid(
        dimension=1 + columns,
        exponent=exponent,
        squared_norm_bound=int((1 + room) * 4**exponent),
        max_rows_per_person=rows_per_person,
        longest=math.sqrt(room),
    )


def hidden_by(noise: float, columns: int) -> float:
    """The largest eigenvalue that noise alone shows, for a standard deviation of the noise on an entry."""
    return 2 * noise * math.sqrt(columns)


def expected_edge(loss: PureDP | ZCDP, *, columns: int, rows: int, rows_per_person: int) -> float:
    """The share of a column's variance below which noise hides a direction, before anything is asked: public."""
    grid = shape_grid(columns, 10, rows_per_person)
    law = shape_mechanism(loss).law(loss=loss, grid=grid)
    return hidden_by(math.sqrt(law.offdiagonal_variance) / max(1, rows), columns)


def shape_mechanism(loss: PureDP | ZCDP) -> AdditiveMechanism:
    """What adds the noise of a shape."""
    return SymmetricWishart() if isinstance(loss, PureDP) else Gaussian()
