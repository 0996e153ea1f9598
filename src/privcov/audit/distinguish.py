"""How well two neighbouring tables can be told apart, at least: events chosen on half of the runs, judged on the rest.

The first half picks a statistic, a threshold and a direction; the second, which had no part in the choice, gives
Clopper–Pearson bounds on the event's two probabilities. All bounds of one call hold together with probability
1 − error. Proof: docs/proofs/audit.md.

Exact binomial confidence bounds (Clopper and Pearson 1934), one-sided, on whole arrays.

Each holds with probability at least 1 − error whatever the true probability is, at every sample size; nothing
is asymptotic. Proof: docs/proofs/audit.md.

Numbers computed from a released matrix that may tell two neighbouring tables apart.

Any function of an output is a fair test: a statistic can miss a leak, never invent one. These are the nominal
log-likelihood ratios of the additive mechanisms, what spectra give away (supports, leading directions), single
entries, and the low bits that arithmetic may leave behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

from privcov.audit.claims import Claim
from privcov.audit.neighbours import Pair
from privcov.audit.sampling import Outputs
from privcov.linalg.arrays import Floats

_NEAR_ZERO = 1e-6
_TAILS = np.geomspace(1e-4, 0.02, 24)
_QUANTILES = np.concatenate([_TAILS, np.linspace(0.025, 0.975, 77), 1 - _TAILS[::-1]])


@dataclass(frozen=True, kw_only=True)
class Event:
    """A set of outputs: those whose statistic is at least, or below, a threshold."""

    statistic: str
    threshold: float
    above: bool
    likelier_first: bool
    """Whether it is the first table that makes the event likelier."""

    def counts(self, first: Scores, second: Scores) -> tuple[int, int]:
        """How often it happened on the table that makes it likelier, and on the other."""
        found = [int((one[self.statistic] >= self.threshold).sum()) for one in (first, second)]
        if not self.above:
            found = [
                len(one[self.statistic]) - count for one, count in zip((first, second), found, strict=True)
            ]
        return (found[0], found[1]) if self.likelier_first else (found[1], found[0])

    def __str__(self) -> str:
        return f"{self.statistic} {'≥' if self.above else '<'} {self.threshold:.4g}"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What one event says about one claim: the true parameter is at least ``least``, at the stated confidence."""

    claim: Claim
    pair: str
    event: Event
    often: int
    rarely: int
    trials: int
    least: float

    @property
    def refutes(self) -> bool:
        return self.claim.refuted_by(self.least)


@dataclass(frozen=True, kw_only=True)
class Told:
    """Everything found out about one pair, and the curve to draw it with."""

    bounds: tuple[Bound, ...]
    support: Bound
    curve: Curve


@dataclass(frozen=True, kw_only=True)
class Curve:
    """On the judging half, of the best statistic: how often each threshold is passed, on either table.

    ``rarely`` and ``often`` run from (0, 0) to (1, 1).
    """

    pair: str
    statistic: str
    rarely: Floats
    often: Floats
    runs: int


def tell_apart(
    pair: Pair,
    outputs: tuple[Outputs, Outputs],
    claims: Sequence[Claim],
    *,
    error: float,
    scored: Scored | None = None,
) -> Told:
    """Lower bounds on the parameter of every claim from one pair, and a test of unequal supports.

    ``scored`` makes statistics of outputs; by default they are upper triangles of matrices on a grid.
    """
    scored = scored or scores
    halves = [np.array_split(side, 2) for side in outputs]
    chosen_on = tuple(scored(side[0], pair) for side in halves)
    judged_on = tuple(scored(side[1], pair) for side in halves)
    trials = min(len(side[1]) for side in halves)
    # Two bounds for every claim, and two for the support.
    each = error / (2 * (len(claims) + 1))
    events = _choose(chosen_on[0], chosen_on[1], claims, each)

    def judge(event: Event, claim: Claim) -> Bound:
        often, rarely = event.counts(judged_on[0], judged_on[1])
        sizes = [len(side[1]) for side in halves]
        first, second = (sizes[0], sizes[1]) if event.likelier_first else (sizes[1], sizes[0])
        least = claim.least(float(at_least(often, first, each)), float(at_most(rarely, second, each)))
        return Bound(
            claim=claim,
            pair=pair.name,
            event=event,
            often=often,
            rarely=rarely,
            trials=trials,
            least=float(least),
        )

    bounds = tuple(judge(event, claim) for event, claim in zip(events, claims, strict=False))
    support = judge(events[-1], claims[0])
    return Told(bounds=bounds, support=support, curve=_curve(pair, events[0], judged_on))


