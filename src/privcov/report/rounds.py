"""The rounds that were paid for before the matrix of a framed release, in plain words."""

from __future__ import annotations

from privcov.privacy import SYMBOLS, display
from privcov.releases.certificate import Certificate, Round
from privcov.releases.release import Release
from privcov.releases.rounds import Norms, can_be_counted, measured, share, shares
from privcov.report.doubts.question import percent

_ASKED = {
    "scales": "scales",
    "shape": "shape",
    "means": "means",
    "squares": "deviations",
    "radius": "the radius",
}

_HIDDEN = 0.5
"""A standard deviation of the noise on a share that leaves nothing of it."""


def budget(certificate: Certificate) -> str:
    """Where the loss went, as a sentence; empty for a release in the declared frame."""
    if not certificate.rounds:
        return ""
    found = shares(certificate)
    others = [f"{part(found[name])} into {words}" for name, words in _ASKED.items() if name in found]
    parts = [f"{part(found['matrix'])} of the budget went into the matrix", *others]
    return f"{', '.join(parts[:-1])} and {parts[-1]}."


def told(release: Release) -> list[str]:
    """What a reader should know of a frame: each question and its price, where the loss went, what was cut."""
    certificate = release.certificate
    if not certificate.rounds:
        return []
    lines = [
        f"Round {place}: {_question(release, one)}, for {_price(one)} ({part(share(certificate, one))} of the loss)."
        for place, one in enumerate(certificate.rounds, 1)
    ]
    return [*lines, budget(certificate), f"{shortened(release)} {cut(release)}"]


def shortened(release: Release) -> str:
    """That rows were shortened, what was made up for of it, and whether intervals count the rest: a sentence."""
    said = "Long rows were shortened, so sums are biased (with frame = declared they are not)."
    if (found := release.calibration) is None:
        others = "; intervals of a release with --cut counted do" if can_be_counted(release) else ""
        return f"{said} No interval counts the part that was cut{others}."
    return (
        f"{said} Standard deviations that were clearly cut are replaced by those of all rows, as rounds found them. "
        "Intervals count the error of these, and allow for an error of "
        f"{found.bias:.1g} on a correlation from the part that was cut, which is a model and no proof."
    )


def cut(release: Release) -> str:
    """How many rows of a framed release were shortened and by how much, estimated from its histogram of norms."""
    norms = Norms.of(release)
    (rows, of_rows), (length, of_length) = norms.shortened, norms.cut
    which = " of all strata" if release.certificate.strata else ""
    if min(of_rows, of_length) >= _HIDDEN:
        return f"How many of the rows{which} were shortened, and by how much, is hidden by the noise."
    parts = [
        "a share that the noise hides" if error >= _HIDDEN else f"about {percent(share, error)}"
        for share, error in ((rows, of_rows), (length, of_length))
    ]
    return (
        f"{parts[0][0].upper()}{parts[0][1:]} of the rows{which} were shortened, and {parts[1].removeprefix('about ')} "
        "of the squared length of a row was cut, on average; columns with long tails lose more than others."
    )


def part(value: float) -> str:
    """A share in per cents, whole where it is not small.

    >>> [part(value) for value in (0.9312, 0.0204, 0.0049)]
    ['93 %', '2 %', '0.49 %']
    """
    return f"{100 * value:.0f} %" if value >= 0.0095 else f"{100 * value:.2g} %"


def _question(release: Release, one: Round) -> str:
    if one.name == "radius":
        return f"a histogram of the norms of rows ({len(one.answers)} cells)"
    columns = len(measured(release.schema))
    if one.name == "shape":
        return f"the products of {columns} numeric columns ({len(one.answers)} sums)"
    many = f"each of {columns} numeric columns" if columns > 1 else "the numeric column"
    if one.name == "means":
        looked = any(other.name == "scales" for other in release.certificate.rounds)
        return f"the sum of {many}, within {'bounds that the histograms suggest' if looked else 'the declared bounds'}"
    if one.name == "squares":
        return f"the sum of squared distances of {many} from its centre, within bounds that the histograms suggest"
    return f"a histogram of {many} ({len(one.answers) // columns} cells)"


def _price(one: Round) -> str:
    return ", ".join(f"{SYMBOLS[word]} = {display(value)}" for word, value in one.loss.amounts.items())
