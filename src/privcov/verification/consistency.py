"""Whether a certificate is consistent: its mechanism, asked again, must need exactly the noise that it states.

A forger who writes a smaller ε beside an unchanged matrix is found here, because a smaller ε needs more noise.
One who changes the stated noise to match is not: how much noise is in the matrix, nobody can see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from privcov.errors import ParameterError
from privcov.frame.choice import NormChoice
from privcov.frame.emphasis import emphasis_of
from privcov.frame.framing import replayed
from privcov.frame.spending import shared_with_total
from privcov.frame.terms import frame_options
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import Mechanism
from privcov.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss
from privcov.noise.laws import NoiseLaw
from privcov.privacy import SYMBOLS, Loss, exact
from privcov.releases.release import Release
from privcov.releases.sketch import ridge_of
from privcov.schema import Numeric, Schema
from privcov.schema.derived import of_other_bounds
from privcov.schema.grid import Grid
from privcov.schema.names import listed, quoted
from privcov.version import __version__

_TOLERANCE = 2.0**-40
"""Of a scale. Some constants of papers go through the platform's logarithm, whose last bit may differ."""

_NEXT = 1.5
"""Of a whole number that was rounded, or rounded up: the next one is close."""

_REMARKS = ("auto", "strata", "stratum", "total_share", "all_rows")
"""Options that tell why the mechanism was chosen, and what else was paid for with it."""


def disagreements(release: Release) -> tuple[str, ...]:
    """The statements of the certificate that contradict the rest of it, as clauses; empty if there are none.

    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="add-remove")
    >>> disagreements(pc.release(np.array([[35.0], [61.0]]), schema=schema, loss=loss))
    ()
    """
    made_by = release.certificate.version
    found = tuple(_with_refusal(_disagreements(release)))
    if found and made_by != __version__:
        return (*found, f"it was made by version {made_by}, and this is version {__version__}")
    return found


def _with_refusal(found: Iterator[str]) -> Iterator[str]:
    """What was found until the mechanism or a round refused, and then that it did."""
    try:
        yield from found
    except ParameterError as reason:
        yield f"the mechanism refuses to make this promise: {reason.sentence.rstrip('.')}"
    except (ArithmeticError, ValueError):
        yield "the noise that this promise needs cannot be computed"


def is_stratum(release: Release) -> bool:
    """Whether a release is one of several strata: then its noise is also for a person who moves between them."""
    return release.certificate.strata is not None


def pooled_disagreements(release: Release, stated: NoiseLaw) -> tuple[str, ...]:
    """What contradicts the noise on a total that was paid for beside strata, of which ``release`` is one as drawn.

    Asked where nothing speaks against the strata themselves.
    """
    certificate = release.certificate
    options = {word: text for word, text in certificate.options.items() if word not in _REMARKS}
    mechanism = MECHANISMS[certificate.mechanism].from_words(
        {**options, "arithmetic": certificate.arithmetic}
    )
    total, _ = shared_with_total(certificate.loss, mechanism, exact(certificate.options["total_share"]))
    needed = mechanism.law(loss=total, grid=Grid.of(release.schema, pooled=True))
    return tuple(f"of the total, {one}" for one in _noise(stated, needed))


def confirmed(release: Release) -> str:
    """What it means that there are no disagreements: how much of the promise the file itself can show."""
    certificate, name = release.certificate, release.certificate.mechanism
    stated = " and ".join(SYMBOLS[word] for word in certificate.loss.amounts)
    if (law := certificate.law) is not None:
        found = f"the stated noise gives the stated {stated}"
        return f"{found} ({name}: {law.name} noise of scale {law.scale:.6g} for {certificate.loss})"
    if release.sketch is not None:
        found = f"the ridge of the {len(release.sketch)} sketched rows gives the stated {stated}"
        return f"{found} ({name}: {certificate.loss})"
    return (
        f"{name} can give the stated {stated} ({certificate.loss}). "
        "The size of its noise has no formula, so the file cannot show it"
    )


def rederived(schema: Schema) -> Iterator[str]:
    """Sentences on what else in the file follows from public declarations in it, once nothing disagrees."""
    if schema.recipe is not None:
        count = len(schema.recipe.results)
        what = (
            "The bounds of the derived column follow"
            if count == 1
            else f"The bounds of {count} derived columns follow"
        )
        yield f"{what} from the expressions and the declared bounds."
    if schema.exhaustive:
        names = listed([column.name for column in schema.exhaustive])
        yield f"The levels of {names} add up to the intercept, so one level of each was not summed."
    if schema.weight is not None:
        yield f"The noise is that for a row of the largest weight, {schema.largest_weight:g}."


