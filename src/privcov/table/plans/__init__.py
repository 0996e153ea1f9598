"""Which lazy tables may be read: those whose plan, a public fact, shows that no cell can stop the reading.

A lazy table computes while it is read, which is after the budget is paid. Where it parses or casts, one person's cell
can raise an error, and whether it did is then seen from outside. So a plan is walked before anything is paid, and
each step has to be on a list of those that give typed values whatever the cells hold, row by row. What is not on the
list is refused; nobody needs to know how it might fail. The walks of polars and DuckDB are files here, those of
datasets and clusters stand beside their readers; the remedy is always to compute first. Which steps are listed:
docs/explain/sharp-edges.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

from privcov.errors import InputError


class Unlisted(Exception):
    """A step that is not on the list; its text names a kind of step, never a value."""


def walked(what: str, walk: Callable[[], None], *, remedy: str) -> None:
    """Run a walk; one line where it meets a step that is not listed, or a plan that it cannot follow."""
    try:
        walk()
    except Unlisted as step:
        why = str(step)
    except Exception:  # another version of the library, or a query that the library itself refuses
        why = "a plan that cannot be followed"
    else:
        return
    raise InputError(
        "E150",
        f"{what} holds {why}: a single cell could stop the reading after the budget is paid.",
        remedy,
    )


def refuse_stream(data: Any) -> Never:
    """Refuse an Arrow stream: nobody can know what is computed while it is read."""
    raise InputError(
        "E129",
        f"a {type(data).__name__} gives its rows as a stream, so an error while reading would come after payment.",
        "Read it into memory first, by pyarrow.table(…) or its read_all(), or write it to a Parquet file.",
    )
