"""The certificate of a release: everything needed to defend its promise or to doubt it, and nothing about the data."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate, repeat
from typing import Literal, NamedTuple

from privcov.noise.laws import NoiseLaw
from privcov.privacy import ZCDP, Loss, PureDP
from privcov.schema.strata import THE_SUM
from privcov.text.display import Shown
from privcov.version import __version__

RADII = tuple(accumulate(repeat(1.125, 29), operator.mul, initial=0.5))
"""Where the histogram of norms of a round "radius" is cut, in root mean square scaled columns: from a half to 15."""

TOTAL = THE_SUM
"""What stands in place of a stratum in the certificate of the sum over strata."""


class Interval(NamedTuple):
    """What a column was clipped to before it was added up, in its units.

    Attributes
    ----------
    lower : float
        The lower end.
    upper : float
        The upper end.
    beyond : float
        What the part beyond adds to the mean, as the histograms of earlier rounds have it; of a round "squares" to the
        mean square, over half the width of the interval.
    beyond_std : float
        How far that may be off: noise on the counts, and the width of cells.

    Examples
    --------
    >>> from privcov.releases.certificate import Interval
    >>> Interval(lower=0.0, upper=100.0, beyond=0.4, beyond_std=0.1).upper
    100.0
    """

    lower: float
    upper: float
    beyond: float
    beyond_std: float


@dataclass(frozen=True, kw_only=True)
class Round:
    """One paid question in front of the release: what it cost, and the noisy sums that came back.

    Attributes
    ----------
    name : {"scales", "shape", "radius", "means", "squares"}
        What was asked: a histogram of every numeric column, the sums of their products, a histogram of the norms of
        rows, or the sums of the numeric columns, or of their squared distances from a centre, within ``intervals``.
    loss : PureDP or ZCDP
        What it cost. With an (ε, δ) promise and Gaussian noise: the ρ = μ²/2 of its Gaussian.
    std : float
        The standard deviation of the noise on an answer; for "shape" on a sum of products of two columns.
    answers : tuple of int
        The noisy counts, or sums; for "shape" the upper triangle row by row, in units of the grid of that round.
    intervals : tuple of Interval, default ()
        Of "means" and "squares": what each numeric column was clipped to. A cell is counted as its distance from the
        middle; of "squares" as the square of it, a cell in the middle as minus one at an end.
    unit : int, default 1
        Of "means" and "squares": the sum that a cell at the upper end of its interval adds.

    Examples
    --------
    >>> from privcov.privacy import PureDP
    >>> from privcov.releases.certificate import Round
    >>> paid = PureDP(epsilon="0.05", neighbours="replace-one")
    >>> Round(name="radius", loss=paid, std=56.6, answers=(912, 88)).name
    'radius'
    """

    name: str
    loss: PureDP | ZCDP
    std: float
    answers: tuple[int, ...]
    intervals: tuple[Interval, ...] = ()
    unit: int = 1


@dataclass(frozen=True, kw_only=True)
class Certificate(Shown):
    """The promise of one release. Every field is public before the data is read, but for the answers of ``rounds``.

    Attributes
    ----------
    mechanism : str
        The name of the mechanism.
    options : mapping of str to str
        The options it was run with.
    loss : PureDP, ApproxDP or ZCDP
        What the release cost, and under which neighbouring relation.
    law : NoiseLaw or None
        The law of the noise with its scale, in scaled units. None for a mechanism that does not add noise.
    arithmetic : {"exact", "idealized"}
        Whether the noise was sampled exactly in integers, or in floating point.
    randomness : {"kernel", "rehearsal"}
        Where the random bits came from. A rehearsal protects nobody.
    proof : str
        The page with the proof of the promise.
    timing : str
        What is claimed about the running time.
    version : str
        The version of privcov that made the release.
    created : str
        The time of its making, in UTC.
    rounds : tuple of Round
        What was asked and paid for before, to fit centres, scales and a radius to the rows. Empty for a release in
        the declared frame. Their losses and that of the matrix add up to ``loss``.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    >>> made = pc.release(np.array([[35.0]]), schema=schema, loss=loss, mechanism="gaussian").certificate
    >>> made.mechanism, made.arithmetic, made.randomness, made.proof, made.strata
    ('gaussian', 'exact', 'kernel', 'docs/proofs/gaussian.md', None)
    """

    mechanism: str
    options: Mapping[str, str]
    loss: Loss
    law: NoiseLaw | None
    arithmetic: Literal["exact", "idealized"]
    randomness: Literal["kernel", "rehearsal"]
    proof: str
    timing: str
    version: str = __version__
    created: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    rounds: tuple[Round, ...] = ()

    @property
    def strata(self) -> int | None:
        """The number of strata, of which the release is one or the sum; None of a release of all rows at once."""
        return int(self.options["strata"]) if "strata" in self.options else None


def proof_address(proof: str, version: str) -> str:
    """How the page in the field ``proof`` of a certificate is told to people: it stays true when files move.

    ``proof``: as the certificate has it; what is no page of ours is given back unchanged. ``version``: that of the
    privcov that made the certificate.

    >>> proof_address("docs/proofs/gaussian.md", "0.1.0")
    'proofs/gaussian@0.1.0 (privcov proof gaussian)'
    """
    page = re.fullmatch(r"docs/(proofs/([a-z0-9-]+))\.md(?:#[a-z-]+)?", proof)
    return proof if page is None else f"{page[1]}@{version} (privcov proof {page[2]})"
