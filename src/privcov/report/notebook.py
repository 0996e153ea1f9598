"""What a notebook shows of a result, small and in the colours of its page; and what ``print`` shows of it."""

from __future__ import annotations

from functools import singledispatch

from privcov.linalg.triangle import is_wide
from privcov.models.association import NamedMatrix
from privcov.models.ols import Fit
from privcov.models.pca import PCAFit
from privcov.models.ridge import RidgeFit, RidgePath
from privcov.releases.certificate import Certificate, proof_address
from privcov.releases.release import Release
from privcov.releases.strata import StratifiedRelease
from privcov.report import components, rounds, words
from privcov.report.drawing import Estimate, Line, Markup, coefficients, curves, heat_map, tag
from privcov.report.page.elements import facts, figure, number, side_by_side, table, warning
from privcov.report.page.matrix import correlation_figure
from privcov.report.page.models import loadings_figure, model, spectrum_figure, variances
from privcov.report.page.promise import amounts, misread
from privcov.report.summary import as_text, sentences, strata_legend, strata_lines, strata_text, strata_title
from privcov.report.view import View

_DRAWN = 60
"""Columns up to which a release is drawn; repairing more takes longer than a look at it should."""
_LISTED = 30

_STYLE = Markup("""
.privcov{max-width:64rem}.privcov p{margin:.35rem 0;max-width:75ch}.privcov h4{margin:.2rem 0 .5rem}
.privcov .facts{display:flex;flex-wrap:wrap;gap:.3rem 2rem;margin:.3rem 0 .6rem}
.privcov .facts dt{font-size:.85em;opacity:.7}.privcov .facts dd{margin:0;font-weight:600}
.privcov .beside{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}
.privcov figure{margin:.3rem 0;max-width:100%}.privcov figcaption{font-size:.85em;opacity:.75;max-width:60ch}
.privcov .scroll{overflow-x:auto;max-width:100%}.privcov svg.chart{max-width:100%;height:auto}
.privcov svg.broad{max-width:none}.privcov table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.privcov th,.privcov td{text-align:left;padding:.2em .8em .2em 0}.privcov .n{text-align:right;padding:.2em 0 .2em 1em}
.privcov .note{font-size:.85em;opacity:.75}
.privcov .warning{font-weight:600;border-left:3px solid #c4532b;padding-left:.7em}
""")


def card(heading: str, *parts: Markup | None) -> Markup:
    """What one result shows: a heading and what is under it, with a style that stays inside."""
    return tag("div", tag("style", _STYLE), tag("h4", heading), *parts, class_="privcov")


@singledispatch
def printed(result: object) -> str:
    """The text that ``print`` shows: that of the command that reads such a result; of others, their ``repr``."""
    return repr(result)


@printed.register
def _(result: Release) -> str:
    # A wide one takes minutes to repair: ``privcov show`` prints it where that is asked for.
    return repr(result) if is_wide(len(result.columns)) else as_text(result)


printed.register(StratifiedRelease, strata_text)
printed.register(Fit, Fit.summary)
printed.register(RidgeFit, RidgeFit.summary)
printed.register(PCAFit, components.as_text)


@singledispatch
def shown(result: object) -> str:
    """The HTML of a result."""
    raise TypeError(f"nothing is known about showing a {type(result).__name__}")


@shown.register
def _(result: Release) -> str:
    count = len(result.columns) - result.schema.intercept
    rows = "a private number of rows" if result.rows is None else f"{result.rows:,} rows"
    known = facts(
        [
            ("Promise", amounts(result.certificate.loss)),
            ("Neighbours", str(result.certificate.loss.neighbours)),
            ("Mechanism", result.certificate.mechanism),
        ]
    )
    parts = [_rehearsal(result.certificate.randomness == "rehearsal"), known, misread(result)]
    if result.certificate.rounds:
        parts.append(
            tag("p", f"{rounds.budget(result.certificate)} {rounds.shortened(result)} {rounds.cut(result)}")
        )
    if count <= _DRAWN:
        view = View.of(result)
        parts += [correlation_figure(view) if count > 1 else None]
        parts += [warning(line) if "LARGE" in line else tag("p", line) for line in sentences(result)]
    return card(f"Private release of {count:,} columns, {rows}", *parts)


