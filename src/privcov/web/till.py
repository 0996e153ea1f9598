"""The verdict of the plan, beside the price: what is about to be bought, and what else the same steward could do.

Public facts only, and quick: the law of the noise, without a simulation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privcov.errors import ParameterError, PrivcovError
from privcov.frame.emphasis import emphasis_of, emphasised
from privcov.frame.terms import check_cut
from privcov.planning.candidates import decide
from privcov.planning.forecast import count_is_public
from privcov.planning.framed import Framed, in_frame
from privcov.planning.moments import PublicMoments
from privcov.planning.outlook import Outlook
from privcov.planning.strata import StrataPlan, plan_strata
from privcov.privacy import EPSILON_POLICY_CAP, ZCDP, ApproxDP, Loss, PureDP, display
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.schema.weights import declared
from privcov.text.grammar import brief
from privcov.web.asking import Question, text

FRAMES = ("auto", "declared", "scales", "shape")
_DELTA = Fraction(1, 10**6)
_MOST_STRATA = 100
"""Of the plan of strata that the page shows."""
_MOST_TRIED = 200
"""Columns beyond which nobody is told how many to leave out."""


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
        schema = self.choice.weighed(self.schema)
        taken = decide(self.choice.mechanism, loss=self.loss, schema=schema, purpose=self.choice.purpose)
        law = taken.mechanism.law(loss=taken.loss, grid=Grid.of(schema))
        if law is None:
            return None
        if self.choice.frame != "declared" and (framed := self.framed()) is not None:
            return Outlook.framed(framed.private)
        moments = None if self.choice.emphasis else self.moments
        counted = count_is_public(schema, taken.loss)
        return Outlook.by_law(schema, law, rows=self.rows, counted=counted, moments=moments)

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

    def framed(self) -> Framed | None:
        """What a private frame would do; None where there is none."""
        taken = decide("auto", loss=self.loss, schema=self.schema, purpose=self.choice.purpose)
        law = taken.mechanism.law(loss=taken.loss, grid=Grid.of(self.schema))
        return in_frame(
            self.schema,
            law=law,
            rows=self.rows,
            loss=self.loss,
            purpose=self.choice.purpose,
            word=self.choice.frame,
            cut=self.choice.cut,
        )

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
        framed = replace(self.choice, frame="auto")
        takes = self.choice.frame == "declared" and self.choice.share == "0"
        if takes and (better := self._better(choice=framed)):
            yield f"Fit a private frame first (frame: auto): {better}"
        if isinstance(self.loss, PureDP):
            delta = ApproxDP(epsilon=self.loss.epsilon, delta=_DELTA, neighbours=self.loss.neighbours)
            if better := self._better(loss=delta):
                yield f"Allow a δ of {display(_DELTA)}: {better}"
        if count := self._fewer():
            yield f"Release fewer columns: with the first {count} of {len(declared(self.schema))} it would be marginal."
        if amount := self._enough():
            yield f"Spend more: from ε = {display(amount)} on it would be marginal."

    def _better(self, **other: Any) -> str:
        """The outlook of another order, where it is better than zeros."""
        try:
            found = replace(self, **other).outlook()
        except PrivcovError:
            return ""
        return "" if found is None or found.verdict.startswith("worse") else str(found)

    def _fewer(self) -> int | None:
        """The most columns, from the first on, that are better than zeros; at least two."""
        columns = [column.name for column in declared(self.schema)]
        low, high = 1, len(columns) if len(columns) <= _MOST_TRIED and not self.choice.by else 1
        while high - low > 1:
            middle = (low + high) // 2
            fewer = self.schema.subset(columns[:middle])
            worth = self._better(schema=fewer, choice=replace(self.choice, emphasis=""), moments=None)
            low, high = (middle, high) if worth else (low, middle)
        return low if low > 1 else None

    def _enough(self) -> Fraction | None:
        """The smallest ε on a scale of two digits that is better than zeros, and that the page allows."""
        if isinstance(self.loss, ZCDP):
            return None
        for power in range(-2, 2):
            for digits in range(10, 100, 5):
                amount = Fraction(digits, 10) * Fraction(10) ** power
                if self.loss.epsilon < amount <= EPSILON_POLICY_CAP and self._better(
                    loss=replace(self.loss, epsilon=amount)
                ):
                    return amount
        return None
