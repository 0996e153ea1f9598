"""Kamath, Li, Singhal and Ullman, Privately learning high-dimensional distributions, 2018, as a lecture tells it.

``measuring`` holds the cells, ``reading`` what is computed of them, ``claims`` the statements they test, ``panels`` and
``tables`` the rest of what ``findings`` gathers.
"""

from privcov_lab.reproduce.papers.klsu2018.findings import find
from privcov_lab.reproduce.papers.klsu2018.measuring import cells, conditioning, errors
from privcov_lab.reproduce.study import Study

__all__ = ["STUDY", "conditioning", "errors"]

STUDY = Study(
    name="klsu2018",
    title="Privately learning high-dimensional distributions",
    citation="G. Kamath, J. Li, V. Singhal, J. Ullman. arXiv 1805.00216, 2018; read through the lecture notes "
    "“Private covariance estimation in high dimensions”, 3 December 2019.",
    about="The covariance of Gaussian rows in Mahalanobis error: clipping to the largest radius with Gaussian noise, "
    "and recursive private preconditioning, which needs far fewer rows where the condition number is large. The paper "
    "and the lecture prove rates and run nothing; measured here, on invented rows, is whether the rates are seen, "
    "what privacy costs in rows, and how coinpress (Biswas, Dong, Kamath and Ullman 2020) compares.",
    tables=(),
    cells=cells,
    find=find,
)
