"""Which strata would drown in noise: said before anything is paid, from guesses of their sizes that are public.

Each stratum has the noise of what a total beside them leaves of the loss, so what differs between them is their rows
alone. How much a total should have: ``best_share``. No data is opened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privcov.errors import ParameterError
from privcov.frame.spending import Purse, shared_with_total
from privcov.noise.composed import summed
from privcov.noise.laws import NoiseLaw
from privcov.planning.candidates import Candidate, decide
from privcov.planning.forecast import count_is_public
from privcov.planning.framed import Framed, error_by_rows, in_frame, terms_of
from privcov.planning.moments import PublicMoments
from privcov.planning.outlook import Outlook
from privcov.privacy import Amount, Loss, PureDP, decimal_text, exact
from privcov.releases.strata import consistent_laws
from privcov.report.tables import table
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.text.aligning import cut, paragraph, terminal
from privcov.text.grammar import brief

_MOST_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class StrataPlan:
    """What a release of strata would be worth, stratum by stratum.

    Attributes
    ----------
    loss : PureDP, ApproxDP or ZCDP
        What it would promise, for all strata together.
    mechanism : str
        The mechanism that would be used for each.
    rows : mapping of str to float
        The rows that each stratum is taken to have.
    outlooks : mapping of str to Outlook
        What could be concluded of each.
    rows_for : mapping of str to int
        The fewest rows of a stratum for the verdicts "useful" and "marginal".
    total : Outlook
        What could be concluded of the total.
    total_share : Fraction
        The share of the loss for the total; with 0 it is the sum of the strata.
    best_share : Fraction
        The share with the least sum of the variances of a stratum and of the total, each over what it is with 0.
    noise : mapping of str to float
        The standard deviation of the noise on an entry of a "stratum" and of the "total", over what it is with a share
        of 0; and of "best stratum" and "best total", with the best share.
    framed : Framed or None
        What a private frame would do for a stratum of average size; None where none would be fitted.
    frame : bool
        Whether the verdicts are those in that frame.

    Examples
    --------
    >>> from privcov.privacy import PureDP
    >>> columns = {"age": {"lower": 0, "upper": 9}, "pay": {"lower": 0, "upper": 9}, "area": {"levels": ["s", "w"]}}
    >>> loss = PureDP(epsilon=1, neighbours="add-remove")
    >>> made = plan_strata(schema=Schema.from_dict({"columns": columns}), by="area", rows=9000, loss=loss,
    ...                    sizes={"w": 40})
    >>> {name: (made.rows[name], outlook.verdict) for name, outlook in made.outlooks.items()}
    {'s': (8960.0, 'useful'), 'w': (40.0, 'worse than publishing zeros')}
    >>> made.drowned
    ('w',)
    >>> made.total.verdict, float(made.best_share), {word: round(ratio, 2) for word, ratio in made.noise.items()}
    ('useful', 0.0, {'stratum': 1.0, 'total': 1.0, 'best stratum': 1.0, 'best total': 1.0})
    """

    loss: Loss
    mechanism: str
    rows: Mapping[str, float]
    outlooks: Mapping[str, Outlook]
    rows_for: Mapping[str, int]
    total: Outlook
    total_share: Fraction
    best_share: Fraction
    noise: Mapping[str, float]
    framed: Framed | None
    frame: bool

    @property
    def drowned(self) -> tuple[str, ...]:
        """The strata of which publishing zeros would be better."""
        return tuple(
            name for name, one in self.outlooks.items() if one.verdict == "worse than publishing zeros"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan for programs.

        Returns
        -------
        dict
            JSON values.
        """
        strata = [
            {"name": name, "rows": self.rows[name], "verdict": one.verdict, "low": one.low, "high": one.high}
            for name, one in self.outlooks.items()
        ]
        return {
            "loss": {
                "kind": self.loss.kind,
                **{word: str(amount) for word, amount in self.loss.amounts.items()},
            },
            "neighbours": self.loss.neighbours.value,
            "mechanism": self.mechanism,
            "rows_for": dict(self.rows_for),
            "strata": strata,
            "drowned": list(self.drowned),
            "total": {"verdict": self.total.verdict, "low": self.total.low, "high": self.total.high},
            "total_share": decimal_text(self.total_share),
            "best_share": decimal_text(self.best_share),
            "noise": dict(self.noise),
            "correlations": None if self.framed is None else vars(self.framed),
        }

    def __str__(self) -> str:
        shown = list(self.outlooks.items())[:_MOST_SHOWN]
        rows = [[cut(name), f"{self.rows[name]:,.0f}", one.verdict] for name, one in shown]
        more = len(self.outlooks) - len(shown)
        shown_rows = table(["stratum", "rows", "verdict"], rows) + (
            f"\n… and {more:,} more (--json prints all)" if more else ""
        )
        lines = [
            f"{len(self.outlooks):,} strata, each by {self.mechanism}: {self.loss}, for all of them together.",
            f"A stratum is useful from about {self.rows_for['useful']:,} rows on, and worse than publishing zeros "
            f"below {self.rows_for['marginal']:,}.",
            self.about_the_total,
        ]
        if self.framed is not None and not self.frame:
            lines.append(str(self.framed))
        if self.drowned:
            lines.append(
                f"{len(self.drowned):,} of {len(self.outlooks):,} strata would drown: join levels, or draw them "
                "towards the pool afterwards (privcov show --shrink)."
            )
        first, *others = (paragraph(one, within=terminal()) for one in lines)
        return "\n\n".join([first, shown_rows, *others])

    @property
    def about_the_total(self) -> str:
        """What the total would be worth, and the share that would be best for it and the strata, as sentences."""
        share, found = float(self.total_share), self.noise
        total = f"The total is {self.total.verdict}"
        if not self.total_share:
            told = f"{total}: the sum of the strata, with the noise of all of them."
        else:
            told = (
                f"{total}. With {100 * share:g} % of the loss for it, its noise is {found['total']:.2f} times that of "
                f"the sum of strata that have all of the loss, and that of a stratum {found['stratum']:.2f} times its "
                "own."
            )
        if self.frame:
            return told
        if self.best_share == self.total_share:
            return f"{told} No {'other ' if self.total_share else ''}share is better for both together."
        return (
            f"{told} --total-share {float(self.best_share):g} has the least variance of both together: "
            f"{found['best total']:.2f} times the noise on the total, {found['best stratum']:.2f} times that on a "
            "stratum."
        )


