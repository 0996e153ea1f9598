"""The examples in the docstrings of the exact samplers run and say the truth."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["uniforms", "trials", "discrete", "reals", "products", "matrices"])
def test_every_example_of_the_exact_samplers_runs(name):
    result = doctest.testmod(importlib.import_module(f"privcov.noise.exact.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
