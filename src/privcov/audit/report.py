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
    """One line of an audit: what was looked at, what was found, what would have been allowed.

    Attributes
    ----------
    level : {"L0 replay", "L1 fit", "L2 tell apart", "L3 repeats"}
        The attack that found it.
    what : str
        What was looked at.
    found : str
        What was found.
    allowed : str
        What a sound mechanism may show.
    failed : bool
        Whether it refutes the promise.
    detail : str
        Why, where it does.
    setting : str
        The tables and the loss of the attack.

    Examples
    --------
    >>> Finding(level="L1 fit", what="entries", found="p = 0.3", allowed="p > 1e-6", failed=False).failed
    False
    """

    level: Level
    what: str
    found: str
    allowed: str
    failed: bool
    detail: str = ""
    setting: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The findings of an audit. To pass means that no promise was refuted, not that one was proven.

    Attributes
    ----------
    mechanism : str
        The name of the mechanism.
    options : dict of str to str
        The options it was run with.
    loss : PureDP, ApproxDP or ZCDP
        The promise under attack.
    dimension : int
        The number of columns of the made-up tables.
    runs : int
        How often the mechanism was run in each setting.
    error : float
        The probability that a sound mechanism is failed by the second level.
    arithmetic : str
        "exact" or "idealized".
    randomness : str
        "kernel" or "rehearsal".
    findings : tuple of Finding
        One for each thing that was looked at, by level.
    curves : tuple of Curve
        How well neighbouring tables could be told apart, for figures.
    claims : tuple of Claim
        What was promised as asked; the edge that figures draw.
    cpu_seconds : float
        What the audit took, in seconds of processor time.

    Examples
    --------
    >>> import privcov as pc
    >>> from privcov.audit import audit
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> report = audit("laplace", loss=loss, dimension=1, runs=400, levels=(0,))
    >>> report.passed, report.verdict, report.failures, report.to_dict()["verdict"]
    (True, 'PASS', (), 'PASS')
    >>> report.render().endswith(report.conclusion)
    True
    """

    mechanism: str
    options: dict[str, str]
    loss: Loss
    dimension: int
    runs: int
    error: float
    arithmetic: str
    randomness: str
    findings: tuple[Finding, ...]
    curves: tuple[Curve, ...] = ()
    claims: tuple[Claim, ...] = ()
    cpu_seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether no finding refutes the promise."""
        return not any(finding.failed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that refute the promise."""
        return tuple(finding for finding in self.findings if finding.failed)

    @property
    def verdict(self) -> str:
        """The outcome in a word, "PASS" or "FAIL"."""
        return "PASS" if self.passed else "FAIL"

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the curves, for programs.

        Returns
        -------
        dict
            JSON values.
        """
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
        """Return the report as a table to read.

        Returns
        -------
        str
            Several lines, the conclusion last.
        """
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
        """The outcome in one sentence, honest about what it does not say."""
        chance = f"A correct mechanism fails by chance in at most one of {1 / self.error:,.0f} audits."
        if self.passed:
            return f"PASS: no test refuted the promise. This is not a proof. {chance}"
        count = len(self.failures)
        return f"FAIL: {count} finding{'s' if count > 1 else ''} refute{'' if count > 1 else 's'} the promise. {chance}"
