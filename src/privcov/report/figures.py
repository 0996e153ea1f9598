"""What every figure shares: matplotlib on demand, lines told apart in grey, files written whole."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from privcov.errors import OutputError, ParameterError
from privcov.report.colours import LINES, following_the_page
from privcov.text import files

_DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)))
_MARKS = "osD^vPX<>*hd|"
_SAME_BYTES: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def check(path: str | Path, *, force: bool) -> None:
    """Refuse a figure that could not be made or written, before the work for it is done."""
    if Path(path).suffix not in _SAME_BYTES:
        raise OutputError(
            "E401", f"the name of a figure must end in {', '.join(_SAME_BYTES)}, got {Path(path).name}."
        )
    files.check_writable(path, force=force)
    if find_spec("matplotlib") is None:
        raise ParameterError("E266", "figures need matplotlib.", "Install it: pip install 'privcov[report]'")


def pyplot(path: str | Path, *, force: bool) -> Any:
    """matplotlib.pyplot, once it is sure that the figure can be written; needs the extra ``report``."""
    check(path, force=force)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "privcov", "svg.fonttype": "path", "font.size": 9})
    return matplotlib.pyplot


def style(place: int) -> dict[str, Any]:
    """The look of the line in this place: colour, dash pattern and marker, so that print in grey will do.

    The place of a mechanism is ``colours.place_of(name)``, in every figure.
    """
    return {
        "color": LINES[place % len(LINES)][0],
        "linestyle": _DASHES[place % len(_DASHES)],
        "marker": _MARKS[place % len(_MARKS)],
        "markersize": 3.8,
        "linewidth": 1.3,
    }


def clear(axes: Any) -> None:
    """A light grid behind the data and no box around it."""
    axes.grid(True, which="major", color="0.93", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def save(figure: Any, *paths: str | Path, force: bool) -> None:
    """Write the figure to each path, whole or not at all, the same bytes each time, and forget it.

    An SVG has tones for a dark page as well.
    """
    import matplotlib.pyplot

    for path in paths:
        suffix, made = Path(path).suffix, io.BytesIO()
        figure.savefig(made, format=suffix[1:], dpi=150, metadata=_SAME_BYTES[suffix])
        drawn = made.getvalue()
        files.write(
            path, following_the_page(drawn.decode()).encode() if suffix == ".svg" else drawn, force=force
        )
    matplotlib.pyplot.close(figure)
