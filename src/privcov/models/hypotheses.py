"""Linear hypotheses as people write them: ``age = educ``, ``2*age - educ = 0.5``, a name alone for zero.

A small grammar and nothing else: names of coefficients, numbers in front of them with ``*``, plus, minus, and one
equals sign. Names with signs in them stand in backticks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from privcov.errors import ParameterError
from privcov.text.grammar import brief

_NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+"
_NAME = r"`[^`]+`(?:\[[^\]]*\])?|\([^()]*\)|[^\s+\-*=,`\[]+(?:\[[^\]]*\])?"
_TERM = re.compile(rf"\s*(?P<sign>[+-])?\s*(?:(?P<weight>{_NUMBER})\s*\*\s*)?(?P<word>{_NAME})\s*")
_COMMA = re.compile(r",(?![^\[]*\])")


def hypothesis(text: str, names: Sequence[str]) -> tuple[dict[str, float], float]:
    """The weight of each coefficient, and what their sum is if the hypothesis holds.

    ``names`` are the coefficients. A text that is one of them is that coefficient, whatever signs it has.

    >>> hypothesis("2*age - educ = 0.5", ["(Intercept)", "age", "educ"])
    ({'age': 2.0, 'educ': -1.0}, 0.5)
    >>> hypothesis("sex[M] = age", ["(Intercept)", "age", "sex[M]"])
    ({'sex[M]': 1.0, 'age': -1.0}, 0.0)
    """
    if text in names:
        return {text: 1.0}, 0.0
    left, equals, right = text.partition("=")
    weights, value = _side(left, text, names)
    if equals:
        others, constant = _side(right, text, names)
        for name, weight in others.items():
            weights[name] = weights.get(name, 0.0) - weight
        value = constant - value
    elif value:
        raise _unreadable(text)
    return weights, value + 0.0


def hypotheses(text: str, names: Sequence[str]) -> list[str]:
    """The hypotheses of a text with commas between them.

    >>> hypotheses("age = 0, sex[a, b] = 1", ["age", "sex[a, b]"])
    ['age = 0', 'sex[a, b] = 1']
    """
    return [text] if text in names else [part.strip() for part in _COMMA.split(text)]


def _side(side: str, text: str, names: Sequence[str]) -> tuple[dict[str, float], float]:
    """The weights and the constant of one side of the equals sign."""
    weights: dict[str, float] = {}
    constant, at, side = 0.0, 0, side.strip()
    while at < len(side):
        found = _TERM.match(side, at)
        if found is None or (at and found["sign"] is None):
            raise _unreadable(text)
        at, word = found.end(), found["word"]
        size = (-1.0 if found["sign"] == "-" else 1.0) * float(found["weight"] or 1)
        name = word.replace("`", "") if "`" in word else word
        if found["weight"] is None and name not in names and re.fullmatch(_NUMBER, word):
            constant += size * float(word)
        else:
            weights[name] = weights.get(name, 0.0) + size
    if not side or not all(map(math.isfinite, (constant, *weights.values()))):
        raise _unreadable(text)
    return weights, constant


def _unreadable(text: str) -> ParameterError:
    return ParameterError(
        "E239",
        f"{brief(text)} is not a hypothesis about coefficients.",
        'Write it as "age = 0", "age - educ = 0.5" or "2*age = educ"; put backticks around a name with signs in it.',
    )
