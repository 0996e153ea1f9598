"""The verdict on a release: the correlations that stand clear of its noise, and how large the others may be.

One verdict for every reader: ``show``, reports, notebooks and the workbench say these sentences, and a plan grades what
it expects by the same rule. It is about pairs of columns, centred: a matrix whose norm is mostly means looks precise
where every correlation is noise. A pair stands clear where its covariance, before repair, is farther from zero than
noise takes any of the pairs in 95 of 100 releases. Figures and why: docs/explain/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without

from privcov.linalg.arrays import Floats
from privcov.releases.release import Release
from privcov.report.view import View

Verdict = Literal["useful", "marginal", "worse than publishing zeros"]

FINE = 0.2
"""A noise is fine where a correlation of this size is told from zero, 95 times in 100."""
_OPEN = (0.674 + 2) / 1.96
"""How large half of the correlations may be that are zero, over what noise stays below 95 times in 100."""
_MOST_PAIRS = 100_000


def grade(low: float, high: float | None = None) -> Verdict:
    """The verdict on a noise from ``low`` to ``high``: what it stays below on a correlation, 95 times in 100.

    >>> grade(0.01, 0.15), grade(0.01, 0.5), grade(0.3, 6.0), grade(0.8)
    ('useful', 'marginal', 'worse than publishing zeros', 'marginal')
    """
    top = low if high is None else high
    if top <= FINE:
        return "useful"
    return "marginal" if math.sqrt(low * top) < 1 else "worse than publishing zeros"


def uncorrelated(noise: float) -> Verdict:
    """What a release of columns without correlation is called whose noise stays below this, 95 times in 100.

    The rule of ``Standing.verdict``: half of the correlations shown are within 0.674 standard deviations of the noise,
    and may be two more. Where a true one of 1 can still be told from zero, something may be found.

    >>> uncorrelated(0.14), uncorrelated(0.15), uncorrelated(1.0)
    ('useful', 'marginal', 'worse than publishing zeros')
    """
    if noise * _OPEN <= FINE:
        return "useful"
    return "marginal" if noise < 1 else "worse than publishing zeros"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The pairs of a release as a whole; levels of one column are no pair.

    Attributes
    ----------
    pairs : int
        Correlations between different columns.
    clear : int
        Those that stand clear of the noise.
    half, tenth : float
        What half of the errors exceed, and a tenth of them, before repair; at most 1.
    open_half : float
        How large a correlation may be that does not stand clear, in the middle of those: at most 1.
    strength : float
        The mean square of covariances in standard deviations of their noise, before repair: 1 where all are zero.
    """

    pairs: int
    clear: int
    half: float
    tenth: float
    open_half: float
    strength: float

    @classmethod
    def of(cls, view: View) -> Standing | None:
        """The standing of what a view shows; None where the size of the noise, or a pair, is not known."""
        first, second = view.pairs
        if view.noise is None or view.scores is None or not len(first):
            return None
        step = max(1, len(first) // _MOST_PAIRS)
        some = first[::step], second[::step]
        sizes = np.nan_to_num(view.noise.correlation[some], nan=np.inf)
        values = np.nan_to_num(np.abs(view.correlation[some]), nan=1.0)
        clear = view.clear[first, second]
        beyond = np.minimum(1.0, values + 2 * sizes)[~clear[::step]]
        return cls(
            pairs=len(first),
            clear=int(clear.sum()),
            half=_exceeded(sizes, 0.5),
            tenth=_exceeded(sizes, 0.1),
            open_half=float(np.median(beyond)) if len(beyond) else 0.0,
            strength=float(np.mean(view.scores[some] ** 2)),
        )

    @property
    def verdict(self) -> Verdict:
        """Useful where half of the pairs stand clear or the noise is fine; worse than zeros where all look like noise.

        They do where none stands clear and their squares are mostly noise: answering zero would err less, on average.
        """
        if 2 * self.clear >= self.pairs or self.open_half <= FINE:
            return "useful"
        return "marginal" if self.clear or self.strength > 2 else "worse than publishing zeros"

    @property
    def counted(self) -> str:
        """How many stand clear, in figures.

        >>> Standing(pairs=91, clear=41, half=0.06, tenth=0.3, open_half=0.2, strength=9.0).counted
        '41 of 91'
        """
        return f"{self.clear:,} of {self.pairs:,}"

    @property
    def sentences(self) -> list[str]:
        """What can be concluded, what cannot, and how far noise moves what is shown; a warning has a word in capitals.

        >>> standing = Standing(pairs=91, clear=41, half=0.061, tenth=0.3, open_half=0.2, strength=9.0)
        >>> for sentence in standing.sentences:
        ...     print(sentence)
        41 of 91 correlations stand clear of the noise.
        The other 50 cannot be told from zero; half of them may be 0.2 or more.
        Noise before repair: above 0.061 on half of all correlations, above 0.3 on one in ten.
        """
        left = self.pairs - self.clear
        if self.verdict == "worse than publishing zeros":
            first = f"The noise is LARGE: none of {self.pairs:,} correlations can be told from zero."
        elif not left:
            first = (
                f"All {self.pairs:,} correlations stand clear of the noise."
                if self.pairs > 1
                else "The one correlation stands clear of the noise."
            )
        else:
            first = f"{self.counted} correlations stand clear of the noise."
        if self.half >= 1:
            return [
                first,
                "Noise before repair: 1 or more on half of all correlations, so that they are noise.",
            ]
        one_in_ten = "1 or more" if self.tenth >= 1 else f"above {self.tenth:.2g}"
        others = self._open(f"The other {left:,}" if self.clear else "They")
        moved = f"Noise before repair: above {self.half:.2g} on half of all correlations, {one_in_ten} on one in ten."
        return [first, *([others] if left else []), moved]

    def _open(self, which: str) -> str:
        """What is known of those that do not stand clear; the first sentence may have said that none does."""
        known = self.open_half < 1
        half = (
            f"half of them may be {self.open_half:.2g} or more"
            if known
            else "of half of them nothing is known"
        )
        if self.verdict == "worse than publishing zeros":
            return f"{half.capitalize()}."
        return f"{which} cannot be told from zero; {half}."

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "verdict": self.verdict,
            "pairs": self.pairs,
            "clear": self.clear,
            "noise_median": self.half,
            "noise_one_in_ten": self.tenth,
            "open_median": self.open_half,
        }


def standing(release: Release) -> Standing | None:
    """The standing of a release; None where its noise has no known law, or it has a single column."""
    return Standing.of(View.of(release))


def _exceeded(sizes: Floats, share: float) -> float:
    """What this share of normal errors of these standard deviations exceeds, at most 1."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        beyond = float(np.mean(2 * scipy.special.ndtr(-middle / np.maximum(sizes, 1e-300))))
        low, high = (middle, high) if beyond > share else (low, middle)
    return high
