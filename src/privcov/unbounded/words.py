"""An estimate in plain words: the numbers, what each round cost, and the promise."""

from __future__ import annotations

from textwrap import fill

import numpy as np

from privcov.privacy import display
from privcov.releases.certificate import proof_address
from privcov.report.tables import matrix, table
from privcov.text.aligning import cut
from privcov.unbounded.estimate import GaussianEstimate


def as_text(estimate: GaussianEstimate) -> str:
    """Means and standard deviations, correlations, the budget, and what is promised of them."""
    names = estimate.columns
    stds = np.sqrt(np.diag(estimate.covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = estimate.covariance / np.outer(stds, stds)
    means = [None] * len(names) if estimate.mean is None else estimate.mean.tolist()
    rows = [
        [cut(name), "–" if mean is None else f"{mean:.6g}", f"{std:.6g}"]
        for name, mean, std in zip(names, means, stds, strict=True)
    ]
    return "\n".join(
        [
            f"Estimate of {len(names)} columns (original units)",
            "",
            table(["", "mean", "std. deviation"], rows),
            "",
            "Correlation",
            "",
            matrix(names, correlation),
            "",
            *(fill(line, width=100, subsequent_indent="  ") for line in promised(estimate)),
        ]
    )


def promised(estimate: GaussianEstimate) -> list[str]:
    """What is promised of an estimate, what it rests on, what it cost; a sentence each."""
    made = estimate.certificate
    facts = ", ".join(f"{name} = {value}" for name, value in made.options.items())
    spent = ", ".join(f"{step} {display(rho)}" for step, rho in made.budget)
    return [
        f"The promise: {made.loss}, for every table of {made.rows} rows; the number of rows is public.",
        f"Mechanism: {made.mechanism}.",
        f"Proof: {proof_address(made.proof, made.version)}.",
        f"Public facts it uses: {facts}.",
        f"Cost of each round, in rho: {spent}.",
        "Its accuracy depends on how Gaussian the rows are and on the public facts; this file cannot state it.",
    ]