@shown.register
def _(result: Certificate) -> str:
    known: list[tuple[str, object]] = [
        ("Promise", amounts(result.loss)),
        ("Neighbours", str(result.loss.neighbours)),
        ("Mechanism", result.mechanism),
        *((name, value) for name, value in result.options.items()),
        (
            "Noise",
            "no known distribution"
            if result.law is None
            else f"{result.law.name}, scale {result.law.scale:.4g}",
        ),
        *([("Budget", rounds.budget(result))] if result.rounds else []),
        ("Arithmetic", result.arithmetic),
        ("Proof", proof_address(result.proof, result.version)),
        ("Made", f"{result.created}, privcov {result.version}"),
    ]
    return card("Certificate", _rehearsal(result.randomness == "rehearsal"), facts(known))


@shown.register
def _(result: StratifiedRelease) -> str:
    heads, rows = strata_lines(result, most=_LISTED)
    listed = len(rows) - 1  # and the total
    hidden = len(result) - listed
    note = f"The first {listed} of {len(result):,}. " if hidden else ""
    note += f"A count is noisy; a stratum in full: strata[NAME]. {strata_legend(result)}"
    first = next(iter(result.values()))
    return card(
        f"{strata_title(result)}, {amounts(first.certificate.loss)}",
        _rehearsal(first.certificate.randomness == "rehearsal"),
        table(heads, rows, caption=note),
    )


@shown.register
def _(result: Fit) -> str:
    made = model(result)
    return card(made.heading, made.body)


@shown.register
def _(result: PCAFit) -> str:
    parts = [spectrum_figure(result), *([loadings_figure(result)] if len(result.columns) <= _DRAWN else [])]
    return card(
        f"{result.rank} of {len(result.columns)} principal components",
        _rehearsal(result.rehearsal),
        side_by_side(*parts),
        variances(result) if result.rank else None,
    )


@shown.register
def _(result: RidgeFit) -> str:
    titles = result.problem.release.schema.titles
    slopes = [(titles[n], v) for n, v in zip(result.columns, result.scaled_slopes.tolist(), strict=True)]
    picture = coefficients(
        [Estimate(name=name, value=value) for name, value in slopes[:_LISTED]],
        title=f"Slopes of ridge regression for {titles[result.target]}",
        x_label="slope between scaled columns",
    )
    rows = [[titles[name], number(value)] for name, value in result.coefficients.items()]
    more = len(rows) - _LISTED
    note = f"Original units. … and {more} more" if more > 0 else "Original units."
    return card(
        f"Ridge regression for {result.target}, penalty {result.penalty:g}",
        _rehearsal(result.rehearsal),
        side_by_side(
            figure(picture, "Estimates without intervals; error_bound() gives a bound on their error."),
            table(
                ["", "coefficient"],
                [["(Intercept)", number(result.intercept)], *rows[:_LISTED]],
                caption=note,
            ),
        ),
    )


@shown.register
def _(result: RidgePath) -> str:
    chosen = sorted(range(len(result.columns)), key=lambda j: -abs(result.fits[0].scaled_slopes[j]))[:12]
    titles = result.fits[0].problem.release.schema.titles
    lines = [
        Line(
            name=titles[result.columns[j]],
            points=[(fit.penalty, float(fit.scaled_slopes[j])) for fit in result.fits if fit.penalty > 0],
        )
        for j in chosen
    ]
    picture = curves(
        lines,
        title=f"Ridge path for {titles[result.fits[0].target]}",
        x_label="penalty",
        y_label="slope between scaled columns",
        log_y=False,
    )
    more = (
        f" The largest {len(chosen)} of {len(result.columns)}." if len(result.columns) > len(chosen) else ""
    )
    return card(
        f"Ridge path for {result.fits[0].target}: {len(result)} penalties",
        _rehearsal(result.fits[0].rehearsal),
        figure(picture, f"How each slope shrinks as the penalty grows.{more}"),
    )


@shown.register
def _(result: NamedMatrix) -> str:
    largest = max((abs(value) for value in result.values.ravel().tolist() if value == value), default=0.0)
    limit = largest if result.what == "precision" and largest > 0 else 1.0
    picture = heat_map(
        result.columns,
        result.values.tolist(),
        title=f"{result.what} of {len(result.columns)} columns",
        limit=limit,
        digits=2 if limit < 100 else 0,
    )
    said = f"Full colour is ±{number(limit, 3)}; a stroke marks what is negative."
    if result.dropped:
        said += f" {result.dropped} directions that other columns determine were left out."
    if result.left_out:
        more = f" and {len(result.left_out) - 8} more" if len(result.left_out) > 8 else ""
        said += (
            f" Left out, because the others or the noise hide them: {', '.join(result.left_out[:8])}{more}."
        )
    heading = f"{result.what[:1].upper()}{result.what[1:]}"
    return card(heading, _rehearsal(result.rehearsal), figure(picture, said))


def _rehearsal(yes: bool) -> Markup | None:
    return warning(words.REHEARSAL) if yes else None
