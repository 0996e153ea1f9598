"""The language of derived columns: how ``log(income + 1)`` is read, and the one text that each expression has.

An expression is read by the parser below and by nothing else: no text of a schema is ever run as a program. ::

    expression = both {"or" both}
    both       = negated {"and" negated}
    negated    = "not" negated | comparison
    comparison = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum        = product {("+" | "-") product}
    product    = signed {("*" | "/") signed}
    signed     = ("-" | "+") signed | power
    power      = atom [("^" | "**") whole]                    a whole number from 2 to 16
    atom       = number | text | name | call | "(" expression ")"
    call       = function "(" expression {"," expression} ")"
    number     = digits with at most one point, and an exponent
    text       = "'" {any character but "'" | "''"} "'"       a date, or a level
    name       = quoted | letter {letter | digit | "_" | "."}
    quoted     = "`" {any character but "`" | "``"} "`"

White space between these means nothing. ``**`` is another way to write ``^``. A text of more than 1,000 characters, or
one in which more than 50 parts lie within each other, is refused; time and memory are proportional to its length.

>>> str(parse("Age**2-( 1+x )"))
'Age^2 - (1 + x)'
>>> same(parse("age * educ")) == same(parse("educ*age"))
True
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from privcov.errors import InputError
from privcov.schema.names import QUOTED, canonical, unquoted

LONGEST = 1_000
"""Characters of an expression."""
DEEPEST = 50
"""Parts of an expression that lie within each other."""
LARGEST_POWER = 16

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
_NAME = r"[^\W\d][\w.]*"
_PLAIN = re.compile(_NAME)
_TOKEN = re.compile(
    rf"\s*+(?:(?P<number>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)|(?P<text>'(?:[^']|'')*+')"
    rf"|(?P<quoted>{QUOTED})|(?P<name>{_NAME})|(?P<mark>\*\*|<=|>=|==|!=|\S))"
)
_INSTEAD = {
    '"': "A text goes between single quotes: sex == 'F'.",
    "=": "Two signs compare: age == 65, sex == 'F'.",
}
_WORDS = ("and", "or", "not")
_STRENGTH = {"or": 1, "and": 2, "not": 3, **dict.fromkeys(COMPARISONS, 4), "+": 5, "-": 5, "*": 6, "/": 6}
_SIGNED, _POWER, _WHOLE = 7, 8, 9


@dataclass(frozen=True)
class Node:
    """A part of an expression: what is done, with what.

    ``op`` is ``number``, ``text`` or ``column`` with a ``value``; a mark such as ``+`` or ``<=``; ``negative``;
    ``and``, ``or``, ``not``; ``^`` with a whole number as ``value``; or the name of a function.
    """

    op: str
    parts: tuple[Node, ...] = ()
    value: float | str = 0.0

    def __str__(self) -> str:
        return _written(self)[0]

    def columns(self) -> Iterator[str]:
        """The names of the columns in it, from left to right."""
        if self.op == "column":
            yield str(self.value)
        for part in self.parts:
            yield from part.columns()

    @cached_property
    def size(self) -> int:
        """The number of its parts, itself included."""
        return 1 + sum(part.size for part in self.parts)

    @cached_property
    def depth(self) -> int:
        """How many parts lie within each other."""
        return 1 + max((part.depth for part in self.parts), default=0)


@lru_cache(maxsize=2_048)
def parse(text: str, where: str = "this expression") -> Node:
    """The expression that a text is; ``InputError`` (E170, E177) where it is none. ``where`` names it in messages."""
    if len(text) > LONGEST:
        raise InputError(
            "E177",
            f"{where} has {len(text):,} characters; at most {LONGEST:,} are possible.",
            "Give parts of it names of their own under [derived].",
        )
    made = _Parser(text, where).whole()
    if len(str(made)) > LONGEST:  # with the blanks and parentheses that it is written with
        raise InputError(
            "E177",
            f"{where} has more than {LONGEST:,} characters once it is written out.",
            "Give parts of it names of their own under [derived].",
        )
    return made


def same(node: Node) -> str:
    """A text that two expressions share if one only has the terms or the factors of the other in another order.

    The i-th polynomial is the same in a basis of any size, which no spline is.

    >>> same(parse("poly(age, 2, 1)")) == same(parse("poly(age, 3, 1)")) != same(parse("poly(age, 3, 2)"))
    True
    """
    if node.op in ("+", "*"):
        return "(" + f" {node.op} ".join(sorted(same(part) for part in _chain(node, node.op))) + ")"
    if not node.parts:
        return str(node)
    if node.op == "poly" and len(node.parts) == 3:
        return f"poly({same(node.parts[0])}, {node.parts[2]})"
    value = f"{node.value:g}" if node.op == "^" else ""
    return f"{node.op}{value}({', '.join(same(part) for part in node.parts)})"


def number_text(value: float) -> str:
    """A number as it is written in an expression: the fewest digits that mean it.

    >>> number_text(18.0), number_text(0.1)
    ('18', '0.1')
    """
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def name_text(name: str) -> str:
    """A name as it is written in an expression: between backticks where it has other marks."""
    plain = _PLAIN.fullmatch(name) and name not in _WORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def _chain(node: Node, op: str) -> Iterator[Node]:
    for part in node.parts:
        yield from _chain(part, op) if part.op == op else (part,)


def _written(node: Node) -> tuple[str, int]:
    """The text of a part, and how strongly it holds together."""
    if node.op == "number":
        return number_text(float(node.value)), _SIGNED if float(node.value) < 0 else _WHOLE
    if node.op == "text":
        return "'" + str(node.value).replace("'", "''") + "'", _WHOLE
    if node.op == "column":
        return name_text(str(node.value)), _WHOLE
    if node.op == "negative":
        return "-" + _within(node.parts[0], _SIGNED), _SIGNED
    if node.op == "^":
        return f"{_within(node.parts[0], _WHOLE)}^{node.value:g}", _POWER
    if node.op == "not":
        return "not " + _within(node.parts[0], _STRENGTH["not"]), _STRENGTH["not"]
    if (strength := _STRENGTH.get(node.op)) is None:
        return f"{node.op}({', '.join(str(part) for part in node.parts)})", _WHOLE
    left, right = node.parts
    closer = strength + (node.op in COMPARISONS)
    return f"{_within(left, closer)} {node.op} {_within(right, strength + 1)}", strength


def _within(node: Node, strength: int) -> str:
    text, own = _written(node)
    return text if own >= strength else f"({text})"


class _Token(NamedTuple):
    kind: Literal["number", "text", "name", "word", "mark", "end"]
    text: str


class _Parser:
    """One pass over the text, a token at a time; each rule of the grammar is a method."""

    def __init__(self, text: str, where: str) -> None:
        self._where, self._depth, self._at = where, 0, 0
        self._tokens = list(self._read(text))

    def whole(self) -> Node:
        made = self._expression()
        if self._next.kind != "end":
            raise self._refused("an operator or the end", self._next.text)
        return made

    def _read(self, text: str) -> Iterator[_Token]:
        place = 0
        while (match := _TOKEN.match(text, place)) is not None:
            place = match.end()
            if match["number"] is not None:
                yield _Token("number", match["number"])
            elif match["text"] is not None:
                yield _Token("text", match["text"][1:-1].replace("''", "'"))
            elif match["quoted"] is not None:
                yield _Token("name", unquoted(match["quoted"]))
            elif match["name"] is not None:
                word = canonical(match["name"])
                yield _Token("word" if word in _WORDS else "name", word)
            elif match["mark"] in ("'", "`"):
                raise self._refused("a closing quote", match["mark"])
            else:
                yield _Token("mark", "^" if match["mark"] == "**" else match["mark"])
        yield _Token("end", "")

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> str | None:
        """The next token, if it is one of these words or marks."""
        token = self._next
        if token.kind not in ("word", "mark") or token.text not in texts:
            return None
        self._at += 1
        return token.text

    def _refused(self, wanted: str, found: str) -> InputError:
        shown = f"{found[:40]!r} stands" if found else "it ends"
        remedy = (
            "A name with other marks goes between backticks; docs/reference/schema-file.md has the grammar."
        )
        return InputError(
            "E170",
            f"{self._where} cannot be read: {wanted} is expected where {shown}.",
            _INSTEAD.get(found[:1], remedy),
        )

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise InputError(
                "E177",
                f"{self._where} has more than {DEEPEST} parts within each other.",
                "Give parts of it names of their own under [derived].",
            )
        made = self._joined("or", lambda: self._joined("and", self._negated))
        self._depth -= 1
        return made

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        made = part()
        while self._take(word):
            made = self._deeper(Node(word, (made, part())))
        return made

    def _deeper(self, node: Node) -> Node:
        """The node, unless a chain of operators has made it too deep for functions that call themselves."""
        if node.depth > DEEPEST:
            raise InputError(
                "E177",
                f"{self._where} joins more than {DEEPEST} parts.",
                "Give parts of it names of their own under [derived].",
            )
        return node

    def _negated(self) -> Node:
        count = 0
        while self._take("not"):
            count += 1
        made = self._comparison()
        for _ in range(count):
            made = self._deeper(Node("not", (made,)))
        return made

    def _comparison(self) -> Node:
        made = self._sum()
        if mark := self._take(*COMPARISONS):
            made = Node(mark, (made, self._sum()))
        return made

    def _sum(self) -> Node:
        made = self._product()
        while mark := self._take("+", "-"):
            made = self._deeper(Node(mark, (made, self._product())))
        return made

    def _product(self) -> Node:
        made = self._signed()
        while mark := self._take("*", "/"):
            made = self._deeper(Node(mark, (made, self._signed())))
        return made

    def _signed(self) -> Node:
        negative = False
        while mark := self._take("+", "-"):
            negative ^= mark == "-"
        made = self._power()
        if not negative:
            return made
        return Node("number", value=-float(made.value)) if made.op == "number" else Node("negative", (made,))

    def _power(self) -> Node:
        made = self._atom()
        if not self._take("^"):
            return made
        token = self._next
        if token.kind != "number" or not token.text.isdigit() or not 2 <= int(token.text) <= LARGEST_POWER:
            raise self._refused(f"a whole number from 2 to {LARGEST_POWER} behind ^", token.text)
        self._at += 1
        return Node("^", (made,), float(token.text))

    def _atom(self) -> Node:
        token = self._next
        self._at += token.kind != "end"
        if token.kind == "number":
            value = float(token.text)
            if not math.isfinite(value):
                raise self._refused("a number within the range of a double", token.text)
            return Node("number", value=value)
        if token.kind == "text":
            return Node("text", value=token.text)
        if token.kind == "name" and self._take("("):
            parts = [self._expression()]
            while self._take(","):
                parts.append(self._expression())
            self._close()
            return self._deeper(Node(token.text, tuple(parts)))
        if token.kind == "name":
            return Node("column", value=token.text)
        if token == ("mark", "("):
            made = self._expression()
            self._close()
            return made
        raise self._refused("a number, a column or a function", token.text)

    def _close(self) -> None:
        if not self._take(")"):
            raise self._refused("a closing parenthesis", self._next.text)
