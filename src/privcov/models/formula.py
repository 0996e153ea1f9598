"""Model formulas, ``income ~ age + educ``, read against the public schema of a release.

Terms are declared columns joined by ``+`` and taken away by ``-``; ``.`` stands for every column but the
target and the weight; ``- 1`` or ``+ 0`` leaves the intercept out. Of a categorical column one may name levels
(``levels.py``), and take one away, which then counts with the baseline. A product or a function of columns is a term
where the release has a derived column for it (``schema/derived.py``), whatever that column is called; else it is
refused with the line that would declare one, because no second moment of the other columns answers it. ``a*b`` is
``a + b + a:b``, and ``(a + b + c)^2`` all three and the products of two of them. ::

    formula = (name | level | made) "~" sum
    sum     = [sign] cross {sign cross}
    sign    = "+" | "-"
    cross   = product {"*" product}
    product = power {":" power}
    power   = term | ("." | "(" sum ")") ["^" whole]          a whole number from 2 to 16; "**" is "^"
    term    = name | level | factor | made | "." | "0" | "1"
    made    = "I(" expression ")" | function "(" … ")"        an expression of schema/expressions.py
    level   = name "[" text {"|" text} "]"                    several levels are one indicator
    factor  = "C(" name ["," "Treatment(" text ")"] ")"       the text is the baseline
    text    = a level, between double or single quotes where it has other marks
    name    = quoted | run
    quoted  = "`" {any character but "`" | "``"} "`"         two backticks stand for one
    run     = letters, digits, "_", "." of any alphabet, and "-" where a declared name has it

In a product a column of levels stands for its levels but the baseline, where the other factors are a term too, and
``poly(age, 2)`` for its columns. White space between these means nothing. Of two declared names that could begin at
one place, the longer is read. A name that begins with ``-`` is always quoted. Reading takes time proportional to the
length of the text and to the terms that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Literal, NamedTuple

from privcov.errors import ParameterError
from privcov.models.levels import CHOICE, FACTOR, Regressor, Term, levels_of, read_level, read_levels
from privcov.schema import Categorical, Column, Schema
from privcov.schema.derived import FUNCTIONS, basis_columns, written_out
from privcov.schema.expressions import Node, parse, same
from privcov.schema.names import LONGEST_NAME, QUOTED, RUN, canonical, quoted, toml_key, toml_text, unquoted

LONGEST_FORMULA = 20_000
"""Characters of a formula."""
_TOKEN = re.compile(rf"\s*+(?:(?P<quoted>{QUOTED})|(?P<run>{RUN})|(?P<mark>\S))")
_OPENS = re.compile(r"\s*+\(")
_INSIDE = re.compile(rf"{QUOTED}|'[^']*+'|[^`'()]++|[()]")
_MOST_FACTORS, _MOST_TERMS, _DEEPEST = 16, 5_000, 50
_LINES_SHOWN = 20
_NO_NAME = re.compile(r"\W+")
_MARKS: dict[str, Literal["sign", "tilde", "colon", "star", "power", "open", "close"]] = {
    "+": "sign", "~": "tilde", ":": "colon", "*": "star", "^": "power", "(": "open", ")": "close"
}  # fmt: skip
_EXAMPLE = (
    'Write a formula such as "income ~ age + educ"; names with spaces stand between backticks: `Age (years)`.'
)


class _Token(NamedTuple):
    """A name or a mark. What was quoted is a name, whatever it looks like."""

    kind: Literal[
        "quoted",
        "word",
        "sign",
        "tilde",
        "level",
        "factor",
        "made",
        "colon",
        "star",
        "power",
        "open",
        "close",
    ]
    text: str
    levels: str = ""
    """Of a level, what is between the brackets; of a factor, its baseline."""

    @property
    def ends(self) -> bool:
        """Whether it ends a term."""
        return self.kind in ("quoted", "word", "level", "factor", "made", "close")

    def __str__(self) -> str:
        return quoted(self.text) + (f"[{self.levels}]" if self.kind == "level" else "")


_Product = tuple[_Token, ...]
"""What is multiplied in a term: one factor for a single column."""


class _Item(NamedTuple):
    """A term with its sign, and whether it follows from a cross: then it may be there already."""

    sign: str
    product: _Product
    crossed: bool


class _Absent(NamedTuple):
    """A product or a function of columns that the release has no column for, and the line that would declare it."""

    key: Hashable
    shown: str
    is_product: bool
    line: str


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A target, the columns that explain it in order, and whether there is an intercept.

    >>> names = ("age", "educ", "income", "größe", "net worth (USD)")
    >>> schema = Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in names}})
    >>> made = Formula.parse("income ~ age + educ - 1", schema)
    >>> made.target, made.terms, made.intercept
    ('income', ('age', 'educ'), False)
    >>> print(Formula.parse("income~größe+`net worth (USD)`", schema))
    income ~ größe + `net worth (USD)`
    """

    explained: Term
    """The target: a column, or one of its levels."""
    parts: tuple[Term, ...]
    """The terms with what is chosen of their levels."""
    intercept: bool

    @property
    def target(self) -> str:
        """The name of the target in the matrix of the release."""
        return self.explained.name

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the terms."""
        return tuple(part.name for part in self.parts)

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
        levels = levels_of(schema)
        target = _target(tokens[: tildes[0]], schema, levels, text)
        known = dict.fromkeys(_terms(schema))
        own = (target.column, f"{target.column}[missing]", schema.weight)
        every = [name for name in known if name not in own]
        terms: dict[str, Term] = {}  # in order
        absent: dict[Hashable, _Absent] = {}
        intercept = True
        items = _Right(tokens[tildes[0] + 1 :], text, columns, every).items()
        beside = {frozenset(item.product) for item in items if item.sign == "+"}
        for sign, factors, crossed in items:
            token = factors[0]
            word = token.text if token.kind == "word" and token.text not in columns else None
            if word in ("0", "1"):
                intercept = (word == "1") == (sign == "+")
            elif word == ".":
                if sign == "-":
                    raise _malformed("'.' cannot be taken away", repr(text))
                for name in every:
                    terms.setdefault(name, Term(column=name))
            elif len(factors) == 1 and token.kind != "made":
                _put(terms, sign, _term(token, columns, known, levels, schema), target, levels, quiet=crossed)
            else:
                for found in _derived(factors, columns, levels, schema, beside):
                    if isinstance(found, Term):
                        _put(terms, sign, found, target, levels, quiet=crossed)
                    elif sign == "+":
                        absent[found.key] = found
                    elif absent.pop(found.key, None) is None and not crossed:
                        raise _never(found.shown)
        if absent:
            raise _undeclared(list(absent.values()))
        if not terms and not intercept:
            raise _malformed("a model needs a term or an intercept", repr(text))
        return cls(explained=target, parts=tuple(terms.values()), intercept=intercept)

    def regressors(self, schema: Schema) -> tuple[Regressor, ...]:
        """The columns of the design without the intercept, by name and by their places in the matrix of the release.

        A categorical term drops its first level as the baseline (treatment coding), or the one it names. Without an
        intercept the first categorical term keeps all its levels, later ones drop theirs, as every one kept would be
        singular. Values that are not declared levels count with the baseline. An indicator of missing cells is one
        more level of a categorical column; beside a numeric column it is a term of its own.
        """
        levelled = levels_of(schema)
        single = {f.name: place for place, f in enumerate(schema.features) if f.column not in levelled}
        made: list[Regressor] = []
        whole = not self.intercept
        for part in self.parts:
            if part.column not in levelled:
                made.append(Regressor(part.column, (single[part.column],)))
                continue
            made += part.regressors(levelled[part.column], whole=whole)
            whole = whole and bool(part.chosen)
        return tuple(made)

    def features(self, schema: Schema) -> tuple[int, ...]:
        """Places, in the matrix of the release, of what the regressors are made of, each once."""
        return tuple(dict.fromkeys(place for one in self.regressors(schema) for place in one.places))

    def columns(self, schema: Schema) -> frozenset[str]:
        """The declared columns that the formula uses, the target's too."""
        places = {feature.name: feature.column for feature in schema.features}
        named = {places.get(part.column, part.column) for part in self.parts}
        return frozenset(named | {places.get(self.target, self.target)})

    def __str__(self) -> str:
        terms = " + ".join(map(str, self.parts)) or "1"
        return f"{self.explained} ~ {terms}" + ("" if self.intercept else " - 1")


