"""Draws the figures of docs/explain/choosing.md: ``.venv/bin/python docs/site/figures.py`` (about two minutes).

The same forecasts as ``privcov plan``, and no data. The files are committed, because building the site should take
seconds; the same command gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privcov import ApproxDP, PureDP, Schema, plan
from privcov.errors import ParameterError
from privcov.mechanisms import MECHANISMS
from privcov.planning.candidates import candidate
from privcov.planning.display import curves
from privcov.planning.forecast import forecast
from privcov.privacy import Loss
from privcov.report import figures
from privcov.report.colours import place_of
from privcov.schema.grid import Grid

HOME = Path(__file__).parents[1] / "explain" / "figures"
PURE = PureDP(epsilon=1, neighbours="replace-one")
APPROXIMATE = ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
ROWS = 4000
WIDTHS = (2, 4, 8, 16, 32, 64)
REHEARSED_WIDTHS = (2, 4, 8, 16)
"""A mechanism without a law of its noise is simulated table by table, which takes long in many columns."""

SHOWN_ONCE = ("frobenius", "laplace", "kapralov-talwar")
"""Pure mechanisms do not use a δ: beside the ones that do, the best of them is enough."""

Curves = dict[str, list[tuple[float, float]]]


def numeric(columns: int) -> Schema:
    """So many columns between -1 and 1, and no intercept: d is the number of columns."""
    facts = {f"x{i}": {"lower": -1, "upper": 1} for i in range(columns)}
    return Schema.from_dict({"intercept": False, "columns": facts})


def against_columns(loss: Loss) -> Curves:
    """For each mechanism, (d, expected error per row)."""
    found: Curves = {}
    for name in MECHANISMS:
        for d in WIDTHS:
            grid = Grid.of(numeric(d))
            try:
                able = candidate(name, loss=loss, grid=grid)
            except ParameterError:
                continue
            if able.mechanism.law(loss=able.loss, grid=grid) is None and d not in REHEARSED_WIDTHS:
                continue
            error = forecast(able.mechanism, loss=able.loss, grid=grid, rows=ROWS)
            found.setdefault(name, []).append((d, error.frobenius.mean))
    return found


def relative(lines: Curves) -> Curves:
    """Every error over that of ``symmetric-wishart`` at the same d."""
    base = dict(lines["symmetric-wishart"])
    return {name: [(d, error / base[d]) for d, error in line] for name, line in lines.items()}


def without_shown(lines: Curves) -> Curves:
    """What the second panel is about."""
    return {name: line for name, line in lines.items() if name not in SHOWN_ONCE}


def draw(name: str, panels: list[tuple[str, Curves]], *, across: str, up: str) -> None:
    """Two panels side by side, one legend for both; a mechanism looks the same in both."""
    path = HOME / name
    plt = figures.pyplot(path, force=True)
    plt.rcParams["svg.fonttype"] = "none"  # letters as letters: half the size, and they can be searched
    figure, both = plt.subplots(1, 2, figsize=(8.4, 5.2), sharey=True, layout="constrained")
    looks = {each: figures.style(place_of(each)) for each in MECHANISMS}
    known: dict[str, Any] = {}
    for axes, (title, lines) in zip(both, panels, strict=True):
        for each, line in lines.items():
            (known[each],) = axes.plot(*zip(*line, strict=True), **looks[each])
        axes.set(xscale="log", yscale="log", xlabel=across)
        axes.set_title(title, fontsize=9.5)
        figures.clear(axes)
        if across.startswith("d"):
            axes.set_xticks(WIDTHS, [str(d) for d in WIDTHS])
            axes.minorticks_off()
    both[0].set_ylabel(up)
    order = [each for each in MECHANISMS if each in known]
    figure.legend(
        [known[each] for each in order], order, loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    figures.save(figure, path, force=True)


def main() -> None:
    """Both figures, and the numbers behind them."""
    HOME.mkdir(exist_ok=True)
    eight = numeric(8)
    budgets = [
        ("pure ε", curves(plan(schema=eight, rows=ROWS, loss=PURE))),
        ("(ε, δ = 10⁻⁶)", without_shown(curves(plan(schema=eight, rows=ROWS, loss=APPROXIMATE)))),
    ]
    draw("error-budget.svg", budgets, across="ε", up="expected error  ‖Ĉ − C‖ / n   (scaled units)")
    pure, approximate = against_columns(PURE), against_columns(APPROXIMATE)
    widths = [
        ("pure ε = 1", relative(pure)),
        ("(ε = 1, δ = 10⁻⁶)", without_shown(relative(approximate))),
    ]
    draw("error-columns.svg", widths, across="d, columns", up="expected error over that of symmetric-wishart")
    for title, lines in (("pure", pure), ("delta", approximate)):
        for each, line in lines.items():
            print(f"{title:6} {each:22}", *(f"{d}: {error:.3g}" for d, error in line), sep="  ")


if __name__ == "__main__":
    main()
