"""The options for a privacy loss (``--epsilon``, ``--delta``, ``--rho``, ``--neighbours``), shared by many commands."""

from __future__ import annotations

import click

from privcov.cli.output import all_of, note
from privcov.errors import ParameterError
from privcov.privacy import EPSILON_POLICY_CAP, ZCDP, ApproxDP, Loss, Neighbours, PureDP, check_policy

loss_options = all_of(
    click.option(
        "--epsilon",
        help="The epsilon, a number above 0: pure privacy, or with --delta (epsilon, delta).  [no default]",
    ),
    click.option(
        "--delta",
        help="With --epsilon: the probability, between 0 and 1, that the promise may fail.  [default: none]",
    ),
    click.option(
        "--rho",
        help="In place of --epsilon: the rho of zero-concentrated privacy, above 0.  [no default]",
    ),
    click.option(
        "--neighbours",
        help="How neighbouring tables differ: replace-one, in the data of one person; add-remove, by one "
        "person more or less.  [default: replace-one]",
    ),
    click.option(
        "--i-understand",
        "understood",
        is_flag=True,
        help=f"Allow epsilon above {EPSILON_POLICY_CAP}.",
    ),
)
"""``--epsilon``, ``--delta``, ``--rho``, ``--neighbours``, ``--i-understand``."""


def default_neighbours(rows_per_person: int) -> str:
    """replace-one, and a note of what it means for the number of rows."""
    public = Neighbours.REPLACE_ONE.count_is_public(rows_per_person)
    what = "public" if public else f"private, because a person may have up to {rows_per_person}"
    note(f"neighbours: replace-one (the default), so the number of rows is {what}.")
    return Neighbours.REPLACE_ONE


def as_loss(
    *,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    neighbours: str | None,
    understood: bool,
    rows_per_person: int = 1,
) -> Loss:
    """The loss these options mean; the default relation is announced, never silent."""
    if neighbours is None:
        neighbours = default_neighbours(rows_per_person)
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ParameterError("E204", "rho and epsilon were both given.", "Give one of them.")
        return ZCDP(rho=rho, neighbours=neighbours)
    if epsilon is None:
        raise ParameterError(
            "E201", "no epsilon was given.", "Give --epsilon, or --rho. There is no default."
        )
    loss: PureDP | ApproxDP = (
        PureDP(epsilon=epsilon, neighbours=neighbours)
        if delta is None
        else ApproxDP(epsilon=epsilon, delta=delta, neighbours=neighbours)
    )
    if not understood:
        check_policy(loss, ", or add --i-understand.")
    return loss
