"""Moments of a table that is public anyway, to plan with: last year's published sample, a synthetic file.

The only place where planning meets a file of rows; the user declares it public, and it is never the table that
will be released.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privcov.errors import InputError
from privcov.planning.moments import PublicMoments
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.recovery import recovery
from privcov.summing.sum import sum_rows
from privcov.table import open_table


def surrogate(data: Any, *, schema: Schema) -> PublicMoments:
    """Return the moments of a public table, to plan with.

    The table must be public anyway: last year's published sample, or an invented one. Never give the table
    that will be released: nothing is paid, and what comes back is not private.

    Parameters
    ----------
    data : array, frame, table, path, or list of paths
        The public rows, in original units, in any form that ``release`` reads.
    schema : Schema
        The columns with their public bounds.

    Returns
    -------
    PublicMoments
        E[zzᵀ] of the scaled rows z, for ``plan``, ``accuracy`` and ``required_loss``.

    Raises
    ------
    InputError
        The table has no rows (E108) or cannot be read with this schema (E1xx).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> pc.surrogate(np.array([[50.0], [100.0]]), schema=schema).matrix.round(4).tolist()
    [[1.0, 0.5], [0.5, 0.5]]
    """
    grid = Grid.of(schema)
    gram = sum_rows(open_table(data, schema), schema, grid)
    if gram.rows == 0:
        raise InputError("E108", "the surrogate table has no rows.")
    matrix = np.zeros((grid.dimension, grid.dimension))
    scale = float(grid.unit) / gram.rows
    # Public by the user's word, so opening the sum reveals nothing that was not known.
    matrix[np.triu_indices(grid.dimension)] = [int(value) * scale for value in gram.reveal_to_mechanism()]
    matrix += np.triu(matrix, 1).T
    if schema.weight is not None:  # per row of the largest weight, as plans count
        matrix /= max(matrix[0, 0], 1e-6)
    if (back := recovery(schema)) is not None:
        matrix = back.seen(matrix)
    return PublicMoments(schema=schema, matrix=matrix, columns=frozenset(c.name for c in schema.columns))
