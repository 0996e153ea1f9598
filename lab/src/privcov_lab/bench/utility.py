"""How near a repaired release comes to the true matrix, on the tables the papers used.

Pure privacy, replace-one neighbours, the symmetric-wishart mechanism: the error is ‖Ĉ − C‖_F / rows,
averaged over runs, for every repair by itself and for ``auto``. The bar is the zero matrix, the floor is the
oracle (the best spectrum for the released eigenvectors). Noise is idealized, drawn from the law by a seeded
rehearsal: that is right for measuring accuracy, and nothing here is a release. Columns are scaled to [0, 1]
by their own range and rows by the largest norm, as in the papers; a release may not look at its data so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.models.perturbation import centred
from privcov.noise.laws import WishartDifference
from privcov.noise.randomness import rehearsal
from privcov.planning.candidates import choose
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.repair import METHODS, Observed, PublicFacts, Usual, repair
from privcov.report.tables import number, table
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov_lab.bench.inference import noisy_release
from privcov_lab.reproduce.datasets import Datasets, scaled

EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
TARGETS: dict[tuple[str, float], float] = {
    ("wine", 0.1): 0.52,
    ("wine", 1.0): 0.18,
    ("wine", 4.0): 0.052,
    ("airfoil", 0.1): 0.11,
    ("airfoil", 1.0): 0.016,
    ("airfoil", 4.0): 0.0042,
    ("adult", 0.1): 0.093,
    ("adult", 1.0): 0.0235,
    ("adult", 4.0): 0.0072,
}
_SINGLE = tuple(name for name in METHODS if name != "auto")


def run(
    data_directory: str | Path,
    *,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 50,
    datasets: Sequence[str] = ("wine", "airfoil", "adult"),
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Mean errors per table and ε; ``step`` is called after each. A missing file is skipped with a reason."""
    results: list[dict[str, Any]] = []
    tables, skipped = scaled_tables(data_directory, datasets)
    for name, rows in tables:
        for epsilon in epsilons:
            errors = _errors(rows.T @ rows, len(rows), epsilon, runs, seed)
            results.append(_line(name, epsilon, runs, errors))
            step()
    return {"bench": "utility", "mechanism": "symmetric-wishart", "results": results, "skipped": skipped}


_GUESSED = ("0.1", "0.2", "0.5", "1", "2", "4", "8", "16")


