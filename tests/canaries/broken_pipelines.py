"""Ways from a table to a release that are broken on purpose, one fault each. An audit must fail them."""

from __future__ import annotations

import sys

import numpy as np

import privcov as pc
from privcov.noise.randomness import kernel, rehearsal
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram


def without_clipping(table, *, schema, loss, mechanism):
    """Cells are put on the grid, and rows stay as long as they are."""
    grid = Grid.of(schema)
    rows = np.rint(np.clip(np.nan_to_num(table), -1e3, 1e3) * 2.0**grid.exponent)
    gram = Gram(grid)
    gram.add(rows)
    return tuple(mechanism.draw(loss=loss, grid=grid, randomness=kernel()).answer(gram))


def bounds_from_data(table, *, schema, loss, mechanism):
    """The bounds are the largest finite values of the table."""
    finite = np.where(np.isfinite(table), table, 0)
    bound = float(np.clip(np.abs(finite).max(), 1e-9, 1e300))
    columns = {column.name: {"lower": -bound, "upper": bound} for column in schema.columns}
    fitted = pc.Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": "0.7"})
    return pc.release(table, schema=fitted, loss=loss, mechanism=mechanism)


def standardised(table, *, schema, loss, mechanism):
    """Columns are divided by their own standard deviation."""
    finite = np.clip(np.where(np.isfinite(table), table, 0), -10, 10)
    scaled = finite / np.maximum(finite.std(axis=0), 1e-9)
    return pc.release(scaled / 4, schema=schema, loss=loss, mechanism=mechanism)


def weights_by_the_table(table, *, schema, loss, mechanism):
    """Weights, the last column, are measured in the largest of the table."""
    weights = np.clip(np.nan_to_num(table[:, -1], posinf=1e300), 0, 1e300)
    scaled = np.column_stack([table[:, :-1], weights / max(weights.max(), 1e-300) * schema.largest_weight])
    return pc.release(scaled, schema=schema, loss=loss, mechanism=mechanism)


def gaps_dropped(table, *, schema, loss, mechanism):
    """Rows with a missing cell are left out, and the count follows."""
    return pc.release(table[np.isfinite(table).all(axis=1)], schema=schema, loss=loss, mechanism=mechanism)


def telling_error(table, *, schema, loss, mechanism):
    """A row that is too long is refused, with its norm in the message."""
    longest = np.linalg.norm(np.nan_to_num(table, posinf=9, neginf=9), axis=1).max()
    if longest > 100:
        raise ValueError(f"a row has norm {longest:g}")
    return pc.release(table, schema=schema, loss=loss, mechanism=mechanism)


def telling_note(table, *, schema, loss, mechanism):
    """How many rows were clipped goes to the terminal."""
    print((np.abs(np.nan_to_num(table)) > 1).any(axis=1).sum(), "rows clipped", file=sys.stderr)
    return pc.release(table, schema=schema, loss=loss, mechanism=mechanism)


def seeded(table, *, schema, loss, mechanism):
    """A generator with a seed, made anew for every release."""
    return pc.release(table, schema=schema, loss=loss, mechanism=mechanism, randomness=rehearsal(7))


_INHERITED = rehearsal(8)


def inherited(table, *, schema, loss, mechanism):
    """A user-space generator that forked children share: fine in one process, the same noise in all of them."""
    return pc.release(table, schema=schema, loss=loss, mechanism=mechanism, randomness=_INHERITED)
