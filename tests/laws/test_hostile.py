"""Whatever a file or a document says, what comes out is a result or an error with a code.

Hypothesis builds inputs that are nearly right: the byte-level damage is in ``privcov.bench.hostile``.
"""

from __future__ import annotations

import contextlib
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov import codec
from privcov.errors import InputError, PrivcovError
from privcov.table import open_table

MANY = settings(
    max_examples=int(120 * float(os.environ.get("PRIVCOV_EXAMPLES", "1"))),
    deadline=5000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WORDS = st.sampled_from(
    ["columns", "lower", "upper", "levels", "intercept", "row_norm_bound", "missing", "planning", "age", "x"]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1/3", "midpoint", "zero-row", "nan", "1e999"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
COLUMN = st.fixed_dictionaries({}, optional={"lower": LEAVES, "upper": LEAVES, "levels": VALUES})
SCHEMAS = st.fixed_dictionaries(
    {"columns": st.dictionaries(st.text(max_size=5) | st.just("age"), COLUMN | VALUES, max_size=3) | VALUES},
    optional={
        word: VALUES for word in ("intercept", "row_norm_bound", "missing", "max_rows_per_person", "x")
    },
)
CELLS = st.one_of(
    st.text(max_size=6),
    st.floats().map(str),
    st.sampled_from(['"', '""', '"a', "1,5", "0x10", "\x00", "\r", "NaN", "F", "1_0", "+1", "1.", "٣"]),
)
LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")


@given(SCHEMAS)
@MANY
def test_a_schema_of_any_shape_is_read_or_refused_with_a_code(given_schema):
    try:
        schema = pc.Schema.from_dict(given_schema)
    except PrivcovError:
        return
    assert pc.Schema.from_dict(given_schema) == schema
    assert schema.dimension >= 1


@given(st.lists(st.lists(CELLS, max_size=5).map(",".join), max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
@MANY
def test_lines_of_any_kind_below_a_header_make_a_release(schema, tmp_path, lines, newline):
    path = tmp_path / "t.csv"
    path.write_bytes(newline.join(["age,sex,income", *lines, "1,F,2"]).encode("utf-8", "surrogatepass"))
    made = pc.release(path, schema=schema, loss=LOSS, mechanism="laplace", arithmetic="idealized")
    assert len(made.upper) == 15


@given(st.lists(CELLS, max_size=5), st.binary(max_size=40))
@MANY
def test_a_header_of_any_kind_is_accepted_or_refused_with_a_code(schema, tmp_path, names, rest):
    path = tmp_path / "t.csv"
    path.write_bytes(",".join(names).encode("utf-8", "surrogatepass") + b"\n" + rest)
    with contextlib.suppress(InputError):
        open_table(path, schema)


@given(st.data())
@MANY
def test_a_release_with_one_value_replaced_is_refused_with_a_code(made, data):
    document = json.loads(made.to_json())
    place, where = document, []
    while isinstance(place, dict | list) and place:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        where.append(data.draw(st.sampled_from(list(keys))))
        place = place[where[-1]]
    *way, last = where
    holder = document
    for step in way:
        holder = holder[step]
    new = data.draw(VALUES)
    if new == holder[last] and type(new) is type(holder[last]):
        return
    holder[last] = new
    with pytest.raises(PrivcovError):
        codec.decode(document)
