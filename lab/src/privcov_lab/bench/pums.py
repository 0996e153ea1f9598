"""A regression on real people: income ~ age + educ, released once, beside the fit without noise.

The file is the public 10,000-row extract of the Census 2000 sample; bounds are public knowledge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from privcov.errors import InputError
from privcov.models.ols import ols
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.publish.release import release
from privcov.report.tables import number, table
from privcov.schema import Schema
from privcov_lab.reproduce.datasets import Datasets

BOUNDS = {"age": (0, 100), "educ": (1, 16), "income": (0, 500_000)}
LOSSES: dict[str, Loss] = {
    "symmetric-wishart": PureDP(epsilon=1, neighbours="replace-one"),
    "gaussian": ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
}


def run(directory: str | Path) -> dict[str, Any]:
    """One release per mechanism at ε = 1, its intervals, and ordinary least squares on the rows."""
    try:
        census = Datasets(Path(directory), online=False).load("pums")
    except InputError as reason:
        return {"skipped": reason.sentence}
    rows = census.rows[:, [census.columns.index(name) for name in BOUNDS]]
    clipped = np.column_stack([rows[:, i].clip(*BOUNDS[name]) for i, name in enumerate(BOUNDS)])
    design = np.column_stack([np.ones(len(rows)), clipped[:, :2]])
    plain = np.linalg.lstsq(design, clipped[:, 2], rcond=None)[0]
    columns = {name: {"lower": low, "upper": high} for name, (low, high) in BOUNDS.items()}
    schema = Schema.from_dict({"columns": columns})
    results = []
    for mechanism, loss in LOSSES.items():
        fit = ols(release(rows, schema=schema, loss=loss, mechanism=mechanism), "income ~ age + educ")
        for name, value in zip(fit.params, plain, strict=True):
            low, high = fit.conf_int(0.95)[name]
            results.append(
                {
                    "mechanism": mechanism,
                    "coefficient": name,
                    "without_noise": float(value),
                    "estimate": fit.params[name],
                    "interval": [low, high],
                    "contains": bool(low <= value <= high),
                }
            )
    return {"rows": len(rows), "results": results}


def render(result: dict[str, Any]) -> str:
    """Both fits side by side."""
    if "skipped" in result:
        return f"PUMS: skipped, {result['skipped']}"
    lines = [
        [
            line["mechanism"],
            line["coefficient"],
            number(line["without_noise"]),
            number(line["estimate"]),
            f"[{number(line['interval'][0])}, {number(line['interval'][1])}]",
            "yes" if line["contains"] else "NO",
        ]
        for line in result["results"]
    ]
    heads = ["mechanism", "coefficient", "without noise", "released", "95 % interval", "contains it"]
    title = f"income ~ age + educ on {result['rows']:,} rows of the Census 2000 sample, epsilon 1"
    return f"{title}\n\n{table(heads, lines, left=2)}"
