"""Amin, Dick, Kulesza, Muñoz Medina and Vassilvitskii, Differentially private covariance estimation, NeurIPS 2019.

``place`` is a table as the papers scale it, ``methods`` the lines of Figure 1 and ours, ``authors`` those of the
authors' public code, ``measuring`` the cells, ``claims`` and ``findings`` what is read off them.
"""

from privcov_lab.reproduce.papers.amin2019.findings import find
from privcov_lab.reproduce.papers.amin2019.measuring import (
    TABLES,
    cells,
    errors,
    facts,
    perturbed,
    proposals,
    simulated,
)
from privcov_lab.reproduce.study import Study

__all__ = ["STUDY", "errors", "facts", "perturbed", "proposals", "simulated"]

STUDY = Study(
    name="amin2019",
    title="Differentially private covariance estimation",
    citation="K. Amin, T. Dick, A. Kulesza, A. Muñoz Medina, S. Vassilvitskii. Advances in Neural Information "
    "Processing Systems 32, 2019.",
    about="Eigenvectors drawn one by one from the exponential mechanism, with eigenvalues by Laplace noise, beside "
    "rank-one subtraction, Laplace and Gaussian noise. Repeated here: Figure 1 on wine, airfoil and adult, "
    "with the constants the paper prints, with those of its public code, and with ours; the number of proposals; ridge "
    "regression; sweeps over columns and rows.",
    tables=TABLES,
    cells=cells,
    find=find,
)
