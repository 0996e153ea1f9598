"""The law of company: what a cell says does not depend on the cells that are read beside it.

A quick path that is taken only if no cell of a chunk is odd must read each cell as it is read alone; and no cell may
choose the type in which others are read, stop the reading, or raise a warning. Else one person moves others' rows.
Each cell here is read alone first, as a table of one row, and then among others: in one chunk and in several, behind an
offset, and in every way through a reader. What is compared are whole-number rows, and at last their exact sum.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privcov.table.csv as csv_module
from privcov.errors import InputError
from privcov.frame.counting import Means, Radius, Scales, Squares
from privcov.schema import Schema
from privcov.schema.dialect import RFC_4180
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.summing.bounding import Bounding
from privcov.summing.engines import Local
from privcov.summing.sum import Split, sum_rows
from privcov.table import cells as cells_module
from privcov.table import frames, open_table
from privcov.table.persons import Rows

# --- what columns are declared as -----------------------------------------------------------------------

NUMBER = {"lower": -10, "upper": 10}
BESIDE = {"z": {"lower": 0, "upper": 9, "missing": "indicator"}}
COLUMNS: dict[str, dict[str, Any]] = {
    "numeric": NUMBER,
    "missing codes": {**NUMBER, "missing_values": ["NA", -9, "?"]},
    "fill": {**NUMBER, "fill": 3},
    "zero row": {**NUMBER, "missing": "zero-row"},
    "wide": {"lower": -1e100, "upper": 1e100, "missing_values": [2**53, "1e22"], "missing": "indicator"},
    "levels in order": {"levels": [1, 2]},
    "levels": {"levels": [3, 1, 7], "missing_values": [-9, "x"]},
    "fractions": {"levels": [0, 1, 2.5], "missing": "indicator"},
    "levels apart": {"levels": [1, 10**6]},
    "levels about 2^53": {"levels": [2**53 - 1, 2**53, 2**53 + 2]},
    "levels below -2^53": {"levels": [-(2**53), 1 - 2**53]},
    "levels of 17 digits": {"levels": [10**17, 10**17 + 16]},
    "levels about 2^63": {"levels": [2**63, 2**64, 2**60], "missing_values": [-(2**63)]},
    "truths": {"levels": [True, False]},
    "words": {"levels": ["true", "FALSE"]},
    "texts": {"levels": ["F", "M", "1", "é"], "missing_values": ["NA", -9, "?"], "missing": "zero-row"},
    "zeros in front": {"levels": ["01", "1"], "fill": "1"},
    "otherwise": {"levels": ["F", "M"], "exhaustive": True, "otherwise": "M"},
    "exhaustive": {"levels": [1, 2], "exhaustive": True, "missing": "indicator"},
    "date": {
        "lower": "1900-01-01", "upper": "2100-01-01", "missing_values": ["1999-09-09", "?"], "feature": False
    },
    "all dates": {"lower": "0001-01-01", "upper": "9999-12-31", "feature": False},
}  # fmt: skip
DERIVED = {
    "numeric": {"e": "log(max(c, 0.1))", "k": "cut(c, 0, 5)", "s": "bs(c, 4)", "m": "(c > 2) * z"},
    "missing codes": {"e": "exp(c / 3)", "p": "poly(c, 3)", "r": "sqrt(c)"},
    "wide": {"v": "min(c, 5) / (z + 1)"},
    "texts": {"f": "(c == 'F') * z"},
    "levels in order": {"f": "c != 2"},
    "date": {"y": "year(c)", "w": "weekday(c)", "h": "hour(c)", "d": "days(c - '2000-01-01')"},
    "all dates": {"y": "year(c)", "m": "month(c)", "h": "hours(c - '2000-01-01')"},
}


@cache
def schema_of(column: str, **file: str) -> Schema:
    """A column ``c`` as it is declared, what is derived from it, and a number beside it."""
    words = {"columns": {"c": COLUMNS[column], **BESIDE}, "derived": DERIVED.get(column, {})}
    return Schema.from_dict({**words, "file": file})


# --- cells to be read -----------------------------------------------------------------------------------

TEXTS = [
    "1", " 1", "1 ", "01", "1.0", "1.", "+1", ".5", "1_000", "１", "٣", "1\0", "\0", "\ufeff1", "1e5", "1E+5", "1e400",
    "-1e400", "1e-400", "5e-324", "-0.0", "-0", "0", "0x10", "True", "true", "FALSE", "nan", "-NaN", "nan(1)",
    "NA", "NA ",
    "null", "None", "inf", "-Infinity", "12345678901234567", "9007199254740993", "9007199254740991",
    "9223372036854775808",
    "18446744073709551616", "1152921504606846976", "100000000000000016", "1" * 400, "1e99999999999999999999",
    "F", "M", "f",
    "é", "x", "?", "-9", "-9.0", "2.5", "7", "3", "2", "", "  ", "\t1\v", "\f", "1,5", "1.234,5", "1 000",
    "1e", "e5", ".",
    "--1", "1d5", "2024-01-01", "2024-01-01T10:00:00Z", "2024-01-01 23:59:60", "2024-12-31T23:59:59.999999999+14:00",
    "0001-01-01", "9999-12-31", "0000-01-01", "2023-02-29", "2024-02-29", "1999-09-09", "1999-09-09T00:00", "2024-1-1",
    "9" * 35, "2024-01-01" + " " * 50 + "x",
]  # fmt: skip
BYTES = [*(text.encode() for text in TEXTS), b"\xff", b"1\xff", b"\xe9", b"\xed\xa0\x80", b"F\xff"]
PAYLOADS = np.array([0x7FF4000000000001, 0xFFF8000000000001], np.uint64).view(np.float64).tolist()
FLOATS = [
    0.0, -0.0, 1.0, 2.0, 2.5, 3.0, 7.0, -9.0, 5e-324, -5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan, *PAYLOADS,
    2.0**53, 2.0**53 + 2, 2.0**53 - 1, -(2.0**53), 1 - 2.0**53, 2.0**60, 2.0**63, 2.0**64, -(2.0**63), 1e17,
    1e17 + 16, 1e22,
    0.5, math.nextafter(1, 2), math.nextafter(1, 0), 1e6,
]  # fmt: skip
WHOLE = [
    0, 1, 2, 3, 7, -9, 127, -128, 255, 2**31 - 1, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53), 1 - 2**53, 2**60,
    2**63 - 1, -(2**63), 2**64 - 1, 10**17, 10**17 + 16, 10**17 + 8, 10**6,
]  # fmt: skip
MOMENTS = [0, 1, -1, 1704067200, 1704067201, 936835200, 2**62, 2**63 - 1, 1 - 2**63, None]


class OwnFloat(float):
    def __float__(self) -> float:
        raise RuntimeError


class OwnText(str):
    def encode(self, *_: str) -> bytes:
        raise RuntimeError


class OwnBytes(bytes):
    def __bytes__(self) -> bytes:
        raise RuntimeError


OBJECTS = [
    None, pd.NA, pd.NaT, math.nan, math.inf, -0.0, 1, 2, 3, -9, True, np.bool_(True), np.int8(1), np.uint64(2**64 - 1),
    np.float32(2.5), np.longdouble("1e4000"), 10**5000, 10**400, 2**63, 2**53 + 1, Decimal("1"), Decimal("sNaN"),
    Decimal("1e400"), Decimal("-9.00"), Fraction(5, 2), Fraction(10**400), 1j, "1", " 1", "1.0", "A", "F", "?",
    "NA", "",
    "true", "\ud800", "é", np.str_("1"), np.bytes_(b"1"), b"F", b"\xff", bytearray(b"1"), [1], (1,), {1}, {"a": 1},
    np.array([1, 2]), np.array(1), dt.date(2024, 1, 1), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59,
    59, 999999),
    pd.Timestamp(2**62), pd.Timestamp("2024-01-01T00:00:00.123456789", tz="Europe/Berlin"), np.datetime64("2024-01-01"),
    dt.time(1), pd.Period("2024-01"), OwnFloat(1.0), OwnText("1"), OwnBytes(b"1"), object(), "2024-01-01",
    "2024-01-01T23:59:60", "1" * 5000, "\0", 1e308, "1e400",
]  # fmt: skip


# --- tables that hold them ------------------------------------------------------------------------------


class Route(NamedTuple):
    """A way to give cells: a table with them as the column ``c``, and the cells that it can hold."""

    table: Callable[[list[Any]], Any]
    pool: list[Any]


def objects(values: list[Any]) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def typed(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Also numbers as times and decimals as they are."""
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if pa.types.is_float16(kind):
        values = [None if value is None else np.float16(value) for value in values]
    return pa.array(values, kind)


