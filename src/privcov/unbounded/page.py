"""An estimate as a page, in the same hand as a release.

In plain words too: the numbers, what each round cost, and the promise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.privacy import display
from privcov.releases.certificate import proof_address
from privcov.report import tables, words
from privcov.report.drawing import heat_map, join, tag
from privcov.report.drawing.numbers import plus_minus
from privcov.report.notebook import card
from privcov.report.page import using
from privcov.report.page.elements import (
    Section,
    facts,
    figure,
    listed,
    number,
    page,
    side_by_side,
    table,
    warning,
)
from privcov.text.aligning import cut, paragraph
from privcov.unbounded.estimate import GaussianEstimate
from privcov.unbounded.expected import Margins, margins

WITHOUT = (
    "No number here has a ±: nobody knows how far it is off. With rows that are not Gaussian, or too few rounds for "
    "the largest variance, it may be off by any factor."
)
"""Beside every table of numbers; ``promised`` says what to do about it."""
WITH = (
    "± is rehearsed: estimates of as many Gaussian rows like these are no further off 95 times in 100. With rows that "
    "are not Gaussian, or too few rounds for the largest variance, these numbers may be off by any factor."
)


def html(estimate: GaussianEstimate, *, title: str | None = None, source: using.Source | None = None) -> str:
    """The whole page; what ``privcov.report.page.html`` is for a release."""
    made = estimate.certificate
    heading = title or f"A private estimate of {len(estimate.columns):,} columns"
    return page(
        sections(estimate, title=heading, source=source),
        title=heading,
        lead=f"A private estimate of mean and covariance: {made.loss}.",
        rehearsal=made.randomness == "rehearsal",
    )


def shown(estimate: GaussianEstimate) -> str:
    """What a notebook shows of an estimate."""
    heading = f"Private estimate of {len(estimate.columns):,} columns, {estimate.certificate.rows:,} rows"
    return card(heading, overview(estimate).body)


def sections(estimate: GaussianEstimate, *, title: str, source: using.Source | None) -> list[Section]:
    """Numbers, promise and budget, and how to cite, verify and use them."""
    made = estimate.certificate
    about = (
        f"Mean and covariance of {len(estimate.columns):,} columns and {made.rows:,} rows under {made.loss}, by "
        f"{made.mechanism}, made with privcov {made.version} on {made.created[:10]}"
    )
    name = "people.json" if source is None else source.name
    signer = estimate.signer
    origin = (
        "Not signed: anyone could have written this file."
        if signer is None
        else f"Signed with the key {signer.fingerprint}. Compare it with the steward's published key (privcov verify)."
    )
    read = [overview(estimate), _promise(estimate)]
    if made.randomness != "kernel":
        return [*read, using.rehearsed()]
    return [
        *read,
        using.citing(title=title, about=about, created=made.created, source=source),
        using.verifying(origin=origin, signed=signer is not None, source=source),
        using.loading(
            "from privcov.unbounded.estimate import load",
            "",
            f"estimate = load({name!r})",
            "estimate.mean, estimate.covariance",
        ),
    ]


def overview(estimate: GaussianEstimate) -> Section:
    """Means, standard deviations and correlations."""
    made, names = estimate.certificate, estimate.columns
    spreads = np.sqrt(np.diag(estimate.covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = estimate.covariance / np.outer(spreads, spreads)
    off = margins(estimate)
    rows = [[name, *cells] for name, cells in zip(names, _cells(estimate, off), strict=True)]
    known = facts(
        [
            ("Columns", f"{len(names):,}"),
            ("Rows", f"{made.rows:,}"),
            ("Promise", f"ρ = {display(made.loss.rho)} (zCDP)"),
            ("Mechanism", made.mechanism),
            ("Made", made.created.replace("T", " ").replace("Z", " UTC")),
        ]
    )
    said = "" if off is None else f"; no colour, what is within its ±. {_of_correlations(off)}"
    picture = figure(
        heat_map(
            names,
            correlation.tolist(),
            title=f"Correlation of {len(names)} columns",
            clear=None if off is None else (~_unsure(correlation, off)).tolist(),
        ),
        f"Correlation. Full colour is ±1; a stroke marks what is negative{said or '.'}",
    )
    heads = ["column", "mean", "std. dev."] if off is None else ["column", "mean", "±", "std. dev.", "±"]
    marked = [warning(words.REHEARSAL)] if made.randomness == "rehearsal" else []
    return Section(
        name="overview",
        heading="The estimate",
        body=join(
            [
                *marked,
                warning(WITHOUT if off is None else WITH),
                known,
                side_by_side(picture, table(heads, rows[:400], caption="Original units.")),
            ]
        ),
    )


def _promise(estimate: GaussianEstimate) -> Section:
    rounds = table(["round", "ρ"], [[step, display(rho)] for step, rho in estimate.certificate.budget])
    body = [listed(promised(estimate)), tag("h3", "What each round cost"), rounds]
    return Section(name="promise", heading="The promise", body=join(body))


def as_text(estimate: GaussianEstimate) -> str:
    """Means and standard deviations, correlations, the budget, and what is promised of them."""
    names = estimate.columns
    stds = np.sqrt(np.diag(estimate.covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = estimate.covariance / np.outer(stds, stds)
    off = margins(estimate)
    rows = [[cut(name), *cells] for name, cells in zip(names, _cells(estimate, off), strict=True)]
    heads = ["", "mean", "std. deviation"] if off is None else ["", "mean", "±", "std. deviation", "±"]
    unsure = None if off is None else _unsure(correlation, off)
    told = (
        "Correlation, without ±"
        if off is None
        else f"Correlation, in brackets what is within its ±. {_of_correlations(off)}"
    )
    return "\n".join(
        [
            f"Estimate of {len(names)} columns (original units)",
            "",
            *paragraph(WITHOUT if off is None else WITH, hang="").split("\n"),
            "",
            tables.table(heads, rows),
            "",
            *paragraph(told, hang="").split("\n"),
            "",
            tables.matrix(names, correlation, unsure=unsure),
            "",
            *(paragraph(line) for line in promised(estimate)),
        ]
    )


def _cells(estimate: GaussianEstimate, off: Margins | None) -> Iterator[list[str]]:
    """The mean and the standard deviation of each column, with ± where it was rehearsed."""
    stds = np.sqrt(np.diag(estimate.covariance)).tolist()
    means = [None] * len(stds) if estimate.mean is None else estimate.mean.tolist()
    for place, (mean, std) in enumerate(zip(means, stds, strict=True)):
        if off is None:
            yield [number(mean), number(std, 3)]
            continue
        on_mean = None if off.mean is None else float(off.mean[place])
        first = [number(mean), "–"] if on_mean is None else plus_minus(mean, on_mean)
        yield [*first, *plus_minus(std, float(off.std[place]))]


def _unsure(correlation: Floats, off: Margins) -> NDArray[np.bool_]:
    """Which correlations are within what they may be off by."""
    found = ~(np.abs(correlation) > off.correlation)
    np.fill_diagonal(found, False)
    return np.asarray(found)


def _of_correlations(off: Margins) -> str:
    """How far correlations may be off, from the least to the most."""
    sizes = off.correlation[np.triu_indices(len(off.correlation), 1)]
    if not len(sizes):
        return "There is one column."
    least, most = (f"{min(float(end), 2.0):.2g}" for end in (sizes.min(), sizes.max()))
    return f"Each is ±{least}." if least == most else f"They are ±{least} to ±{most}."


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
        "Its accuracy depends on how Gaussian the rows are and on the public facts; this file cannot prove it: "
        "privcov.unbounded.expected_error simulates the error for your public facts, and a release with bounds "
        "(privcov release --frame auto) has intervals.",
    ]
