"""Model formulas, ``income ~ age + educ``, read against the public schema of a release.

Terms are declared columns joined by ``+`` and taken away by ``-``; ``.`` stands for every column but the
target and the weight; ``- 1`` or ``+ 0`` leaves the intercept out. Of a categorical column one may name levels (``levels.py``), and
take one away, which then counts with the baseline. A product or a function of columns is a term where the release has
a derived column for it (``schema/derived.py``), whatever that column is called; else it is refused with the line that
would declare one, because no second moment of the other columns answers it. ::

    formula = (name | level | made) "~" [sign] term {sign term}
    sign    = "+" | "-"
    term    = name | level | factor | product | made | "." | "0" | "1"
    product = (name | level) ":" (name | level) {":" (name | level)}
    made    = "I(" expression ")" | function "(" … ")"        an expression of schema/expressions.py
    level   = name "[" text {"|" text} "]"                    several levels are one indicator
    factor  = "C(" name ["," "Treatment(" text ")"] ")"       the text is the baseline
    text    = a level, between double or single quotes where it has other marks
    name    = quoted | run
    quoted  = "`" {any character but "`" | "``"} "`"         two backticks stand for one
    run     = letters, digits, "_", "." of any alphabet, and "-" where a declared name has it

White space between these means nothing. Of two declared names that could begin at one place, the longer is read. A
name that begins with ``-`` is always quoted. Reading takes time proportional to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
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
_MOST_FACTORS = 16
_NO_NAME = re.compile(r"\W+")
_EXAMPLE = 'Write a formula such as "income ~ age + educ".'


class _Token(NamedTuple):
    """A name or a mark. What was quoted is a name, whatever it looks like."""

    kind: Literal["quoted", "word", "sign", "tilde", "level", "factor", "colon", "product", "made"]
    text: str
    levels: str = ""
    """Of a level, what is between the brackets; of a factor, its baseline."""
    factors: tuple[_Token, ...] = ()
    """Of a product, what is multiplied."""


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
        tokens = _multiplied(list(_tokens(text, columns)), text)
        tildes = [place for place, token in enumerate(tokens) if token.kind == "tilde"]
        if len(tildes) != 1:
            raise _malformed("a formula has one ~ between target and terms", repr(text))
        levels = levels_of(schema)
        target = _target(tokens[: tildes[0]], schema, levels, text)
        known = dict.fromkeys(_terms(schema))
        terms: dict[str, Term] = {}  # in order
        intercept = True
        for sign, token in _signed(tokens[tildes[0] + 1 :], text):
            word = token.text
            plain = token.kind == "word" and word not in columns
            if plain and word in ("0", "1"):
                intercept = (word == "1") == (sign == "+")
            elif plain and word == ".":
                if sign == "-":
                    raise _malformed("'.' cannot be taken away", repr(text))
                own = (target.column, f"{target.column}[missing]", schema.weight)
                for name in known:
                    if name not in own:
                        terms.setdefault(name, Term(column=name))
            elif token.kind in ("product", "made"):
                for term in _derived_terms(token, columns, levels, schema):
                    _put(terms, sign, term, target, levels)
            else:
                _put(terms, sign, _term(token, columns, known, levels, schema), target, levels)
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
    terms: dict[str, Term], sign: str, term: Term, target: Term, levels: Mapping[str, Mapping[str, int]]
) -> None:
    """Add a term, take it away, or take a level away from the column that has it."""
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
    else:
        done = "appears twice" if sign == "+" else "is taken away but was never there"
        raise ParameterError("E235", f"the term {term.name} {done}.", "Name every term once.")


def _terms(schema: Schema) -> list[str]:
    """What may stand on the right: columns, and the indicators of missing numbers, such as ``age[missing]``."""
    indicators = {schema.summed[place].column for place in schema.number_indicators}
    names = [column.name for column in schema.columns]
    return [term for name in names for term in (name, *([f"{name}[missing]"] if name in indicators else []))]


def _target(left: list[_Token], schema: Schema, levels: Mapping[str, Mapping[str, int]], text: str) -> Term:
    if len(left) != 1 or left[0].kind in ("sign", "factor", "product"):
        raise _malformed("the left side of ~ is one column", repr(text.partition("~")[0].strip()))
    word = left[0].text
    if left[0].kind == "made":
        found = _derived_terms(left[0], {column.name: column for column in schema.columns}, levels, schema)
        if len(found) != 1:
            raise _malformed("the left side of ~ is one column", repr(word))
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
            yield from read
        elif mark == "+":
            yield _Token("sign", mark)
        elif mark == "~":
            yield _Token("tilde", mark)
        elif mark == "`":
            raise _malformed("a backtick that opens a name is closed by another", repr(text))
        elif mark == ":":
            yield _Token("colon", mark)
        elif mark in "*^%":
            raise ParameterError(
                "E232",
                f"interactions ({mark}) are not written so in a formula: a product of columns is a column of its own.",
                "Write age:educ or I(age^2), and a + b + a:b for both columns and their product; backticks go around a "
                "name that has such a mark.",
            )
        else:
            raise ParameterError(
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


def _multiplied(tokens: list[_Token], text: str) -> list[_Token]:
    """The tokens with those between colons as one."""
    made: list[_Token] = []
    after = False
    for token in tokens:
        names = token.kind in ("word", "quoted", "level", "product")
        if token.kind == "colon":
            if after or not made or made[-1].kind not in ("word", "quoted", "level", "product"):
                raise _malformed("a colon stands between two columns, such as age:educ", repr(text))
        elif after and not names:
            raise _malformed("a colon stands between two columns, such as age:educ", repr(text))
        elif after:
            before = made.pop()
            factors = (*(before.factors or (before,)), token)
            if len(factors) > _MOST_FACTORS:
                raise _malformed(f"a product has at most {_MOST_FACTORS} columns", repr(text))
            shown = ":".join(quoted(f.text) + (f"[{f.levels}]" if f.kind == "level" else "") for f in factors)
            made.append(_Token("product", shown, factors=factors))
        else:
            made.append(token)
        after = token.kind == "colon"
    if after:
        raise _malformed("a colon stands between two columns, such as age:educ", repr(text))
    return made


def _derived_terms(
    token: _Token,
    columns: Mapping[str, Column],
    levels: Mapping[str, Mapping[str, int]],
    schema: Schema,
) -> list[Term]:
    """The columns of the release that are what a product or an expression says; refuses what it does not hold."""
    if token.kind == "made":
        wanted = basis_columns(parse(token.text, f"{token.text[:80]!r} in the formula"))
    else:
        wanted = [
            reduce(
                lambda a, b: Node("*", (a, b)), [_node(one, columns, levels, schema) for one in token.factors]
            )
        ]
    made = {c.name: parse(c.expression) for c in schema.columns if c.expression is not None}
    wanted = [written_out(node, made) for node in wanted]
    declared = {column.name for column in schema.read_columns}
    if strange := next((name for node in wanted for name in node.columns() if name not in declared), None):
        raise _unknown(strange, schema)
    known = {same(node): name for name, node in made.items()}
    known |= {same(Node("column", value=name)): name for name in columns if name not in made}
    if all(same(node) in known for node in wanted):
        return [Term(column=known[same(node)]) for node in wanted]
    text = str(wanted[0]) if len(wanted) == 1 else token.text
    line = f"{toml_key(_NO_NAME.sub('_', text).strip('_')[:64])} = {toml_text(text)}"
    what = (
        f"interactions ({token.text[:80]}) need a column of their own, and this release has none for it"
        if token.kind == "product"
        else f"functions of columns need a column of their own, and this release has none for {text[:80]!r}"
    )
    raise ParameterError(
        "E232" if token.kind == "product" else "E233",
        f"{what}.",
        f"Declare it under [derived] in the schema and release again: {line}",
    )


def _node(
    token: _Token, columns: Mapping[str, Column], levels: Mapping[str, Mapping[str, int]], schema: Schema
) -> Node:
    """A factor of a product: a column of numbers, or the indicator of a level."""
    if token.text not in columns:
        raise _unknown(token.text, schema)
    column, own = columns[token.text], Node("column", value=token.text)
    if not isinstance(column, Categorical):
        return own
    chosen = read_levels(token.levels, column, levels[token.text]) if token.kind == "level" else ()
    if len(chosen) != 1:
        level = Term(column=token.text, chosen=(str(column.levels[0]),))
        raise ParameterError(
            "E232", f"interactions with {token.text} need one of its levels.", f"Name it, as in age:{level}."
        )
    numbers = {str(level): level for level in column.levels if not isinstance(level, str)}
    if chosen[0] in numbers:
        return Node("==", (own, Node("number", value=float(numbers[chosen[0]]))))
    return Node("==", (own, Node("text", value=chosen[0])))


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
