"""Constructor arguments into privcov's values: a loss, and columns with public bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from privcov.errors import ParameterError
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, Neighbours, PureDP
from privcov.schema import Column, Numeric


def loss_of(
    *,
    epsilon: Amount | None,
    delta: Amount | None,
    rho: Amount | None,
    neighbours: Neighbours | str | None,
) -> Loss:
    """The one loss that the given numbers name: epsilon; epsilon and delta; or rho.

    >>> print(loss_of(epsilon=1, delta=None, rho=None, neighbours="replace-one"))
    pure differential privacy, epsilon = 1, replace-one
    """
    words = Neighbours.parse(neighbours)
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho=rho, neighbours=words)
    if epsilon is not None and rho is None:
        if delta is None:
            return PureDP(epsilon=epsilon, neighbours=words)
        return ApproxDP(epsilon=epsilon, delta=delta, neighbours=words)
    raise ParameterError(
        "E262",
        f"epsilon={epsilon}, delta={delta}, rho={rho} do not define a privacy loss.",
        "Give epsilon, or epsilon and delta, or rho alone. There is no default.",
    )


def columns_of(word: str, bounds: Any, names: list[str]) -> list[Column]:
    """One numeric column per name from ``(lower, upper)``, each one number or one number per column.

    >>> [(c.name, c.lower, c.upper) for c in columns_of("bounds", (0, [1, 2]), ["x0", "x1"])]
    [('x0', 0.0, 1.0), ('x1', 0.0, 2.0)]
    """
    if bounds is None:
        raise ParameterError(
            "E260",
            f"{word} was not given.",
            f"Give {word}=(lower, upper) from public knowledge, never from the data.",
        )
    try:
        lower, upper = bounds
        ends = [np.broadcast_to(np.asarray(end, dtype=np.float64), len(names)) for end in (lower, upper)]
    except (TypeError, ValueError):
        raise ParameterError(
            "E260",
            f"{word} must be a pair (lower, upper) of numbers, or of lists of {len(names)} numbers.",
            "A list holds one number per column, in the order of the columns.",
        ) from None
    pairs = zip(names, ends[0].tolist(), ends[1].tolist(), strict=True)
    return [Numeric(name=name, lower=low, upper=high) for name, low, high in pairs]