def chunked(
    kind: pa.DataType, values: list[Any], *, dictionary: pa.DataType | None = None
) -> pa.ChunkedArray:
    """In two chunks, one of them behind an offset; a dictionary of each has its own words, twice, and null."""
    chunks = []
    for part in (values[: len(values) // 2], values[len(values) // 2 :]):
        made = typed(kind, [*part[-1:], *part])
        if dictionary is not None:
            words = pa.concat_arrays([made, pa.nulls(1, kind), made])
            places = [
                place if there else len(made) for place, there in enumerate(made.is_valid().to_pylist())
            ]
            made = pa.DictionaryArray.from_arrays(pa.array(places, dictionary), words)
        chunks.append(made[1:] if part else made[:0])
    return pa.chunked_array(chunks)


def beside(column: Any) -> dict[str, Any]:
    return {"c": column, "z": np.arange(len(column), dtype=np.float64) * 0 + 4}


def frame(column: Any) -> pd.DataFrame:
    return pd.DataFrame(beside(column))


def within(kind: str) -> list[int]:
    limits = np.iinfo(kind)
    return [
        value for value in {*WHOLE, int(limits.min), int(limits.max)} if limits.min <= value <= limits.max
    ]


ARROW: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{f"{sign}int{bits}": (getattr(pa, f"{sign}int{bits}")(), within(f"{sign}int{bits}"))
       for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float64": (pa.float64(), FLOATS), "float32": (pa.float32(), [0.0, -0.0, 1.0, 2.5, 3e38, math.inf,
    math.nan, 1e-45]),
    "float16": (pa.float16(), [0, -0.0, 1, 2.5, 65504, 6e-8, math.inf, math.nan]),
    "bool": (pa.bool_(), [True, False]), "null": (pa.null(), [None]), "fixed": (pa.binary(1), [b"1"]),
    **{f"decimal{bits}": (getattr(pa, f"decimal{bits}")(digits, 2), [*map(Decimal, (0, 1, "2.5", "9" * (digits - 2)))])
       for bits, digits in ((32, 9), (64, 18), (128, 38), (256, 76))},
    "decimal of thousands": (pa.decimal128(38, -3), [Decimal("1E+3"), Decimal("-9E3")]),
    **{name: (getattr(pa, name)(), TEXTS) for name in ("string", "large_string", "string_view")},
    **{name: (getattr(pa, name)(), BYTES) for name in ("binary", "large_binary", "binary_view")},
    "date32": (pa.date32(), [0, 1, -1, 19723, 2**31 - 1, -(2**31), -719162, 2932896]), "date64": (pa.date64(), MOMENTS),
    **{f"timestamp {unit} {zone}": (pa.timestamp(unit, tz=zone), MOMENTS)
       for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "+05:30")},
    "duration": (pa.duration("s"), [1]), "time": (pa.time32("s"), [1]), "list": (pa.list_(pa.int64()), [[1], [2]]),
    "struct": (pa.struct({"a": pa.int64()}), [{"a": 1}]),
}  # fmt: skip
WORDED = (
    "string",
    "string_view",
    "large_binary",
    "int64",
    "float64",
    "bool",
    "decimal128",
    "timestamp us None",
)
PANDAS: dict[str, list[Any]] = {
    "string[python]": [*TEXTS, "\ud800", None], "string[pyarrow]": [*TEXTS, None], "str": [*TEXTS, None],
    **{kind: [*within(kind.lower()), None] for kind in ("Int8", "Int64", "UInt64")},
    **{kind: within(kind) for kind in ("int8", "int64", "uint64")},
    "boolean": [True, False, None], "bool": [True, False], "float64": FLOATS, "float32": [0.0, 1.0, 2.5,
    math.nan, math.inf],
    "float16": [0.0, 1.0, 2.5, math.nan], "Float64": [0.0, -0.0, 1.0, 2.5, math.inf, None], "complex128": [1j],
    "datetime64[ns]": [*map(pd.Timestamp, ("2024-01-01", "1999-09-09", "2262-04-11T23:47:16.854775807")), pd.NaT],
    "datetime64[s, Europe/Berlin]": [*(pd.Timestamp(day, tz="UTC") for day in ("2024-01-01", "0001-01-02")), pd.NaT],
    "timedelta64[ns]": [pd.Timedelta(1)], "category": [*TEXTS, None],
}  # fmt: skip
POLARS: dict[Any, list[Any]] = {
    pl.String: [*TEXTS, None], pl.Categorical: [*TEXTS, None], pl.Enum([*TEXTS]): [*TEXTS, None],
    pl.Binary: [*BYTES, None], pl.Int64: [*within("int64"), None], pl.UInt64: [*within("uint64"), None],
    pl.Float64: [*FLOATS, None], pl.Float32: [0.0, 2.5, math.nan, None], pl.Boolean: [True, False, None],
    pl.Decimal(30, 2): [Decimal(1), Decimal("2.5"), Decimal(-9), None], pl.Null: [None], pl.Int128: [1, 2**100, None],
    pl.Date: [dt.date(2024, 1, 1), dt.date(1999, 9, 9), None], pl.Datetime("us"): [dt.datetime(2024, 1, 1, 10), None],
    pl.Duration: [dt.timedelta(1)], pl.Time: [dt.time(1)], pl.List(pl.Int64): [[1]], pl.Object: [1, "1"],
}  # fmt: skip
NUMPY = {kind: FLOATS for kind in ("f8", ">f8", "g")} | {"f4": [0.0, -9.0, 2.5, 1e-45, math.inf, math.nan]}
NUMPY |= {kind: within(kind) for kind in ("i1", "i8", "u8", ">i8")} | {
    "?": [True, False],
    "O": OBJECTS,
    "U9": ["1"],
}


