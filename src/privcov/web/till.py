"""The verdict of the plan, beside the price: what is about to be bought, and what else the same steward could do.

Public facts only, and quick: the law of the noise, without a simulation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from privcov.errors import ParameterError
from privcov.frame.emphasis import emphasis_of, emphasised
from privcov.frame.terms import check_cut
from privcov.planning.exits import exits, outlook_of
from privcov.planning.moments import PublicMoments
from privcov.planning.outlook import Outlook
from privcov.planning.strata import StrataPlan, plan_strata
from privcov.privacy import Loss
from privcov.schema import Schema
from privcov.schema.strata import Strata
from privcov.text.grammar import brief
from privcov.web.asking import Question, text

FRAMES = ("auto", "declared", "scales", "shape")
_MOST_STRATA = 100
"""Of the plan of strata that the page shows."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the page lets a steward choose beside the loss: the words of the command line."""

    mechanism: str = "auto"
    purpose: str = "covariance"
    frame: str = "declared"
    cut: str = "told"
    """Of no account in the declared frame, which cuts nothing."""
    emphasis: str = ""
    by: str = ""
    """Columns whose levels make strata, with a matrix for each; empty for one matrix of all rows."""
    rest: str = ""
    """The name of a stratum for all other rows; empty where they count nowhere."""
    share: str = "0"
    """Of the loss, for a total beside the strata."""
    sizes: str = ""
    """The rows of some strata, for the plan: NAME=ROWS, with semicolons or line breaks between them."""

    @classmethod
    def of(cls, question: Question) -> Choice:
        """From the fields of the page."""
        frame = text(question, "frame") or "declared"
        if frame not in FRAMES:
            raise ParameterError("E218", f"frame must be auto, declared, scales or shape, got {frame!r}.")
        cut = "told" if frame == "declared" else text(question, "cut") or "told"
        check_cut(cut, frame)
        return cls(
            mechanism=text(question, "mechanism") or "auto",
            purpose=text(question, "purpose") or "covariance",
            frame=frame,
            cut=cut,
            emphasis=text(question, "focus", longest=20_000),
            by=text(question, "by", longest=20_000),
            rest=text(question, "rest"),
            share=text(question, "share") or "0",
            sizes=text(question, "sizes", longest=20_000),
        )

    @property
    def words(self) -> dict[str, Any]:
        """The arguments of ``privcov.release``."""
        return {
            "mechanism": self.mechanism,
            "purpose": self.purpose,
            "frame": self.frame,
            "cut": self.cut,
            "emphasis": self.emphasis or None,
            "by": self.by or None,
            **({"other": self.rest or None, "total_share": self.share} if self.by else {}),
        }

    @property
    def sized(self) -> dict[str, int]:
        """The rows of some strata, as they were typed."""
        pairs = [line.rpartition("=") for line in re.split(r"[;\n]", self.sizes) if line.strip()]
        if wrong := [size for name, _, size in pairs if not (name.strip() and size.strip().isdecimal())]:
            raise ParameterError("E284", f"a size is NAME=ROWS, got {brief(wrong[0].strip())} for the rows.")
        return {name.strip(): int(size) for name, _, size in pairs}

    @property
    def needs_a_look(self) -> bool:
        """Whether what it would be depends on the header of the table."""
        return self.frame != "declared" or bool(self.emphasis) or bool(self.by)

    def weighed(self, schema: Schema) -> Schema:
        """The schema with its focus, as the declared frame has it."""
        return emphasised(schema, emphasis_of(self.emphasis or None, schema)) if self.emphasis else schema


@dataclass(frozen=True, kw_only=True)
class Till:
    """A release that is about to be paid for: its schema, its loss, the rows as the steward stated them."""

    schema: Schema
    loss: Loss
    rows: int
    choice: Choice
    moments: PublicMoments | None = None

    def outlook(self) -> Outlook | None:
        """How large a correlation must be to stand clear of the noise; None where the noise has no law."""
        if self.choice.by:
            return self._of_strata()
        return outlook_of(
            self.schema,
            loss=self.loss,
            rows=self.rows,
            purpose=self.choice.purpose,
            mechanism=self.choice.mechanism,
            frame=self.choice.frame,
            cut=self.choice.cut,
            emphasis=emphasis_of(self.choice.emphasis or None, self.schema),
            moments=self.moments,
        )

    def _of_strata(self) -> Outlook:
        """The same of each stratum, with the rows spread evenly over them."""
        return next(iter(self.strata().outlooks.values()))

    def strata(self, sizes: Mapping[str, int] | None = None) -> StrataPlan:
        """What each stratum would be worth, and the total; of some strata the rows may be known or guessed."""
        _, rest = Strata.of(self.schema, by=self.choice.by, other=self.choice.rest or None)
        return plan_strata(
            schema=self.schema,
            by=self.choice.by,
            other=self.choice.rest or None,
            rows=self.rows,
            loss=self.loss,
            sizes=sizes,
            purpose=self.choice.purpose,
            mechanism=self.choice.mechanism,
            moments=None if self.moments is None or self.choice.emphasis else self.moments.part(rest),
            total_share=self.choice.share,
            frame=self.choice.frame,
        )

    def told_strata(self) -> dict[str, Any]:
        """The plan of strata as the page shows it: a line for each of the first, and what is said of all."""
        found = self.strata(self.choice.sized)
        shown = list(found.outlooks.items())[:_MOST_STRATA]
        more = len(found.outlooks) - len(shown)
        drowned = (
            f"{len(found.drowned):,} of {len(found.outlooks):,} strata would drown. " if found.drowned else ""
        )
        return {
            "lines": [[name, f"{found.rows[name]:,.0f}", one.verdict] for name, one in shown],
            "more": f"… and {more:,} more." if more else "",
            "words": f"{drowned}A stratum is useful from about {found.rows_for['useful']:,} rows on, and worse than "
            f"publishing zeros below {found.rows_for['marginal']:,}. {found.about_the_total}",
        }

    def told(self) -> dict[str, Any]:
        """The verdict, and ways out where there is nothing to buy."""
        found = self.outlook()
        if found is None:
            return {"verdict": "", "verdicts": "", "exits": []}
        poor = found.verdict == "worse than publishing zeros"
        said = str(found)
        return {
            "verdict": found.verdict,
            "verdicts": f"{said[:1].upper()}{said[1:]}",
            "exits": [*self._exits()] if poor else [],
        }

    def _exits(self) -> Iterator[str]:
        """What would be better than zeros, each tried before it is offered."""
        frame = self.choice.frame == "declared" and self.choice.share == "0"
        return exits(self._worth, schema=self.schema, loss=self.loss, frame=frame, columns=not self.choice.by)

    def _worth(
        self, *, schema: Schema | None = None, loss: Loss | None = None, frame: str | None = None
    ) -> Outlook | None:
        """The outlook of another order; of fewer columns without a focus, which may lie on the others."""
        choice, moments = replace(self.choice, frame=frame or self.choice.frame), self.moments
        if schema is not None:
            choice, moments = replace(choice, emphasis=""), moments and moments.part(schema)
        return replace(
            self, schema=schema or self.schema, loss=loss or self.loss, choice=choice, moments=moments
        ).outlook()