def _choose(first: Scores, second: Scores, claims: Sequence[Claim], each: float) -> list[Event]:
    """For every claim the event with the largest bound on the choosing half; last, the one that looks impossible."""
    events: list[Event] = []
    often, rarely, unseen = [], [], []
    for name, ours in first.items():
        theirs = second[name]
        pooled = np.sort(np.concatenate([ours, theirs]))
        places = np.minimum((_QUANTILES * pooled.size).astype(int), pooled.size - 1)
        ends = [
            theirs.min(),
            ours.min(),
            np.nextafter(theirs.max(), np.inf),
            np.nextafter(ours.max(), np.inf),
        ]
        thresholds = np.unique(np.concatenate([pooled[places], ends, [-_NEAR_ZERO, _NEAR_ZERO]]))
        sizes = (ours.size, theirs.size)
        above = [
            size - np.searchsorted(np.sort(side), thresholds, side="left")
            for side, size in zip((ours, theirs), sizes, strict=True)
        ]
        for up in (True, False):
            counts = above if up else [size - count for size, count in zip(sizes, above, strict=True)]
            low = [at_least(count, size, each) for count, size in zip(counts, sizes, strict=True)]
            high = [at_most(count, size, each) for count, size in zip(counts, sizes, strict=True)]
            for likelier_first in (True, False):
                one, other = (0, 1) if likelier_first else (1, 0)
                often.append(low[one])
                rarely.append(high[other])
                unseen.append(np.where(counts[other] == 0, low[one], -1.0))
                events += [
                    Event(statistic=name, threshold=float(t), above=up, likelier_first=likelier_first)
                    for t in thresholds
                ]
    p, q = np.concatenate(often), np.concatenate(rarely)
    chosen = [events[int(np.argmax(claim.least(p, q)))] for claim in claims]
    return [*chosen, events[int(np.argmax(np.concatenate(unseen)))]]


def _curve(pair: Pair, event: Event, judged_on: Sequence[Scores], points: int = 200) -> Curve:
    """Rates at which the statistic of the event passes thresholds, from the rarest event to the sure one."""
    sides = [side[event.statistic] for side in judged_on]
    if not event.likelier_first:
        sides.reverse()
    often, rarely = (np.sort(side if event.above else -side) for side in sides)
    pooled = np.sort(np.concatenate([often, rarely]))
    thresholds = np.unique(pooled[np.linspace(0, pooled.size - 1, points).astype(int)])[::-1]
    rates = [
        np.concatenate([[0.0], 1 - np.searchsorted(side, thresholds, side="left") / side.size, [1.0]])
        for side in (rarely, often)
    ]
    return Curve(
        pair=pair.name, statistic=event.statistic, rarely=rates[0], often=rates[1], runs=min(map(len, sides))
    )


def loss_histogram(curve: Curve, *, bins: int = 30) -> tuple[Floats, Floats]:
    """The privacy loss ln(p/q) of about equally likely slices of the statistic, and how likely each slice is."""
    steps = np.unique(np.searchsorted((curve.often + curve.rarely) / 2, np.linspace(0, 1, bins + 1)))
    steps[-1] = curve.often.size - 1
    p, q = np.diff(curve.often[steps]), np.diff(curve.rarely[steps])
    seen = (p > 0) & (q > 0)
    return np.log(p[seen] / q[seen]), p[seen]


_SLACK = 1e-9
"""Far above the relative error of the inverse beta functions; spent away from the audited mechanism's guilt."""