def _disagreements(release: Release) -> Iterator[str]:
    certificate, loss, stratified = release.certificate, release.certificate.loss, is_stratum(release)
    grid = Grid.of(release.schema, strata=stratified)
    stated = {word: text for word, text in certificate.options.items() if word not in _REMARKS}
    norm = {word: stated.pop(word) for word in ("row_norm", "row_norm_share") if word in stated}
    frame: dict[str, str] = {
        word: stated.pop(word) for word in ("frame", "cut", "emphasis") if word in stated
    }
    if certificate.mechanism not in MECHANISMS:
        yield f"this version has no mechanism {certificate.mechanism!r}"
        return
    kind = MECHANISMS[certificate.mechanism]
    if strange := sorted(set(stated) - set(kind.choices())):
        yield f"{kind.name} has no option {strange[0]!r}"
        return
    mechanism = kind.from_words({**stated, "arithmetic": certificate.arithmetic})
    mechanism.check(loss)
    mechanism.check_strata(grid)
    if loss.neighbours not in mechanism.relations:
        yield f"{kind.name} promises nothing under {loss.neighbours}"
    if release.rows is not None and not loss.neighbours.count_is_public(grid.max_rows_per_person):
        yield (
            f"the number of rows is stated, but a person with up to {grid.max_rows_per_person} rows can change it"
        )
    if "all_rows" in certificate.options and not loss.neighbours.count_is_public(grid.max_rows_per_person):
        yield "the number of all rows is stated, but a person can change it"
    choice = NormChoice.before(
        mechanism, loss, word=norm.get("row_norm", "declared"), share=norm.get("row_norm_share", "none")
    )
    for column, found in of_other_bounds(release.schema.columns, release.schema.recipe):
        yield (
            f"the bounds of {quoted(column.name)} should be [{found.lower:g}, {found.upper:g}], which follow from "
            f"{column.expression}, and not [{column.lower:g}, {column.upper:g}]"
        )
    for what, given, true in (
        ("options", stated | norm | frame, mechanism.options | _options(choice, release, frame)),
        ("proof page", certificate.proof, mechanism.proof),
        ("note on timing", certificate.timing, mechanism.timing_note),
    ):
        if given != true:
            yield f"the {what} of {kind.name} should be {true}"
    if not _date(certificate.created):
        yield "the date is not one that privcov writes"
    rest = loss if choice is None else choice.rest
    if stratified and (share := certificate.options.get("total_share")) is not None:
        _, rest = shared_with_total(loss, mechanism, exact(share))
    if certificate.rounds:
        fitted = replayed(
            mechanism,
            loss,
            schema=release.schema,
            rows=_all_rows(release),
            rounds=certificate.rounds,
            emphasis=_emphasis(frame, release.schema),
            strata=certificate.strata,
        )
        rest = fitted.rest
        if not _close(release.schema, fitted.schema):
            yield "the centres, units and row norm are not those that follow from the rounds"
    yield from _noise(certificate.law, mechanism.law(loss=rest, grid=grid))
    yield from _sketch(release, mechanism, rest, grid)


def _all_rows(release: Release) -> int | None:
    """The number of rows that rounds asked about, where it is public: of all strata, of which this may be one."""
    stated = release.certificate.options.get("all_rows")
    return release.rows if stated is None else int(stated)


def _options(choice: NormChoice | None, release: Release, stated: Mapping[str, str]) -> dict[str, str]:
    """What the certificate should say of what was chosen before the matrix."""
    if release.certificate.rounds:
        names = {one.name for one in release.certificate.rounds}
        emphasis = _emphasis(stated, release.schema)
        return frame_options(emphasis, shaped="shape" in names, counted="squares" in names)
    return {} if choice is None else choice.options


def _emphasis(stated: Mapping[str, str], schema: Schema) -> tuple[str, ...]:
    return emphasis_of(stated.get("emphasis"), schema)


def _close(stated: Schema, found: Schema) -> bool:
    """Whether two frames are the same, but for the last digits, in which machines may differ."""
    numbers = [*_scaling(stated)], [*_scaling(found)]
    if len(numbers[0]) != len(numbers[1]):
        return False
    pairs = zip(*numbers, strict=True)
    return all(abs(one - other) <= _TOLERANCE * width for (one, width), (other, _) in pairs)


def _scaling(schema: Schema) -> Iterator[tuple[float, float]]:
    """Every number of a frame, and what it is compared in."""
    yield float(schema.squared_norm_bound), 1.0
    for column in schema.columns:
        if isinstance(column, Numeric):
            yield column.middle, column.upper - column.lower
            yield column.half_width / column.reach, column.upper - column.lower
    if schema.shape is not None:
        # Stored as multiples of 2^-20: a difference in the last digits may round to the next one.
        yield from (
            (float(value), _NEXT / _TOLERANCE) for value in (*schema.shape.upper, schema.shape.longest)
        )


def _noise(stated: NoiseLaw | None, needed: NoiseLaw | None) -> Iterator[str]:
    if stated is None or needed is None:
        if stated is not needed:
            yield f"the distribution of the noise should be {None if needed is None else needed.name}"
        return
    if stated.name != needed.name:
        yield f"the distribution of the noise should be {needed.name}, not {stated.name}"
    elif abs(stated.scale - needed.scale) > _TOLERANCE * needed.scale:
        less = "less" if stated.scale < needed.scale else "more"
        found = f"the stated noise has scale {stated.scale:.6g}"
        yield f"{found}, {less} than the {needed.scale:.6g} that this promise needs"


def _sketch(release: Release, mechanism: Mechanism, rest: Loss, grid: Grid) -> Iterator[str]:
    if not isinstance(mechanism, JohnsonLindenstrauss):
        if release.sketch is not None:
            yield f"{mechanism.name} publishes no rows, but there are some"
        return
    if release.sketch is None:
        yield f"{mechanism.name} publishes rows, but there are none"
        return
    if len(release.sketch) != (rows := mechanism.rows(grid)):
        yield f"there should be {rows} sketched rows, not {len(release.sketch)}"
    if ridge_of(release.sketch, release.upper) != mechanism.ridge(loss=rest, grid=grid):
        yield "the ridge of the sketched rows is not the one that this promise needs"


def _date(text: str) -> bool:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").strftime("%Y-%m-%dT%H:%M:%SZ") == text
    except ValueError:
        return False
