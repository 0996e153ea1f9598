"""What the paper promises, held against what its noise does."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import wishart

from privcov.accounting import gaussian_delta
from privcov_lab.experiments.withdrawn_wishart import WITHDRAWN
from privcov_lab.reproduce.papers.imtiaz2016.methods import DELTA
from privcov_lab.reproduce.papers.imtiaz2016.reading import NAMES
from privcov_lab.reproduce.study import Claim, Results


def row_price(mu: float, epsilon: float) -> float:
    """The δ that noise of this μ has at ε."""
    return float(gaussian_delta(mu=mu, epsilon=epsilon))


def worst_power_mu(*, dimension: int, iterations: int, epsilon: float) -> float:
    """The μ of the published power method at k = 1 on copies of one row of equal entries.

    ε·√(d(L − 1)/(4L·ln(1/δ))): docs/refuted/power-method-adjacency.md.
    """
    steps = (iterations - 1) / iterations  # the first basis is random, and asks little of that row
    return epsilon * math.sqrt(steps * dimension / (4 * math.log(1 / float(DELTA))))


def withdrawn(results: Results) -> Claim:
    lines = results.of("betrayed")
    told = "; ".join(
        f"ε = {x['epsilon']:g}: {x['betrayed']} of {x['draws']} ({1 - math.exp(-x['epsilon']):.1%} predicted)"
        for x in lines
    )
    return Claim(
        where="Theorem 1",
        says=f"Adding ZZᵀ to the second moment, {WITHDRAWN}, is ε-differentially private.",
        measured=f"Releases that the neighbouring table cannot produce: {told}.",
        verdict="withdrawn" if any(x["betrayed"] for x in lines) else "agrees",
        note="The neighbour has a row of norm 1 where this table has a row of zeros. "
        "The author withdrew the theorem in 2017.",
    )


def norm(results: Results) -> Claim:
    lines = results.of("betrayed")
    logs = np.log([[x["epsilon"], x["norm"]] for x in lines])
    slope = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    constants = [x["norm"] * x["epsilon"] / x["dimension"] for x in lines]
    return Claim(
        where="Theorem 2",
        says=f"The noise of {WITHDRAWN} moves the spectrum by about d/(4ε²).",
        measured=f"The spectral norm of the noise falls as ε^{slope:.2f} and is "
        f"{min(constants):.2f} to {max(constants):.2f} times d/ε.",
        verdict="agrees" if abs(slope + 2) < 0.2 else "not reproduced",
        note="Theory gives 2d/ε, which exceeds every multiple of d/(4ε²) once ε is large.",
    )


def retraction() -> Claim:
    d = 3
    law = wishart(df=d + 1, scale=np.eye(d) / 2)
    drop = float(law.logpdf(1e-9 * np.eye(d)) - law.logpdf(1e-6 * np.eye(d)))
    vanishes = drop < -1
    return Claim(
        where="Note of December 2017",
        says=f"Wishart noise as of {WITHDRAWN} cannot be ε-private, because its density is zero at the zero matrix.",
        measured=f"At d = {d} and ε = 1 the log density of SN's noise moves by {drop:.0e} from 10⁻⁶·I to 10⁻⁹·I: "
        + ("it vanishes." if vanishes else "it does not vanish."),
        verdict="agrees" if vanishes else "agrees in part",
        note="The conclusion is right. With d + 1 degrees of freedom the density is e^(−ε tr) up to the zero matrix; "
        "the reason is that neighbouring tables give releases of different supports.",
    )


def power_promise(results: Results) -> Claim:
    told, worst, kept = [], [], True
    for x in results.of("priced"):
        here = row_price(max(x["mu"]), x["epsilon"])
        kept = kept and here <= float(DELTA)
        mu = worst_power_mu(dimension=x["dimension"], iterations=x["iterations"], epsilon=x["epsilon"])
        worst.append(row_price(mu, x["epsilon"]))
        told.append(
            f"{NAMES[x['dataset']]}, ε = {x['epsilon']:g}: δ = {here:.1e} in these runs, "
            f"{worst[-1]:.1e} at k = 1 on a table as wide of equal rows"
        )
    return Claim(
        where="Section 3, the noise of PPM",
        says="χ = √(4kL·ln(1/δ))/ε gives (ε, δ)-privacy for tables that differ in a row.",
        measured=f"What a row in or out costs where δ = {float(DELTA):.0e} is claimed. {'; '.join(told)}.",
        verdict="refuted" if max(worst) > float(DELTA) else "agrees",
        note="The noise is for tables that differ in one entry"
        + (
            "; these runs keep within δ all the same, as χ has a factor k that a person does not need. "
            if kept
            else ". "
        )
        + "L is read off the data, which no δ pays for.",
    )
