"""The report's tables and printed matrices, ours in the same shape, and the ε of every σ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privcov.models.summary import significance
from privcov_lab.reproduce.papers.bain2014.published import EPSILON
from privcov_lab.reproduce.papers.bain2014.pums import NAMES
from privcov_lab.reproduce.papers.bain2014.readings import (
    FIGURE_2,
    FIGURE_3,
    TABLE_3,
    TABLE_4,
    TERMS,
    Readings,
)
from privcov_lab.reproduce.papers.bain2014.repairs import REPAIRS
from privcov_lab.reproduce.study import Table

_HEADINGS = ("", "Estimate", "Std. Error", "t value", "Pr[>t]", "")
_SMALLEST = 2e-16
Row = Sequence[str | int | float | None]


def tables(found: Readings) -> list[Table]:
    """The report's in its order, then what it does not have."""
    return [
        *_models(found),
        *_matrices(found),
        _privacy(found),
        _spread(found),
        _swept(found),
        _repairs(found),
    ]


def _models(found: Readings) -> list[Table]:
    example = found.results.one("example")
    true = found.results.of("true_model")
    extract, bootstrap = (next(x for x in true if (x["rows"] is None) == small) for small in (True, False))
    made = [
        _model(
            "table-1",
            "Table 1, a sample of a model's results: least squares on the 10,000 rows of the Census extract (X1 age, "
            "X2 educ). The report shows its Table 4 here.",
            ("(int)", "X1", "X2"),
            extract,
        ),
        _model(
            "table-2",
            "Table 2, a simulated table with Y = 2·X1, 50,000 rows, one run with σ as printed; standard errors ignore "
            f"the noise. Without it: {', '.join(f'{v:.4g}' for v in example['truth'])}.",
            ("(int)", "X1", "X2"),
            example,
        ),
    ]
    for formula, words in (("printed", "σ as printed"), ("classical", "the classical σ")):
        made.append(
            _model(
                f"table-3-{formula}",
                f"Table 3, income ~ age + educ from one release with {words}, ε = 0.01, δ = 2⁻¹⁶; bootstrap of the "
                "Census extract to 1,223,992 rows; standard errors ignore the noise, as the report's do.",
                TERMS,
                found.model(formula, bootstrap=True),
            )
        )
    made.append(
        _model(
            "table-3-privcov",
            "Table 3 by privcov: one release by gaussian, ε = 0.01, δ = 2⁻¹⁶, the same bootstrap; standard errors know "
            "the noise.",
            TERMS,
            found.model("ours", bootstrap=True),
        )
    )
    made += [
        _model("table-4-extract", "Table 4 on the 10,000 rows of the Census extract.", TERMS, extract),
        _model("table-4", "Table 4 on the bootstrap of the extract to 1,223,992 rows.", TERMS, bootstrap),
    ]
    rows: list[Row] = [
        [which, term, *values]
        for which, values_of in (("Table 3, noisy", TABLE_3), ("Table 4, true", TABLE_4))
        for term, values in zip(TERMS, values_of, strict=True)
    ]
    made.append(
        Table(
            name="report-tables-3-4",
            caption="Tables 3 and 4 as the report prints them, on 1,223,992 rows.",
            headings=("table", "", "Estimate", "Std. Error", "t value"),
            rows=rows,
            digits=8,
        )
    )
    return made


def _model(name: str, caption: str, terms: Sequence[str], made: dict[str, Any]) -> Table:
    columns = (made["estimates"], made["errors"], made["t_values"], made["p_values"])
    rows: list[Row] = [
        [term, estimate, error, t, _probability(p), "" if p is None else significance(p)]
        for term, estimate, error, t, p in zip(terms, *columns, strict=True)
    ]
    return Table(name=name, caption=caption, headings=_HEADINGS, rows=rows, digits=7)


def _probability(p: float | None) -> str:
    if p is None:
        return ""
    return "<2e-16" if p < _SMALLEST else f"{p:.4g}"


def _matrices(found: Readings) -> list[Table]:
    (made,) = [x for x in found.results.of("moments", formula="printed") if x["rows"] is not None]
    names = ("(int)", *NAMES)
    ours = [
        Table(
            name=name,
            caption=f"{words} second moments of the Census attributes and the intercept, original units, bootstrap to "
            "1,223,992 rows.",
            headings=("", *names),
            rows=[[term, *(float(v) for v in line)] for term, line in zip(names, made[key], strict=True)],
            digits=10,
        )
        for name, words, key in (
            ("figure-2", "Figure 2: true", "truth"),
            ("figure-3", "Figure 3: noisy (σ as printed)", "first"),
        )
    ]
    difference = np.array(FIGURE_3) - np.array(FIGURE_2)
    report = Table(
        name="report-figure-3-less-2",
        caption="The report's own Figure 3 less its Figure 2: the noise it added. Five columns, so not its Census "
        "matrix of three attributes and an intercept.",
        headings=("", *(f"column {j}" for j in range(1, 6))),
        rows=[[f"row {i}", *(int(v) for v in line)] for i, line in enumerate(difference, 1)],
    )
    return [*ours, report]


