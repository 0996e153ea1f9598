"""Whether a certificate follows from itself: its mechanism, asked again, must need the noise that it states.

A forger who writes a smaller ε beside an unchanged matrix is found here, because a smaller ε needs more noise.
One who changes the stated noise to match is not: how much noise is in the matrix, nobody can see.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from privcov.errors import ParameterError
from privcov.frame.choice import NormChoice
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import Mechanism
from privcov.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss
from privcov.noise.laws import NoiseLaw
from privcov.privacy import Loss
from privcov.releases.release import Release
from privcov.releases.sketch import ridge_of
from privcov.schema.grid import Grid
from privcov.version import __version__

_TOLERANCE = 2.0**-40
"""Of a scale. Some constants of papers go through the platform's logarithm, whose last bit may differ."""

_REMARKS = ("auto",)
"""Options that tell why the mechanism was chosen; no promise rests on them."""


def disagreements(release: Release) -> tuple[str, ...]:
    """What on the certificate does not follow from the rest of it, as clauses; nothing where all does.

    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="add-remove")
    >>> disagreements(pc.release(np.array([[35.0], [61.0]]), schema=schema, loss=loss))
    ()
    """
    try:
        found = tuple(_disagreements(release))
    except ParameterError as reason:
        return (f"the mechanism refuses to make this promise: {reason.sentence.rstrip('.')}",)
    except (ArithmeticError, ValueError):
        return ("the mechanism cannot tell the noise that this promise needs",)
    made_by = release.certificate.version
    if found and made_by != __version__:
        return (*found, f"it was made by version {made_by}, and this is {__version__}")
    return found


def confirmed(release: Release) -> str:
    """What it means that there are no disagreements: how much of the promise the file itself can show."""
    certificate, name = release.certificate, release.certificate.mechanism
    if (law := certificate.law) is not None:
        return f"the stated noise, {law.name} of scale {law.scale:.6g}, is what {name} needs for {certificate.loss}"
    if release.sketch is not None:
        return (
            f"the {len(release.sketch)} sketched rows have the ridge that {name} needs for {certificate.loss}"
        )
    return f"{name} can promise {certificate.loss}; its noise follows no public law, so its size cannot be checked"


def _disagreements(release: Release) -> Iterator[str]:
    certificate, loss, grid = release.certificate, release.certificate.loss, Grid.of(release.schema)
    stated = {word: text for word, text in certificate.options.items() if word not in _REMARKS}
    norm = {word: stated.pop(word) for word in ("row_norm", "row_norm_share") if word in stated}
    if certificate.mechanism not in MECHANISMS:
        yield f"this version knows no mechanism {certificate.mechanism!r}"
        return
    kind = MECHANISMS[certificate.mechanism]
    if strange := sorted(set(stated) - set(kind.choices())):
        yield f"{kind.name} has no option {strange[0]!r}"
        return
    mechanism = kind.from_words({**stated, "arithmetic": certificate.arithmetic})
    mechanism.check(loss)
    if loss.neighbours not in mechanism.relations:
        yield f"{kind.name} promises nothing under {loss.neighbours}"
    if release.rows is not None and not loss.neighbours.count_is_public(grid.max_rows_per_person):
        yield (
            f"the number of rows is public, and a person with up to {grid.max_rows_per_person} rows moves it"
        )
    choice = NormChoice.before(
        mechanism, loss, word=norm.get("row_norm", "declared"), share=norm.get("row_norm_share", "none")
    )
    for what, given, true in (
        ("options", stated | norm, mechanism.options | ({} if choice is None else choice.options)),
        ("proof page", certificate.proof, mechanism.proof),
        ("note on timing", certificate.timing, mechanism.timing_note),
    ):
        if given != true:
            yield f"the {what} of {kind.name} would be {true}"
    if not _date(certificate.created):
        yield "the date is not one that privcov writes"
    rest = loss if choice is None else choice.rest
    yield from _noise(certificate.law, mechanism.law(loss=rest, grid=grid))
    yield from _sketch(release, mechanism, rest, grid)


def _noise(stated: NoiseLaw | None, needed: NoiseLaw | None) -> Iterator[str]:
    if stated is None or needed is None:
        if stated is not needed:
            yield f"the law of the noise would be {None if needed is None else needed.name}"
        return
    if stated.name != needed.name:
        yield f"the law of the noise would be {needed.name}, not {stated.name}"
    elif abs(stated.scale - needed.scale) > _TOLERANCE * needed.scale:
        less = "less" if stated.scale < needed.scale else "more"
        yield f"the stated noise has scale {stated.scale:.6g}, {less} than the {needed.scale:.6g} of this promise"


def _sketch(release: Release, mechanism: Mechanism, rest: Loss, grid: Grid) -> Iterator[str]:
    if not isinstance(mechanism, JohnsonLindenstrauss):
        if release.sketch is not None:
            yield f"{mechanism.name} publishes no rows"
        return
    if release.sketch is None:
        yield f"{mechanism.name} publishes rows, and there are none"
        return
    if len(release.sketch) != (rows := mechanism.rows(grid)):
        yield f"there would be {rows} sketched rows, not {len(release.sketch)}"
    if ridge_of(release.sketch, release.upper) != mechanism.ridge(loss=rest, grid=grid):
        yield "the ridge of the sketched rows is not that of this promise"


def _date(text: str) -> bool:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").strftime("%Y-%m-%dT%H:%M:%SZ") == text
    except ValueError:
        return False
