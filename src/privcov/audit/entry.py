"""The audit itself: four levels, one report.

L0 replays neighbouring tables and compares what reaches the mechanism; L1 compares noise and vectors with their
laws; L2 bounds from below how well neighbouring tables can be told apart; L3 looks for repeated noise. A promise
is refuted when a lower bound is above it. To pass proves nothing: docs/explain/auditing.md.

How each finding reads is said below, in one place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from privcov import mechanisms
from privcov.audit import fit
from privcov.audit.claims import Delta
from privcov.audit.distinguish import Bound, Curve, tell_apart
from privcov.audit.fit import Fit, fit_vectors, overspent, parts, taken
from privcov.audit.frames import framed_settings
from privcov.audit.neighbours import schema_of, weighted_schema
from privcov.audit.repeats import Repeats, repeats
from privcov.audit.replay import Pipeline, Replay, replay
from privcov.audit.report import AuditReport, Finding
from privcov.audit.sampling import Source, gather, stack
from privcov.audit.settings import Setting, first_vector, settings, weighted_settings
from privcov.audit.strata import strata_settings
from privcov.errors import ParameterError
from privcov.mechanisms.base import Mechanism
from privcov.noise.randomness import kernel
from privcov.privacy import Loss
from privcov.publish.release import release

LEVELS = (0, 1, 2, 3)
LEAST_RUNS = 200


def audit(
    mechanism: str | Mechanism,
    *,
    loss: Loss,
    dimension: int = 3,
    runs: int = 20_000,
    pipeline: Pipeline | None = None,
    levels: Collection[int] = LEVELS,
    error: float = 1e-3,
    processes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    as_published: bool = False,
    fresh: bool = True,
    source: Source = kernel,
    strata: bool = False,
    weights: bool = False,
    frame: bool = False,
    **options: Any,
) -> AuditReport:
    """Try to refute the promise of a mechanism at a loss, on made-up neighbouring tables.

    To pass proves nothing: see docs/explain/auditing.md.

    Parameters
    ----------
    mechanism : str or Mechanism
        The mechanism, by name or as an object of your own.
    loss : PureDP, ApproxDP or ZCDP
        The promise to attack.
    dimension : int, default 3
        The number of columns of the made-up tables.
    runs : int, default 20000
        How often the mechanism is run in each setting, at least 200.
    pipeline : callable, optional
        A function like ``privcov.release``, to put in its place at the levels that look at whole releases.
    levels : collection of int, default (0, 1, 2, 3)
        The attacks: 0 replays neighbouring tables, 1 compares noise with its law, 2 bounds from below how well
        neighbouring tables can be told apart, 3 looks for repeated noise.
    error : float, default 0.001
        The probability that level 2 accuses a sound mechanism. Level 1 does so with at most 1e-6, the others
        never by chance.
    processes : int, optional
        How many processes run at once. By default all processors.
    progress : callable, optional
        Called as ``progress(runs_done, runs_planned)``.
    as_published : bool, default False
        Whether to take the constants of the mechanism's paper.
    fresh : bool, default True
        Whether level 3 also starts fresh processes, to see that their noise differs.
    source : callable, default kernel
        Makes the source of random bits. Anything but the kernel's is for tests.
    strata : bool, default False
        Whether to attack a release of two strata between which a person may move. Then there is level 2 alone.
    weights : bool, default False
        Whether to attack a release of weighted rows, with neighbours of the largest weight, of a small one and of none.
        Then there are levels 0 and 2.
    frame : bool, default False
        Whether to attack whole releases in a private frame, by all of its rounds and the matrix together. Then there is
        level 2 alone. A run is a whole release, of about a hundredth of a second.
    **options : Any
        Options of the mechanism itself, by name.

    Returns
    -------
    AuditReport
        The findings of all levels.

    Raises
    ------
    ParameterError
        The runs, the error or a level is out of range, or two of strata, weights and frame are asked for together
        (E285); or the mechanism cannot promise this loss (E2xx).

    Examples
    --------
    >>> import privcov as pc
    >>> from privcov.audit import audit
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> audit("laplace", loss=loss, dimension=2, runs=400, levels=(0, 2)).verdict
    'PASS'
    """
    if not (isinstance(runs, int) and runs >= LEAST_RUNS):
        raise ParameterError("E285", f"an audit takes at least {LEAST_RUNS} runs, got {runs}.")
    if not 0 < error < 1:
        raise ParameterError("E285", f"error must be between 0 and 1, got {error}.")
    if strange := sorted(set(levels) - set(LEVELS)):
        raise ParameterError("E285", f"the levels are 0, 1, 2 and 3, got {strange[0]}.")
    if strata + weights + frame > 1:
        raise ParameterError(
            "E285", "strata, weights and a frame are audited in separate runs.", "Ask for one of them."
        )
    chosen = mechanisms.find(mechanism, loss=loss, as_published=as_published, **options)
    start = _cpu()
    looked = next(
        (
            one
            for one, asked in (
                (strata_settings, strata),
                (weighted_settings, weights),
                (framed_settings, frame),
            )
            if asked
        ),
        settings,
    )
    work = _Work(chosen, loss, dimension, runs, error, processes, source, looked, progress)
    levels = set(levels) & ({2} if strata or frame else {0, 2} if weights else set(LEVELS))
    whole = pipeline or release
    schema = weighted_schema(dimension) if weights else schema_of(dimension, intercept=chosen.needs_intercept)
    if 0 in levels:
        work.level_0(whole, schema)
    if {1, 2} & set(levels):
        work.levels_1_and_2(fitted=1 in levels, told=2 in levels)
    if 3 in levels:
        work.level_3(whole, schema, fresh)
    order = sorted(work.findings, key=lambda finding: finding.level)
    return AuditReport(
        mechanism=chosen.name,
        options=chosen.options,
        loss=loss,
        dimension=dimension,
        runs=runs,
        error=error,
        arithmetic=chosen.arithmetic,
        randomness=source().kind,
        findings=tuple(order),
        curves=tuple(work.curves),
        claims=tuple(claim for claim in work.settings[0].claims if not isinstance(claim, Delta)),
        cpu_seconds=_cpu() - start,
    )


@dataclass
class _Work:
    """One audit in progress."""

    mechanism: Mechanism
    loss: Loss
    dimension: int
    runs: int
    error: float
    processes: int | None
    source: Source
    looked: Callable[..., tuple[Setting, ...]]
    report: Callable[[int, int], object] | None
    findings: list[Finding] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    done: int = 0
    planned: int = 0

    def __post_init__(self) -> None:
        self.settings = self.looked(self.mechanism, self.loss, self.dimension, source=self.source)
        self.fit_runs = max(LEAST_RUNS, self.runs // 10)

    def level_0(self, pipeline: Pipeline, schema: Any) -> None:
        self.findings.append(replayed(replay(pipeline, schema=schema, loss=self.loss)))

    def levels_1_and_2(self, *, fitted: bool, told: bool) -> None:
        self.planned = (len(self.settings) if told else 1) * self.runs
        fits: list[fit.Fit] = []
        for place, setting in enumerate(self.settings if told else self.settings[:1]):
            sampler = setting.sampler
            if told or sampler.is_additive():
                outputs = sampler.both_sides(
                    setting.pairs, self.runs, processes=self.processes, progress=self._progress
                )
                if told:
                    between = any(np.issubdtype(s.dtype, np.floating) for sides in outputs for s in sides)
                    self.findings.append(on_grid(setting, between))
                    self._tell(setting, outputs, first=place == 0)
                law = sampler.mechanism.law(loss=sampler.loss, grid=sampler.grid)
                if fitted and law is not None and sampler.is_additive():
                    noise = outputs[0][0] - setting.pairs[0].upper(0)
                    fits += fit.fit_noise(noise, law, sampler.grid)
        if fitted:
            self._fit(fits)

    def _fit(self, fits: list[fit.Fit]) -> None:
        sampler = self.settings[0].sampler
        probe = sampler.mechanism.draw(loss=sampler.loss, grid=sampler.grid, randomness=self.source())
        pieces = parts(sampler.mechanism, probe, sampler.loss, sampler.grid)
        if pieces:
            ends = np.cumsum([piece.size for piece in taken(pieces, probe)])

            def some(count: int) -> Any:
                randomness = self.source()
                drawn = (
                    sampler.mechanism.draw(loss=sampler.loss, grid=sampler.grid, randomness=randomness)
                    for _ in range(count)
                )
                return stack([np.concatenate(taken(pieces, draw)) for draw in drawn])

            (numbers,) = gather([(some, self.fit_runs)], processes=self.processes)
            for piece, block in zip(
                pieces, np.split(numbers.astype(np.float64), ends[:-1], axis=1), strict=True
            ):
                fits += [
                    fit.one_sample(piece.label, law.label, law.take(block), law.cdf) for law in piece.laws
                ]
            self.findings.append(shared(overspent(probe)))
        alone = first_vector(self.mechanism, self.loss, self.dimension, source=self.source)
        if alone is not None:
            half = alone.sampler.loss
            claimed = type(half)(  # half of what the mechanism is given is the vector's
                **{name: amount / 2 for name, amount in half.amounts.items()}, neighbours=half.neighbours
            )
            fits += fit_vectors(alone, claimed, self.fit_runs, processes=self.processes, progress=None)
        self.findings += [fitted(one, fit.ERROR / len(fits)) for one in fits]

    def _tell(self, setting: Setting, outputs: list[tuple[Any, Any]], *, first: bool) -> None:
        share = self.error / (len(self.settings) * len(setting.pairs))
        told = [
            tell_apart(
                pair,
                (setting.seen(ours), setting.seen(theirs)),
                setting.claims,
                error=share,
                scored=setting.scored,
            )
            for pair, (ours, theirs) in zip(setting.pairs, outputs, strict=True)
        ]
        for place in range(len(setting.claims)):
            self.findings.append(bounded(setting, max((t.bounds[place] for t in told), key=excess)))
        self.findings.append(supported(setting, max((t.support for t in told), key=excess)))
        if first:
            self.curves = [t.curve for t in sorted(told, key=lambda t: -excess(t.bounds[0]))]

    def level_3(self, pipeline: Pipeline, schema: Any, fresh: bool) -> None:
        seen = repeats(pipeline, self.mechanism, schema=schema, loss=self.loss, fresh=fresh)
        self.findings += [repeated(one) for one in seen]

    def _progress(self, count: int) -> None:
        self.done += count
        if self.report is not None:
            self.report(self.done, max(self.planned, self.done))


def _cpu() -> float:
    """CPU seconds of this process and of children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


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


