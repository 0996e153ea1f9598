"""Estimates as files: canonical JSON of format ``privcov/gaussian-estimate/1``, read back with suspicion.

A closed whitelist, as for releases: a field not listed here can neither be written nor read. Numbers are
texts that read back to the same double.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privcov.linalg.triangle import entries, symmetric
from privcov.privacy import ZCDP, decimal_text, exact
from privcov.releases.documents import Form
from privcov.releases.signing import PrivateKey, PublicKey
from privcov.schema.names import canonical, fault
from privcov.text.grammar import double
from privcov.unbounded.estimate import GaussianCertificate, GaussianEstimate
from privcov.unbounded.rows import MOST_COLUMNS

FORM = Form("estimate", "privcov/gaussian-estimate/1")
_METHODS = ("coinpress", "truncated", "preconditioned")
_TEXTS = {"mechanism": 64, "proof": 200, "timing": 400, "version": 64, "created": 32}
"""Characters of the texts of a certificate."""
_NAME, _OPTION = 128, 400
_MOST_ROWS = 10**15
_MOST_ROUNDS = 10_000
_MOST_BITS = 2**14
"""Of the denominator of a sum of shares: they are parts of one loss, so a true one stays far below."""


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
    return FORM.read(path, unsealed, signed_by=signed_by)


def decode(document: object) -> GaussianEstimate:
    """An estimate from JSON values; anything unexpected is refused."""
    FORM.signer(document)
    return FORM.decoded(document, unsealed)


def unsealed(document: object) -> GaussianEstimate:
    """The estimate of a document whose seal is known to hold; for those who ask ``FORM.signer`` themselves."""
    given = FORM.inside(document, "columns rows mean covariance certificate")
    promise = FORM.fields(
        given["certificate"],
        f"options guarantee neighbours budget arithmetic randomness {' '.join(_TEXTS)}",
    )
    guarantee = FORM.fields(promise["guarantee"], "kind rho")
    loss = ZCDP(rho=guarantee["rho"], neighbours=promise["neighbours"])
    budget = _budget(promise["budget"])
    if _total(rho for _, rho in budget) != loss.rho or loss.neighbours != "replace-one":
        raise ValueError("the shares do not add up")
    if not 0 < len(given["columns"]) <= MOST_COLUMNS:
        raise ValueError("columns")
    columns, rows = tuple(FORM.text(name, most=_NAME) for name in given["columns"]), given["rows"]
    if type(rows) is not int or not 1 <= rows <= _MOST_ROWS or len(set(columns)) != len(columns):
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
            **{word: FORM.text(promise[word], most=most) for word, most in _TEXTS.items()},
            options=FORM.texts(promise["options"], most=_OPTION),
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


def _budget(given: list[Any]) -> tuple[tuple[str, Fraction], ...]:
    if not 0 < len(given) <= _MOST_ROUNDS:
        raise ValueError("budget")
    shares = [FORM.fields(share, "step rho") for share in given]
    return tuple((FORM.text(share["step"], most=_NAME), exact(share["rho"])) for share in shares)


def _total(shares: Iterable[Fraction]) -> Fraction:
    total = Fraction(0)
    for share in shares:
        total += share
        if share <= 0 or total.denominator.bit_length() > _MOST_BITS:
            raise ValueError("budget")
    return total


def _matrix(texts: list[str], dimension: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    matrix = symmetric(_numbers(texts, entries(dimension)), dimension)
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -1e-9 * max(values[-1], 0.0):
        raise ValueError("not a covariance")
    return matrix


def _numbers(texts: list[str], count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    if type(texts) is not list or len(texts) != count:
        raise ValueError("size")
    return np.array([double(text) for text in texts])
