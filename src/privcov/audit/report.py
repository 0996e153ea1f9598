"""What an audit found: a value to keep, a table to read, a document to file, a figure to look at.

The figure draws the trade-off between two neighbouring tables, and the privacy loss, beside the claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privcov.audit.claims import Claim, Epsilon, Gaussian
from privcov.audit.distinguish import Curve, loss_histogram
from privcov.errors import ParameterError
from privcov.privacy import Loss
from privcov.report import figures
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


_DASHES = ("-", "--", ":", "-.")


def check_can_draw(path: str, *, force: bool = False) -> None:
    """Refuse early: a file that cannot be written, or a missing library (the extra ``report``)."""
    figures.pyplot(path, force=force)


def draw(report: AuditReport, path: str, *, force: bool = False) -> None:
    """Write the figure of a report that has curves."""
    if not report.curves:
        raise ParameterError("E285", "there is nothing to draw: level 2 was not run.", "Add level 2.")
    plt = figures.pyplot(path, force=force)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 5.2), layout="constrained")
    _trade_off(left, report.curves, report.claims)
    _losses(right, report.curves[0], report.claims)
    figure.suptitle(f"{report.mechanism}, {report.loss}: {report.verdict}", fontsize=11)
    figures.save(figure, path, force=force)


def _trade_off(axes: Any, curves: tuple[Curve, ...], claims: tuple[Claim, ...]) -> None:
    """How often an event happens on one table, against the other: everything above the edge is forbidden."""
    q = np.linspace(0, 1, 401)
    edge = np.min([claim.most_often(q) for claim in claims], axis=0)
    words = " and ".join(_promise(claim) for claim in claims)
    axes.fill_between(q, edge, 1, color="0.82", lw=0, label=f"forbidden by {words}")
    axes.plot(q, edge, color="0.35", lw=1.2)
    for place, curve in enumerate(curves[:4]):
        axes.plot(
            curve.rarely, curve.often, _DASHES[place], color="black", lw=1.6 - 0.2 * place, label=curve.pair
        )
    axes.plot([0, 1], [0, 1], color="0.6", lw=0.8, zorder=0)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("probability of an event on the one table")
    axes.set_ylabel("probability of the same event on its neighbour")
    axes.set_title(f"Trade-off, {curves[0].runs:,} runs a side", fontsize=10)
    axes.legend(loc="lower right", frameon=False, fontsize=8)


def _losses(axes: Any, curve: Curve, claims: tuple[Claim, ...]) -> None:
    """The estimated privacy loss of slices of the best statistic, by how likely they are."""
    losses, weights = loss_histogram(curve, bins=max(8, min(80, curve.runs // 500)))
    lines = [claim.allowed for claim in claims if isinstance(claim, Epsilon)]
    reach = 1.1 * max(0.1, float(np.abs(losses).max(initial=0.0)), *lines, *_spreads(claims))
    edges = np.linspace(-reach, reach, 26)
    axes.hist(losses, bins=edges, weights=weights, color="0.62", edgecolor="white", lw=0.5, label="estimated")
    for claim in claims:
        if isinstance(claim, Epsilon):
            axes.axvline(claim.allowed, color="black", ls="--", lw=1.2, label=f"claimed: {_promise(claim)}")
            axes.axvline(-claim.allowed, color="black", ls="--", lw=1.2)
        if isinstance(claim, Gaussian):
            t, mu = np.linspace(-reach, reach, 400), claim.allowed
            density = np.exp(-(((t - mu**2 / 2) / mu) ** 2) / 2) / (mu * math.sqrt(2 * math.pi))
            width = edges[1] - edges[0]
            axes.plot(t, density * width, color="black", lw=1.4, label=f"claimed at worst: {_promise(claim)}")
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False, fontsize=8, borderaxespad=0
    )
    axes.set_xlim(-reach, reach)
    axes.set_xlabel("privacy loss ln(p/q) of slices of the outputs, point estimates")
    axes.set_ylabel("probability")
    axes.set_title(f"Privacy loss seen by “{curve.statistic}”, {curve.pair}", fontsize=10)


def _spreads(claims: tuple[Claim, ...]) -> list[float]:
    return [claim.allowed**2 / 2 + 3 * claim.allowed for claim in claims if isinstance(claim, Gaussian)]


def _promise(claim: Claim) -> str:
    at = getattr(claim, "at_delta", 0)
    return f"{claim.symbol} = {claim.allowed:.3g}" + (f", δ = {at:.1g}" if at else "")