def at_least(count: ArrayLike, trials: int, error: float) -> Floats:
    """A probability that the true one is not below, given ``count`` successes in ``trials``.

    >>> bool(0.0090 < at_least(10, 500, 0.05) < 0.0110)
    True
    """
    k = np.asarray(count, dtype=np.float64)
    bound = betaincinv(np.maximum(k, 1), trials - k + 1, error) * (1 - _SLACK)
    return np.where(k > 0, bound, 0.0)


def at_most(count: ArrayLike, trials: int, error: float) -> Floats:
    """A probability that the true one is not above; with no success at all about ln(1/error)/trials.

    >>> bool(0.0059 < at_most(0, 500, 0.05) < 0.0061)
    True
    """
    k = np.asarray(count, dtype=np.float64)
    bound = betainccinv(k + 1, np.maximum(trials - k, 1), error) * (1 + _SLACK)
    return np.where(k < trials, np.minimum(bound, 1.0), 1.0)


_MOST_ENTRIES = 6
_MOST_BITS = 16

Scores = dict[str, Floats]
Scored = Callable[[NDArray[Any], Pair], Scores]


def scores(outputs: NDArray[Any], pair: Pair) -> Scores:
    """Every statistic of outputs (integers of upper triangles, one a row), in units of the squared norm bound."""
    d, unit = pair.grid.dimension, float(pair.grid.squared_norm_bound)
    rows, columns = np.triu_indices(d)
    weights = np.where(rows == columns, 1.0, 2.0)
    whole = [pair.upper(which).astype(np.float64) / unit for which in (0, 1)]
    released = outputs.astype(np.float64) / unit
    change = whole[0] - whole[1]
    left = [released - truth for truth in whole]  # what the noise would be, were either table the true one
    trace = released[:, rows == columns].sum(axis=1)
    along = released @ (weights * change)
    moved_trace = float(change[rows == columns].sum())
    found: Scores = {
        "⟨o, D⟩": along,
        "⟨o, D⟩ + tr o · tr D": along + moved_trace * trace,
        "trace": trace,
        "ℓ1 distance": np.abs(left[1]).sum(1) - np.abs(left[0]).sum(1),
        "Frobenius distance": np.sqrt(left[1] ** 2 @ weights) - np.sqrt(left[0] ** 2 @ weights),
    }
    if d > 1:
        spectra: list[Any] = [np.linalg.eigvalsh(_full(part, d)) for part in left]
        found["nuclear distance"] = np.abs(spectra[1]).sum(1) - np.abs(spectra[0]).sum(1)
        for values, which in zip(spectra, ("C", "C′"), strict=True):
            found[f"λ_min(o − {which})"] = values[:, 0]
            found[f"λ_max(o − {which})"] = values[:, -1]
        # The sign of the largest eigenvalue in size would otherwise decide which end is called leading.
        leading = np.linalg.eigh(_full(released, d))[1][:, :, -1]
        found["uᵀDu, u leading"] = ((leading[:, rows] * leading[:, columns]) * weights) @ change
    moved = np.flatnonzero(np.abs(change) > 1e-6)[:_MOST_ENTRIES]
    for place in moved if d > 1 else ():
        found[f"entry {rows[place] + 1},{columns[place] + 1}"] = released[:, place]
    if np.issubdtype(outputs.dtype, np.integer):
        found["low bit"] = (outputs[:, moved] & 1).sum(axis=1).astype(np.float64)
        for side, name in ((0, "C"), (1, "C′")):
            found[f"trailing zeros of o − {name}"] = _trailing_zeros(outputs - pair.upper(side))
    return found


def _full(upper: Floats, d: int) -> Floats:
    full = np.empty((len(upper), d, d))
    rows, columns = np.triu_indices(d)
    full[:, rows, columns] = full[:, columns, rows] = upper
    return full


def _trailing_zeros(values: NDArray[Any]) -> Floats:
    """The fewest zero bits that any entry of a row ends in: what noise from a coarse grid leaves."""
    low = values & (2**_MOST_BITS - 1) | 2**_MOST_BITS
    return np.asarray(np.log2(low & -low).min(axis=1), dtype=np.float64)