def _privacy(found: Readings) -> Table:
    words = {
        "printed": "√(2 ln(1.25/δ/ε)), as printed",
        "classical": "√(2 ln(1.25/δ))/ε",
        "exact": "exact Gaussian profile",
    }
    rows: list[Row] = [
        [
            words[line["formula"]],
            "sensitivity 1" if line["attributes"] is None else f"d = {line['attributes']}, factor √d",
            line["std"],
            line["distance"],
            line["epsilon"],
            "yes" if line["epsilon"] <= EPSILON * (1 + 1e-4) else "NO",
        ]
        for line in found.privacy
    ]
    return Table(
        name="real-epsilon",
        caption="The ε that each σ delivers at δ = 2⁻¹⁶ by the exact Gaussian profile, where ε = 0.01 is stated. The "
        "distance is how far one person with every attribute at its maximum, coming or going, moves the noisy entries "
        "of d attributes in [0, 1] and the intercept; the report takes √d for it.",
        headings=("σ / sensitivity", "table", "σ", "distance", "real ε", "keeps 0.01"),
        rows=rows,
        digits=5,
    )


def _spread(found: Readings) -> Table:
    rows: list[Row] = []
    for bootstrap in (True, False):
        for method, real in (("printed", False), ("ours", True), ("classical", False), ("ours", False)):
            made = found.model(method, bootstrap=bootstrap, real=real)
            epsilon = made.get("epsilon", found.epsilon(method, 3) if method != "ours" else None)
            runs = np.array(made["runs_of"])
            for place, term in enumerate(TERMS):
                middle = np.quantile(runs[:, place], [0.16, 0.84])
                rows.append(
                    [
                        "1,223,992 (bootstrap)" if bootstrap else "10,000",
                        "privcov" if method == "ours" else f"report, {method} σ",
                        epsilon,
                        term,
                        made["truth"][place],
                        float(runs[:, place].mean()),
                        float(runs[:, place].std()),
                        float(middle[1] - middle[0]) / 2,
                        made["held"][place],
                    ]
                )
    return Table(
        name="pums-coefficients",
        caption="income ~ age + educ over all runs: the spread of each coefficient and how often its 95 % interval "
        "holds the fit without noise. ε is what the noise delivers.",
        headings=(
            "rows",
            "release",
            "real ε",
            "",
            "true",
            "mean",
            "std",
            "half width of middle 68 %",
            "held",
        ),
        rows=rows,
        digits=5,
    )


def _swept(found: Readings) -> Table:
    rows: list[Row] = []
    for method in ("printed", "printed, no repair", "classical", "ours", "ours-real"):
        for c in found.coefficients:
            kept = found.simulated[method][c]
            quantiles = [float(np.quantile(kept["coefficient"], q)) for q in (0.70, 0.73, 0.76, 0.80)]
            beta = kept["beta"]
            rows.append(
                [
                    method,
                    c,
                    float(beta.mean()),
                    float(np.median(beta)),
                    float(np.quantile(beta, 0.95)),
                    *quantiles,
                    float(np.quantile(kept["s2"], 0.95)),
                ]
            )
    return Table(
        name="simulated",
        caption="Figures 11 to 17 in numbers. ours-real is privcov at the ε that the printed σ delivers on five "
        "attributes.",
        headings=(
            "release",
            "C",
            "mean β distance",
            "median",
            "95 %",
            "C: 70 %",
            "73 %",
            "76 %",
            "80 %",
            "s² 95 %",
        ),
        rows=rows,
    )


def _repairs(found: Readings) -> Table:
    rows: list[Row] = []
    for table in ("pums", "simulated"):
        for cell in found.repaired(table):
            for repair in REPAIRS:
                made = cell["measured"][repair]
                known = [np.inf if c is None else c for c in made["condition"]]
                condition = float(np.median(known))
                rows.append(
                    [
                        table,
                        cell["epsilon"],
                        cell["negative"] / cell["runs"],
                        repair,
                        float(np.mean(made["error"])),
                        float(np.median(made["beta"])),
                        float(np.quantile(made["beta"], 0.95)),
                        condition if np.isfinite(condition) else None,
                    ]
                )
    return Table(
        name="repairs",
        caption="Repairs on the same releases: share of matrices with a negative eigenvalue, mean relative Frobenius "
        "error, β distance in [−1, 1] units, median condition number (blank: singular).",
        headings=("table", "ε", "negative", "repair", "error", "median β", "95 % β", "condition"),
        rows=rows,
    )