def routes() -> dict[str, Route]:
    made: dict[str, Route] = {}
    for name, (kind, pool) in ARROW.items():
        pool = [*pool, *([] if None in pool else [None])]
        made[f"arrow {name}"] = Route(lambda v, k=kind: pa.table(beside(chunked(k, v))), pool)
        made[f"pandas arrow {name}"] = Route(
            lambda v, k=kind: frame(pd.Series(pd.arrays.ArrowExtensionArray(chunked(k, v)))), pool
        )
        for places in (pa.int8(), pa.uint64()) if name in WORDED else ():
            words = [*pool[:40], None]

            def worded(v: list[Any], k: Any = kind, p: Any = places) -> pa.ChunkedArray:
                return chunked(k, v, dictionary=p)

            made[f"arrow {name} by {places}"] = Route(lambda v, w=worded: pa.table(beside(w(v))), words)
            made[f"pandas arrow {name} by {places}"] = Route(
                lambda v, w=worded: frame(pd.Series(pd.arrays.ArrowExtensionArray(w(v)))), words
            )
    for kind, pool in PANDAS.items():
        made[f"pandas {kind}"] = Route(lambda v, k=kind: frame(pd.Series(v, dtype=k)), pool)
    made["pandas object"] = Route(lambda v: frame(pd.Series(objects(v), dtype=object)), OBJECTS)
    for kind, pool in POLARS.items():
        eager = Route(lambda v, k=kind: pl.DataFrame(beside(pl.Series(v, dtype=k, strict=False))), pool)
        made[f"polars {kind}"[:40]] = eager
        made[f"polars lazy {kind}"[:40]] = Route(lambda v, e=eager: e.table(v).lazy(), pool)
    for kind, pool in NUMPY.items():
        for order in "CF":
            made[f"numpy {kind} {order}"] = Route(
                lambda v, k=kind, o=order: np.array(
                    np.column_stack(
                        [np.array(v, k) if k != "O" else objects(v), np.full(len(v), 4).astype(k)]
                    ),
                    k,
                    order=o,
                ),
                pool,
            )
    made["numpy masked"] = Route(
        lambda v: np.ma.array([[c, 4.0] for c, _ in v], mask=[[m, False] for _, m in v]),
        [(cell, mask) for cell in FLOATS for mask in (False, True)],
    )
    return made


