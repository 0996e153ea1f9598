"""The private mean and standard deviation of one unbounded column, pure or (ε, δ) (Karwa and Vadhan 2018).

Half of ε finds where the values are, by a histogram; the other half averages them, clipped to that place.
With a δ no range is needed; without one a public range must be given. Proof: docs/proofs/unbounded.md#one-column

Private histograms with exact integer noise: stable ones over unboundedly many bins, finite ones over a range.

A person is in at most one bin, so under replace-one two counts change, by one each. Counts are multiplied by
p and get discrete Laplace noise of scale 2q for ε = p/q: each changed count costs exactly ε/2. Only the fullest
bin is ever used. Proof: docs/proofs/unbounded.md#histograms
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import arb, ctx, fmpq

from privcov.errors import InputError, ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.sensitivity import bounded_sum, changed_bins
from privcov.noise.exact import discrete_laplace
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import ApproxDP, PureDP
from privcov.unbounded.parameters import log_inverse, positive, probability, replace_one

STEPS = 2**30
"""Values are averaged as whole numbers of magnitude at most this."""
_LARGEST_BIN, _LARGEST_OCTAVE = 2.0**52, 1000.0
"""Bins further out than doubles can tell apart are no bins; scales further out count at the last one."""
Loss1d = PureDP | ApproxDP


@dataclass(frozen=True, kw_only=True)
class UnivariateEstimate:
    """One private number and its promise.

    Attributes
    ----------
    value : float
        The estimate, in original units. NaN when no bin of a stable histogram was full enough.
    mechanism : str
        "histogram-mean" or "histogram-scale".
    loss : PureDP or ApproxDP
        What it cost.
    facts : mapping of str to str
        The public facts that it rests on.
    randomness : {"kernel", "rehearsal"}
        Where the random bits came from. A rehearsal protects nobody.
    proof : str
        The page with the proof of the promise.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.unbounded import estimate_mean
    >>> loss = pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
    >>> made = estimate_mean(np.linspace(998, 1002, 1000), std=1, loss=loss)
    >>> made.mechanism, made.facts["rows"], made.randomness
    ('histogram-mean', '1000', 'kernel')
    """

    value: float
    mechanism: str
    loss: Loss1d
    facts: Mapping[str, str]
    randomness: Literal["kernel", "rehearsal"]
    proof: str = "docs/proofs/unbounded.md#one-column"


def estimate_mean(
    values: Any,
    *,
    std: float,
    loss: Loss1d,
    largest_mean: float | None = None,
    tail: float = 0.1,
    randomness: Randomness | None = None,
) -> UnivariateEstimate:
    """Estimate the mean of one column whose standard deviation is about known.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The column, in original units. What is masked or not finite counts as missing.
    std : float
        Public: about the standard deviation, in original units.
    loss : PureDP or ApproxDP
        What it may cost, under "replace-one".
    largest_mean : float, optional
        Public: a bound on the absolute mean, in original units. Required by a pure loss.
    tail : float, default 0.1
        The chance, between 0 and 1, that clipping touches a row if the column is Gaussian.
    randomness : Randomness, optional
        Where random bits come from. By default the kernel. Any other source makes a rehearsal.

    Returns
    -------
    UnivariateEstimate
        The mean in original units; NaN where the values are too scattered to find it.

    Raises
    ------
    InputError
        The values are no column of numbers (E111), or there are none (E108).
    ParameterError
        A parameter is out of range, or a pure loss has no bound (E24x).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.unbounded import estimate_mean
    >>> loss = pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
    >>> bool(abs(estimate_mean(np.linspace(998, 1002, 1000), std=1, loss=loss).value - 1000) < 1)
    True
    """
    width, source = float(positive("std", std)), kernel() if randomness is None else randomness
    failure, reach = probability("tail", tail), _range(loss, "largest_mean", largest_mean)
    column = _column(values)
    last = 0 if reach is None else math.ceil(reach / Fraction(width))
    with np.errstate(all="ignore"):
        bins = np.rint(column / width)
        bins[~(np.abs(bins) <= _LARGEST_BIN)] = np.nan
        found = _fullest(bins, loss, (-last, last), source)
        if found is None:
            value = math.nan
        else:
            centre = found * width
            half = width * (2 + math.sqrt(2 * (math.log(2 * len(column)) + log_inverse(failure))))
            steps = np.rint(np.clip((column - centre) / half, -1.0, 1.0) * STEPS)
            steps[np.isnan(steps)] = 0.0
            value = centre + half * _noisy_average(steps, -STEPS, STEPS, loss, source)
    facts = {"std": repr(width), "tail": str(failure), "rows": str(len(column))}
    return UnivariateEstimate(
        value=value, mechanism="histogram-mean", loss=loss, facts=facts, randomness=source.kind
    )


def estimate_scale(
    values: Any,
    *,
    loss: Loss1d,
    known_mean: float | None = None,
    smallest_std: float | None = None,
    largest_std: float | None = None,
    randomness: Randomness | None = None,
) -> UnivariateEstimate:
    """Estimate the standard deviation of one column, of any size.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The column, in original units. What is masked or not finite counts as missing.
    loss : PureDP or ApproxDP
        What it may cost, under "replace-one".
    known_mean : float, optional
        Public: the mean, in original units. Without it differences of neighbouring values are used; their
        order must then not depend on their values.
    smallest_std : float, optional
        Public: a lower bound on the standard deviation, in original units. Required by a pure loss.
    largest_std : float, optional
        Public: an upper bound, in original units. Required by a pure loss.
    randomness : Randomness, optional
        Where random bits come from. By default the kernel. Any other source makes a rehearsal.

    Returns
    -------
    UnivariateEstimate
        The standard deviation in original units; NaN where the values are too scattered to find it.

    Raises
    ------
    InputError
        The values are no column of numbers (E111), or there are too few (E108).
    ParameterError
        A parameter is out of range, or a pure loss has no bounds (E24x).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.unbounded import estimate_scale
    >>> loss = pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
    >>> values = 1e-9 * np.sin(np.arange(40_000.0) ** 2)
    >>> bool(0.5e-9 < estimate_scale(values, known_mean=0, loss=loss).value < 1e-9)
    True
    """
    source = kernel() if randomness is None else randomness
    low = _range(loss, "smallest_std", smallest_std)
    high = _range(loss, "largest_std", largest_std)
    if low is not None and high is not None and low > high:
        raise ParameterError("E246", "smallest_std must not exceed largest_std.")
    column = _column(values)
    with np.errstate(all="ignore"):
        if known_mean is None:
            pairs = column[: len(column) // 2 * 2] * math.sqrt(0.5)
            column = pairs[0::2] - pairs[1::2]
        else:
            column = column - _finite("known_mean", known_mean)
        if not len(column):
            raise InputError(
                "E108", "the table has fewer than two rows: a scale without a known mean needs two."
            )
        size = np.abs(column)
        # frexp is exact: |x| = m·2^e with m in [1/2, 1) lies in [2^(e-1), 2^e).
        bins = np.clip(np.frexp(size)[1].astype(np.float64) - 1, -_LARGEST_OCTAVE, _LARGEST_OCTAVE)
        bins[~np.isfinite(size) | (size == 0)] = np.nan
        ends = (0, 0) if low is None or high is None else (_octave(low) - 1, _octave(high) + 1)
        found = _fullest(bins, loss, ends, source)
        if found is None:
            value = math.nan
        else:
            limit = math.ldexp(8 * math.sqrt(math.log(max(3, len(column)))), int(found))
            steps = np.rint(np.minimum((size / limit) ** 2, 1.0) * STEPS)
            steps[~np.isfinite(column)] = 0.0
            value = limit * math.sqrt(max(0.0, _noisy_average(steps, 0, STEPS, loss, source)))
    return UnivariateEstimate(
        value=value,
        mechanism="histogram-scale",
        loss=loss,
        facts={"rows": str(len(column))},
        randomness=source.kind,
    )


def _fullest(bins: Floats, loss: Loss1d, ends: tuple[int, int], randomness: Randomness) -> float | None:
    """The fullest bin, for half of ε and all of δ."""
    half = loss.epsilon / 2
    if isinstance(loss, ApproxDP):
        share = ApproxDP(epsilon=half, delta=loss.delta, neighbours=loss.neighbours)
        return fullest(stable_counts(bins, loss=share, randomness=randomness))
    pure = PureDP(epsilon=half, neighbours=loss.neighbours)
    return fullest(finite_counts(bins, first=ends[0], last=ends[1], loss=pure, randomness=randomness))


def _noisy_average(steps: Floats, lower: int, upper: int, loss: Loss1d, randomness: Randomness) -> float:
    """The mean of whole numbers in [lower, upper] over STEPS, for half of ε; the scale is rounded up."""
    change = bounded_sum(lower=lower, upper=upper, neighbours=loss.neighbours)
    scale = math.ceil(change / (loss.epsilon / 2))
    noise = int(discrete_laplace(randomness, scale=scale, count=1)[0])
    total = int(steps.astype(np.int64).sum()) + noise
    return float(Fraction(total, STEPS * len(steps)))


def _column(values: Any) -> Floats:
    """One column of numbers, as float64; what is masked or not finite counts as missing, NaN.

    Only arrays: the type that NumPy gives a list or a nullable series depends on whether a value is missing.
    """
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiub":
        raise InputError("E111", "the data must be one column of numbers: a one-dimensional NumPy array.")
    if not len(values):
        raise InputError("E108", "the table has no rows.")
    with np.errstate(all="ignore"):  # a warning would tell that a value is huge
        numbers = np.ma.getdata(values).astype(np.float64)
    numbers[np.ma.getmaskarray(values) | ~np.isfinite(numbers)] = np.nan
    return numbers


def _range(loss: Any, name: str, value: float | None) -> Fraction | None:
    """A public range, which a pure loss cannot do without."""
    if not isinstance(loss, PureDP | ApproxDP):
        kind = getattr(loss, "kind", type(loss).__name__)
        raise ParameterError(
            "E244", f"estimates of one column need a pure or an (epsilon, delta) loss, got {kind}."
        )
    replace_one(loss)
    if isinstance(loss, PureDP) and value is None:
        raise ParameterError(
            "E246", f"a pure loss needs {name}, a public bound.", "Give it, or give a delta."
        )
    return None if value is None else positive(name, value)


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError("E247", f"{name} must be a finite number, got {value}.")
    return number


def _octave(value: Fraction) -> int:
    return math.frexp(float(value))[1] - 1


_MOST_BINS = 2**20
_PRECISION = 256


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Noisy count = multiple · count + discrete Laplace of this scale: ε in all, for one replaced person."""

    multiple: int
    scale: int

    @classmethod
    def of(cls, loss: PureDP | ApproxDP) -> Noise:
        each = loss.epsilon / changed_bins(loss.neighbours)
        return cls(multiple=each.numerator, scale=each.denominator)

    def tail(self, least: int) -> arb:
        """P(noise ≥ least) for least ≥ 0, as a ball: q^least/(1 + q) with q = exp(-1/scale)."""
        ratio = (-1 / arb(self.scale)).exp()
        return (-arb(least) / self.scale).exp() / (1 + ratio)


