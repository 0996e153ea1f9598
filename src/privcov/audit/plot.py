"""What an audit saw, drawn: the trade-off between two neighbouring tables, and the privacy loss, beside the claim."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privcov.audit.claims import Claim, Epsilon, Gaussian
from privcov.audit.distinguish import Curve, loss_histogram
from privcov.audit.report import AuditReport
from privcov.errors import ParameterError
from privcov.report import figures

_DASHES = ("-", "--", ":", "-.")


def check_can_draw(path: str, *, force: bool = False) -> None:
    """Refuse early: a file that cannot be written, or a missing library (the extra ``report``)."""
    figures.pyplot(path, force=force)


def draw(report: AuditReport, path: str, *, force: bool = False) -> None:
    """Write the figure of a report that has curves."""
    if not report.curves:
        raise ParameterError("E285", "there is nothing to draw: the second level was not run.")
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