def _term(
    token: _Token,
    columns: Mapping[str, Column],
    known: Collection[str],
    levels: Mapping[str, Mapping[str, int]],
    schema: Schema,
) -> Term:
    """What a token names, if the schema has it."""
    word = token.text
    if token.kind not in ("level", "factor"):
        if word not in known:
            raise _unknown(word, schema)
        return Term(column=word)
    if word not in columns:
        raise _unknown(word, schema)
    mine = levels.get(word, {})
    if token.kind == "level":
        if token.levels.strip() == "missing" and f"{word}[missing]" in known:
            return Term(column=f"{word}[missing]")
        return Term(column=word, chosen=read_levels(token.levels, columns[word], mine))
    if not mine:
        raise ParameterError("E233", f"C() is for categorical columns, and {word} is numeric.", _EXAMPLE)
    first = next(iter(mine))
    baseline = read_level(token.levels, columns[word], mine) if token.levels else first
    return Term(column=word, baseline="" if baseline == first else baseline)


def _put(
    terms: dict[str, Term],
    sign: str,
    term: Term,
    target: Term,
    levels: Mapping[str, Mapping[str, int]],
    *,
    quiet: bool,
) -> None:
    """Add a term, take it away, or take a level away from the column that has it; ``quiet`` where that is done."""
    if term.column == target.column:
        raise ParameterError(
            "E234", f"the target {target.name} is also a term.", "Remove it from the right side."
        )
    has = term.name in terms
    if sign == "+" and not has:
        terms[term.name] = term
    elif sign == "-" and has:
        del terms[term.name]
    elif sign == "-" and term.chosen and not terms.get(term.column, term).chosen:
        whole = terms[term.column]
        dropped = {*whole.dropped, *term.chosen}
        in_order = tuple(level for level in levels[term.column] if level in dropped)
        terms[term.column] = replace(whole, dropped=in_order)
    elif quiet:
        return
    elif sign == "+":
        raise ParameterError("E235", f"the term {term.name} appears twice.", "Name every term once.")
    else:
        raise _never(term.name)