def guess(
    data_directory: str | Path, *, runs: int = 60, step: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Root mean square errors of covariances of wine, bounds at its extremes, with and without what bounds guess."""
    [(_, rows)], _ = scaled_tables(data_directory, ["wine"])
    low, high = rows.min(axis=0), rows.max(axis=0)
    whole = np.hstack([np.ones((len(rows), 1)), 2 * (rows - low) / (high - low) - 1])
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(rows.shape[1])}
    schema, exact = Schema.from_dict({"columns": columns}), whole.T @ whole
    truth, lines = centred(exact) / (len(rows) - 1), []
    for kind in ("pure", "δ = 10⁻⁶"):
        for epsilon in _GUESSED:
            loss: Loss = PureDP(epsilon=epsilon, neighbours="replace-one")
            if kind != "pure":
                loss = ApproxDP(epsilon=epsilon, delta="1e-6", neighbours="replace-one")
            chosen, source, squares = choose(loss=loss, grid=Grid.of(schema)), rehearsal(77), np.zeros(2)
            for _ in range(runs):
                made = noisy_release(schema, exact, chosen.mechanism.name, chosen.loss, len(rows), source)
                assert made.law is not None, "auto takes mechanisms with a law"
                seen = Observed(
                    matrix=made.second_moment(raw=True, scaled=True),
                    law=made.law,
                    rows=len(rows),
                    squared_norm_bound=float(schema.squared_norm_bound),
                    structure=made.structure,
                )
                for way, usual in enumerate((None, Usual.within_bounds(tuple(range(1, len(exact)))))):
                    found = repair(replace(seen, usual=usual))
                    squares[way] += ((centred(found) / (found[0, 0] - 1) - truth) ** 2).mean()
            without, auto = np.sqrt(squares / runs).tolist()
            lines.append({"promise": kind, "epsilon": epsilon, "without": without, "auto": auto})
            step()
    alone = float(np.sqrt(((np.eye(len(truth)) / 3 - truth) ** 2).mean()))
    return {"bench": "guess", "runs": runs, "guess_alone": alone, "lines": lines}


def render_guess(result: dict[str, Any]) -> str:
    """A line for each promise."""
    lines = [
        [line["promise"], line["epsilon"], number(line["without"], 4), number(line["auto"], 4)]
        for line in result["lines"]
    ]
    head = f"Error of covariances of wine, {result['runs']} releases each; the guess alone {result['guess_alone']:.4f}:"
    return "\n".join([head, "", table(["promise", "ε", "without the guess", "auto"], lines)])


def render(result: dict[str, Any]) -> str:
    """The errors as a table for people."""
    shown = ("clip", "trace", "believed", "shrink", "spiked", "isotropic", "zero")
    headings = ["table", "ε", "auto", *shown, "oracle", "best single", "auto/best", "target"]
    lines = [
        [
            line["dataset"],
            f"{line['epsilon']:g}",
            f"{line['auto']:.4f}",
            *(f"{line['single'][name]:.4f}" for name in shown),
            f"{line['oracle']:.4f}",
            line["best_single"],
            f"{line['ratio_to_best']:.3f}",
            "" if line["target"] is None else f"{line['target']:g} {'✓' if line['reached'] else 'missed'}",
        ]
        for line in result["results"]
    ]
    parts = [table(headings, lines)] if lines else []
    if lines:
        ratios = [line["ratio_to_best"] for line in result["results"]]
        parts.append(f"auto / best single repair: mean {np.mean(ratios):.3f}, largest {np.max(ratios):.3f}")
        parts.append("error = ‖Ĉ − C‖_F / rows, idealized symmetric-wishart noise, replace-one neighbours")
    parts += [f"skipped {item['dataset']}: {item['reason']}" for item in result["skipped"]]
    return "\n".join(parts)


def _errors(truth: Floats, rows: int, epsilon: float, runs: int, seed: int) -> dict[str, float]:
    """Mean error of every repair and of the oracle; all keep the released eigenvectors: spectra suffice."""
    law = WishartDifference(dimension=len(truth), scale=1 / epsilon)  # 1 / (2ε′) with ε′ = ε/2: replace-one
    facts = PublicFacts(law=law, rows=rows, squared_norm_bound=1.0)
    randomness = rehearsal(seed)
    total = dict.fromkeys([*METHODS, "oracle"], 0.0)
    for _ in range(runs):
        eigenvalues, vectors = np.linalg.eigh(truth + law.simulate(randomness))
        rotated = vectors.T @ truth @ vectors
        oracle = np.diag(rotated)
        unreachable = max(float((rotated**2).sum() - (oracle**2).sum()), 0.0)
        spectra = {name: method(eigenvalues[None, :], facts)[0] for name, method in METHODS.items()}
        for name, spectrum in {**spectra, "oracle": oracle}.items():
            total[name] += float(np.sqrt(((spectrum - oracle) ** 2).sum() + unreachable)) / rows / runs
    return total


def _line(dataset: str, epsilon: float, runs: int, errors: dict[str, float]) -> dict[str, Any]:
    best = min(_SINGLE, key=errors.__getitem__)
    target = TARGETS.get((dataset, epsilon))
    return {
        "dataset": dataset,
        "epsilon": epsilon,
        "runs": runs,
        "auto": errors["auto"],
        "single": {name: errors[name] for name in _SINGLE},
        "best_single": best,
        "ratio_to_best": errors["auto"] / errors[best],
        "zero": errors["zero"],
        "ratio_to_zero": errors["auto"] / errors["zero"],
        "oracle": errors["oracle"],
        "target": target,
        "reached": None if target is None else errors["auto"] <= target,
    }


def scaled_tables(
    directory: str | Path, names: Sequence[str]
) -> tuple[list[tuple[str, Floats]], list[dict[str, str]]]:
    """The papers' tables that are there, scaled as in the papers, and why the others are skipped."""
    data = Datasets(Path(directory), online=False)
    found, skipped = [], []
    for name in names:
        try:
            found.append((name, scaled(data.load(name).rows)))
        except InputError as reason:
            skipped.append({"dataset": name, "reason": reason.sentence})
    return found, skipped
