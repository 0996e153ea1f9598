"""A release as a page a person would rather look at than read JSON: one file, nothing to fetch, nothing that runs.

    html(release, models=["income ~ age"], components=2, title="People 2026")   the whole page
    sections(release, …)                                                      its parts, in order
    Section(name=, heading=, body=)    ``section.drawn()`` is one as an element; ``STYLE`` is the sheet they expect

Everything is computed from the release alone, so it costs no privacy; the same release gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from privcov.errors import ParameterError
from privcov.models.ols import Errors, Fit, ols
from privcov.releases.release import Release
from privcov.report.page import using
from privcov.report.page.elements import PAGE as STYLE
from privcov.report.page.elements import Section, page
from privcov.report.page.matrix import columns, matrix
from privcov.report.page.models import components as spectrum
from privcov.report.page.models import model, unanswered
from privcov.report.page.promise import overview, promise
from privcov.report.page.using import Source
from privcov.report.view import View
from privcov.report.words import origin

__all__ = ["STYLE", "Section", "Source", "html", "sections"]


def html(
    release: Release,
    *,
    models: Sequence[str | Fit] = (),
    errors: Errors = "equal",
    components: int | None = None,
    title: str | None = None,
    source: Source | None = None,
    among: bool = False,
) -> str:
    """The whole page.

    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> made = pc.release(np.full((50, 1), 40.0), schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> html(made, title="People").startswith("<!DOCTYPE html>")
    True
    """
    parts = sections(
        release,
        models=models,
        errors=errors,
        components=components,
        title=title,
        source=source,
        among=among,
    )
    lead = f"A private release: {release.certificate.loss}."
    rehearsal = release.certificate.randomness == "rehearsal"
    return page(parts, title=_title(release, title), lead=lead, rehearsal=rehearsal)


def sections(
    release: Release,
    *,
    models: Sequence[str | Fit] = (),
    errors: Errors = "equal",
    components: int | None = None,
    title: str | None = None,
    source: Source | None = None,
    only: str | None = None,
    among: bool = False,
) -> list[Section]:
    """The parts of the page: promise, columns, matrix, spectrum, models, and how to cite, verify and use it.

    ``models`` are formulas or fits of this release, and ``errors`` is what is assumed of those of formulas, as
    ``privcov.ols`` has it, and of components; ``components`` asks for so many principal components;
    ``source`` is the file it came from, without which the one that saving it would make is described. ``only`` the
    first five can be asked for by name, which takes no longer than that one. ``among`` the pages of several strata, a
    model that this one is too small for is a section that says so.
    """
    parts: dict[str, Callable[[], Section]] = {
        "overview": lambda: overview(release),
        "promise": lambda: promise(release),
        "columns": lambda: columns(View.of(release)),
        "matrix": lambda: matrix(View.of(release)),
        "spectrum": lambda: spectrum(release, components, errors),
    }
    if only is not None:
        return [parts[only]()] if only in parts else []
    answers = [one if isinstance(one, Fit) else _answer(release, one, errors, among=among) for one in models]
    fits = [one for one in answers if isinstance(one, Fit)]
    file = _to_be(release) if source is None else source
    certificate = release.certificate
    rows = "an undisclosed number of rows" if release.rows is None else f"{release.rows:,} rows"
    about = (
        f"Second moments of {len(release.schema.columns):,} columns and {rows} under {certificate.loss}, by "
        f"{certificate.mechanism}, made with privcov {certificate.version} on {certificate.created[:10]}"
    )
    read = [
        *(part() for part in parts.values()),
        *(
            model(one, place=place) if isinstance(one, Fit) else unanswered(*one, place=place)
            for place, one in enumerate(answers, 1)
        ),
    ]
    if certificate.randomness != "kernel":
        return [*read, using.rehearsed()]
    by, signed = " ".join(origin(release).split()), release.signer is not None
    return [
        *read,
        using.citing(title=_title(release, title), about=about, created=certificate.created, source=file),
        using.verifying(origin=by, signed=signed, source=file),
        using.loading(*_program(release, fits, file)),
    ]


def _answer(release: Release, formula: str, errors: Errors, *, among: bool) -> Fit | tuple[str, str]:
    """The model; or its formula and why there is none, where only the sums of this stratum are why."""
    try:
        return ols(release, formula, errors=errors)
    except ParameterError as reason:
        if not among or reason.code != "E236":
            raise
        return formula, str(reason)


def _program(release: Release, fits: Sequence[Fit], source: Source | None) -> list[str]:
    lines = [f"release = pc.load({(using.UNNAMED if source is None else source.name)!r})"]
    if release.schema.intercept:
        lines.append("release.mean(), release.covariance(), release.correlation()")
    else:
        lines.append("release.second_moment(scaled=True)")
    for fit in fits[:1]:
        told = "" if fit.errors == "equal" else f", errors={fit.errors!r}"
        lines.append(f"print(pc.ols(release, {str(fit.formula)!r}{told}).summary())")
    if release.sketch is not None:
        lines.append("release.sketched_rows()")
    return lines


def _to_be(release: Release) -> Source | None:
    """The file that saving this release would make; none for a rehearsal, nor where its signature is out of reach."""
    if release.certificate.randomness != "kernel" or release.signer is not None:
        return None
    digest = hashlib.sha256()
    for piece in release.file_bytes():
        digest.update(piece)
    return Source(name=using.UNNAMED, sha256=digest.hexdigest())


def _title(release: Release, given: str | None) -> str:
    count = len(release.schema.columns)
    return given or f"A private release of {count:,} column{'' if count == 1 else 's'}"