def told_apart(
    setting: Setting, what: str, *, found: str, allowed: str, failed: bool, detail: str
) -> Finding:
    """A finding of the second level, about the neighbouring tables of one setting."""
    return Finding(
        level="L2 tell apart",
        setting=setting.label,
        what=what,
        found=found,
        allowed=allowed,
        failed=failed,
        detail=detail,
    )


def on_grid(setting: Setting, between: bool) -> Finding:
    """Anything between the points of the grid carries the rounding of whatever made it."""
    found, detail = "all", ""
    if between:
        found, detail = "no", "released numbers lie between the points of the grid"
    what = "support: every value is on the grid"
    return told_apart(setting, what, found=found, allowed="all", failed=between, detail=detail)


def excess(bound: Bound) -> float:
    return bound.least - bound.claim.allowed


def bounded(setting: Setting, bound: Bound) -> Finding:
    what, found, allowed = (
        f"{bound.claim.label}, {bound.pair}",
        f"≥ {bound.least:.3g}",
        f"{bound.claim.allowed:.3g}",
    )
    seen = f"{bound.often:,} against {bound.rarely:,} of {bound.trials:,}"
    detail = f"{bound.event} happened {seen} times"
    return told_apart(setting, what, found=found, allowed=allowed, failed=bound.refutes, detail=detail)


def supported(setting: Setting, bound: Bound) -> Finding:
    found, allowed = f"{bound.often} : {bound.rarely}", f"{bound.claim.label} {bound.claim.allowed:.3g}"
    detail = f"{bound.event}, {bound.pair}: {bound.claim.label} at least {bound.least:.3g}"
    what = "support: an event seen on one table only"
    return told_apart(setting, what, found=found, allowed=allowed, failed=bound.refutes, detail=detail)


def repeated(seen: Repeats) -> Finding:
    return Finding(
        level="L3 repeats",
        what=f"the same noise twice: {seen.where}",
        found="repeated" if seen.repeated else f"none in {seen.releases}",
        allowed="none",
        failed=seen.repeated,
        detail="two releases of one table are the same" if seen.repeated else "",
    )
