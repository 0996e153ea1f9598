"""How findings read: one line each, made in one place."""

from __future__ import annotations

from fractions import Fraction

from privcov.audit.distinguish import Bound
from privcov.audit.fit import Fit
from privcov.audit.repeats import Repeats
from privcov.audit.replay import Replay
from privcov.audit.report import Finding
from privcov.audit.settings import Setting


def replayed(seen: Replay) -> Finding:
    return Finding(
        level="L0 replay",
        what="input of the mechanism, and everything published beside it",
        found=f"{seen.pairs} pairs" if seen.violation is None else f"pair {seen.pairs}",
        allowed="declared",
        failed=seen.violation is not None,
        detail=seen.violation or "",
    )


def shared(share: Fraction) -> Finding:
    return Finding(
        level="L1 fit",
        what="shares of the budget add up to",
        found=f"{float(share):g}",
        allowed="1",
        failed=share > 1,
    )


def fitted(one: Fit, threshold: float) -> Finding:
    return Finding(
        level="L1 fit",
        what=f"{one.what} ({one.against}, {one.runs:,})",
        found=f"p ≤ {one.p_value:.2g}",
        allowed=f"{threshold:.1g}",
        failed=one.p_value < threshold,
        detail=f"distribution functions differ by {one.distance:.3g}",
    )


def on_grid(setting: Setting, between: bool) -> Finding:
    """Anything between the points of the grid carries the rounding of whatever made it."""
    return Finding(
        level="L2 tell apart",
        setting=setting.label,
        what="support: every value is on the grid",
        found="no" if between else "all",
        allowed="all",
        failed=between,
        detail="released numbers lie between the points of the grid" if between else "",
    )


def excess(bound: Bound) -> float:
    return bound.least - bound.claim.allowed


def bounded(setting: Setting, bound: Bound) -> Finding:
    seen = f"{bound.often:,} against {bound.rarely:,} of {bound.trials:,}"
    return Finding(
        level="L2 tell apart",
        setting=setting.label,
        what=f"{bound.claim.label}, {bound.pair}",
        found=f"≥ {bound.least:.3g}",
        allowed=f"{bound.claim.allowed:.3g}",
        failed=bound.refutes,
        detail=f"{bound.event} happened {seen} times",
    )


def supported(setting: Setting, bound: Bound) -> Finding:
    return Finding(
        level="L2 tell apart",
        setting=setting.label,
        what="support: an event seen on one table only",
        found=f"{bound.often} : {bound.rarely}",
        allowed=f"{bound.claim.label} {bound.claim.allowed:.3g}",
        failed=bound.refutes,
        detail=f"{bound.event}, {bound.pair}: {bound.claim.label} at least {bound.least:.3g}",
    )


def repeated(seen: Repeats) -> Finding:
    return Finding(
        level="L3 repeats",
        what=f"the same noise twice: {seen.where}",
        found="repeated" if seen.repeated else f"none in {seen.releases}",
        allowed="none",
        failed=seen.repeated,
        detail="two releases of one table are the same" if seen.repeated else "",
    )
