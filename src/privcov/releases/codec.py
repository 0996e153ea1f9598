"""Releases as files: canonical JSON of format ``privcov/release/1``, read back with suspicion.

The format is a closed whitelist: a field that is not listed here can neither be written nor read, so nothing
about the data can slip into a release beside the matrix. Matrix integers are decimal strings; no float is
ever written. A wide matrix is a body of machine words after this document, which names their digest; the size of a file
follows from public facts either way. See docs/explain/wide.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from privcov.errors import ReleaseError, VerificationError
from privcov.linalg.triangle import entries, is_wide
from privcov.noise.laws import LAWS, NoiseLaw
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP, decimal_text, exact
from privcov.releases.certificate import Certificate, Interval, Round
from privcov.releases.documents import Form
from privcov.releases.signing import PrivateKey, PublicKey
from privcov.releases.sketch import Sketch, ridge_of
from privcov.releases.triangle import Triangle, word_bytes
from privcov.schema import MAX_DIMENSION, Categorical, Column, Feature, Level, Numeric, Schema
from privcov.schema.expressions import LONGEST
from privcov.schema.grid import ROW_BITS, Grid
from privcov.schema.names import LONGEST_NAME
from privcov.schema.shape import BITS, MOST_SHAPED, Shape
from privcov.schema.strata import MOST_STRATA
from privcov.schema.weights import declared
from privcov.text.grammar import INTEGER, double

FORM = Form("release", "privcov/release/1")
_KINDS: dict[str, type[Loss]] = {"pure": PureDP, "approximate": ApproxDP, "zcdp": ZCDP}
_SIZES = {"mechanism": 64, "proof": 200, "timing": 400, "version": 64, "created": 32}
"""Characters of the texts of a certificate."""
_OPTION = 400
_MOST_ROWS = 10**15
_MOST_ROUNDS, _MOST_ANSWERS = 16, 32 * MAX_DIMENSION
_SCALES = (1e-100, 1e100)
"""Of noise: with the amounts that a loss may have, none is beyond, and its fourth power is a double."""
_TAIL = 1_000
"""Root mean square norms of the whole noise matrix that no entry exceeds, but for odds below e^-700."""

Upper = tuple[int, ...] | Triangle
Parts = tuple[Schema, int | None, Upper, Sketch | None, Certificate]
"""Schema, rows (None when private), the upper triangle in grid units, sketched rows if any, certificate."""


def encode(
    schema: Schema,
    rows: int | None,
    upper: Upper,
    sketch: Sketch | None,
    certificate: Certificate,
    *,
    key: PrivateKey | None = None,
) -> dict[str, Any]:
    """The release as plain JSON values, sealed: with a digest, or with a signature where a key is given."""
    return FORM.sealed(body_of(schema, rows, upper, sketch, certificate), key)


def body_of(
    schema: Schema,
    rows: int | None,
    upper: Upper,
    sketch: Sketch | None,
    certificate: Certificate,
) -> dict[str, Any]:
    """The same without format and seal."""
    loss = certificate.loss
    return {
        "columns": [feature.name for feature in schema.features],
        "scaling": [_scaling(feature) for feature in schema.features],
        "rows": {"kind": "private" if rows is None else "public", "count": rows},
        "matrix": {
            "grid": _grid_text(schema),
            **_entries(upper),
            "sketch": None if sketch is None else _sketch(schema, sketch),
        },
        "certificate": {
            "mechanism": certificate.mechanism,
            "options": dict(certificate.options),
            "guarantee": {
                "kind": loss.kind,
                **{word: None for word in ("epsilon", "delta", "rho")},
                **{word: decimal_text(amount) for word, amount in loss.amounts.items()},
            },
            "neighbours": str(loss.neighbours),
            "row_norm_bound": _norm_text(schema),
            "bounds": {
                "columns": [bounds_of(column) for column in declared(schema)],
                "intercept": schema.intercept,
                "missing": schema.missing,
                "max_rows_per_person": schema.max_rows_per_person,
                **({} if schema.shape is None else {"shape": _shape(schema.shape)}),
                **({} if schema.weight is None else {"weight": _weight(schema)}),
                **({"persons": schema.per_person or "rows"} if schema.enforced else {}),
                **({"sources": [bounds_of(column) for column in schema.sources]} if schema.sources else {}),
            },
            "noise": _noise(certificate.law),
            "arithmetic": certificate.arithmetic,
            "randomness": certificate.randomness,
            "proof": certificate.proof,
            "timing": certificate.timing,
            "version": certificate.version,
            "created": certificate.created,
            **({"rounds": [_round(one) for one in certificate.rounds]} if certificate.rounds else {}),
        },
    }


def decode(document: object, body: BinaryIO | None = None) -> Parts:
    """The parts of a release from JSON values and the body they name, if any; anything unexpected is refused."""
    FORM.signer(document)
    return FORM.decoded(document, unsealed, body)


def unsealed(document: object, body: BinaryIO | None = None) -> Parts:
    """The parts of a release whose seal is known to hold; for those who ask ``FORM.signer`` themselves."""
    given = FORM.inside(document, "columns scaling rows matrix certificate")
    named = "rounds" if isinstance(given["certificate"], dict) and "rounds" in given["certificate"] else ""
    promise = FORM.fields(
        given["certificate"],
        "mechanism options guarantee neighbours row_norm_bound bounds noise arithmetic randomness proof "
        f"timing version created {named}",
    )
    schema = _read_schema(promise)
    guarantee = FORM.fields(promise["guarantee"], "kind epsilon delta rho")
    amounts = {word: text for word, text in guarantee.items() if word != "kind" and text is not None}
    loss = _KINDS[guarantee["kind"]](**amounts, neighbours=promise["neighbours"])
    noise = FORM.fields(promise["noise"], "law scale")
    law = None
    if noise["law"] is not None:
        law = LAWS[noise["law"]](dimension=schema.summed_dimension, scale=scale_of(noise["scale"]))
    rows = FORM.fields(given["rows"], "kind count")
    count = rows["count"]
    # A public count that may not be public can be read, so that ``verify`` can say so.
    private = "strata" in promise["options"] or not loss.neighbours.count_is_public(
        schema.max_rows_per_person
    )
    if not (private if rows["kind"] == "private" else loss.neighbours == "replace-one"):
        raise ValueError("rows")
    if not (count is None if rows["kind"] == "private" else type(count) is int and 0 < count <= _MOST_ROWS):
        raise ValueError("rows")
    named = "upper" if body is None else "body"
    matrix = FORM.fields(given["matrix"], f"grid {named} sketch")
    if matrix["grid"] != _grid_text(schema):
        raise ValueError("grid")
    if body is None:
        integers: Upper = integers_of(matrix["upper"], schema, count, law)
    else:
        word = word_bytes(grid=Grid.of(schema), rows=count, law=law)
        integers = _read_body(matrix["body"], body, schema.summed_dimension, word=word)
    sketch = _read_sketch(matrix["sketch"], schema.summed_dimension, integers)
    if promise["arithmetic"] not in ("exact", "idealized") or promise["randomness"] not in (
        "kernel",
        "rehearsal",
    ):
        raise ValueError("certificate")
    options = FORM.texts(promise["options"], most=_OPTION)
    for said, largest in (("strata", MOST_STRATA + 1), ("all_rows", _MOST_ROWS)):
        if said in options and not _is_count(options[said], largest):
            raise ValueError(said)
    certificate = Certificate(
        **{word: FORM.text(promise[word], most=most) for word, most in _SIZES.items()},
        options=options,
        loss=loss,
        law=law,
        arithmetic=promise["arithmetic"],
        randomness=promise["randomness"],
        rounds=tuple(_read_round(one, loss) for one in _listed(promise.get("rounds", []), _MOST_ROUNDS)),
    )
    parts = (schema, count, integers, sketch, certificate)
    if body_of(*parts) != given:  # whatever is said twice must agree, and nothing may be said otherwise
        raise ValueError("fields disagree")
    return parts


def _is_count(said: str, largest: int) -> bool:
    """Whether an option is a whole number from 1, as it is written."""
    return said.isascii() and said.isdigit() and said[0] != "0" and int(said) <= largest


def integers_of(texts: object, schema: Schema, rows: int | None, law: NoiseLaw | None) -> tuple[int, ...]:
    """The integers of a narrow matrix from their texts; refuses what no release could hold."""
    integers = _read_text(texts, schema.summed_dimension)
    _plausible(integers, grid=Grid.of(schema), rows=rows, law=law)
    return integers


def read(path: str | Path, *, signed_by: PublicKey | None = None) -> tuple[Parts, PublicKey | None]:
    """A release file, validated, and the key that signed it."""
    return FORM.read(path, unsealed, signed_by=signed_by)


def _round(one: Round) -> dict[str, Any]:
    ((word, amount),) = one.loss.amounts.items()
    return {
        "name": one.name,
        word: decimal_text(amount),
        "std": repr(one.std),
        "answers": [str(count) for count in one.answers],
        **(
            {"intervals": [list(map(repr, some)) for some in one.intervals], "unit": one.unit}
            if one.intervals
            else {}
        ),
    }


def _read_round(given: object, loss: Loss) -> Round:
    word = "rho" if isinstance(given, dict) and "rho" in given else "epsilon"
    more = "intervals unit" if isinstance(given, dict) and "intervals" in given else ""
    one = FORM.fields(given, f"name {word} std answers {more}")
    paid: ZCDP | PureDP
    if word == "rho":
        paid = ZCDP(rho=exact(one["rho"]), neighbours=loss.neighbours)
    else:
        paid = PureDP(epsilon=exact(one["epsilon"]), neighbours=loss.neighbours)
    answers = _listed(one["answers"], _MOST_ANSWERS)
    if not all(type(text) is str and INTEGER.fullmatch(text) for text in answers):
        raise ReleaseError("E601", "an answer of a round is not a whole number.")
    name = FORM.text(one["name"], most=64)
    unit = one.get("unit", 1)
    if type(unit) is not int or not 1 <= unit <= 2**ROW_BITS:
        raise ReleaseError("E601", "the unit of a round is out of range.")
    return Round(
        name=name,
        loss=paid,
        std=scale_of(one["std"]),
        answers=tuple(int(text) for text in answers),
        intervals=tuple(_interval(some) for some in _listed(one.get("intervals", []), MAX_DIMENSION)),
        unit=unit,
    )


def _interval(given: object) -> Interval:
    numbers = [double(text) for text in _listed(given, len(Interval._fields))]
    if len(numbers) != len(Interval._fields) or not numbers[0] < numbers[1]:
        raise ReleaseError("E601", "an interval of a round is malformed.")
    return Interval(*numbers)


def _listed(given: object, most: int) -> list[Any]:
    if type(given) is not list or len(given) > most:
        raise ReleaseError("E601", "a list in the certificate is too long, or is not a list.")
    return given


def _entries(upper: Upper) -> dict[str, Any]:
    if isinstance(upper, Triangle):
        about = {"encoding": upper.encoding, "bytes": len(upper) * upper.word, "sha256": upper.digest}
        return {"body": about}
    return {"upper": [str(value) for value in upper]}


def _read_text(upper: Any, dimension: int) -> tuple[int, ...]:
    if type(upper) is not list or len(upper) != entries(dimension):
        raise ReleaseError("E601", "the size of the matrix does not match its columns.")
    if not all(type(text) is str and INTEGER.fullmatch(text) for text in upper):
        raise ReleaseError("E601", "an entry of the matrix is not an integer.")
    return tuple(int(text) for text in upper)


def _plausible(upper: Upper, *, grid: Grid, rows: int | None, law: NoiseLaw | None) -> None:
    """Refuse entries that no rows and no noise make: what repairs a matrix need not cope with them."""
    if law is None:
        return
    most = (rows or _MOST_ROWS) * grid.largest_product + _TAIL * law.rms_frobenius / float(grid.unit)
    if max(map(abs, upper)) > most:
        raise ReleaseError(
            "E601", "an entry of the matrix is larger than the number of rows and the noise allow."
        )


def _read_body(about: Any, body: BinaryIO, dimension: int, *, word: int) -> Triangle:
    """The words after the head. How many there are is known from the columns: no room is made for what a head says."""
    given = FORM.fields(about, "encoding bytes sha256")
    if not is_wide(dimension) or given["bytes"] != entries(dimension) * word:
        raise ReleaseError("E601", "the size of the matrix does not match its columns.")
    upper = Triangle.read(body, count=entries(dimension), word=word)
    if given["sha256"] != upper.digest:
        raise VerificationError(
            "E611",
            "the matrix was changed after the release was made: its digest does not match.",
            "Ask for the original.",
        )
    return upper


def _scaling(feature: Feature) -> dict[str, str]:
    if feature.kind == "intercept":
        return {"kind": "intercept"}
    if feature.kind == "level":
        return {"kind": "level", "column": feature.column, "level": str(feature.level)}
    if feature.kind == "missing":
        return {"kind": "missing", "column": feature.column}
    own = {} if feature.reach == 1 else {"reach": repr(feature.reach)}
    return {"kind": "numeric", "middle": repr(feature.middle), "half_width": repr(feature.half_width), **own}


def _sketch(schema: Schema, sketch: Sketch) -> dict[str, Any]:
    rows = [[str(value) for value in row] for row in sketch]
    return {"grid": f"2^-{Grid.of(schema).exponent}", "rows": rows}


def _read_sketch(given: object, dimension: int, upper: Upper) -> Sketch | None:
    """Sketched rows that give the matrix beside them; the grid is compared where all that is said twice is."""
    if given is None:
        return None
    rows = FORM.fields(given, "grid rows")["rows"]
    if type(rows) is not list or not rows:
        raise ReleaseError("E601", "the sketch has no rows.")
    if not all(type(row) is list and len(row) == dimension for row in rows):
        raise ReleaseError("E601", "the length of a sketched row does not match the columns.")
    if not all(type(text) is str and INTEGER.fullmatch(text) for row in rows for text in row):
        raise ReleaseError("E601", "an entry of the sketch is not an integer.")
    sketch = tuple(tuple(int(text) for text in row) for row in rows)
    ridge_of(sketch, upper)
    return sketch


def _noise(law: NoiseLaw | None) -> dict[str, str | None]:
    return {"law": None if law is None else law.name, "scale": None if law is None else repr(law.scale)}


def bounds_of(column: Column) -> dict[str, Any]:
    own: dict[str, Any] = {}
    if column.missing is not None:
        own["missing"] = column.missing
    if column.fill is not None:
        own["fill"] = str(column.fill)
    own |= {word: text for word in ("label", "unit") if (text := getattr(column, word))}
    if column.expression is not None:
        own["expression"] = column.expression
    if isinstance(column, Numeric):
        if column.centre is not None:
            own["centre"] = repr(column.centre)
        if column.scale is not None:
            own["scale"] = repr(column.scale)
        if column.date:
            own["kind"] = "date"
        return {"name": column.name, "lower": repr(column.lower), "upper": repr(column.upper), **own}
    if column.exhaustive:
        own["exhaustive"] = True
    if column.otherwise is not None:
        own["otherwise"] = str(column.otherwise)
    word = "numbers" if column.numeric_levels else "levels"
    return {"name": column.name, word: [str(level) for level in column.levels], **own}


def read_column(given: Mapping[str, Any]) -> Column:
    name, rule, fill = given["name"], given.get("missing"), given.get("fill")
    shown: dict[str, Any] = {word: given[word] for word in ("label", "unit") if word in given}
    text = FORM.text(given["expression"], most=LONGEST) if "expression" in given else None
    if "levels" not in given and "numbers" not in given:
        filled = None if fill is None else double(fill)
        scaling: dict[str, Any] = {w: double(given[w]) for w in ("centre", "scale") if w in given}
        lower, upper = double(given["lower"]), double(given["upper"])
        if (date := "kind" in given) and given["kind"] != "date":
            raise ValueError("kind")
        return Numeric(
            name=name,
            lower=lower,
            upper=upper,
            missing=rule,
            fill=filled,
            expression=text,
            date=date,
            **scaling,
            **shown,
        )
    levels: tuple[Level, ...] = tuple(given["levels"] if "levels" in given else map(_level, given["numbers"]))
    named: dict[str | None, Level | None] = {None: None, **{str(level): level for level in levels}}
    return Categorical(
        name=name,
        levels=levels,
        missing=rule,
        fill=named[fill],
        exhaustive=given.get("exhaustive", False),
        otherwise=named[given.get("otherwise")],
        expression=text,
        **shown,
    )


def _level(text: str) -> int | float:
    return int(text) if INTEGER.fullmatch(text) else double(text)


def _read_schema(promise: Mapping[str, Any]) -> Schema:
    given = promise["bounds"] if isinstance(promise["bounds"], dict) else {}
    named = [word for word in ("shape", "weight", "persons", "sources") if word in given]
    bounds = FORM.fields(
        promise["bounds"], f"columns intercept missing max_rows_per_person {' '.join(named)}"
    )
    persons = bounds.get("persons")
    text, sources = promise["row_norm_bound"], bounds.get("sources", [])
    if max(len(bounds["columns"]), len(sources)) > MAX_DIMENSION:
        raise ValueError("columns")
    schema = Schema(
        columns=tuple(read_column(column) for column in bounds["columns"]),
        intercept=bounds["intercept"],
        row_norm_bound=None if text.startswith("sqrt") else exact(text),
        missing=bounds["missing"],
        max_rows_per_person=bounds["max_rows_per_person"],
        shape=_read_shape(bounds["shape"]) if "shape" in given else None,
        per_person=None if persons == "rows" else persons,
        enforced="persons" in bounds,
        sources=tuple(read_column(column) for column in sources),
        **(_read_weight(bounds["weight"]) if "weight" in given else {}),
    )
    if _norm_text(schema) != text:
        raise ValueError("row norm bound")
    table = {column.name: _unframed(column) for column in schema.sources}
    if any(table.get(one.name, one) != one for one in map(_unframed, schema.columns)):
        raise ReleaseError("E601", "a column of this file is declared in two ways.")
    return schema


def _unframed(column: Column) -> Column:
    """The column without what a frame finds for it: among the columns of the table it stands as it was declared."""
    return replace(column, centre=None, scale=None) if isinstance(column, Numeric) else column


def _weight(schema: Schema) -> dict[str, str | None]:
    return {
        "column": schema.weight,
        "largest": repr(schema.largest_weight),
        "power": decimal_text(schema.weight_power),
    }


def _read_weight(given: object) -> dict[str, Any]:
    weight = FORM.fields(given, "column largest power")
    power = exact(FORM.text(weight["power"], most=_OPTION))
    return {
        "weight": FORM.text(weight["column"], most=LONGEST_NAME),
        "largest_weight": double(weight["largest"]),
        "weight_power": power,
    }


def _shape(shape: Shape) -> dict[str, Any]:
    return {"grid": f"2^-{BITS}", "longest": shape.longest, "upper": [str(value) for value in shape.upper]}


def _read_shape(given: object) -> Shape:
    shape = FORM.fields(given, "grid longest upper")
    upper = _listed(shape["upper"], entries(MOST_SHAPED))
    if not all(type(text) is str and INTEGER.fullmatch(text) for text in upper):
        raise ReleaseError("E601", "a shape holds something that is not an integer.")
    return Shape(upper=tuple(int(text) for text in upper), longest=shape["longest"])


def _norm_text(schema: Schema) -> str:
    bound = schema.row_norm_bound
    return f"sqrt({schema.squared_norm_bound})" if bound is None else decimal_text(bound)


def _grid_text(schema: Schema) -> str:
    return f"2^-{2 * Grid.of(schema).exponent}"


def scale_of(text: object) -> float:
    """The scale of a noise from its text, of a size that noise can have."""
    value = double(text)
    if not _SCALES[0] <= value <= _SCALES[1]:
        raise ValueError("scale")
    return value
