"""Which strata would drown in noise: said before anything is paid, from guesses of their sizes that are public.

Each stratum has the noise of the whole loss, so what differs between them is their rows alone. No data is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privcov.errors import ParameterError
from privcov.planning.candidates import decide
from privcov.planning.moments import PublicMoments
from privcov.planning.outlook import Outlook
from privcov.privacy import Loss
from privcov.report.tables import table
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.text.aligning import cut
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
    """

    loss: Loss
    mechanism: str
    rows: Mapping[str, float]
    outlooks: Mapping[str, Outlook]
    rows_for: Mapping[str, int]

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
        }

    def __str__(self) -> str:
        shown = list(self.outlooks.items())[:_MOST_SHOWN]
        rows = [[cut(name), f"{self.rows[name]:,.0f}", one.verdict] for name, one in shown]
        more = len(self.outlooks) - len(shown)
        lines = [
            f"{len(self.outlooks):,} strata, each by {self.mechanism}: {self.loss}, for all of them together.",
            table(["stratum", "rows", "verdict"], rows)
            + (f"\n… and {more:,} more (--json prints all)" if more else ""),
            f"A stratum is useful from about {self.rows_for['useful']:,} rows on, and worse than publishing zeros "
            f"below {self.rows_for['marginal']:,}.",
        ]
        if self.drowned:
            lines.append(
                f"{len(self.drowned):,} of {len(self.outlooks):,} strata would drown: join levels, or draw them "
                "towards the pool afterwards (privcov show --shrink)."
            )
        return "\n\n".join(lines)


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

    Returns
    -------
    StrataPlan
        The verdict on each stratum.

    Raises
    ------
    InputError
        The strata cannot be made (E185 to E189).
    ParameterError
        A size is of no stratum, is no whole number from 0, or all are more than the rows (E284).
    """
    strata, rest = Strata.of(schema, by=by, other=other)
    grid = Grid.of(rest, strata=True)
    decided = decide(mechanism, loss=loss, schema=rest, purpose=purpose, grid=grid)
    law = decided.mechanism.law(loss=decided.loss, grid=grid)
    assert law is not None  # the mechanisms that take strata all have one
    counts = _shared_out(strata, rows, sizes or {})
    facts: Any = {
        "counted": False,  # people move between strata
        "moments": None if moments is None or moments.schema != rest else moments,
    }
    outlooks = {
        name: Outlook.by_law(rest, law, rows=max(count, 1e-9), **facts) for name, count in counts.items()
    }
    return StrataPlan(
        loss=decided.loss,
        mechanism=decided.mechanism.name,
        rows=counts,
        outlooks=outlooks,
        rows_for=Outlook.by_law(rest, law, rows=1, **facts).rows_for,
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
