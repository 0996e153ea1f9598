"""What an audit found: a value to keep, a table to read, a document to file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from privcov.audit.claims import Claim
from privcov.audit.distinguish import Curve
from privcov.privacy import Loss
from privcov.report.tables import table

Level = Literal["L0 replay", "L1 fit", "L2 tell apart", "L3 repeats"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line: what was looked at, what was found, what would have been allowed."""

    level: Level
    what: str
    found: str
    allowed: str
    failed: bool
    detail: str = ""
    setting: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The findings of all levels. ``passed`` means that no promise was refuted, not that one was proven."""

    mechanism: str
    options: dict[str, str]
    loss: Loss
    dimension: int
    runs: int
    error: float
    """The probability that a sound mechanism is failed by the second level."""
    arithmetic: str
    randomness: str
    findings: tuple[Finding, ...]
    curves: tuple[Curve, ...] = ()
    claims: tuple[Claim, ...] = ()
    """What was promised as asked, points of profiles left out: the edge that figures draw."""
    cpu_seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not any(finding.failed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.failed)

    @property
    def verdict(self) -> str:
        return "PASS" if self.passed else "FAIL"

    def to_dict(self) -> dict[str, Any]:
        """Everything but the curves, as JSON values."""
        return {
            "mechanism": self.mechanism,
            "options": self.options,
            "loss": {
                "kind": self.loss.kind,
                **{name: float(amount) for name, amount in self.loss.amounts.items()},
                "neighbours": str(self.loss.neighbours),
            },
            "dimension": self.dimension,
            "runs": self.runs,
            "error": self.error,
            "arithmetic": self.arithmetic,
            "randomness": self.randomness,
            "cpu_seconds": round(self.cpu_seconds, 2),
            "verdict": self.verdict,
            "findings": [
                {
                    "level": finding.level,
                    "setting": finding.setting,
                    "what": finding.what,
                    "found": finding.found,
                    "allowed": finding.allowed,
                    "verdict": "FAIL" if finding.failed else "pass",
                    "detail": finding.detail,
                }
                for finding in self.findings
            ],
        }

    def render(self) -> str:
        """The table people read."""
        lines = [
            f"{self.mechanism}: {self.loss}",
            f"{self.dimension} columns · {self.runs:,} runs per setting · {self.arithmetic} arithmetic · "
            f"{self.randomness} randomness",
            "",
        ]
        rows, setting = [], ""
        for finding in self.findings:
            if finding.setting and finding.setting != setting:
                setting = finding.setting
                rows.append([finding.level, setting, "", "", ""])
            what = f"  {finding.what}" if finding.setting else finding.what
            verdict = "FAIL" if finding.failed else "pass"
            rows.append([finding.level, what, finding.found, finding.allowed, verdict])
        for place in range(len(rows) - 1, 0, -1):
            if rows[place][0] == rows[place - 1][0]:
                rows[place][0] = ""
        lines += [table(["level", "what", "found", "allowed", ""], rows, left=2), ""]
        lines += [f"why: {finding.what}: {finding.detail}" for finding in self.failures if finding.detail]
        return "\n".join([*lines, self.conclusion])

    @property
    def conclusion(self) -> str:
        """One sentence, honest about what it does not say."""
        chance = f"A correct mechanism fails by chance in at most one of {1 / self.error:,.0f} audits."
        if self.passed:
            return f"PASS: no test refuted the promise. This is not a proof. {chance}"
        count = len(self.failures)
        return f"FAIL: {count} finding{'s' if count > 1 else ''} refute{'' if count > 1 else 's'} the promise. {chance}"
