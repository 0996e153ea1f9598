"""Linear hypotheses as people write them: ``age = educ``, ``2*age - educ = 0.5``, a name alone for zero.

A small grammar and nothing else: names of coefficients, numbers in front of them with ``*``, plus, minus, and one
equals sign; commas between hypotheses. Of the names of coefficients that could begin at one place the longest is read,
whatever signs it has, as in formulas. A name may stand in backticks, and a level between quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from privcov.errors import ParameterError
from privcov.schema.names import QUOTED, unquoted
from privcov.text.grammar import brief

_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+")
_QUOTED = re.compile(rf"({QUOTED})(\[[^\]]*\])?")
_BARE = re.compile(r"[^\s+\-*=,`\[]+(?:\[[^\]]*\])?")
_LEVEL = re.compile(r"\[\s*([\"'`])(.*)\1\s*\]\Z", re.DOTALL)
_ENDS = re.compile(r"[\s+\-*=,]|\Z")
_SIGNS = "+-*=,"


class _Token(NamedTuple):
    """A sign, a number or a name, and the place where it begins."""

    kind: str
    text: str
    start: int


def hypothesis(text: str, names: Sequence[str]) -> tuple[dict[str, float], float]:
    """The weight of each coefficient, and what their sum is if the hypothesis holds.

    ``names`` are the coefficients. A text that is one of them is that coefficient.

    >>> hypothesis("2*age - educ = 0.5", ["(Intercept)", "age", "educ"])
    ({'age': 2.0, 'educ': -1.0}, 0.5)
    >>> hypothesis("sex[M] = `a=b`", ["(Intercept)", "a=b", "sex[M]"])
    ({'sex[M]': 1.0, 'a=b': -1.0}, 0.0)
    """
    tokens = list(_tokens(text, names))
    equals = [place for place, token in enumerate(tokens) if token.kind == "="]
    if len(equals) > 1:
        raise _unreadable(text)
    left = tokens[: equals[0]] if equals else tokens
    weights, value = _side(left, text)
    if equals:
        others, constant = _side(tokens[equals[0] + 1 :], text)
        for name, weight in others.items():
            weights[name] = weights.get(name, 0.0) - weight
        value = constant - value
    elif value:
        raise _unreadable(text)
    return weights, value + 0.0


def says_a_value(text: str, names: Sequence[str]) -> bool:
    """Whether a hypothesis has an equals sign, which is not part of a name.

    >>> says_a_value("age = 1", ["age"]), says_a_value("`a=b`", ["a=b"])
    (True, False)
    """
    return any(token.kind == "=" for token in _tokens(text, names))


def hypotheses(text: str, names: Sequence[str]) -> list[str]:
    """The hypotheses of a text with commas between them.

    >>> hypotheses("age = 0, sex[a, b] = 1", ["age", "sex[a, b]"])
    ['age = 0', 'sex[a, b] = 1']
    """
    starts = [token.start for token in _tokens(text, names) if token.kind == ","]
    ends = [*starts, len(text)]
    return [
        text[start:end].strip() for start, end in zip([0, *(one + 1 for one in starts)], ends, strict=True)
    ]


def _tokens(text: str, names: Sequence[str]) -> Iterator[_Token]:
    """The signs, numbers and names of a text."""
    if text in names:
        yield _Token("name", text, 0)
        return
    longest, at = sorted(names, key=len, reverse=True), 0
    while at < len(text):
        letter, start = text[at], at
        if letter.isspace():
            at += 1
        elif name := next(
            (one for one in longest if text.startswith(one, at) and _is_all(one, text, at)), ""
        ):
            at += len(name)
            yield _Token("name", name, start)
        elif letter in _SIGNS:
            at += 1
            yield _Token(letter, letter, start)
        elif (found := _NUMBER.match(text, at)) is not None and _ENDS.match(text, found.end()) is not None:
            at = found.end()
            yield _Token("number", found[0], start)
        elif (found := _QUOTED.match(text, at)) is not None:
            at = found.end()
            yield _Token("name", unquoted(found[1]) + _bare_level(found[2] or ""), start)
        elif (found := _BARE.match(text, at)) is not None:
            at = found.end()
            base, bracket, level = found[0].partition("[")
            yield _Token("name", base + _bare_level(bracket + level), start)
        else:
            raise _unreadable(text)


def _is_all(name: str, text: str, at: int) -> bool:
    """Whether a name ends where it could, and is no number that multiplies what follows."""
    end = at + len(name)
    rest = text[end:].lstrip()
    return _ENDS.match(text, end) is not None and not (rest[:1] == "*" and _NUMBER.fullmatch(name))


def _bare_level(bracket: str) -> str:
    """A level between brackets without the quotes that formulas put around it."""
    found = _LEVEL.match(bracket)
    return bracket if found is None else f"[{found[2]}]"


def _side(tokens: Sequence[_Token], text: str) -> tuple[dict[str, float], float]:
    """The weights and the constant of one side of the equals sign."""
    weights: dict[str, float] = {}
    constant, rest = 0.0, list(tokens)
    while rest:
        size = 1.0
        if rest[0].kind in "+-":
            size = -1.0 if rest.pop(0).kind == "-" else 1.0
        elif len(rest) < len(tokens):
            raise _unreadable(text)
        if [token.kind for token in rest[:2]] == ["number", "*"]:
            size *= float(rest[0].text)
            if [token.kind for token in rest[2:3]] != ["name"]:
                raise _unreadable(text)
            rest = rest[2:]
        if not rest or rest[0].kind not in ("number", "name"):
            raise _unreadable(text)
        token = rest.pop(0)
        if token.kind == "number":
            constant += size * float(token.text)
        else:
            weights[token.text] = weights.get(token.text, 0.0) + size
    if not tokens or not all(map(math.isfinite, (constant, *weights.values()))):
        raise _unreadable(text)
    return weights, constant


def _unreadable(text: str) -> ParameterError:
    return ParameterError(
        "E239",
        f"{brief(text)} is not a hypothesis about coefficients.",
        'Write it as "age = 0", "age - educ = 0.5" or "2*age = educ"; put backticks around a name with signs in it.',
    )