ROUTES = routes()


# --- the law --------------------------------------------------------------------------------------------


def rows_of(data: Any, schema: Schema) -> list[list[float]]:
    bounding = Bounding.of(schema)
    return [row for block in open_table(data, schema).blocks() for row in bounding.rows(block).tolist()]


def sum_of(data: Any, schema: Schema) -> list[int]:
    made = sum_rows(open_table(data, schema), schema, Grid.of(schema), engine=Local(workers=1))
    return list(map(int, made.reveal_to_mechanism()))


def refused(data: Any, schema: Schema) -> str:
    """The code with which a table is refused before it is read; nothing where it is not."""
    try:
        open_table(data, schema)
    except InputError as reason:
        return reason.code
    return ""


def check(route: Route, column: str, draw: random.Random, *, times: int, most: int) -> int:
    """Read cells alone, and some of them in company, so many times; how many were compared."""
    quick, constant = schema_of(column), schema_of(column, timing="constant")
    codes = {refused(route.table([cell]), quick) for cell in route.pool}
    assert len(codes) == 1, "one cell decides whether a table is refused"
    if codes != {""}:
        return 0
    alone: dict[int, list[float]] = {}
    for place in draw.sample(range(len(route.pool)), min(most, len(route.pool))):
        (alone[place],) = rows_of(route.table([route.pool[place]]), quick)
    done = 0
    for _ in range(times):
        places = draw.choices([*alone], k=draw.choice([2, 3, 8, 40]))
        table, expected = (
            route.table([route.pool[place] for place in places]),
            [alone[place] for place in places],
        )
        for schema in (quick, constant):
            for place, found, row in zip(places, rows_of(table, schema), expected, strict=True):
                assert found == row, f"{route.pool[place]!r} is read in another way in company"
                done += 1
    total = np.array([np.outer(row, row) for row in expected]).astype(np.int64)
    whole = [int(one) for one in sum(total.astype(object))[np.triu_indices(total.shape[1])]]
    assert sum_of(table, quick) == whole
    return done


