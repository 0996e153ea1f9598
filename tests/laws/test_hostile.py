"""Whatever a file or a document says, what comes out is a result or an error with a code.

Hypothesis builds inputs that are nearly right: the byte-level damage is in ``privcov_lab.bench.hostile``.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.errors import InputError, PrivcovError
from privcov.releases import codec
from privcov.releases.release import assembled
from privcov.report.summary import as_text
from privcov.schema.dialect import Dialect
from privcov.table import open_table
from privcov.text.grammar import printable
from privcov.unbounded import codec as estimates
from privcov.unbounded.page import as_text as estimate_text
from privcov.verification.consistency import disagreements
from privcov_lab.bench import hostile

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
    declared = replace(schema, file=Dialect(line_end="cr" if newline == "\r" else "lf"))
    made = pc.release(path, schema=declared, loss=LOSS, mechanism="laplace", arithmetic="idealized")
    assert len(made.upper) == 15


@given(st.lists(CELLS, max_size=5), st.binary(max_size=40))
@MANY
def test_a_header_of_any_kind_is_accepted_or_refused_with_a_code(schema, tmp_path, names, rest):
    path = tmp_path / "t.csv"
    path.write_bytes(",".join(names).encode("utf-8", "surrogatepass") + b"\n" + rest)
    with contextlib.suppress(InputError):
        open_table(path, schema)


LIES = VALUES | st.sampled_from(hostile.LIES)


def replaced(document, data):
    """The document with one value, at any depth, replaced by another."""
    place, where = document, []
    while isinstance(place, dict | list) and place:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        where.append(data.draw(st.sampled_from(list(keys))))
        place = place[where[-1]]
    *way, last = where
    holder = document
    for step in way:
        holder = holder[step]
    holder[last] = data.draw(LIES)
    return document


def resealed(form, document):
    """The document with a digest that holds; there is none for a number that JSON cannot write."""
    try:
        return form.sealed(
            {word: value for word, value in document.items() if word not in ("format", "signature")}
        )
    except ValueError:
        reject()


@given(st.data())
@MANY
def test_a_release_with_one_value_replaced_is_refused_with_a_code(made, data):
    text = made.to_json()
    document = replaced(json.loads(text), data)
    if document != json.loads(text):
        with pytest.raises(PrivcovError):
            codec.decode(document)


@given(st.data())
@MANY
def test_a_forged_release_is_refused_with_a_code_or_says_what_can_be_said(made, data):
    """With a fresh digest. What is not refused can be checked, shown, and written again as it was."""
    document = resealed(codec.FORM, replaced(json.loads(made.to_json()), data))
    try:
        forged = assembled(codec.decode(document))
    except PrivcovError:
        return
    assert forged.to_dict() == document
    assert all(printable(words) for words in disagreements(forged))
    assert printable(as_text(forged, what="correlation").replace("\n", ""))


@given(st.data())
@MANY
def test_a_forged_estimate_is_refused_with_a_code_or_says_what_can_be_said(estimate, data):
    document = resealed(estimates.FORM, replaced(json.loads(estimate.to_json()), data))
    try:
        forged = estimates.decode(document)
    except PrivcovError:
        return
    assert forged.to_dict() == document
    assert printable(estimate_text(forged).replace("\n", ""))


@pytest.fixture(scope="module")
def estimate():
    rows = np.column_stack([np.linspace(0, 1, 40), np.linspace(3, 1, 40)])
    loss = pc.ZCDP(rho=1, neighbours="replace-one")
    return pc.estimate_gaussian(rows, loss=loss, largest_variance=9, mean_radius=10, rounds=2)