def threshold(noise: Noise, delta: Fraction) -> int:
    """The least certified T such that a bin of one person reaches T with probability at most δ.

    >>> threshold(Noise(multiple=1, scale=2), Fraction(1, 1000))
    14
    """
    with ctx.workprec(_PRECISION):
        budget = arb(fmpq(delta.numerator, delta.denominator))
        low, high = 0, 1
        while not noise.tail(high) <= budget:
            low, high = high, 2 * high
        if noise.tail(0) <= budget:
            return noise.multiple
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if noise.tail(middle) <= budget else (middle, high)
    return noise.multiple + high


def stable_counts(bins: Floats, *, loss: ApproxDP, randomness: Randomness) -> dict[float, int]:
    """Noisy counts of the bins that someone is in and that pass the threshold: (ε, δ) under replace-one.

    A bin in which nobody is is never released. ``bins`` holds one bin per person, NaN for none.
    """
    noise = Noise.of(loss)
    least = threshold(noise, loss.delta)
    names, counts = np.unique(bins[~np.isnan(bins)], return_counts=True)
    drawn = discrete_laplace(randomness, scale=noise.scale, count=len(names))
    noisy = {
        float(name): noise.multiple * int(count) + int(z)
        for name, count, z in zip(names, counts, drawn, strict=True)
    }
    return {name: count for name, count in noisy.items() if count >= least}


def finite_counts(
    bins: Floats, *, first: int, last: int, loss: PureDP, randomness: Randomness
) -> dict[float, int]:
    """Noisy counts of every bin from first to last, empty or not: pure ε under replace-one.

    People beyond the range are counted at its ends.
    """
    if not 0 <= last - first < _MOST_BINS:
        raise ParameterError("E245", "the public range has too many bins.", "Narrow it, or give a delta.")
    noise = Noise.of(loss)
    inside = np.clip(bins[~np.isnan(bins)], first, last).astype(np.int64) - first
    counts = np.bincount(inside, minlength=last - first + 1)
    drawn = discrete_laplace(randomness, scale=noise.scale, count=len(counts))
    return {
        float(first + place): noise.multiple * int(count) + int(z)
        for place, (count, z) in enumerate(zip(counts, drawn, strict=True))
    }


def fullest(counts: Mapping[float, int]) -> float | None:
    """The bin of the largest noisy count, the lowest of equals; None where none was released."""
    return min(counts, key=lambda name: (-counts[name], name), default=None)