def check_routes(family: str, *, times: int, most: int, columns: int, seed: int = 0) -> int:
    """Some columns by every route of a family, without a warning; how many cells were compared."""
    draw, done = random.Random(f"{family} {seed}"), 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, route in ROUTES.items():
            if name.partition(" ")[0] == family:
                for column in draw.sample([*COLUMNS], columns):
                    done += check(route, column, draw, times=times, most=most)
    return done


FAMILIES = ["arrow", "pandas", "polars", "numpy"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cell_of_a_frame_is_read_in_company_as_it_is_read_alone(family):
    assert check_routes(family, times=2, most=10, columns=1) > 100


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(max(1, int(2 * float(os.environ.get("PRIVCOV_SAMPLE", "1"))))))
def test_every_cell_of_a_frame_is_read_in_company_as_it_is_read_alone(family, seed):
    assert check_routes(family, times=3, most=100, columns=len(COLUMNS), seed=seed) > 10_000


# --- files ----------------------------------------------------------------------------------------------

DIALECTS = [
    {}, {"separator": ";", "decimal": ","}, {"separator": ";", "decimal": ",", "thousands": "."}, {"thousands": ","},
    {"separator": "\t", "thousands": " "}, {"encoding": "latin-1", "thousands": "\u00a0"}, {"quote": "'",
    "separator": "|"},
]  # fmt: skip
LINES = [
    b"",
    b"1",
    b"1,2,3",
    b",",
    b'"1',
    b'"1","2"',
    b'"F",3',
    b'1"2,3',
    b"\xff,1",
    b"1" * 3000 + b",2",
    b"1,NA",
    b"1,x",
]


def lines_of(draw: random.Random, separator: bytes) -> list[bytes]:
    """Some lines, most of them alike: with few odd cells, a quick way is not given up at once."""
    odd = [cell for cell in draw.sample(BYTES, 2) if not set(b"\r\n") & set(cell)]
    pool = [*odd, *draw.sample([b"1", b"2", b"2.5", b"-9", b"F", b"2024-01-01", b"9007199254740993"], 2)]
    made = [
        draw.choice(pool) + separator + draw.choice([b"4", b"4", b"", b"NA", b"x"])
        for _ in range(draw.choice([2, 5, 30]))
    ]
    return made if draw.random() < 0.7 else [*made, draw.choice(LINES).replace(b",", separator)]


