"""The experiments of the papers privcov comes from, measured again on their data; nothing here can make a release.

A paper is one file in ``papers``: the cells that are measured, and what is made of them (tables, figures, claims).
``study`` says what those are, ``running`` measures cells in parallel and picks up where it was stopped, ``writing``
puts the findings into files, ``datasets`` finds the papers' tables.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privcov.errors import OutputError, ParameterError
from privcov_lab.reproduce.study import Effort, Study

if TYPE_CHECKING:
    from privcov_lab.reproduce.datasets import Datasets

PAPERS = {
    "amin2019": "Differentially private covariance estimation (NeurIPS 2019)",
    "amin2018": "Private covariance estimation via iterative eigenvector sampling (2018)",
    "bain2014": "A private variance-covariance release and its regressions (2014)",
    "imtiaz2016": "Symmetric matrix perturbation for private PCA (ICASSP 2016, withdrawn)",
    "klsu2018": "Privately learning high-dimensional distributions (2018), and its lecture",
}
"""Every paper that can be reproduced, in the order of the seeds; each is a module of ``papers``."""


def study(name: str) -> Study:
    """The study of a paper, imported when it is asked for.

    >>> study("klsu2018").tables
    ()
    """
    if name not in PAPERS:
        raise ParameterError(
            "E298", f"there is no reproduction of {name!r}.", f"There are: {', '.join(PAPERS)}."
        )
    found: Study = import_module(f"privcov_lab.reproduce.papers.{name}").STUDY
    return found


def reproduce(
    name: str,
    *,
    data: Datasets,
    directory: str | Path,
    effort: Effort,
    workers: int | None = None,
    begin: Callable[[int], None] = lambda left: None,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Measure what of a paper is not measured yet and write what was found below ``directory``; what, as JSON values.

    A smoke run, and one with the paper's constants alone, have directories of their own: they never replace the
    pages of the whole.
    """
    from privcov_lab.reproduce.running import run
    from privcov_lab.reproduce.writing import write

    chosen = study(name)
    place = Path(directory) / (
        name + ("-as-published" if effort.published_only else "") + ("-quick" if effort.quick else "")
    )
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise OutputError("E409", f"cannot make the directory {place}: {reason.strerror}.") from None
    results = run(chosen, data=data, directory=place, effort=effort, workers=workers, begin=begin, step=step)
    found = write(chosen, results, directory=place, effort=effort)
    return {
        "paper": name,
        "title": chosen.title,
        "page": str(place / "index.html"),
        "cells": len(results.lines),
        "cpu_seconds": sum(line["seconds"] for line in results.lines),
        "claims": [
            {"where": c.where, "says": c.says, "measured": c.measured, "verdict": c.verdict, "note": c.note}
            for c in found.claims
        ],
    }
