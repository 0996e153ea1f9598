"""No warning tells of a value: every type of number, at its ends, in every kind of table in memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privcov as pc
from privcov.estimators import PrivateCovariance
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Local
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov.unbounded.rows import open_rows, read_rows
from privcov.unbounded.univariate import estimate_mean

REAL_TYPES = [np.dtype(kind) for kind in (*"?bBhHiIlLqQefdg", ">f8", ">f4", ">i8")]


def extremes(dtype: np.dtype[Any]) -> np.ndarray:
    """The values of a type that conversions stumble over: its ends, the least ones, infinities, both kinds of NaN."""
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind != "f":
        return np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 0, 1], dtype)
    facts = np.finfo(dtype)
    values = [facts.max, -facts.max, facts.tiny, facts.smallest_subnormal, np.inf, -np.inf, np.nan, 0, 1]
    loud = {2: 0x7D01, 4: 0x7FA00001, 8: 0x7FF4000000000001}.get(dtype.itemsize)  # a NaN that signals
    signals = [] if loud is None else [np.array([loud], f"{dtype.byteorder}u{dtype.itemsize}").view(dtype)[0]]
    made = np.array([*values, 0], dtype)
    made[-1:] = np.array(signals or [np.nan], dtype)
    return made


@pytest.mark.parametrize("dtype", REAL_TYPES, ids=str)
def test_no_value_of_any_type_raises_a_warning(dtype: np.dtype[Any]) -> None:
    """With warnings as errors the release would fail (E900): a fact about a value."""
    values = extremes(dtype)
    array = np.column_stack([values, values[::-1]])
    masked = np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) % 3 == 0)
    native = array.astype(dtype.newbyteorder("="))
    frame = pd.DataFrame({"a": native[:, 0], "l": native[:, 1]})
    sources: list[Any] = [array, masked, frame, frame.astype(object)]
    if dtype not in (np.float16, np.longdouble):  # of which pandas makes no categories, and Arrow no columns
        sources += [
            frame.astype("category"),
            pa.Table.from_pandas(frame, preserve_index=False),
            pl.from_pandas(frame),
        ]
        sources += [frame.convert_dtypes(dtype_backend="pyarrow"), frame.convert_dtypes()]
    schema = Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 1}, "l": {"levels": [0, 1]}}})
    for source in sources:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = sum_rows(open_table(source, schema), schema, Grid.of(schema), engine=Local(workers=1))
        assert made.rows == len(values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate_mean(values, std=1, loss=pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one"))
        read_rows(open_rows(array, ["a", "l"]))
        model = PrivateCovariance(bounds=(0, 1), epsilon=1, neighbours="replace-one")
        model.fit(array)
        model.fit(array.astype(object))