def check_lines(folder: Path, *, times: int, seed: int = 0) -> None:
    draw, path, quick = random.Random(seed), folder / "t.csv", csv_module.quick_columns

    def read(
        lines: list[bytes], schema: Schema, *, way: Any = quick, small: int = 2**19
    ) -> list[list[float]]:
        separator = schema.file.separator.encode()
        path.write_bytes(b"\n".join([b"c" + separator + b"z", *lines, b""]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_module, "quick_columns", way)
            patch.setattr(csv_module, "SMALL", small)
            return rows_of(path, schema)

    for _ in range(times):
        column, words = draw.choice([*COLUMNS]), draw.choice(DIALECTS)
        plain, constant = schema_of(column, **words), schema_of(column, **words, timing="constant")
        lines = lines_of(draw, plain.file.separator.encode())
        alone = {line: read([line], constant) for line in set(lines)}
        expected = [row for line in lines for row in alone[line]]
        assert read(lines, plain) == expected, (column, words, lines)
        assert read(lines, plain, way=lambda *_: None) == expected, (column, words, lines)
        assert read(lines, plain, small=16) == expected, (column, words, lines)
        assert read(lines, constant) == expected, (column, words, lines)


def test_a_line_is_read_in_company_as_it_is_read_alone(tmp_path):
    """By polars, by pyarrow with numbers as numbers, in small runs, and with constant timing."""
    check_lines(tmp_path, times=30)


@pytest.mark.slow
def test_every_line_is_read_in_company_as_it_is_read_alone(tmp_path):
    check_lines(tmp_path, times=max(100, int(4_000 * float(os.environ.get("PRIVCOV_SAMPLE", "1")))), seed=1)


STORED = [
    "int64",
    "uint64",
    "float64",
    "float16",
    "bool",
    "string",
    "large_binary",
    "decimal128",
    "timestamp us None",
    "date32",
]


def check_files(folder: Path, *, columns: int) -> None:
    """Parquet in one row group and in many, in one file and in several, with a dictionary and without; and DuckDB."""
    draw = random.Random(columns)
    for name in STORED:
        kind, pool = ARROW[name]
        pool = [cell for cell in pool if not isinstance(cell, str) or "\0" not in cell]
        for column in draw.sample([*COLUMNS], columns):
            schema, cells = schema_of(column), [draw.choice(pool[:20]) for _ in range(12)]
            tables = [pa.table(beside(typed(kind, [cell]))) for cell in cells]
            if refused(tables[0], schema):
                continue
            expected = [row for table in tables for row in rows_of(table, schema)]
            paths = [folder / f"{part}.parquet" for part in "ab"]
            for group, dictionary in ((1, True), (5, True), (12, False)):
                pq.write_table(
                    pa.concat_tables(tables), paths[0], row_group_size=group, use_dictionary=dictionary
                )
                assert rows_of(paths[0], schema) == expected, (name, column, cells)
            for path, part in zip(paths, (tables[:3], tables[3:]), strict=True):
                pq.write_table(pa.concat_tables(part), path)
            assert rows_of(str(folder / "*.parquet"), schema) == expected, (name, column, cells)
            if name in ("int64", "float64", "bool", "string"):
                with duckdb.connect() as base:
                    base.register("rows", pa.concat_tables(tables))
                    base.execute("create table held as select * from rows")
                    assert rows_of(base.sql("select * from held"), schema) == expected, (name, column, cells)


def test_a_cell_of_a_typed_file_is_read_in_company_as_it_is_read_alone(tmp_path):
    check_files(tmp_path, columns=3)


@pytest.mark.slow
def test_every_cell_of_a_typed_file_is_read_in_company_as_it_is_read_alone(tmp_path):
    check_files(tmp_path, columns=len(COLUMNS))


# --- what becomes of cells ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))])
def test_the_id_of_a_row_is_read_in_company_as_it_is_read_alone(seed, tmp_path):
    """As text, in bytes, as a whole number, as a Python object, in a file."""
    draw = random.Random(seed)
    schema = Schema.from_dict(
        {"columns": BESIDE, "person": "c", "max_rows_per_person": 2, "missing_values": ["NA", "-9"]}
    )

    def ids(data: Any) -> list[bytes]:
        blocks = open_table(data, schema)._table.read_blocks()
        return [one for block in blocks for one in Rows.of(block).ids.to_pylist()]

    ways = {name: route for name, route in ROUTES.items() if not name.startswith("numpy")}
    for name, route in ways.items():
        if refused(route.table(route.pool[:1]), schema):
            continue
        cells = draw.choices(route.pool, k=12)
        if any(refused(route.table([cell]), schema) for cell in cells):
            continue  # categories of fractions, of which a whole frame is refused
        assert ids(route.table(cells)) == [one for cell in cells for one in ids(route.table([cell]))], name
    path = tmp_path / "t.csv"

    def of_lines(lines: list[bytes]) -> list[bytes]:
        path.write_bytes(b"\n".join([b"c,z", *lines, b""]))
        return ids(path)

    for _ in range(20):
        lines = lines_of(draw, b",")
        assert of_lines(lines) == [one for line in lines for one in of_lines([line])]


@pytest.mark.parametrize("always", ["quick", "constant"])
@pytest.mark.parametrize("seed", range(6))
def test_a_row_counts_in_company_what_it_counts_alone(seed, always):
    """In its stratum, with its weight, and in each question that fits a frame."""
    draw = random.Random(seed)
    columns = {
        "a": COLUMNS["zero row"],
        "b": COLUMNS["wide"],
        "d": COLUMNS["fill"],
        "s": COLUMNS["otherwise"],
    }
    columns |= {"t": {"levels": [5, 6], **draw.choice([{}, {"fill": 6}, {"missing": "zero-row"}])}}
    words = {"missing": "midpoint", "file": {"timing": always}, "max_rows_per_person": 1}
    whole = Schema.from_dict(
        {"columns": columns, "weight": "w", "largest_weight": 8, "weight_power": "0.3", **words}
    )
    strata, rest = Strata.of(whole, by=["s", "t"])
    split, bounding = Split(strata=strata, whole=whole), Bounding.of(rest, Grid.of(rest, strata=True))
    plain = Schema.from_dict({"columns": {name: columns[name] for name in "abd"}, **words})
    bare = Bounding.of(plain)
    looks = [Scales(schema=plain, bins=bins) for bins in (16, 64)]
    looks += [
        Radius(schema=plain, edges=(2**10, 2**30, 2**45)),
        *(kind(schema=plain, fills=(0.0, 0.0, 3.0)) for kind in (Means, Squares)),
    ]
    usual = [0.0, 1.0, -1.0, 2.5, 10.0]
    for _ in range(30):
        count, share = draw.choice([2, 9, 40]), draw.choice([0.0, 0.02, 0.3])
        numbers = [
            [draw.choice(FLOATS if draw.random() < share else usual) for _ in range(count)] for _ in range(4)
        ]
        codes = [
            [draw.choice([-1.0, math.nan] if draw.random() < share else [0.0, 1.0]) for _ in range(count)]
            for _ in "st"
        ]
        block = [np.array(cells) for cells in [*numbers[:3], *codes, numbers[3]]]
        alone = [[cells[place : place + 1] for cells in block] for place in range(count)]
        assert split.places(block).tolist() == [int(split.places(row)[0]) for row in alone]
        kept = [0, 1, 2, 5]
        found = bounding.rows([block[place] for place in kept]).tolist()
        assert found == [bounding.rows([row[place] for place in kept]).tolist()[0] for row in alone]
        for look in looks:
            each = [look.sums(bare, row[:3]) for row in alone]
            assert look.sums(bare, block[:3]).tolist() == np.sum(each, axis=0).tolist(), look.name


# --- what the law finds ---------------------------------------------------------------------------------


def rounded_if_any_is_odd(text: pa.Array, *_: Any) -> np.ndarray:
    """All cells by Arrow, and where it refuses one, all in another way, which rounds."""
    try:
        return cells_module._numbers(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        return np.rint(cells_module._by_pattern(text, RFC_4180))


def in_one_piece(series: Any) -> list[pa.Array]:
    values = pa.array(series, from_pandas=True)
    return [values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values]


def in_single_precision_unless_large(column: Any, numbers: np.ndarray, **_: Any) -> np.ndarray:
    kind = np.float32 if np.abs(numbers).max(initial=0.0) < 2**60 else np.float64
    codes = np.full(len(numbers), -1.0)
    for place, level in enumerate(column.numbers):
        codes[numbers.astype(kind) == kind(level)] = place
    return np.where(np.isfinite(numbers), codes, np.nan)


@pytest.mark.parametrize(
    ("broken", "target", "route", "column"),
    [
        (rounded_if_any_is_odd, (cells_module, "_parsed"), "arrow string", "numeric"),
        (in_single_precision_unless_large, (cells_module, "codes_of_numbers"), "arrow float64", "levels about 2^53"),
        (in_one_piece, (frames, "_runs"), "pandas arrow string by int8", "texts"),
    ],
)  # fmt: skip
def test_a_way_that_one_cell_decides_is_found(broken, target, route, column, monkeypatch):
    """The last one was there: whether the dictionaries of two chunks fit into one ended a release, or did not."""
    monkeypatch.setattr(*target, broken)
    with pytest.raises((AssertionError, pa.ArrowInvalid)):
        check(ROUTES[route], column, random.Random(0), times=20, most=100)
