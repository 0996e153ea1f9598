"""The report's figures, numbered as there; its pictures are not in our copy of it, so their axes are ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.report import figures as look
from privcov_lab.reproduce import charts
from privcov_lab.reproduce.charts import Histogram, Line, Mark, Panel
from privcov_lab.reproduce.papers.bain2014.readings import CLASSICAL, LABELS, PRINTED, Readings
from privcov_lab.reproduce.papers.bain2014.repairs import REPAIRS
from privcov_lab.reproduce.study import Figure

_TRUE = "true value"
_QUANTILES = (0.80, 0.76, 0.73, 0.70)
_SWEPT = ("printed", "printed, no repair", "classical", "ours", "ours-real")
_AXES = {"epsilon": "ε", "rows": "rows n", "attributes": "attributes d"}


def figures(found: Readings) -> list[Figure]:
    """In the report's order."""
    return [
        _example(found),
        _statistics(found),
        _norms(found),
        _against(found),
        _beta(found),
        _residual(found),
        _coefficient(found),
        _model(found, bootstrap=True),
        _model(found, bootstrap=False),
        _regressors(found),
        _repairs(found),
    ]


def _example(found: Readings) -> Figure:
    made = found.results.one("example")

    def draw(pyplot: Any) -> Any:
        figure, axes = pyplot.subplots(figsize=(4.2, 3.3))
        (low, high), (intercept, slope) = (min(made["x"]), max(made["x"])), made["line"]
        axes.plot(made["x"], made["y"], "o", color=look.style(0)["color"], markersize=3.2, label="data")
        ends = [intercept + slope * low, intercept + slope * high]
        axes.plot([low, high], ends, color=look.style(1)["color"], label="least squares")
        axes.set(xlabel="x", ylabel="y", title="Figure 1")
        look.clear(axes)
        figure.legend(loc="lower center", ncols=2, frameon=False, fontsize=8)
        figure.tight_layout(rect=(0, 0.08, 1, 1))
        return figure

    return Figure(
        name="figure-01",
        caption="Figure 1: what ordinary least squares does, on sixty simulated points.",
        draw=draw,
    )


def _statistics(found: Readings) -> Figure:
    panels = []
    for formula in ("printed", "classical"):
        (made,) = [x for x in found.results.of("moments", formula=formula) if x["rows"] is not None]
        for number, name, place in ((4, "variance", (1, 1)), (5, "covariance", (1, 2))):
            truth = made["truth"][place[0]][place[1]] / made["rows_used"]
            product = "age²" if name == "variance" else "age × educ"
            panels.append(
                Panel(
                    title=f"Figure {number}, {LABELS[formula]}",
                    x_label=f"mean of {product} − {truth:,.1f}",
                    y_label="share of runs",
                    histograms=[Histogram(LABELS[formula], [value - truth for value in made[name]])],
                    marks=[Mark(_TRUE, 0.0)],
                )
            )
    return Figure(
        name="figure-04-05",
        caption="Figures 4 and 5: a noisy variance and a noisy covariance over the runs, second moments per person as "
        "the report has them; bootstrap of the Census extract to 1,223,992 rows, ε = 0.01, δ = 2⁻¹⁶.",
        draw=lambda pyplot: charts.draw(pyplot, panels, columns=2, size=(3.8, 2.6)),
    )


def _norms(found: Readings) -> Figure:
    panels = []
    for methods in (("printed",), ("classical", "needed")):
        for number, name in ((6, "spectral"), (7, "frobenius")):
            panels.append(
                Panel(
                    title=f"Figure {number}",
                    x_label=f"{name.capitalize()} norm of the noise",
                    y_label="share of runs",
                    histograms=[
                        Histogram(LABELS[m], found.results.one("norms", method=m)[name]) for m in methods
                    ],
                )
            )
    return Figure(
        name="figure-06-07",
        caption="Figures 6 and 7: spectral and Frobenius norm of the noise on the moments of three attributes and the "
        "intercept, ε = 0.01, δ = 2⁻¹⁶, in units of the scaled table. Above with σ as printed; below with 1/ε put "
        "back, and with the least σ that keeps the promise.",
        draw=lambda pyplot: charts.draw(pyplot, panels, columns=2, size=(3.8, 2.6)),
    )


