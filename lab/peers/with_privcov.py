"""privcov: ``release`` under pure ε and replace-one with the mechanism ``auto`` takes, repaired as a user sees it."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

import privcov as pc


def prepare(rows, epsilon, seed):  # type: ignore[no-untyped-def]
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(rows.shape[1])}
    schema = pc.Schema.from_dict({"intercept": False, "row_norm_bound": 1, "columns": columns})
    loss = pc.PureDP(epsilon=Decimal(str(epsilon)), neighbours="replace-one")

    def work():  # type: ignore[no-untyped-def]
        made = pc.release(rows, schema=schema, loss=loss)
        return np.asarray(made.second_moment(scaled=True))

    return work
