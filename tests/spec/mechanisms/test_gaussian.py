"""The Gaussian mechanism: calibration, weights and the free trace."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privcov as pc
from privcov.mechanisms.gaussian import Gaussian
from privcov.noise.randomness import rehearsal
from privcov.schema import Schema
from privcov.schema.grid import Grid


def grid_of(d):
    columns = {f"c{i}": {"lower": 0, "upper": 1} for i in range(d)}
    return Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": 1}))


def approx(neighbours, epsilon=1, delta="1e-6"):
    return pc.ApproxDP(epsilon=epsilon, delta=delta, neighbours=neighbours)


def test_the_rounded_gaussian_is_calibrated_by_its_exact_profile():
    law = Gaussian().law(loss=approx("add-remove"), grid=grid_of(4))
    assert law.scale == pytest.approx(4.2247, rel=1e-4)
    law = Gaussian().law(loss=approx("replace-one"), grid=grid_of(4))
    assert law.scale == pytest.approx(math.sqrt(2) * 4.2247, rel=1e-4)


def test_the_discrete_gaussian_is_calibrated_through_zcdp():
    law = Gaussian(noise="discrete").law(loss=approx("add-remove"), grid=grid_of(4))
    assert law.scale == pytest.approx(4.531, rel=1e-3)
    assert law.name == "gaussian"


def test_the_standard_deviation_never_falls_below_the_certified_one():
    from fractions import Fraction

    from privcov.accounting import gaussian_mu

    grid = grid_of(4)
    law = Gaussian().law(loss=approx("add-remove"), grid=grid)
    least = Fraction(grid.squared_norm_bound) / gaussian_mu(epsilon=1, delta="1e-6") * grid.unit
    assert Fraction(law.scale) >= least


def test_zcdp_calibration_is_delta_over_root_two_rho():
    law = Gaussian().law(loss=pc.ZCDP(rho="0.5", neighbours="add-remove"), grid=grid_of(3))
    assert law.scale == pytest.approx(1.0, rel=1e-9)


@pytest.mark.long
def test_the_trace_is_d_plus_1_times_as_precise_under_replace_one_only():
    """Two-sided at 6 standard errors, 3 000 draws: finds a variance wrong by 16 %."""
    grid, loss = grid_of(5), pc.ZCDP(rho="0.5", neighbours="replace-one")
    randomness = rehearsal(9)
    diagonal = np.flatnonzero(np.equal(*np.triu_indices(5)))
    draws = np.array(
        [
            Gaussian().draw(loss=loss, grid=grid, randomness=randomness).upper[diagonal].sum()
            for _ in range(3000)
        ],
        dtype=float,
    ) * float(grid.unit)
    law = Gaussian().law(loss=loss, grid=grid)
    ratio = (draws**2).mean() / law.trace_variance
    assert law.trace_variance == pytest.approx(2 * 5 / 6, rel=1e-9)
    assert abs(ratio - 1) < 6 * math.sqrt(2 / 3000)
    plain = Gaussian().law(loss=pc.ZCDP(rho="0.5", neighbours="add-remove"), grid=grid)
    assert plain.trace_variance == pytest.approx(5, rel=1e-9)


def test_the_free_trace_costs_no_privacy():
    """The length of every change D in units of the noise, with and without the free trace: at most √2."""
    rng = np.random.default_rng(1)
    for d in (1, 2, 5):
        for _ in range(2000):
            x, y = rng.normal(size=(2, d))
            x, y = x / np.linalg.norm(x) * rng.random() ** 0.1, y / np.linalg.norm(y) * rng.random() ** 0.1
            change = np.outer(x, x) - np.outer(y, y)
            trace_part = np.trace(change) / d * np.eye(d)
            length = np.linalg.norm(change - trace_part) ** 2 + (d + 1) * np.linalg.norm(trace_part) ** 2
            assert length <= 2 + 1e-9
