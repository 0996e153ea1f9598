"""Estimates as files: canonical JSON of format ``privcov/gaussian-estimate/1``, read back with suspicion.

A closed whitelist, as for releases: a field not listed here can neither be written nor read. Numbers are
texts that read back to the same double; the file carries the SHA-256 of its own canonical bytes, which finds
accidents and careless edits and is no proof of origin.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privcov.codec import MAX_BYTES, to_text
from privcov.errors import PrivcovError, ReleaseError
from privcov.privacy import ZCDP, decimal_text, exact
from privcov.unbounded.estimate import GaussianCertificate, GaussianEstimate

FORMAT = "privcov/gaussian-estimate/1"
_METHODS = ("coinpress", "truncated", "preconditioned")
_TEXTS = ("mechanism", "proof", "timing", "version", "created")
_MOST_ROUNDS = 10_000


def encode(estimate: GaussianEstimate) -> dict[str, Any]:
    """The estimate as plain JSON values, digest included."""
    made = estimate.certificate
    upper = estimate.covariance[np.triu_indices(len(estimate.columns))]
    body: dict[str, Any] = {
        "format": FORMAT,
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
    return {**body, "signature": _digest(body)}


def read(path: str | Path) -> GaussianEstimate:
    """An estimate file, validated."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as reason:
        raise ReleaseError("E604", f"cannot read {path}: {reason.strerror}.") from None
    if len(content) > MAX_BYTES:
        raise ReleaseError("E601", f"{path} is larger than any estimate.")
    try:
        return decode(_from_text(content.decode("ascii")))
    except UnicodeDecodeError:
        raise ReleaseError("E601", "this is not an estimate file: it is not plain ASCII text.") from None


def decode(document: object) -> GaussianEstimate:
    """An estimate from JSON values; anything unexpected is refused."""
    try:
        return _decode(document)
    except ReleaseError:
        raise
    except (PrivcovError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise ReleaseError("E601", "this is not a valid estimate: a field is missing or malformed.") from None


def _decode(document: object) -> GaussianEstimate:
    given = _fields(document, "format columns rows mean covariance certificate signature")
    if given["format"] != FORMAT:
        raise ReleaseError("E602", f"this version reads {FORMAT}.", "Upgrade privcov.")
    body = {word: value for word, value in given.items() if word != "signature"}
    if given["signature"] != _digest(body):
        raise ReleaseError(
            "E603",
            "the estimate was changed after it was made: its digest does not match.",
            "Ask for the original.",
        )
    promise = _fields(
        given["certificate"],
        f"options guarantee neighbours budget arithmetic randomness {' '.join(_TEXTS)}",
    )
    guarantee = _fields(promise["guarantee"], "kind rho")
    loss = ZCDP(rho=guarantee["rho"], neighbours=promise["neighbours"])
    shares = [_fields(share, "step rho") for share in promise["budget"]]
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
    if encode(estimate) != given:  # whatever is said twice must agree, and nothing may be said otherwise
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


def _from_text(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_float=_refuse, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ReleaseError("E601", "this is not an estimate file: it is truncated or not JSON.") from None


def _digest(body: Mapping[str, Any]) -> dict[str, str]:
    return {"algorithm": "sha256", "value": hashlib.sha256(to_text(body).encode("ascii")).hexdigest()}


def _fields(value: object, names: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(names.split()):
        raise ReleaseError("E601", "this is not a valid estimate: it has a missing or an unknown field.")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({word for word, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def _refuse(_text: str) -> Any:
    raise ValueError("an estimate file writes numbers as texts")
