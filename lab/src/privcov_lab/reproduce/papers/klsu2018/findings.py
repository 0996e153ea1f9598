"""Claims, figures, tables and what differs from the lecture, gathered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from privcov.accounting import zcdp_to_approx
from privcov.privacy import ZCDP
from privcov_lab.reproduce import charts
from privcov_lab.reproduce.papers.klsu2018 import panels
from privcov_lab.reproduce.papers.klsu2018.claims import claims
from privcov_lab.reproduce.papers.klsu2018.measuring import DIMENSION, RHO, ROUNDS
from privcov_lab.reproduce.papers.klsu2018.tables import tables
from privcov_lab.reproduce.study import Figure, Findings, Results

FIGURES = {
    "rows": (
        panels.against_rows,
        "Mahalanobis error against rows, by condition number κ; above 10⁸ it is drawn at 10⁸.",
    ),
    "condition": (
        panels.against_condition,
        "Mahalanobis error against the condition number κ, by rows; above 10⁸ it is drawn at 10⁸.",
    ),
    "price": (panels.price, "The price of privacy: error over that without privacy, and rows needed."),
    "rates": (
        panels.rates,
        "What privacy adds to the naive estimate, against each fact of Lemma 2.2 in turn.",
    ),
    "preconditioner": (
        panels.preconditioner,
        "Theorem 2.3 (κ = 1,111) and equation (1): share of tables on which the rounds did what they should.",
    ),
}


def find(results: Results) -> Findings:
    """Everything the cells say."""
    return Findings(
        claims=claims(results),
        figures=[
            Figure(name=name, caption=caption, draw=_draw(made(results)))
            for name, (made, caption) in FIGURES.items()
        ],
        tables=tables(results),
        notes=_notes(),
    )


def _draw(shown: Sequence[charts.Panel]) -> Callable[[Any], Any]:
    return partial(charts.draw, panels=shown, columns=2 if len(shown) == 4 else 3)


def _notes() -> list[str]:
    known = zcdp_to_approx(ZCDP(rho=RHO, neighbours="replace-one"), delta="0.000001")
    return [
        f"Rows are invented: N(0, Σ) with d = {DIMENSION} unless told, Σ with variances spread evenly in the logarithm "
        "from 1 to κ, which are the public bounds; the mean is known to be 0. The methods do not know one direction "
        "from another, so any Σ of this spectrum gives the same errors. Lines are medians, bands hold four fifths of "
        "the tables.",
        f"ρ = {RHO} unless told, under replace-one; that is (ε, δ) = ({float(known.epsilon):.2f}, 10⁻⁶).",
        "naive is `truncated`: rows are clipped to the radius that κ asks for, once. recursive preconditioning is "
        "`preconditioned`: the lecture's recursion with its constants (1000, 1.05, 9/10, κ/2), and with what it lacks: "
        "the standard deviation of replacement, symmetric noise, and PΣPᵀ; up to κ = 1000 it is the naive estimate. "
        f"coinpress is that of 2020 with {ROUNDS} rounds, its products in the right order. All three keep their "
        "promise on every table; `privcov proof unbounded` prints the proofs. The lecture's own noise would not, so "
        "`--as-published` leaves nothing out here.",
        "Neither the paper nor the lecture prints an experiment: the figures are ours, and what they test are rates.",
    ]
