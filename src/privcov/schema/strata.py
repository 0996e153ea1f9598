"""Which stratum a row belongs to: a public rule about a few categorical columns of the row itself.

A stratum is one level, or one combination of levels, of columns with declared levels. A row whose cell is missing or is
none of the levels belongs to no stratum: it is read, and counted nowhere, unless a stratum for the rest is declared.
A ``fill`` of the schema gives a missing cell its level first. Proof: docs/proofs/strata.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

from privcov.errors import InputError, ParameterError
from privcov.linalg.triangle import entries, is_wide
from privcov.schema.columns import Categorical, Column
from privcov.schema.names import listed, split_names
from privcov.schema.parts import read_for
from privcov.schema.schema import Schema
from privcov.text.grammar import brief, printable

MOST_STRATA = 4_096
"""Strata of one release."""
THE_SUM = "(total)"
"""What the sum of all strata is called where strata have their names; so none of them may have it."""
MOST_ENTRIES = 2**22
"""Entries of all their matrices together: a file of some 80 megabytes."""


@dataclass(frozen=True, kw_only=True)
class Strata:
    """The strata of a table, in the order of the declared levels; of several columns, the last one runs fastest.

    Parameters
    ----------
    by : tuple of Categorical
        The columns whose levels make the strata.
    other : str, optional
        The name of a last stratum, of all rows that are in none of the others. By default such rows count nowhere.

    Raises
    ------
    InputError
        There are more than 4,096 strata (E187), or two of the same name (E188).

    Examples
    --------
    >>> from privcov.schema import Schema
    >>> from privcov.schema.strata import Strata
    >>> columns = {"age": {"lower": 0, "upper": 9}, "area": {"levels": ["s", "w"]}, "sex": {"levels": ["F", "M"]}}
    >>> strata, rest = Strata.of(Schema.from_dict({"columns": columns}), by=["area", "sex"], other="elsewhere")
    >>> strata.names, [column.name for column in rest.columns]
    (('s,F', 's,M', 'w,F', 'w,M', 'elsewhere'), ['age'])
    >>> strata.place("w,F"), strata.place(("w", "F")), strata.title
    (2, 2, 'area,sex')
    """

    by: tuple[Categorical, ...]
    other: str | None = None

    def __post_init__(self) -> None:
        if (count := prod(len(column.levels) for column in self.by)) > MOST_STRATA:
            raise InputError(
                "E187",
                f"the levels of {self.title} make {count:,} strata; at most {MOST_STRATA:,} are possible.",
                "Leave out a column, or join levels.",
            )
        if self.other is not None and not (
            isinstance(self.other, str) and 0 < len(self.other) <= 128 and printable(self.other)
        ):
            raise InputError(
                "E188", "the name of the stratum for all other rows must be a short printable text."
            )
        if any(len(name) > 400 for name in self.names):
            raise InputError(
                "E188", "the name of a stratum has more than 400 characters.", "Shorten its levels."
            )
        if THE_SUM in self.names:
            raise InputError(
                "E188",
                f"a stratum would be named {THE_SUM}, which is the sum over all strata.",
                "Rename the level, or the stratum for other rows.",
            )
        if twice := [name for name, times in Counter(self.names).items() if times > 1]:
            raise InputError(
                "E188",
                f"two strata would be named {twice[0]}.",
                "Rename a level, or the stratum for other rows.",
            )

    @classmethod
    def of(
        cls, schema: Schema, *, by: str | Sequence[str], other: str | None = None
    ) -> tuple[Strata, Schema]:
        """The strata that columns of a schema make, and the schema of the columns that are left.

        ``by`` is a sequence of names, or a text of names with commas between them.
        """
        if not isinstance(by, Sequence):
            raise InputError(
                "E185", f"by must be names of columns, got {brief(by)}.", "Name a column with levels."
            )
        names = split_names(by) if isinstance(by, str) else list(by)
        declared = {column.name: column for column in schema.columns}
        hidden = {column.name for column in schema.read_columns} - set(declared)
        if unseen := [name for name in names if isinstance(name, str) and name in hidden]:
            raise InputError(
                "E186",
                f"by names {brief(unseen[0])}, which is read for derived columns alone.",
                "Derive levels from it, such as cut(year(admitted), 2022), and name these.",
            )
        for own, role in ((schema.person, "the person's id"), (schema.weight, "what rows are weighted by")):
            if own is not None and own in names:
                raise InputError(
                    "E186",
                    f"by names {brief(own)}, {role}.",
                    "Strata are made from public levels: name a column with levels.",
                )
        found = [_checked(name, declared) for name in names]
        if not found:
            raise InputError("E185", "by names no column.", "Name a column with levels.")
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise InputError("E185", f"by names the column {brief(twice[0])} twice.", "Name it once.")
        rest = tuple(column for column in schema.columns if column.name not in names)
        if not rest:
            raise InputError(
                "E189", "by names every column that could be released.", "Leave one of them out of by."
            )
        made = tuple(column for column in found if column.expression is not None)
        left = replace(schema, columns=rest, sources=read_for(schema, (*rest, *made)))
        strata = cls(by=tuple(found), other=other)
        strata.check_size(left.dimension)
        return strata, left

    def check_size(self, dimension: int) -> None:
        """Refuse matrices that are too many or too wide for one file of text."""
        if is_wide(dimension):
            raise InputError(
                "E187",
                f"a stratum has at most 1,447 columns, and these would have {dimension:,}.",
                "Leave out columns, or levels of columns.",
            )
        together = len(self.names) * entries(dimension)
        if together > MOST_ENTRIES:
            raise InputError(
                "E187",
                f"{len(self.names):,} strata of {dimension:,} columns have {together:,} entries; at most "
                f"{MOST_ENTRIES:,} are possible.",
                "Leave out columns.",
            )

    def published(self) -> Strata:
        """The part that belongs to a release: all but which values of a file mean a missing cell."""
        return replace(self, by=tuple(replace(column, missing_values=None) for column in self.by))

    @property
    def title(self) -> str:
        """The names of the columns, with commas between them."""
        return ",".join(column.name for column in self.by)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The strata: a level, or levels with commas between them; then the one for all other rows, if there is one."""
        made = product(*([str(level) for level in column.levels] for column in self.by))
        return (*(",".join(levels) for levels in made), *(() if self.other is None else (self.other,)))

    def place(self, name: str | Sequence[str]) -> int:
        """Where a stratum stands among ``names``; one that is not declared is refused (E284).

        A level that is a number may be given as one.
        """
        levels = [name] if isinstance(name, str) or not isinstance(name, Sequence) else name
        wanted = ",".join(map(str, levels))
        if wanted not in self.names:
            some = "; ".join(self.names[:8]) + ("; …" if len(self.names) > 8 else "")
            raise ParameterError("E284", f"there is no stratum {brief(wanted)}.", f"There are: {some}.")
        return self.names.index(wanted)


def _checked(name: object, declared: dict[str, Column]) -> Categorical:
    column = declared.get(name) if isinstance(name, str) else None
    if column is None:
        levels = [one.name for one in declared.values() if isinstance(one, Categorical)]
        raise InputError(
            "E185",
            f"by names {brief(name)}, which the schema does not declare.",
            f"Columns with levels: {listed(levels)}." if levels else "No column of the schema has levels.",
        )
    if not isinstance(column, Categorical):
        raise InputError(
            "E186",
            f"by names {column.name}, which is numeric and has no levels.",
            "Declare its levels, or name another column."
            if column.expression is None
            else "Derive levels instead, such as cut(age, 18, 65), or name another column.",
        )
    return column
