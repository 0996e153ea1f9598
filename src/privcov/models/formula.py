"""Model formulas, ``income ~ age + educ``, read against the public schema of a release.

Terms are declared columns joined by ``+`` and taken away by ``-``; ``.`` stands for every column but the
target; ``- 1`` or ``+ 0`` leaves the intercept out. What a second-moment matrix cannot answer is refused with the
reason: products of columns and functions of columns would need moments that were never released. ::

    formula = name "~" [sign] term {sign term}
    sign    = "+" | "-"
    term    = name | "." | "0" | "1"
    name    = quoted | run
    quoted  = "`" {any character but "`" | "``"} "`"         two backticks stand for one
    run     = letters, digits, "_", "." of any alphabet, and "-" where a declared name has it

White space between these means nothing. Of two declared names that could begin at one place, the longer is read. A
name that begins with ``-`` is always quoted. Reading takes time proportional to the length of the text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from privcov.errors import ParameterError
from privcov.schema import Categorical, Schema
from privcov.schema.names import LONGEST_NAME, QUOTED, RUN, canonical, quoted, unquoted

LONGEST_FORMULA = 20_000
"""Characters of a formula."""
_TOKEN = re.compile(rf"\s*+(?:(?P<quoted>{QUOTED})|(?P<run>{RUN})|(?P<mark>\S))")
_EXAMPLE = 'Write a formula such as "income ~ age + educ".'


class _Token(NamedTuple):
    """A name or a mark. What was quoted is a name, whatever it looks like."""

    kind: Literal["quoted", "word", "sign", "tilde"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A target, the columns that explain it in order, and whether there is an intercept.

    >>> names = ("age", "educ", "income", "größe", "net worth (USD)")
    >>> schema = Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in names}})
    >>> Formula.parse("income ~ age + educ - 1", schema)
    Formula(target='income', terms=('age', 'educ'), intercept=False)
    >>> print(Formula.parse("income~größe+`net worth (USD)`", schema))
    income ~ größe + `net worth (USD)`
    """

    target: str
    terms: tuple[str, ...]
    intercept: bool

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Formula:
        """The formula, or a ``ParameterError`` that says what is wrong with it."""
        if not isinstance(text, str):
            raise _malformed("a formula is a text", type(text).__name__)
        if len(text) > LONGEST_FORMULA:
            raise _malformed(
                f"a formula is a text of at most {LONGEST_FORMULA:,} characters", f"{len(text):,}"
            )
        columns = {column.name: column for column in schema.columns}
        tokens = list(_tokens(text, columns))
        tildes = [place for place, token in enumerate(tokens) if token.kind == "tilde"]
        if len(tildes) != 1:
            raise _malformed("a formula has one ~ between target and terms", repr(text))
        target = _target(tokens[: tildes[0]], schema, text)
        known = dict.fromkeys(_terms(schema))
        terms: dict[str, None] = {}  # in order
        intercept = True
        for sign, (kind, word) in _signed(tokens[tildes[0] + 1 :], text):
            if kind == "word" and word in ("0", "1") and word not in columns:
                intercept = (word == "1") == (sign == "+")
            elif kind == "word" and word == "." and word not in columns:
                if sign == "-":
                    raise _malformed("'.' cannot be taken away", repr(text))
                own = (target, f"{target}[missing]")
                terms |= dict.fromkeys(name for name in known if name not in own and name not in terms)
            elif word not in known:
                raise _unknown(word, schema)
            elif word == target:
                raise ParameterError(
                    "E234", f"the target {word} is also a term.", "Remove it from the right side."
                )
            elif (sign == "+") == (word in terms):
                done = "appears twice" if sign == "+" else "is taken away but was never there"
                raise ParameterError("E235", f"the term {word} {done}.", "Name every term once.")
            elif sign == "+":
                terms[word] = None
            else:
                del terms[word]
        if not terms and not intercept:
            raise _malformed("a model needs a term or an intercept", repr(text))
        return cls(target=target, terms=tuple(terms), intercept=intercept)

    def features(self, schema: Schema) -> tuple[int, ...]:
        """Places, in the matrix of the release, of the regressors without the intercept.

        A categorical term drops its first level as the baseline (treatment coding). Without an intercept the
        first categorical term keeps all its levels, later ones drop theirs, as every one kept would be
        singular. Values that are not declared levels count with the baseline. An indicator of missing cells is
        one more level of a categorical column; beside a numeric column it is a term of its own.
        """
        levelled = {column.name for column in schema.columns if isinstance(column, Categorical)}
        of_term: dict[str, list[int]] = defaultdict(list)
        for place, feature in enumerate(schema.features):
            of_term[feature.column if feature.column in levelled else feature.name].append(place)
        places: list[int] = []
        whole = not self.intercept
        for term in self.terms:
            found = of_term[term]
            if term in levelled:
                found = found if whole else found[1:]
                whole = False
            places += found
        return tuple(places)

    def __str__(self) -> str:
        terms = " + ".join(map(quoted, self.terms)) or "1"
        return f"{quoted(self.target)} ~ {terms}" + ("" if self.intercept else " - 1")


