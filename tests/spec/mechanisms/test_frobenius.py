"""The length of frobenius noise is Gamma-distributed, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, ks_1samp

import privcov as pc
from privcov.mechanisms.frobenius import Frobenius
from privcov.noise.randomness import rehearsal
from privcov.schema import Schema
from privcov.schema.grid import Grid


@pytest.mark.long
def test_the_length_of_the_noise_is_gamma():
    """Kolmogorov–Smirnov at 1e-6 with 3 000 draws; a scale wrong by 10 % is found."""
    columns = {f"c{i}": {"lower": 0, "upper": 1} for i in range(3)}
    grid = Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": 1}))
    loss, randomness = pc.PureDP(epsilon=1, neighbours="add-remove"), rehearsal(4)
    weights = np.where(np.equal(*np.triu_indices(3)), 1.0, 2.0)
    lengths = [
        np.sqrt(
            (
                weights
                * Frobenius().draw(loss=loss, grid=grid, randomness=randomness).upper.astype(float) ** 2
            ).sum()
        )
        for _ in range(3000)
    ]
    sample = np.array(lengths) * float(grid.unit)
    assert ks_1samp(sample, gamma(6).cdf).pvalue > 1e-6
    assert ks_1samp(sample * 1.1, gamma(6).cdf).pvalue < 1e-6
