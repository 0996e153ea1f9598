"""The figures: Figure 1 with every set of constants, ridge regression, the sweeps, the proposals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from privcov_lab.reproduce import charts
from privcov_lab.reproduce.charts import Line, Panel
from privcov_lab.reproduce.papers.amin2019.claims import sweep
from privcov_lab.reproduce.papers.amin2019.measuring import COLUMNS, ROWS, SATURATED
from privcov_lab.reproduce.papers.amin2019.reading import Measured, distinct, level, line, mean
from privcov_lab.reproduce.study import Figure, Results

ROUNDED = "published, rounded"
"""The constants of 2018 with the rounding of 2019."""
_PURE = ("AD", "IT-U", "L", "KT")
_GAUSSIAN = ("G-16", "G-10", "G-3", "AD")
_RIDGE = ("AD", "KT", "L", "G-10")
_OURS_PURE = ("AD", "IT-U", "L", "KT", "symmetric-wishart", "symmetric-wishart repaired")
_OURS_APPROXIMATE = (
    *(f"G-{delta} repaired" for delta in ("16", "10", "3")),
    "separate-10",
    "AD",
    "symmetric-wishart repaired",
)
WORDS = {
    "published": "the constants the paper prints",
    "code": "the constants of the authors' public code, which cost more than the ε they are asked for",
    "tight": "our constants for the same promise",
}
_NAMES = (
    "AD and IT-U are privcov's eigenvectors with an adaptive and a uniform split, KT kapralov-talwar, L laplace, "
    "G-x gaussian at δ = 10^-x. Lines are means over runs, bands hold the middle four fifths of the runs."
)
_ZERO = "Zero is what answering zero would give."
LEVELS = {"frobenius": {"zero": "zero"}, "ridge": {"zero": "ridge_zero", "no noise": "ridge_exact"}}
"""What needs no privacy, by its name in figures and in the facts of a table."""
_ERROR = "‖Ĉ − C‖$_F$ / n"


def figures(results: Results) -> Iterator[Figure]:
    """Whatever was measured, in the order of the paper."""
    measured, ridge = Measured(results), Measured(results, "ridge")
    for constants in ("published", "code"):
        if not measured.methods(constants):
            continue
        ending = "" if constants == "published" else "-code"
        for part, methods in (("a", _PURE), ("b", _GAUSSIAN)):
            caption = f"Figure 1 ({part}) with {WORDS[constants]}. {_ZERO}"
            yield _figure(f"figure-1{part}{ending}", caption, panels(measured, constants, methods))
    if measured.methods("tight"):
        made = panels(measured, "tight", _OURS_PURE, log_y=True)
        yield _figure("figure-1a-ours", f"Pure privacy with {WORDS['tight']}. {_ZERO}", made)
        made = panels(measured, "tight", _OURS_APPROXIMATE, log_y=True)
        yield _figure("figure-1b-ours", f"Gaussian noise with {WORDS['tight']}. {_ZERO}", made)
    made = panels(ridge, "published", _RIDGE, log_y=True)
    if measured.methods("tight"):
        made += panels(ridge, "tight", (*_RIDGE, "symmetric-wishart repaired"), log_y=True)
    caption = "Ridge regression of every column on the others, measured on the rows"
    yield _figure("ridge", f"{caption}; beside predicting zero, and a fit without noise.", made)
    caption = f"Simulated rows, n = {ROWS}, ε = 1, against the number of columns."
    yield _figure("columns", caption, _by_columns(results), across=2)
    yield _figure("rows", f"Simulated rows, d = {COLUMNS}, ε = 1, against their number.", _by_rows(results))
    caption = "How many proposals a vector takes, a mean over vectors and runs."
    yield _figure("proposals", caption, _by_proposals(results), names="")


def _figure(
    name: str, caption: str, panels: Sequence[Panel], *, names: str = _NAMES, across: int = 3
) -> Figure:
    draw = partial(charts.draw, panels=panels, columns=across)
    return Figure(name=name, caption=f"{caption} {names}".strip(), draw=draw)


def panels(measured: Measured, constants: str, methods: Sequence[str], *, log_y: bool = False) -> list[Panel]:
    """A panel for every table: errors against ε, beside what answering zero and fitting without noise give."""
    made = []
    for dataset in measured.datasets:
        facts = measured.results.one("facts", dataset=dataset)
        levels = [
            level(label, measured.epsilons(dataset), facts[fact])
            for label, fact in LEVELS[measured.what].items()
        ]
        words = {"code": ", public code", "tight": ", ours", ROUNDED: ", rounded"}.get(constants, "")
        made.append(
            Panel(
                title=f"{dataset}, d = {facts['columns']}, n = {facts['rows']}{words}",
                x_label="ε",
                y_label="mean square residual" if measured.what == "ridge" else _ERROR,
                lines=[*(measured.line(dataset, constants, method) for method in methods), *levels],
                log_x=True,
                log_y=log_y,
            )
        )
    return made


def _by_columns(results: Results) -> list[Panel]:
    spectra = distinct(cell["spectrum"] for cell in results.of("simulated"))
    return [
        _swept(results, "columns", constants, spectrum)
        for constants in _measured(results)
        for spectrum in spectra
    ]


def _by_rows(results: Results) -> list[Panel]:
    return [_swept(results, "rows", constants, "decaying") for constants in _measured(results)]


def _swept(results: Results, over: str, constants: str, spectrum: str) -> Panel:
    cells = results.of("simulated", constants=constants, spectrum=spectrum)
    lines = [
        line(method, *sweep(results, over, constants, method, spectrum=spectrum))
        for method in distinct(cell["method"] for cell in cells)
    ]
    return Panel(
        title=f"{spectrum} rows, {'as published' if constants == 'published' else 'ours'}",
        x_label="columns d" if over == "columns" else "rows n",
        y_label=_ERROR,
        lines=lines,
        log_x=True,
        log_y=True,
    )


def _measured(results: Results) -> list[str]:
    return distinct(cell["constants"] for cell in results.of("simulated"))


def _by_proposals(results: Results) -> list[Panel]:
    made = []
    for facts in results.of("facts"):
        cells = [c for c in results.of("proposals", dataset=facts["dataset"]) if c["epsilon"] != SATURATED]
        epsilons = distinct(cell["epsilon"] for cell in cells)
        groups: dict[str, list[float]] = {}
        for cell in cells:
            words = "" if cell["constants"] == "published" else ", public code"
            groups.setdefault(f"mean, {cell['method']}{words}", []).append(mean(cell["counts"]))
        lines = [Line(label, epsilons, values) for label, values in groups.items()]
        d = facts["columns"]
        lines += [level("d", epsilons, d), level("2d, the paper's mean", epsilons, 2 * d)]
        made.append(
            Panel(
                title=f"{facts['dataset']}, d = {d}",
                x_label="ε",
                y_label="proposals for a vector",
                lines=lines,
                log_x=True,
                log_y=True,
            )
        )
    return made
