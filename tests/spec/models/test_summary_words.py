"""Words and digits of tables that noise hides, or whose numbers are large."""

import numpy as np

import privcov as pc
from privcov.models.strata import differences
from privcov.noise.randomness import rehearsal

ROWS = 4_000
SCHEMA = pc.Schema.from_dict(
    {
        "columns": {
            "age": {"lower": 0, "upper": 100},
            "income": {"lower": 0, "upper": 200_000},
            "county": {"levels": [0, 1]},
        }
    }
)


def release(epsilon, **words):
    source = np.random.default_rng(1)
    age = source.uniform(20, 70, ROWS)
    table = np.column_stack([age, 900 * age + source.normal(0, 9_000, ROWS), source.integers(0, 2, ROWS)])
    loss = pc.PureDP(epsilon=epsilon, neighbours="replace-one")
    return pc.release(table, schema=SCHEMA, loss=loss, randomness=rehearsal(1), **words)


def test_a_single_regressor_is_no_combination_of_others():
    text = pc.ols(release("0.01"), "income ~ age").summary()
    assert "age: noise hides how much it varies." in text
    assert "combination" not in text


def test_differences_between_strata_are_in_plain_digits():
    found = differences(release(4, by="county"), "0", "1")
    assert max(abs(one.first) for one in found.found) > 10_000
    assert "e+" not in found.summary()
