"""What ``bench frame`` found, in tables and in lines that say which target is reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from privcov.report.tables import table
from privcov_lab.bench.frame import FACTORS

KINDS = {
    "correlations": "root mean square error of correlations between numeric columns",
    "unrepaired correlations": "the same of the matrix as it was released, without repair",
    "all correlations": "root mean square error of correlations between all columns, levels included",
    "covariance": "root mean square error of the covariance of numeric columns, in true standard deviations",
    "means": "root mean square error of the means of numeric columns, in true standard deviations",
    "regressions": "excess residual variance of a numeric column regressed on all others, over its variance: median",
}
PAIRS = (("declared", "auto"), ("auto", "hindsight"), ("auto", "floor"))
FEW_ROWS = 1_500
"""Tables with fewer rows do not count towards what a frame gains."""
MANY_ROWS = 10_000
"""Tables with fewer rows, and ε below 1, do not count towards what wide bounds may cost."""
Point = dict[str, Any]


class Ratio(NamedTuple):
    """An error over another, with its standard error; the errors count as independent."""

    value: float
    std_error: float
    where: str = ""

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.std_error:.2f}" + (f" ({self.where})" if self.where else "")


def render(result: dict[str, Any]) -> str:
    """All parts that were measured, and what was skipped."""
    ways: dict[str, Callable[[Any], Iterable[str]]] = {
        "points": _points,
        "wide": _wide,
        "means": _means,
        "coverage": _coverage,
        "unasked": _unasked,
        "cost": _cost,
    }
    lines = [
        f"{result['runs']} runs a point; idealized noise from a fixed seed; replace-one; δ = 1e-6 or none"
    ]
    for part, words in ways.items():
        if result.get(part):
            lines += ["", *words(result[part])]
    return "\n".join([*lines, *(f"skipped {one['table']}: {one['reason']}" for one in result["skipped"])])


def _points(points: list[Point]) -> Iterable[str]:
    for kind, words in KINDS.items():
        told = [point for point in points if kind in point["errors"]["auto"]]
        if not told:
            continue
        ways = [way for way, errors in told[0]["errors"].items() if kind in errors]
        pairs = [pair for pair in PAIRS if {*pair} <= {*ways}]
        headings = ["table", "ε", "δ", *ways, *map("/".join, pairs)]
        rows = [
            [
                *_place(point),
                *(_short(point["errors"][way][kind]["error"]) for way in ways),
                *(str(_ratio(point, kind, *pair)) for pair in pairs),
            ]
            for point in told
        ]
        if kind == "correlations":
            headings += ["c", "c of the floor", "zero"]
            for row, point in zip(rows, told, strict=True):
                row += [_radius(point["radius"][way]) for way in ("auto", "floor")]
                row.append(_short(point["zero"]))
        yield from (f"{words}:", table(headings, rows), "")
    kind = "correlations"
    yield "c: the radius in root mean square columns, in true standard deviations; – as declared"
    yield "zero: the error of saying that no two columns are correlated"
    for promise, most in (("approximate", 5.0), ("pure", 3.5)):
        counted = [point for point in points if point["promise"] == promise and point["rows"] >= FEW_ROWS]
        for of, more in ((kind, ""), ("unrepaired correlations", ", no repair used")):
            gained = [_ratio(point, of, "declared", "auto") for point in counted]
            if gained:
                words = (
                    f"declared / auto, {_delta(promise)}, n ≥ {FEW_ROWS:,}{more}, geometric mean ≥ {most:g}"
                )
                yield _target(words, _mean(gained), above=most)
    against = [_ratio(point, kind, "auto", "hindsight") for point in points]
    worst = _worst(points, kind, "auto", "hindsight")
    yield _target("auto / hindsight, geometric mean ≤ 1.15", _mean(against), below=1.15)
    yield _target("auto / hindsight anywhere ≤ 1.6", worst, below=1.6)
    floor = _mean([_ratio(point, kind, "auto", "floor") for point in points])
    yield f"no target: auto / floor, geometric mean {floor}, at most {_worst(points, kind, 'auto', 'floor')}"
    yield _target("auto / declared anywhere ≤ 1.1", _worst(points, kind, "auto", "declared"), below=1.1)
    others = [other for other in KINDS if other != kind and any(other in p["errors"]["auto"] for p in points)]
    for other in others:
        told = [point for point in points if other in point["errors"]["auto"]]
        gained = [_ratio(point, other, "declared", "auto") for point in told if point["rows"] >= FEW_ROWS]
        yield (
            f"no target: {other}: declared / auto"
            + (f", n ≥ {FEW_ROWS:,}, geometric mean {_mean(gained)}; " if gained else " ")
            + f"auto / declared at most {_worst(told, other, 'auto', 'declared')}"
        )


def _wide(points: list[Point]) -> Iterable[str]:
    kind = "correlations"
    names = [f"{way} ×{factor}" for way in ("declared", "auto") for factor in FACTORS]
    shown = [f"auto ×{factor}/×1" for factor in FACTORS[1:]]
    yield f"{KINDS[kind]}, with every numeric bound so many times too wide:"
    yield table(
        ["table", "ε", "δ", *names, *shown],
        [
            [
                *_place(point),
                *(_short(point["errors"][name][kind]["error"]) for name in names),
                *(str(_ratio(point, kind, f"auto ×{factor}", "auto ×1")) for factor in FACTORS[1:]),
            ]
            for point in points
        ],
    )
    counted = [point for point in points if point["rows"] >= MANY_ROWS and point["epsilon"] >= 1]
    for factor, most in zip(FACTORS[1:], (1.4, 2.5), strict=True):
        if counted:
            worst = _worst(counted, kind, f"auto ×{factor}", "auto ×1")
            words = f"bounds ×{factor}, n ≥ {MANY_ROWS:,}, ε ≥ 1, error anywhere ≤ {most:g} × that of ×1"
            yield _target(words, worst, below=most)


def _means(points: list[Point]) -> Iterable[str]:
    yield f"{KINDS['means']}, beside noise on their sums alone for the whole loss (dedicated):"
    ratios: dict[str, list[Ratio]] = {"auto": [], "for means": []}
    for point in points:
        over = point["dedicated"]
        for way, found in ratios.items():
            error = point["errors"][way]["means"]
            found.append(Ratio(error["error"] / over, error["std_error"] / over, _where(point)))
    yield table(
        [
            "table",
            "ε",
            "δ",
            "dedicated",
            "declared",
            "auto",
            "for means",
            *(f"{way}/dedicated" for way in ratios),
        ],
        [
            [
                *_place(point),
                _short(point["dedicated"]),
                *(_short(point["errors"][way]["means"]["error"]) for way in ("declared", *ratios)),
                *(str(found[place]._replace(where="")) for found in ratios.values()),
            ]
            for place, point in enumerate(points)
        ],
    )
    for way, below in (("auto", 2.0), ("for means", 1.2)):
        said = f"means of {way}" if way == "auto" else "means of auto --for means"
        yield _target(f"{said} anywhere ≤ {below:g} × dedicated", max(ratios[way]), below=below)
        yield f"no target: geometric mean {_mean(ratios[way])}"


def _coverage(points: list[Point]) -> Iterable[str]:
    yield "How often 95 % intervals hold slopes, each column on the two that follow it; of the table also correlations,"
    yield "R² of these regressions, components of correlations and the error of ridge regressions. Auto, cut counted:"
    framed = [point for point in points if point["framed"]]
    yield table(
        [
            "table",
            "ε",
            "δ",
            "slopes of the table",
            "of the population",
            "furthest, in half widths",
            "without an end",
            "correlations",
            "R²",
            "components",
            "ridge error",
        ],
        [
            [
                *_place(point),
                *(
                    "–" if share is None else f"{100 * share:.1f} %"
                    for share in (point["covered"]["table"], point["covered"]["population"])
                ),
                f"{point['far']:.1f}",
                f"{100 * point['endless']:.0f} %",
                *(
                    "–" if share is None else f"{100 * share:.0f} %"
                    for share in (point["correlations"], *point["others"].values())
                ),
            ]
            for point in framed
        ],
    )
    shares = [
        (share, f"{_where(point)}, {about}")
        for point in framed
        for about, share in point["covered"].items()
        if share is not None
    ]
    least, where = min(shares, default=(1.0, "nowhere"))
    yield f"target ≥ 90 % anywhere: {'reached' if least >= 0.9 else 'missed'}, {100 * least:.1f} % ({where})"
    declined = [_where(point) for point in points if not point["framed"]]
    if declined:
        yield f"as declared, and not counted: {'; '.join(declined)}"


def _unasked(points: list[Point]) -> Iterable[str]:
    yield "Correlations: their error, how often their 95 % intervals hold those of the table, and the furthest, in half"
    yield "widths. The same of slopes, each column on the two that follow it, and the half width of their intervals:"
    ways = list(points[0]["ways"])
    yield table(
        ["table", "bounds", "ε", "δ", "way", "error", "held", "furthest", "slopes", "furthest", "half width"],
        [
            [
                *(
                    (point["table"], f"×{point['factor']}", *_place(point)[1:])
                    if way == ways[0]
                    else [""] * 4
                ),
                way,
                _short(one["error"]),
                f"{100 * one['correlations']:.0f} %",
                f"{one['furthest']:.1f}",
                f"{100 * one['covered']['table']:.0f} %",
                f"{one['far']:.1f}",
                _short(one["width"]) if math.isfinite(one["width"]) else "∞",
            ]
            for point in points
            for way, one in point["ways"].items()
        ],
    )
    for factor in FACTORS[:2]:
        some = [point["ways"] for point in points if point["factor"] == factor]
        for way in ways:
            gains = [point["declared"]["error"] / point[way]["error"] for point in some]
            gained = (
                f"declared / {way} {math.exp(np.mean(np.log(gains))):.1f} in the geometric mean, at least "
                f"{min(gains):.2f}; "
            )
            yield (
                f"no target: bounds ×{factor}, {way}: {gained if way != 'declared' else ''}"
                + "; ".join(
                    f"{what} held {100 * np.mean(held):.0f} % on average, at least {100 * min(held):.0f} %, furthest "
                    f"{max(point[way][far] for point in some):.1f}"
                    for what, held, far in (
                        ("correlations", [point[way]["correlations"] for point in some], "furthest"),
                        ("slopes", [point[way]["covered"]["table"] for point in some], "far"),
                    )
                )
            )


def _cost(found: dict[str, Any]) -> Iterable[str]:
    seconds, reads = found["cpu_seconds"], found["reads"]
    yield f"CPU time of a release of {found['rows']:,} × {found['columns']} from Parquet, one worker, rounds included:"
    yield table(
        ["frame", "reads", "seconds", "ratio"],
        [
            [name, str(reads[name]), f"{seconds[name]:.2f}", f"{seconds[name] / seconds['declared']:.2f}"]
            for name in seconds
        ],
    )
    ratio = seconds["framed"] / seconds["declared"]
    yield f"target framed / declared ≤ 2.5: {'reached' if ratio <= 2.5 else 'missed'}, {ratio:.2f}"


def _ratio(point: Point, kind: str, over: str, under: str) -> Ratio:
    if point["errors"][over] == point["errors"][under]:  # the same releases
        return Ratio(1.0, 0.0)
    top, bottom = point["errors"][over][kind], point["errors"][under][kind]
    value = top["error"] / bottom["error"]
    spread = math.hypot(top["std_error"] / top["error"], bottom["std_error"] / bottom["error"])
    return Ratio(value, abs(value) * spread)


def _worst(points: Sequence[Point], kind: str, over: str, under: str) -> Ratio:
    """The largest ratio, and where it is."""
    return max(_ratio(point, kind, over, under)._replace(where=_where(point)) for point in points)


def _mean(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean."""
    value = float(np.exp(np.mean([math.log(max(ratio.value, 1e-9)) for ratio in ratios])))
    relative = [ratio.std_error / ratio.value for ratio in ratios]
    return Ratio(value, value * float(np.linalg.norm(relative)) / len(ratios))


def _target(words: str, found: Ratio, *, below: float = math.inf, above: float = 0.0) -> str:
    return f"target {words}: {'reached' if above <= found.value <= below else 'missed'}, {found}"


def _place(point: Point) -> list[str]:
    return [point["table"], f"{point['epsilon']:g}", "1e-6" if point["promise"] == "approximate" else "0"]


def _where(point: Point) -> str:
    return f"{point['table']}, ε = {point['epsilon']:g}, {_delta(point['promise'])}"


def _delta(promise: str) -> str:
    return "δ = 1e-6" if promise == "approximate" else "pure"


def _radius(radius: float | None) -> str:
    return "–" if radius is None else f"{radius:.2f}"


def _short(error: float) -> str:
    return f"{error:.4f}" if abs(error) < 10 else f"{error:.3g}"
