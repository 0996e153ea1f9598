"""Exact samplers: integer noise, lazily refined reals, and correctly rounded random matrices.

They read nothing but ``Randomness.words`` and produce exactly the law they name, given fair bits: no result
depends on how a float was rounded. A fast float filter decides almost always; an exact judge the rest.

Proof: docs/proofs/exact-sampling.md
"""

from privcov.noise.exact.discrete import discrete_cube, discrete_gaussian, discrete_laplace, uniform_below
from privcov.noise.exact.matrices import (
    frobenius_ball,
    gaussian_ensemble,
    rounded_normals,
    wishart,
    wishart_difference,
)
from privcov.noise.exact.reals import LazyReals, exponentials, normals

__all__ = [
    "uniform_below",
    "discrete_laplace",
    "discrete_cube",
    "discrete_gaussian",
    "LazyReals",
    "normals",
    "exponentials",
    "wishart",
    "wishart_difference",
    "rounded_normals",
    "gaussian_ensemble",
    "frobenius_ball",
]