@dataclass(frozen=True, kw_only=True)
class _Split:
    """What a share for the total does to the noise, with one mechanism."""

    decided: Candidate
    grid: Grid
    strata: int

    def laws(self, share: Fraction) -> tuple[NoiseLaw, NoiseLaw]:
        """Of a stratum and of the total, as they are read."""
        mechanism, loss = self.decided.mechanism, self.decided.loss
        pooled = replace(self.grid, strata=False, pooled=True)
        total = None if not share else shared_with_total(loss, mechanism, share)
        law = mechanism.law(loss=loss if total is None else total[1], grid=self.grid)
        assert law is not None  # the mechanisms that take strata all have one
        if total is None:
            return law, summed((law, self.strata))
        own = mechanism.law(loss=total[0], grid=pooled)
        assert own is not None
        return consistent_laws(law, own, self.strata)

    def noise(self, share: Fraction) -> tuple[float, float]:
        """The noise on a stratum and on the total, over what it is where strata have all of the loss."""
        pairs = zip(self.laws(share), self.laws(Fraction(0)), strict=True)
        stratum, total = (law.rms_frobenius / whole.rms_frobenius for law, whole in pairs)
        return stratum, total

    @property
    def best(self) -> Fraction:
        """The share, in thousandths, with the least sum of the two variances, each over what it is with none.

        A pure share is one of a scale, any other one of a variance: with g the variance of a total that has all of the
        loss over that of a stratum, v = (1 − s)^−p and t = g·s^−p, a stratum has v·(1 − v/(K·v + t)) and a total
        K·v·t/(K·v + t). With p = 1 and g = 1 the least is at s = 1/(2 + √(K + 1)).
        """
        mechanism, loss = self.decided.mechanism, self.decided.loss
        power = 2 if Purse.of(loss, mechanism).unit is PureDP else 1
        law = mechanism.law(loss=loss, grid=self.grid)
        own = mechanism.law(loss=loss, grid=replace(self.grid, strata=False, pooled=True))
        assert law is not None
        assert own is not None
        ratio, count = (own.scale / law.scale) ** 2, self.strata

        def both(share: Fraction) -> float:
            s = float(share)
            if not s:
                return 2.0
            v, t = (1 - s) ** -power, ratio * s**-power
            return v * (1 - v / (count * v + t)) + v * t / (count * v + t)

        return min((Fraction(k, 1000) for k in range(1000)), key=both) if count > 1 else Fraction(0)


def share_of(given: Amount, decided: Candidate, schema: Schema, strata: int) -> Fraction:
    """The share of the loss for a total that someone asks for: 0, a number from 0.001 to 0.999, or "best".

    ``schema`` is that of the columns that are released, ``strata`` the number of strata.
    """
    if given == "best":
        return _Split(decided=decided, grid=Grid.of(schema, strata=True), strata=strata).best
    try:
        share = exact(given)
    except (ValueError, TypeError, OverflowError):
        raise ParameterError(
            "E225",
            f"total_share must be a number, or best, got {brief(given)}.",
            "It is the share of the loss for the total of strata; privcov plan names the best.",
        ) from None
    if share:  # which refuses one that is none
        shared_with_total(decided.loss, decided.mechanism, share)
    if share and strata < 2:
        raise ParameterError("E226", "a single stratum is its own total.", "Leave total_share out.")
    return share


