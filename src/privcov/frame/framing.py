"""The private frame in front of a release: which rounds, at which price, and the schema that comes of them.

Rounds are chosen by public facts and by answers that were paid for. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from privcov.errors import ParameterError
from privcov.frame.counting import Look, numbers_of
from privcov.frame.fitting import Fit, Rule
from privcov.frame.shaping import expected_edge
from privcov.frame.spending import Purse, as_rho
from privcov.mechanisms.base import AdditiveMechanism, Mechanism
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, Loss, PureDP
from privcov.releases.certificate import Round
from privcov.repair import MOST_REHEARSED
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid, framed_grid
from privcov.schema.names import quoted
from privcov.schema.shape import MOST_SHAPED
from privcov.summing.engines import Engine
from privcov.text.grammar import brief

Word = Literal["auto", "declared", "scales", "shape"]


SHAPES = ((Fraction(1, 50), 0.05), (Fraction(1, 20), 0.5))
"""Of the loss, for the coarse matrix that a shape follows from, and the share of a column's variance that its noise may
hide in a direction: the first that is enough. Where none is, ``auto`` asks for no shape."""
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


DETAILS = (
    Detail(Fraction(1, 50), 16, 3, radius=Fraction(1, 50), margin=10),
    Detail(Fraction(1, 20), 16, 3),
    Detail(Fraction(1, 10), 16, 3),
    Detail(Fraction(1, 5), 16, 2),
    Detail(Fraction(1, 5), 8, 2),
    Detail(Fraction(1, 5), 4, 2),
)
"""In this order: the first at which noise leaves cells to be seen."""


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
        """The most that may be asked: every histogram of the columns, the shape where there is one, and the radius."""
        looks = [self.purse.part(self.detail.share)] * self.detail.most
        return [*looks, *map(self.purse.part, self._last.values())]

    @property
    def shares(self) -> dict[str, Fraction]:
        """The most that each kind of round takes of the loss."""
        return {"scales": self.detail.most * self.detail.share, **self._last}

    @property
    def _last(self) -> dict[str, Fraction]:
        """The shares of the rounds that are always asked, once, after the looks at the columns."""
        return {**({} if self.shape is None else {"shape": self.shape}), "radius": self.detail.radius}

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
            for detail in DETAILS
        ]
        seen = [made[2]] if rows is None else [one for one in made if one.sees(rows)]
        if not seen and word == "auto":
            return None
        taken = seen[0] if seen else made[-1]
        if word == "auto" and refusal(schema, mechanism, shaped=True, emphasis=emphasis):
            return taken
        return taken if word == "scales" else replace(taken, shape=taken.shape_share(rows, word))

    def shape_share(self, rows: int | None, word: str) -> Fraction | None:
        """What a shape is worth paying, by public facts; with ``auto`` None where its noise would hide too much."""
        about = {
            "columns": len(numbers_of(self.schema)),
            "rows": rows or 1,
            "rows_per_person": self.schema.max_rows_per_person,
        }
        for share, most in SHAPES:
            if rows is not None and expected_edge(self.purse.part(share), **about) <= most:
                return share
        return None if word == "auto" else SHAPES[-1][0]

    def sees(self, rows: int) -> bool:
        """Whether a column that is spread evenly over its bounds stands clear of the noise on its histogram."""
        look = Look(name="scales", schema=self.schema, bins=self.detail.bins)
        clear = Rule.of(self.prices[0]).clear * look.std(self.prices[0])
        return self.detail.margin * clear <= rows / look.bins

    def fit(
        self, data: Any, *, schema: Schema, mechanism: Mechanism, randomness: Randomness, engine: Engine
    ) -> Fitted:
        """Ask the rounds, and return what the release is made under. Reads the table once for each of them."""
        prices = {"scales": self.prices[0]}
        prices |= {name: self.purse.part(share) for name, share in self._last.items()}
        public = self.loss.neighbours.count_is_public(schema.max_rows_per_person)
        fit = Fit(
            declared=schema,
            bins=self.detail.bins,
            most=self.detail.most,
            emphasis=self.emphasis,
            shaped=self.shape is not None,
        )
        while (look := fit.next_look()) is not None:
            one, rows = look.ask(data, loss=prices[look.name], randomness=randomness, engine=engine)
            fit = fit.after(one, rows=rows if public else None)
        return framed(mechanism, self.loss, fit)


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
    fit = Fit(
        declared=replace(schema, columns=tuple(columns), row_norm_bound=None, shape=None),
        most=len(rounds),
        emphasis=emphasis,
        shaped=any(one.name == "shape" for one in rounds),
    )
    if reason := refusal(fit.declared, mechanism, shaped=fit.shaped, emphasis=emphasis):
        raise ParameterError("E218", f"a private frame needs {reason}.")
    for one in rounds:
        look = replace(fit, bins=max(1, len(one.answers) // len(numbers_of(schema)))).next_look()
        if look is not None and look.name != one.name and one.name in ("shape", "radius"):
            look = replace(fit, most=0).next_look() if fit.rounds else None
        if look is None or look.name != one.name or look.cells != len(one.answers):
            raise ParameterError("E218", "the rounds of the certificate are not those of a frame.")
        if abs(one.std - look.std(one.loss)) > 2.0**-40 * one.std:
            raise ParameterError("E218", "the noise of a round is not the one that its price calls for.")
        fit = fit.after(one, rows=rows)
    if not rounds or rounds[-1].name != "radius":
        raise ParameterError("E218", "the rounds of the certificate end without a radius.")
    return framed(mechanism, loss, fit)


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
