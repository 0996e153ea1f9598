"""The measured cells put together: batches joined, methods named as a reader meets them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov_lab.reproduce.papers.bain2014.privacy import delivered
from privcov_lab.reproduce.papers.bain2014.pums import REPORT_ROWS
from privcov_lab.reproduce.study import Results

TERMS = ("(int)", "age", "educ")
TABLE_3 = ((-19580.2866, 3.1555, -114.923), (206.9308, 2.4531, 84.3545), (4286.8762, 12.4743, 343.658))
"""The report's noisy model: estimate, standard error and t value of the intercept, age and educ."""
TABLE_4 = ((-23054.102, 154.580, -149.1), (275.253, 2.218, 124.1), (4332.877, 11.560, 374.8))
"""The report's model without noise."""
FIGURE_2 = (
    (30848265, 30876220, -45843185, 10544042, 22921658),
    (30876220, 30904300, -45884730, 10553598, 22942431),
    (-45843185, -45884730, 68128866, -15669409, -34064482),
    (10544042, 10553598, -15669409, 3604102, 7834727),
    (22921658, 22942431, -34064482, 7834727, 17032390),
)
FIGURE_3 = (
    (30848261, 30876213, -45843176, 10544045, 22921660),
    (30876213, 30904289, -45884733, 10553592, 22942446),
    (-45843176, -45884733, 68128911, -15669387, -34064507),
    (10544045, 10553592, -15669387, 3604103, 7834730),
    (22921660, 22942446, -34064507, 7834730, 17032375),
)
PRINTED, CLASSICAL = "σ as printed", "classical σ (divided by ε)"
LABELS = {
    "printed": PRINTED,
    "printed, no repair": f"{PRINTED}, no repair",
    "classical": CLASSICAL,
    "needed": "least σ that keeps the promise",
    "ours": "privcov, ε = 0.01",
    "ours-real": f"privcov, ε = {delivered('printed', 5):.2f}",
}


@dataclass(frozen=True)
class Readings:
    """What figures, tables and claims are read from."""

    results: Results

    @cached_property
    def privacy(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = self.results.one("privacy")["lines"]
        return lines

    def epsilon(self, formula: str, attributes: int | None) -> float:
        """The ε that a formula's σ delivers."""
        (found,) = (x for x in self.privacy if (x["formula"], x["attributes"]) == (formula, attributes))
        return float(found["epsilon"])

    def std(self, formula: str, attributes: int | None) -> float:
        (found,) = (x for x in self.privacy if (x["formula"], x["attributes"]) == (formula, attributes))
        return float(found["std"])

    @cached_property
    def simulated(self) -> dict[str, dict[float, dict[str, Floats]]]:
        """Method, then C, then what was measured: the runs of all batches."""
        joined: dict[str, dict[float, dict[str, list[float]]]] = {}
        for cell in self.results.of("simulated"):
            for method, by_c in cell["measured"].items():
                for c, values in by_c.items():
                    kept = joined.setdefault(method, {}).setdefault(float(c), {})
                    for name, made in values.items():
                        kept.setdefault(name, []).extend(made)
        return {
            method: {c: {k: np.array(v) for k, v in kept.items()} for c, kept in by_c.items()}
            for method, by_c in joined.items()
        }

    @property
    def coefficients(self) -> list[float]:
        return list(self.simulated["printed"])

    def over_c(self, method: str, name: str, level: float | None) -> list[float]:
        """A quantile over the runs, or their mean, at every C."""
        made = (self.simulated[method][c][name] for c in self.coefficients)
        return [float(x.mean() if level is None else np.quantile(x, level)) for x in made]

    def negative_share(self, formula: str) -> float:
        """How often the released matrix had a negative eigenvalue."""
        cells = self.results.of("simulated")
        return float(sum(c["negative"][formula] for c in cells) / sum(c["matrices"] for c in cells))

    @cached_property
    def regressors(self) -> dict[str, dict[int, Floats]]:
        """β distances, repaired or not, by the number of regressors."""
        found = [cell["distances"] for cell in self.results.of("regressors")]
        return {
            words: {int(k): np.concatenate([one[words][k] for one in found]) for k in by_k}
            for words, by_k in found[0].items()
        }

    def model(self, method: str, *, bootstrap: bool, real: bool = False) -> dict[str, Any]:
        """The runs of a method on the extract or its bootstrap; ``real`` is ours at the printed σ's own ε."""
        rows = REPORT_ROWS if bootstrap else None
        if method in ("printed", "classical"):
            return self.results.one("published_model", formula=method, rows=rows)
        least, largest = sorted(self.results.of("our_model", rows=rows), key=lambda cell: cell["epsilon"])
        return largest if real else least

    def spread(self, made: dict[str, Any]) -> Floats:
        """Standard deviation of each coefficient over the runs."""
        return np.asarray(np.array(made["runs_of"]).std(axis=0))

    @property
    def difference(self) -> Floats:
        """The report's Figure 3 less its Figure 2, the entries that carry noise of their own."""
        return (np.array(FIGURE_3, dtype=np.float64) - np.array(FIGURE_2))[np.triu_indices(5)]

    def repaired(self, table: str) -> list[dict[str, Any]]:
        return sorted(self.results.of("repairs", table_name=table), key=lambda cell: cell["epsilon"])


def listed(words: Iterable[object]) -> str:
    """Words one after the other; "none" where there are none."""
    return ", ".join(map(str, words)) or "none"