def _against(found: Readings) -> Figure:
    panels = []
    for number, (axis, words) in zip((8, 9, 10), _AXES.items(), strict=True):
        lines = []
        for method in ("printed", "classical", "needed"):
            made = found.results.one("spectral", method=method, axis=axis)
            means, least, largest = np.array(made["points"]).T.tolist()
            lines.append(Line(LABELS[method], made["values"], means, least, largest))
        panels.append(
            Panel(
                title=f"Figure {number}",
                x_label=words,
                y_label="spectral norm of the noise",
                lines=lines,
                log_x=axis != "attributes",
                log_y=True,
            )
        )
    return Figure(
        name="figure-08-10",
        caption="Figures 8 to 10: mean spectral norm of the noise against ε, n and d, the other two held at ε = 0.01, "
        "n = 1,223,992, d = 3; bands from the least to the largest run.",
        draw=lambda pyplot: charts.draw(pyplot, panels),
    )


def _beta(found: Readings) -> Figure:
    panels = [
        _over_c(found, f"Figure {number}: {words}", f"{words} of ‖β̂ − β‖", "beta", level)
        for number, words, level in ((11, "mean", None), (12, "95 % quantile", 0.95))
    ]
    return Figure(
        name="figure-11-12",
        caption="Figures 11 and 12: distance of the noisy coefficients, intercept among them, from least squares on "
        "the rows while C grows; simulated tables of 50,000 rows, d = 5, ε = 0.01, δ = 2⁻¹⁶. The larger ε of privcov "
        "is the one that the printed σ delivers here.",
        draw=lambda pyplot: charts.draw(pyplot, panels, size=(4.4, 3.0)),
    )


def _residual(found: Readings) -> Figure:
    panel = _over_c(found, "Figure 13: 95 % quantile", "95 % quantile of s²", "s2", 0.95)
    truth = [float(np.quantile(found.simulated["none"][c]["s2"], 0.95)) for c in found.coefficients]
    lines = [*panel.lines, Line("without noise", found.coefficients, truth)]
    with_truth = Panel(
        title=panel.title, x_label=panel.x_label, y_label=panel.y_label, lines=lines, log_x=True, log_y=True
    )
    return Figure(
        name="figure-13",
        caption="Figure 13: 95 % quantile of the estimated variance s² of the errors while C grows. The errors have "
        "variance 1 at every C.",
        draw=lambda pyplot: charts.draw(pyplot, [with_truth], size=(6.4, 3.2)),
    )


def _coefficient(found: Readings) -> Figure:
    panels = [
        _over_c(found, f"Figure {number}: {level:.0%} quantile", "|Ĉ − C|", "coefficient", level)
        for number, level in zip((14, 15, 16, 17), _QUANTILES, strict=True)
    ]
    return Figure(
        name="figure-14-17",
        caption="Figures 14 to 17: quantiles of the distance between the noisy coefficient and the true one while C "
        "grows.",
        draw=lambda pyplot: charts.draw(pyplot, panels, columns=2, size=(4.2, 2.7)),
    )


def _over_c(found: Readings, title: str, y_label: str, name: str, level: float | None) -> Panel:
    lines = [Line(LABELS[m], found.coefficients, found.over_c(m, name, level)) for m in _SWEPT]
    return Panel(title=title, x_label="C", y_label=y_label, lines=lines, log_x=True, log_y=True)


def _model(found: Readings, *, bootstrap: bool) -> Figure:
    shown = 0.98 if bootstrap else 0.90
    panels = [
        _coefficient_panel(found, formula, number, place, words, bootstrap=bootstrap, shown=shown)
        for formula in ("printed", "classical")
        for number, place, words in _TERMS
    ]
    size = (
        "bootstrap of the Census extract to 1,223,992 rows"
        if bootstrap
        else "the Census extract, 10,000 rows"
    )
    return Figure(
        name=f"figure-18-20{'' if bootstrap else '-extract'}",
        caption=f"Figures 18 to 20: income ~ age + educ over the runs, {size}, ε = 0.01, δ = 2⁻¹⁶; privcov with the ε "
        f"that the report's σ really delivers (above) or states (below). Runs beyond the middle {100 * shown:.0f} % of "
        "the wider histogram are not shown.",
        draw=lambda pyplot: charts.draw(pyplot, panels),
    )