def _never(name: str) -> ParameterError:
    return ParameterError(
        "E235", f"the term {name} is removed, but was never added.", "Remove only a term that is there."
    )


def _terms(schema: Schema) -> list[str]:
    """What may stand on the right: columns, and the indicators of missing numbers, such as ``age[missing]``."""
    indicators = {schema.summed[place].column for place in schema.number_indicators}
    names = [column.name for column in schema.columns]
    return [term for name in names for term in (name, *([f"{name}[missing]"] if name in indicators else []))]


def _target(left: list[_Token], schema: Schema, levels: Mapping[str, Mapping[str, int]], text: str) -> Term:
    if len(left) != 1 or left[0].kind not in ("quoted", "word", "level", "made"):
        raise _malformed("the left side of ~ is one column", repr(text.partition("~")[0].strip()))
    word = left[0].text
    if left[0].kind == "made":
        found = _derived((left[0],), {column.name: column for column in schema.columns}, levels, schema)
        if len(found) != 1:
            raise _malformed("the left side of ~ is one column", repr(word))
        if isinstance(found[0], _Absent):
            raise _undeclared([found[0]])
        word = found[0].column
    column = next((column for column in schema.columns if column.name == word), None)
    if column is None:
        raise _unknown(word, schema)
    chosen = read_levels(left[0].levels, column, levels.get(word, {})) if left[0].kind == "level" else ()
    if isinstance(column, Categorical) and len(chosen) != 1:
        first = Term(column=word, chosen=(str(column.levels[0]),))
        raise ParameterError(
            "E234", f"the target {word} is categorical.", f"Name one of its levels, such as {first}."
        )
    return Term(column=word, chosen=chosen)


