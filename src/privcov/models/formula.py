"""Model formulas, ``income ~ age + educ``, read against the public schema of a release.

Terms are declared columns joined by ``+`` and taken away by ``-``; ``.`` stands for every column but the
target; ``- 1`` or ``+ 0`` leaves the intercept out. A name with odd characters goes between backquotes. What a
second-moment matrix cannot answer is refused with the reason: products of columns and functions of columns
would need moments that were never released.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from privcov.errors import ParameterError
from privcov.schema import Categorical, Schema

_LONGEST = 20_000
_TOKEN = re.compile(r"\s*(?:`(?P<quoted>[^`]*)`|(?P<word>[A-Za-z0-9_.\-]+)|(?P<mark>\S))")
_EXAMPLE = 'Write a formula such as "income ~ age + educ".'


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A target, the columns that explain it in order, and whether there is an intercept.

    >>> schema = Schema.from_dict({"columns": {n: {"lower": 0, "upper": 1} for n in ("age", "educ", "income")}})
    >>> Formula.parse("income ~ . - 1", schema)
    Formula(target='income', terms=('age', 'educ'), intercept=False)
    >>> print(Formula.parse("income~educ", schema))
    income ~ educ
    """

    target: str
    terms: tuple[str, ...]
    intercept: bool

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Formula:
        """The formula, or a ``ParameterError`` that says what is wrong with it."""
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise _malformed("a formula is a text", f"{type(text).__name__}")
        if text.count("~") != 1:
            raise _malformed("a formula has one ~ between target and terms", repr(text))
        left, right = text.split("~")
        names = [column.name for column in schema.columns]
        target = _target(left, names, schema)
        names = _terms(schema)
        terms: list[str] = []
        intercept = True
        for sign, word in _signed(_tokens(right, names), text):
            if word in ("0", "1") and word not in names:
                intercept = (word == "1") == (sign == "+")
            elif word == "." and "." not in names:
                if sign == "-":
                    raise _malformed("'.' cannot be taken away", repr(text))
                own = (target, f"{target}[missing]")
                terms += [name for name in names if name not in own and name not in terms]
            elif word not in names:
                raise _unknown(word, names)
            elif word == target:
                raise ParameterError(
                    "E234", f"the target {word} is also a term.", "Take it out of the right side."
                )
            elif (sign == "+") == (word in terms):
                done = "appears twice" if sign == "+" else "is taken away but was never there"
                raise ParameterError("E235", f"the term {word} {done}.", "Name every term once.")
            elif sign == "+":
                terms.append(word)
            else:
                terms.remove(word)
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
        places: list[int] = []
        whole = not self.intercept
        for term in self.terms:
            found = [
                place
                for place, feature in enumerate(schema.features)
                if term == (feature.column if feature.column in levelled else feature.name)
            ]
            if term in levelled:
                found = found if whole else found[1:]
                whole = False
            places += found
        return tuple(places)

    def __str__(self) -> str:
        terms = " + ".join(f"`{term}`" if "[" in term else term for term in self.terms) or "1"
        return f"{self.target} ~ {terms}" + ("" if self.intercept else " - 1")


def _terms(schema: Schema) -> list[str]:
    """What may stand on the right: columns, and the indicators of missing numbers, such as ``age[missing]``."""
    indicators = {schema.features[place].column for place in schema.number_indicators}
    names = [column.name for column in schema.columns]
    return [term for name in names for term in (name, *([f"{name}[missing]"] if name in indicators else []))]


def _target(left: str, names: list[str], schema: Schema) -> str:
    words = _tokens(left, names)
    if len(words) != 1 or words[0] in ("+", "-"):
        raise _malformed("the left side of ~ is one column", repr(left.strip()))
    (target,) = words
    if target not in names:
        raise _unknown(target, names)
    if any(column.name == target and isinstance(column, Categorical) for column in schema.columns):
        raise ParameterError(
            "E234",
            f"the target {target} is categorical.",
            "Choose a numeric column; a yes or no can be 0 or 1.",
        )
    return target


def _tokens(text: str, names: list[str]) -> list[str]:
    """Names, digits and signs; a mark that no second moment can answer is refused here."""
    found: list[str] = []
    for match in _TOKEN.finditer(text.rstrip()):
        word, mark = match["word"], match["mark"]
        if match["quoted"] is not None:
            found.append(match["quoted"])
        elif word is not None:
            found += _split(word, names)
        elif mark in ":*^%":
            raise ParameterError(
                "E232",
                f"interactions ({mark}) need products of columns, which a second-moment matrix does not hold.",
                "Declare the product as a column of its own and release again.",
            )
        elif mark == "+":
            found.append(mark)
        else:
            raise ParameterError(
                "E233",
                f"functions and other operators are not read in a formula, got {mark!r}.",
                "Declare the transformed value as a column of its own and release again.",
            )
    return found


def _split(word: str, names: list[str]) -> list[str]:
    """A run of name characters: a column, or columns and digits with minus signs between them."""
    if word in names or "-" not in word:
        return [word]
    for place in [i for i, letter in enumerate(word) if letter == "-"][::-1]:  # the longest name first
        head, tail = word[:place], word[place + 1 :]
        if not head or head in names or head in (".", "0", "1"):
            return [*([head] if head else []), "-", *(_split(tail, names) if tail else [])]
    return [word]


def _signed(words: list[str], text: str) -> list[tuple[str, str]]:
    """Each word with its sign; two words in a row, or two signs, are no formula."""
    if words and words[0] not in ("+", "-"):
        words = ["+", *words]
    signs, items = words[::2], words[1::2]
    fine = len(signs) == len(items) and all(s in ("+", "-") for s in signs)
    if not items or not fine or any(item in ("+", "-") for item in items):
        raise _malformed("terms are joined by single + or - signs", repr(text))
    return list(zip(signs, items, strict=True))


def _malformed(rule: str, given: str) -> ParameterError:
    return ParameterError("E230", f"{rule}, got {given[:200]}.", _EXAMPLE)


def _unknown(word: str, names: list[str]) -> ParameterError:
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return ParameterError("E231", f"there is no column {word[:64]!r} in this release.", f"It has {shown}.")
