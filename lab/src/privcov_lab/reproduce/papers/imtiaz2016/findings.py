"""Figures 1 and 2 and table 1 of the paper from the measured cells, and what its guarantees are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privcov.accounting import gaussian_delta
from privcov_lab.experiments.withdrawn_wishart import WITHDRAWN
from privcov_lab.reproduce import charts
from privcov_lab.reproduce.papers.imtiaz2016.claims import PAPER_ERRORS, claims
from privcov_lab.reproduce.papers.imtiaz2016.guarantees import row_price, worst_power_mu
from privcov_lab.reproduce.papers.imtiaz2016.methods import DELTA, PROMISES, RANDOM, SWEEPS
from privcov_lab.reproduce.papers.imtiaz2016.reading import NAMES, curves, mean
from privcov_lab.reproduce.papers.imtiaz2016.tables import RANKS
from privcov_lab.reproduce.study import Figure, Findings, Results, Table

NOTES = (
    f"Not stated in the paper, and chosen here: δ ({float(DELTA):.0e}, below one over the rows of every table), "
    "every value of ε, the numbers of rows and the ε of figure 2, the ε of table 1, the synthetic covariance and "
    "means, the constant in PPM's number of iterations L (1; at most 200 are run, with the noise of all L), and "
    f"the sweeps of PPCA's sampler ({SWEEPS}; the last table shows what more of them do).",
    "As in the paper, rows are centred and divided by the largest norm. Both look at the data for nothing, so no "
    "curve here, ours included, is what a release could achieve. The paper draws no MNIST figure; ours is an "
    "addition, with 5 runs in place of 10.",
    "PPCA's law can be sampled exactly for none of these tables: matrix-bingham refuses, because rejection would "
    "take too long. It is sampled by Gibbs steps, whose distance from the law nobody can bound: its curve is that "
    "of a method without a guarantee.",
    "The classifier is scikit-learn's LinearSVC (squared hinge, C = 1) on features of unit variance, in place of "
    "MATLAB's svmtrain (hinge, unit variance by default). The paper takes 5000 synthetic rows, yet learns from up "
    "to 6000 and tests on 4000; here there are as many as that needs, in equal parts from both classes. The centre, "
    "the norm and the subspace are those of the rows learned from; the classifier itself is not private.",
)


def find(results: Results) -> Findings:
    """What the cells say, whole or few."""
    return Findings(
        claims=claims(results),
        figures=[
            _figure(
                results, 1, "epsilon", "ε", "from the first ε to the last, at the paper's number of rows"
            ),
            _figure(results, 2, "rows", "rows", "as the number of rows grows, at one ε"),
        ],
        tables=[
            _classification(results),
            _captured(results, 1, "epsilon"),
            _captured(results, 2, "rows"),
            _withdrawn(results),
            _prices(results),
            _sweeps(results),
        ],
        notes=NOTES,
    )


def _figure(results: Results, number: int, along: str, axis: str, what: str) -> Figure:
    panels = []
    for dataset, lines in curves(results, number, along).items():
        x = [float(line[along]) for line in lines]
        fixed = "" if along == "epsilon" else f", ε = {lines[0]['epsilon']:g}"
        drawn = []
        for name in lines[0]["captured"]:
            made = [line["captured"][name] for line in lines]
            means = [mean(one) for one in made]
            spread = [float(np.std(one)) for one in made]
            low = [m - s for m, s in zip(means, spread, strict=True)]
            high = [m + s for m, s in zip(means, spread, strict=True)]
            drawn.append(charts.Line(name, x, means, low, high))
        panels.append(
            charts.Panel(
                title=f"{NAMES[dataset]}, k = {RANKS[dataset]}{fixed}",
                x_label=axis,
                y_label="captured variance (% of SVD)",
                lines=drawn,
                log_x=True,
            )
        )
    return Figure(
        name=f"figure{number}",
        caption=(
            f"Captured variance in percent of the best subspace, {what}; means over runs, bands of one standard "
            f"deviation. {WITHDRAWN} is not private. AG, PPM and PPCA as published; gaussian, power-method and "
            f"symmetric-wishart are ours, for a replaced row. δ = {float(DELTA):.0e} where there is one."
        ),
        draw=lambda pyplot: charts.draw(pyplot, panels),
    )


def _classification(results: Results) -> Table:
    lines = results.of("classified")
    columns = list(dict.fromkeys((line["dataset"], line["rows"]) for line in lines))
    at = {(line["epsilon"], line["dataset"], line["rows"]): line for line in lines}
    rows: list[list[str | float | None]] = []
    for name in ["SVD", *lines[0]["errors"]]:
        promise, fixed = PROMISES.get(name, "none"), name in {"SVD", RANDOM}  # these two do not depend on ε
        paper = PAPER_ERRORS.get(name)
        if paper is not None:
            rows.append([name, promise, "paper", *(paper.get(column) for column in columns)])
        for epsilon in dict.fromkeys(line["epsilon"] for line in lines):
            if fixed and epsilon != lines[0]["epsilon"]:
                continue
            found = [at[epsilon, *column] for column in columns]
            errors = [line["best"] if name == "SVD" else mean(line["errors"][name]) for line in found]
            rows.append([name, promise, "any ε" if fixed else f"ε = {epsilon:g}", *errors])
    return Table(
        name="classification",
        caption=(
            "Table 1: errors in percent on 4000 test rows, by rows learned from: the paper's, which does not state "
            f"its ε, and ours. {WITHDRAWN} is here because it was published; symmetric-wishart is its repair."
        ),
        headings=["method", "keeps", "at", *(f"{NAMES[dataset]}, {n}" for dataset, n in columns)],
        rows=rows,
        digits=3,
    )


def _captured(results: Results, number: int, along: str) -> Table:
    methods = list(results.of("captured")[0]["captured"])
    rows: list[list[str | float | None]] = [
        [
            NAMES[dataset],
            line["epsilon"],
            line["rows"],
            line["runs"],
            *(mean(line["captured"][name]) for name in methods),
        ]
        for dataset, lines in curves(results, number, along).items()
        for line in lines
    ]
    return Table(
        name=f"figure{number}",
        caption=f"Figure {number} in numbers: captured variance in percent of the best subspace, means over runs.",
        headings=["table", "ε", "rows", "runs", *methods],
        rows=rows,
        digits=3,
    )


def _withdrawn(results: Results) -> Table:
    return Table(
        name="withdrawn",
        caption="How often a release of SN (WITHDRAWN) is one that a neighbouring table can never give; of a private "
        "mechanism none is.",
        headings=["ε claimed", "columns", "releases", "betray a row", "share", "predicted, 1 − e^(−ε)"],
        rows=[
            [
                x["epsilon"],
                x["dimension"],
                x["draws"],
                x["betrayed"],
                x["betrayed"] / x["draws"],
                1 - math.exp(-x["epsilon"]),
            ]
            for x in results.of("betrayed")
        ],
    )


def _prices(results: Results) -> Table:
    rows: list[list[str | float | None]] = []
    for x in results.of("priced"):
        epsilon, d, steps = x["epsilon"], x["dimension"], x["iterations"]
        shape = f"d = {d}, L = {steps}"
        name = f"PPM, {NAMES[x['dataset']]}, k = {RANKS[x['dataset']]}, {shape}"
        rows.append([name, "a row in or out", *_price(max(x["mu"]), epsilon)])
        worst = worst_power_mu(dimension=d, iterations=steps, epsilon=epsilon)
        rows.append([f"PPM, equal rows, k = 1, {shape}", "a row in or out", *_price(worst, epsilon)])
    epsilon = 1.0
    std = math.sqrt(2 * math.log(1.25 / float(DELTA))) / epsilon
    rows.append(["AG", "a row in or out", *_price(1 / std, epsilon)])
    rows.append(["AG", "a row replaced", *_price(math.sqrt(2) / std, epsilon)])
    return Table(
        name="prices",
        caption=(
            f"What published noise is worth where ε = {epsilon:g} and δ = {float(DELTA):.0e} are claimed: sensitivity "
            "over standard deviation (μ), the exact δ at that ε, and the exact ε at that δ."
        ),
        headings=["noise", "neighbours", "μ", "δ at the claimed ε", "ε at the claimed δ"],
        rows=rows,
    )


def _price(mu: float, epsilon: float) -> tuple[float, float, float]:
    return mu, row_price(mu, epsilon), _epsilon(mu)


def _epsilon(mu: float) -> float:
    """The least ε at which noise of this μ has the claimed δ, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu=mu, epsilon=middle) > float(DELTA) else (low, middle)
    return high


def _sweeps(results: Results) -> Table:
    lines = results.of("swept")
    counts = sorted({line["sweeps"] for line in lines})
    rows: list[list[Any]] = []
    for dataset in dict.fromkeys(line["dataset"] for line in lines):
        made = {line["sweeps"]: line for line in lines if line["dataset"] == dataset}
        means = [mean(made[count]["captured"]) for count in counts]
        rows.append([NAMES[dataset], made[counts[0]]["epsilon"], *means])
    return Table(
        name="sweeps",
        caption="Captured variance of PPCA in percent of the best subspace after so many sweeps of the Gibbs sampler.",
        headings=["table", "ε", *(f"after {count}" for count in counts)],
        rows=rows,
        digits=3,
    )