def _tokens(text: str, names: Collection[str]) -> Iterator[_Token]:
    """Names, digits and signs; a mark that no second moment can answer is refused here."""
    dashes = max((name.count("-") for name in names), default=0)
    place = 0
    while (match := _TOKEN.match(text, place)) is not None:
        mark, place = match["mark"], match.end()
        if match["run"] is not None and (factor := _factor(match, text)) is not None:
            if before := match["run"][:-1]:
                yield from _split(canonical(before), names, dashes)
            yield _Token("factor", unquoted(factor["name"]), factor["level"] or "")
            place = factor.end()
        elif match["run"] is not None and (made := _call(match, text)) is not None:
            before, function, inner, place = made
            yield from _split(canonical(before), names, dashes)
            yield _Token("made", inner if function == "I" else f"{function}({inner})")
        elif mark is None:
            read = [_Token("quoted", unquoted(match["quoted"]))] if match["quoted"] is not None else []
            read = read or list(_split(canonical(match["run"]), names, dashes))
            if read[-1].kind != "sign" and (levels := CHOICE.match(text, place)) is not None:
                read[-1], place = _Token("level", read[-1].text, levels["levels"]), levels.end()
            if read[-1].kind != "sign" and _OPENS.match(text, place) is not None:
                raise _no_mark("(")
            yield from read
        elif mark in _MARKS:
            yield _Token(_MARKS[mark], mark)
        elif mark == "`":
            raise _malformed("a backtick that opens a name is closed by another", repr(text))
        else:
            raise _no_mark(mark)


def _no_mark(mark: str) -> ParameterError:
    return ParameterError(
        "E233",
        f"functions and other operators are not supported in a formula, got {mark!r}.",
        "Write I(age / educ) where the schema of the release has such a column under [derived]; backticks go "
        "around a name that has such a mark.",
    )


def _call(match: re.Match[str], text: str) -> tuple[str, str, str, int] | None:
    """``I(…)`` or a function at the end of a run: what is before it, its name, what is inside, and where it ends."""
    before, function = re.fullmatch(r"(.*-)?(.*)", match["run"], re.DOTALL).groups("")  # type: ignore[union-attr]
    if function not in FUNCTIONS | {"I"} or (opened := _OPENS.match(text, match.end())) is None:
        return None
    depth, place = 1, opened.end()
    while depth and (part := _INSIDE.match(text, place)) is not None:
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        place = part.end()
    return None if depth else (before, function, text[opened.end() : place - 1], place)