_TERMS = ((18, 1, "coefficient of age"), (19, 2, "coefficient of educ"), (20, 0, "intercept, thousands"))


def _coefficient_panel(
    found: Readings, formula: str, number: int, place: int, words: str, *, bootstrap: bool, shown: float
) -> Panel:
    ours = found.model("ours", bootstrap=bootstrap, real=formula == "printed")
    theirs = found.model(formula, bootstrap=bootstrap)
    unit = 1000.0 if words.endswith("thousands") else 1.0
    truth = theirs["truth"][place] / unit
    values = [np.array(made["runs_of"])[:, place] / unit for made in (theirs, ours)]
    labels = (PRINTED if formula == "printed" else CLASSICAL, f"privcov, ε = {ours['epsilon']:.3g}")
    pairs = zip(labels, _window(values, truth, shown), strict=True)
    return Panel(
        title=f"Figure {number}, {formula} σ",
        x_label=words,
        y_label="share of runs shown",
        histograms=[Histogram(label, inside) for label, inside in pairs],
        marks=[Mark(_TRUE, truth)],
    )


def _window(values: Sequence[Floats], truth: float, shown: float) -> list[list[float]]:
    """Each set of runs within the middle of the widest, which a few wild regressions would stretch."""
    out = (1 - shown) / 2
    low = min(truth, *(float(np.quantile(v, out)) for v in values))
    high = max(truth, *(float(np.quantile(v, 1 - out)) for v in values))
    return [v[(v >= low) & (v <= high)].tolist() for v in values]


def _regressors(found: Readings) -> Figure:
    panels = [
        Panel(
            title=words,
            x_label="regressors",
            y_label="‖β̂ − β‖",
            lines=[
                Line(name, list(by_k), [float(np.quantile(values, level)) for values in by_k.values()])
                for name, level in (("median", 0.5), ("80 % quantile", 0.8), ("95 % quantile", 0.95))
            ],
            log_y=True,
        )
        for words, by_k in found.regressors.items()
    ]
    return Figure(
        name="regressors",
        caption="Section 5: distance of the noisy coefficients when the first one to four columns are regressors; "
        "simulated tables with C = 10, σ as printed, repaired as published or not.",
        draw=lambda pyplot: charts.draw(pyplot, panels, size=(4.2, 2.8)),
    )


def _repairs(found: Readings) -> Figure:
    panels = []
    for table, words in (("pums", "Census extract"), ("simulated", "simulated, C = 10")):
        made = found.repaired(table)
        for name, y_label, middle in (
            ("error", "mean ‖Ĉ − C‖ / ‖C‖", np.mean),
            ("beta", "median ‖β̂ − β‖", np.median),
        ):
            lines = [
                Line(
                    _REPAIR_LABELS[repair],
                    [cell["epsilon"] for cell in made],
                    [float(middle(cell["measured"][repair][name])) for cell in made],
                )
                for repair in REPAIRS
            ]
            panels.append(
                Panel(title=words, x_label="ε", y_label=y_label, lines=lines, log_x=True, log_y=True)
            )
    return Figure(
        name="repairs",
        caption="The report's eigenvalue repair beside ours, on the same releases by the gaussian mechanism (d = 3 and "
        "5, δ = 2⁻¹⁶, add-remove): mean relative error of the matrix, and median distance of "
        "the coefficients in [−1, 1] units.",
        draw=lambda pyplot: charts.draw(pyplot, panels, columns=2, size=(4.2, 2.7)),
    )


_REPAIR_LABELS = {
    "none": "no repair",
    "least-positive": "negatives to the least positive (report)",
    "clip": "privcov clip",
    "trace": "privcov trace",
    "auto": "privcov auto",
}
