"""OpenDP: ``make_private_pca`` of rows about the origin, every component, put together again.

Its metric is the symmetric distance, at which two tables of the same size that differ in one replaced row are 2
apart; what it charges for that is asked of the measurement itself before it runs. It takes no seed.
"""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp
from opendp.extras.sklearn.decomposition import make_private_pca


def prepare(rows, epsilon, seed):  # type: ignore[no-untyped-def]
    dp.enable_features("contrib", "idealized-numerics")
    count, dimension = rows.shape
    domain = dp.numpy.array2_domain(num_columns=dimension, size=count, T=float, norm=1.0, p=2, origin=0.0)
    release = make_private_pca(domain, dp.symmetric_distance(), float(epsilon), norm=1.0)
    charged = release.map(2)
    if not abs(charged - epsilon) <= 1e-9 * epsilon:
        raise SystemExit(f"one replaced row costs {charged}, and {epsilon} was asked for")

    def work():  # type: ignore[no-untyped-def]
        made = release(rows)
        return np.asarray((made.Vt.T * made.S**2) @ made.Vt)

    return work