class _Right:
    """The right side of a formula: what it stands for, one term after the other."""

    def __init__(
        self, tokens: list[_Token], text: str, columns: Collection[str], every: Sequence[str]
    ) -> None:
        self._tokens, self._text, self._columns = tokens, text, columns
        self._every = [(_Token("word", name),) for name in every]
        self._place = self._depth = 0

    def items(self) -> list[_Item]:
        found = self._sum()
        if self._place < len(self._tokens):
            raise self._joined()
        return found

    def _sum(self) -> list[_Item]:
        """Terms with their signs; those of a cross after the single columns of it."""
        made: list[_Item] = []
        while True:
            sign = self._take("sign")
            if sign is None and made:
                return made
            terms = self._cross()
            crossed = len(terms) > 1
            made += [
                _Item("+" if sign is None else sign.text, term, crossed) for term in sorted(terms, key=len)
            ]
            if len(made) > _MOST_TERMS:
                raise _malformed(f"a formula stands for at most {_MOST_TERMS:,} terms", repr(self._text))

    def _cross(self) -> list[_Product]:
        found = self._product()
        while self._take("star") is not None:
            found = self._crossed(self._opened(found), self._opened(self._product()))
        return found

    def _product(self) -> list[_Product]:
        found = self._power(after_colon=False)
        while self._take("colon") is not None:
            others = self._opened(self._power(after_colon=True))
            found = [(*one, *other) for one in self._opened(found) for other in others]
            self._check(found)
        return found

    def _power(self, *, after_colon: bool) -> list[_Product]:
        token = self._tokens[self._place] if self._place < len(self._tokens) else None
        if token is None or not (token.ends or token.kind == "open") or token.kind == "close":
            rule = "a colon stands between two columns, such as age:educ"
            stray = after_colon or (token is not None and token.kind == "colon")
            raise _malformed(rule, repr(self._text)) if stray else self._joined()
        self._place += 1
        found: list[_Product] = self._group() if token.kind == "open" else [(token,)]
        if self._take("power") is None and not (self._stars() and self._take("star") and self._take("star")):
            return found
        if token.kind != "open" and not self._is_dot(token):
            raise ParameterError(
                "E232",
                f"interactions of a column with itself ({token}^…) are written I({token}^2).",
                "Write (a + b)^2 for two columns and their product.",
            )
        times = self._times()
        whole = found = self._opened(found)
        for _ in range(times - 1):
            found = self._crossed(found, whole)
        return found

    def _group(self) -> list[_Product]:
        """What stands between parentheses."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _malformed(f"at most {_DEEPEST} parentheses stand within each other", repr(self._text))
        made: list[_Product] = []
        for sign, term, crossed in self._sum():
            for one in self._opened([term]) if self._is_dot(term[0]) else [term]:
                if sign == "+" and one not in made:
                    made.append(one)
                elif sign == "-" and one in made:
                    made.remove(one)
                elif not crossed and not self._is_dot(term[0]):
                    raise ParameterError(
                        "E235",
                        f"the term {':'.join(map(str, one))} appears twice in parentheses, or is removed but was "
                        "never added.",
                        "Name every term once.",
                    )
        self._depth -= 1
        if self._take("close") is None or not made:
            raise self._joined()
        return made

    def _crossed(self, ones: list[_Product], others: list[_Product]) -> list[_Product]:
        """Both, and their products, each once."""
        made = {frozenset(term): term for term in (*ones, *others)}
        for one, other in product(ones, others):
            both = (*one, *(factor for factor in other if factor not in one))
            made.setdefault(frozenset(both), both)
            if len(made) > _MOST_TERMS:
                break
        found = list(made.values())
        self._check(found)
        return found

    def _opened(self, terms: list[_Product]) -> list[_Product]:
        """The terms to be multiplied, with all columns in the place of the dot."""
        made = [one for term in terms for one in (self._every if self._is_dot(term[0]) else [term])]
        numbers = [term[0] for term in made if term[0].kind == "word" and term[0].text in ("0", "1")]
        if any(token.text not in self._columns for token in numbers):
            raise _malformed("columns are multiplied, and no numbers", repr(self._text))
        return made

    def _check(self, terms: list[_Product]) -> None:
        if any(len(term) > _MOST_FACTORS for term in terms):
            raise _malformed(f"a product has at most {_MOST_FACTORS} columns", repr(self._text))
        if len(terms) > _MOST_TERMS:
            raise _malformed(f"a formula stands for at most {_MOST_TERMS:,} terms", repr(self._text))

    def _times(self) -> int:
        token = self._take("word")
        if token is None or not token.text.isdecimal() or not 2 <= int(token.text[:9]) <= _MOST_FACTORS:
            raise _malformed(f"a power is a whole number from 2 to {_MOST_FACTORS}", repr(self._text))
        return int(token.text)

    def _stars(self) -> bool:
        return [token.kind for token in self._tokens[self._place : self._place + 2]] == ["star", "star"]

    def _is_dot(self, token: _Token) -> bool:
        return token.kind == "word" and token.text == "." and "." not in self._columns

    def _take(self, kind: str) -> _Token | None:
        """The next token, if it is of this kind."""
        if self._place < len(self._tokens) and self._tokens[self._place].kind == kind:
            self._place += 1
            return self._tokens[self._place - 1]
        return None

    def _joined(self) -> ParameterError:
        return _malformed("terms are joined by single + or - signs", repr(self._text))


def _derived(
    factors: _Product,
    columns: Mapping[str, Column],
    levels: Mapping[str, Mapping[str, int]],
    schema: Schema,
    beside: Collection[frozenset[_Token]] = frozenset(),
) -> list[Term | _Absent]:
    """The columns of the release that are what a product or an expression says, or what would declare them.

    ``beside`` are the other terms: in a product a column of levels lacks its baseline where the rest is one of them.
    """
    is_product = len(factors) > 1
    nodes = [
        _nodes(one, columns, levels, schema, whole=frozenset(factors) - {one} in beside) for one in factors
    ]
    wanted = [reduce(lambda a, b: Node("*", (a, b)), some) for some in product(*nodes)]
    made = {c.name: parse(c.expression) for c in schema.columns if c.expression is not None}
    wanted = [written_out(node, made) for node in wanted]
    declared = {column.name for column in schema.read_columns}
    if strange := next((name for node in wanted for name in node.columns() if name not in declared), None):
        raise _unknown(strange, schema)
    known = {same(node): name for name, node in made.items()}
    known |= {same(Node("column", value=name)): name for name in columns if name not in made}
    found: list[Term | _Absent] = [
        Term(column=known[same(node)])
        if same(node) in known
        else _Absent(same(node), str(node), is_product, _line(str(node)))
        for node in wanted
    ]
    basis = not is_product and len(wanted) > 1
    if basis and any(isinstance(one, _Absent) for one in found):  # of a whole basis one line declares all
        text = factors[0].text
        return [_Absent(tuple(map(same, wanted)), text, False, _line(text))]
    return found


def _line(text: str) -> str:
    """The line of a schema that declares an expression."""
    return f"{toml_key(_NO_NAME.sub('_', text).strip('_')[:64])} = {toml_text(text)}"


def _undeclared(absent: Sequence[_Absent]) -> ParameterError:
    """The refusal of products and functions that the release has no columns for, with the lines that declare them."""
    is_product = any(one.is_product for one in absent)
    what = "interactions" if is_product else "functions of columns"
    shown = ", ".join(repr(one.shown[:80]) for one in absent[:4]) + (", …" if len(absent) > 4 else "")
    lines = "; ".join(one.line for one in absent[:_LINES_SHOWN])
    more = f"; and {len(absent) - _LINES_SHOWN} more" if len(absent) > _LINES_SHOWN else ""
    one = len(absent) == 1
    return ParameterError(
        "E232" if is_product else "E233",
        f"{what} need {'a column' if one else 'columns'} of their own, and this release has none for {shown}.",
        f"Declare {'it' if one else 'them'} under [derived] in the schema and release again: {lines}{more}",
    )


def _nodes(
    token: _Token,
    columns: Mapping[str, Column],
    levels: Mapping[str, Mapping[str, int]],
    schema: Schema,
    *,
    whole: bool,
) -> list[Node]:
    """A factor of a product: a column of numbers, an expression, or indicators of levels, those of a ``whole`` too."""
    if token.kind == "made":
        return basis_columns(parse(token.text, f"{token.text[:80]!r} in the formula"))
    if token.text not in columns:
        raise _unknown(token.text, schema)
    column, own = columns[token.text], Node("column", value=token.text)
    if not isinstance(column, Categorical):
        return [own]
    mine = levels[token.text]
    if token.kind == "level":
        chosen = read_levels(token.levels, column, mine)
    else:
        baseline = read_level(token.levels, column, mine) if token.levels else next(iter(mine))
        chosen = tuple(level for level in mine if level not in (baseline, "missing") and whole)
    if not chosen or (token.kind == "level" and len(chosen) > 1):
        level = Term(column=token.text, chosen=(str(column.levels[0]),))
        raise ParameterError(
            "E232",
            f"interactions with {token.text} need one of its levels, or the other columns as terms too.",
            f"Name one, as in age:{level}, or write age*{quoted(token.text)}.",
        )
    numbers = {str(level): level for level in column.levels if not isinstance(level, str)}
    return [
        Node("==", (own, Node("number", value=float(numbers[level]))))
        if level in numbers
        else Node("==", (own, Node("text", value=level)))
        for level in chosen
    ]


def _factor(match: re.Match[str], text: str) -> re.Match[str] | None:
    """``C(column)`` at the end of a run, if there is one."""
    run = match["run"]
    return FACTOR.match(text, match.end() - 1) if run == "C" or run.endswith("-C") else None


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


def _malformed(rule: str, given: str) -> ParameterError:
    return ParameterError("E230", f"{rule}, got {given[:200]}.", _EXAMPLE)


def _unknown(word: str, schema: Schema) -> ParameterError:
    shown = ", ".join(quoted(column.name) for column in schema.columns[:8])
    more = ", …" if len(schema.columns) > 8 else ""
    return ParameterError(
        "E231", f"there is no column {word[:64]!r} in this release.", f"It has {shown}{more}."
    )