def noise_on_stratum(given: Amount, schema: Schema, strata: int) -> Callable[[Candidate], NoiseLaw]:
    """The law of the noise on a stratum as it is read, by each candidate, with a share of the loss for a total.

    ``schema`` is that of the columns that are released, ``strata`` the number of strata. A share that is none is
    refused (E225, E226) by what is returned.
    """

    def law(decided: Candidate) -> NoiseLaw:
        split = _Split(decided=decided, grid=Grid.of(schema, strata=True), strata=strata)
        return split.laws(share_of(given, decided, schema, strata))[0]

    return law


def plan_strata(
    *,
    schema: Schema,
    by: str | Sequence[str],
    rows: int,
    loss: Loss,
    other: str | None = None,
    sizes: Mapping[str, int] | None = None,
    purpose: str = "covariance",
    mechanism: str = "auto",
    moments: PublicMoments | None = None,
    total_share: Amount = 0,
    frame: str = "declared",
) -> StrataPlan:
    """Say what each stratum of a release would be worth, before anything is spent.

    Parameters
    ----------
    schema : Schema
        The columns with their public bounds.
    by : str or sequence of str
        The columns whose levels make the strata.
    rows : int
        The number of rows of the table, public or guessed.
    loss : PureDP, ApproxDP or ZCDP
        What the release may cost.
    other : str, optional
        The name of a stratum for all rows that are in none of the others.
    sizes : mapping of str to int, optional
        How many rows some strata have: public, or guessed. The others share what is left equally.
    purpose : str, default "covariance"
        What matters most, as for ``release``.
    mechanism : str, default "auto"
        The mechanism.
    moments : PublicMoments, optional
        What was declared public of the columns that are released.
    total_share : Fraction, float or str, default 0
        The share of the loss for a total beside the strata, or "best", as for ``release``.
    frame : {"declared", "auto", "scales", "shape"}, default "declared"
        The frame that the verdicts are in, as for ``release``. Where none would be fitted they are in the declared one.

    Returns
    -------
    StrataPlan
        The verdict on each stratum.

    Raises
    ------
    InputError
        The strata cannot be made (E185 to E189).
    ParameterError
        A size is of no stratum, is no whole number from 0, or all are more than the rows (E284); the share is none
        (E225), or there is a single stratum (E226).
    """
    strata, rest = Strata.of(schema, by=by, other=other)
    grid = Grid.of(rest, strata=True)
    law_of = noise_on_stratum(total_share, rest, len(strata.names))
    decided = decide(mechanism, loss=loss, schema=rest, purpose=purpose, grid=grid, law_of=law_of)
    split = _Split(decided=decided, grid=grid, strata=len(strata.names))
    share, best = share_of(total_share, decided, rest, split.strata), split.best
    law, total = split.laws(share)
    ratios = (*split.noise(share), *split.noise(best))
    counts = _shared_out(strata, rows, sizes or {})
    facts: Any = {
        "counted": False,  # people move between strata
        "moments": None if moments is None or moments.schema != rest else moments,
    }
    order: Any = {"rows": rows, "loss": loss, "purpose": purpose}
    outlooks = {
        name: Outlook.by_law(rest, law, rows=max(count, 1e-9), **facts) for name, count in counts.items()
    }
    each = Outlook.by_law(rest, law, rows=1, **facts)
    whole = Outlook.by_law(rest, total, rows=rows, **facts | {"counted": count_is_public(rest, decided.loss)})
    terms = None if share or frame == "declared" else terms_of(frame, rest, strata=split.strata, **order)
    taken = decided if terms is None else terms
    if terms is not None:
        error = error_by_rows(terms, rows=rows)
        outlooks = {name: Outlook.framed(error(count)) for name, count in counts.items()}
        each, whole = Outlook.framed(error(1)), Outlook.framed(error(rows / math.sqrt(split.strata)))
    return StrataPlan(
        loss=taken.loss,
        mechanism=taken.mechanism.name,
        rows=counts,
        outlooks=outlooks,
        rows_for=each.rows_for,
        total=whole,
        total_share=share,
        best_share=best,
        noise=dict(zip(("stratum", "total", "best stratum", "best total"), ratios, strict=True)),
        framed=None if share else in_frame(rest, law=law, strata=split.strata, **order),
        frame=terms is not None,
    )


def _shared_out(strata: Strata, rows: int, sizes: Mapping[str, int]) -> dict[str, float]:
    """The rows of each stratum: as given, and the rest in equal parts."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise ParameterError("E284", f"rows must be a whole number from 1, got {brief(rows)}.")
    for name, size in sizes.items():
        strata.place(name)
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ParameterError(
                "E284", f"the size of {brief(name)} must be a whole number from 0, got {brief(size)}."
            )
    left, open_ones = rows - sum(sizes.values()), len(strata.names) - len(sizes)
    if left < 0:
        raise ParameterError("E284", f"the sizes add up to {sum(sizes.values()):,}, more than {rows:,} rows.")
    return {name: float(sizes[name]) if name in sizes else left / open_ones for name in strata.names}