def _terms(schema: Schema) -> list[str]:
    """What may stand on the right: columns, and the indicators of missing numbers, such as ``age[missing]``."""
    indicators = {schema.features[place].column for place in schema.number_indicators}
    names = [column.name for column in schema.columns]
    return [term for name in names for term in (name, *([f"{name}[missing]"] if name in indicators else []))]


def _target(left: list[_Token], schema: Schema, text: str) -> str:
    if len(left) != 1 or left[0].kind == "sign":
        raise _malformed("the left side of ~ is one column", repr(text.partition("~")[0].strip()))
    target = left[0].text
    column = next((column for column in schema.columns if column.name == target), None)
    if column is None:
        raise _unknown(target, schema)
    if isinstance(column, Categorical):
        raise ParameterError(
            "E234",
            f"the target {target} is categorical.",
            "Choose a numeric column; a yes or no can be 0 or 1.",
        )
    return target


def _tokens(text: str, names: Collection[str]) -> Iterator[_Token]:
    """Names, digits and signs; a mark that no second moment can answer is refused here."""
    dashes = max((name.count("-") for name in names), default=0)
    for match in _TOKEN.finditer(text):
        mark = match["mark"]
        if match["quoted"] is not None:
            yield _Token("quoted", unquoted(match["quoted"]))
        elif match["run"] is not None:
            yield from _split(canonical(match["run"]), names, dashes)
        elif mark == "+":
            yield _Token("sign", mark)
        elif mark == "~":
            yield _Token("tilde", mark)
        elif mark == "`":
            raise _malformed("a backtick that opens a name is closed by another", repr(text))
        elif mark in ":*^%":
            raise ParameterError(
                "E232",
                f"interactions ({mark}) need products of columns, which a release does not hold.",
                "Declare the product as a column of its own and release again; backticks go around a name that has "
                "such a mark.",
            )
        else:
            raise ParameterError(
                "E233",
                f"functions and other operators are not supported in a formula, got {mark!r}.",
                "Declare the transformed value as a column of its own and release again; backticks go around a name "
                "that has such a mark.",
            )


def _split(run: str, names: Collection[str], dashes: int) -> Iterator[_Token]:
    """A run of name characters: a column, or columns and digits with minus signs between them.

    ``dashes`` is the most that a declared name has: no more than that are tried as part of one.
    """
    ends = [*(place for place, letter in enumerate(run) if letter == "-"), len(run)]
    start = first = 0  # of the piece that is read: its place in the run, and of the dash that ends it
    while start < len(run):
        if run[start] == "-":
            yield _Token("sign", "-")
            start, first = start + 1, first + 1
            continue
        for last in range(min(first + dashes, len(ends) - 1), first - 1, -1):  # the longest name first
            word = run[start : ends[last]]
            if len(word) <= LONGEST_NAME and (word in names or word in (".", "0", "1")):
                break
        else:
            yield _Token("word", run[start:])
            return
        yield _Token("word", word)
        start, first = ends[last], last


def _signed(tokens: list[_Token], text: str) -> Iterator[tuple[str, _Token]]:
    """Each name with its sign; two names in a row, or two signs, are no formula."""
    if tokens and tokens[0].kind != "sign":
        tokens = [_Token("sign", "+"), *tokens]
    signs, items = tokens[::2], tokens[1::2]
    fine = len(signs) == len(items) and all(sign.kind == "sign" for sign in signs)
    if not items or not fine or any(item.kind == "sign" for item in items):
        raise _malformed("terms are joined by single + or - signs", repr(text))
    return zip((sign.text for sign in signs), items, strict=True)


def _malformed(rule: str, given: str) -> ParameterError:
    return ParameterError("E230", f"{rule}, got {given[:200]}.", _EXAMPLE)


def _unknown(word: str, schema: Schema) -> ParameterError:
    shown = ", ".join(quoted(column.name) for column in schema.columns[:8])
    more = ", …" if len(schema.columns) > 8 else ""
    return ParameterError(
        "E231", f"there is no column {word[:64]!r} in this release.", f"It has {shown}{more}."
    )
