"""Estimates as files: canonical JSON of format ``privcov/gaussian-estimate/1``, read back with suspicion.

A closed whitelist, as for releases: a field not listed here can neither be written nor read. Numbers are
texts that read back to the same double.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from privcov.documents import Form
from privcov.names import canonical, fault
from privcov.privacy import ZCDP, decimal_text, exact
from privcov.signing import PrivateKey, PublicKey
from privcov.unbounded.estimate import GaussianCertificate, GaussianEstimate

FORM = Form("estimate", "privcov/gaussian-estimate/1")
_METHODS = ("coinpress", "truncated", "preconditioned")
_TEXTS = ("mechanism", "proof", "timing", "version", "created")
_MOST_ROUNDS = 10_000


def encode(estimate: GaussianEstimate, *, key: PrivateKey | None = None) -> dict[str, Any]:
    """The estimate as plain JSON values, sealed: with a digest, or with a signature where a key is given."""
    return FORM.sealed(_body(estimate), key)


def _body(estimate: GaussianEstimate) -> dict[str, Any]:
    made = estimate.certificate
    upper = estimate.covariance[np.triu_indices(len(estimate.columns))]
    return {
        "columns": list(estimate.columns),
        "rows": made.rows,
        "mean": None if estimate.mean is None else [repr(value) for value in estimate.mean.tolist()],
        "covariance": [repr(value) for value in upper.tolist()],
        "certificate": {
            "options": dict(made.options),
            "guarantee": {"kind": made.loss.kind, "rho": decimal_text(made.loss.rho)},
            "neighbours": str(made.loss.neighbours),
            "budget": [{"step": step, "rho": decimal_text(rho)} for step, rho in made.budget],
            "arithmetic": made.arithmetic,
            "randomness": made.randomness,
            **{word: getattr(made, word) for word in _TEXTS},
        },
    }


def read(
    path: str | Path, *, signed_by: PublicKey | None = None
) -> tuple[GaussianEstimate, PublicKey | None]:
    """An estimate file, validated, and the key that signed it."""
    return FORM.read(path, decode, signed_by=signed_by)


def decode(document: object) -> GaussianEstimate:
    """An estimate from JSON values; anything unexpected is refused."""
    return FORM.decoded(document, _decode)


def _decode(document: object) -> GaussianEstimate:
    given = FORM.unsealed(document, "columns rows mean covariance certificate")
    promise = FORM.fields(
        given["certificate"],
        f"options guarantee neighbours budget arithmetic randomness {' '.join(_TEXTS)}",
    )
    guarantee = FORM.fields(promise["guarantee"], "kind rho")
    loss = ZCDP(rho=guarantee["rho"], neighbours=promise["neighbours"])
    shares = [FORM.fields(share, "step rho") for share in promise["budget"]]
    budget = tuple((share["step"], exact(share["rho"])) for share in shares)
    options, columns, rows = promise["options"], tuple(given["columns"]), given["rows"]
    texts = (*(promise[word] for word in _TEXTS), *options, *options.values(), *columns)
    if not all(type(text) is str for text in (*texts, *(step for step, _ in budget))):
        raise TypeError("text")
    if not 0 < len(budget) <= _MOST_ROUNDS or min(rho for _, rho in budget) <= 0:
        raise ValueError("budget")
    if sum(rho for _, rho in budget) != loss.rho or loss.neighbours != "replace-one":
        raise ValueError("the shares do not add up")
    if type(rows) is not int or rows < 1 or not columns or len(set(columns)) != len(columns):
        raise ValueError("shape")
    if any(fault(name) is not None or canonical(name) != name for name in columns):
        raise ValueError("names")
    if promise["arithmetic"] != "exact" or promise["randomness"] != "kernel":
        raise ValueError("certificate")
    if promise["mechanism"] not in _METHODS:
        raise ValueError("mechanism")
    estimate = GaussianEstimate(
        columns=columns,
        mean=None if given["mean"] is None else _numbers(given["mean"], len(columns)),
        covariance=_matrix(given["covariance"], len(columns)),
        certificate=GaussianCertificate(
            **{word: promise[word] for word in _TEXTS},
            options=options,
            loss=loss,
            budget=budget,
            rows=rows,
            arithmetic="exact",
            randomness="kernel",
        ),
    )
    if _body(estimate) != given:  # whatever is said twice must agree, and nothing may be said otherwise
        raise ValueError("fields disagree")
    return estimate


def _matrix(texts: list[str], dimension: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    upper = np.zeros((dimension, dimension))
    upper[np.triu_indices(dimension)] = _numbers(texts, dimension * (dimension + 1) // 2)
    matrix = upper + np.triu(upper, 1).T
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -1e-9 * max(values[-1], 0.0):
        raise ValueError("not a covariance")
    return matrix


def _numbers(texts: list[str], count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    if type(texts) is not list or len(texts) != count or not all(type(text) is str for text in texts):
        raise ValueError("size")
    values = [float(text) for text in texts]
    if not all(math.isfinite(value) for value in values):
        raise ValueError("not finite")
    return np.array(values)
