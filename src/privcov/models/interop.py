"""A matrix of a release as a pandas frame, a polars frame or a LaTeX table. Libraries are imported when asked."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.models import association, selection
from privcov.models.summary import REHEARSAL, latex_text
from privcov.releases.release import Release

if TYPE_CHECKING:
    import pandas
    import polars

WHAT = ("covariance", "correlation", "partial_correlation", "precision", "mean", "second_moment", "raw")


def to_pandas(release: Release, what: str = "covariance") -> pandas.DataFrame:
    """Return a matrix of a release as a pandas frame.

    Parameters
    ----------
    release : Release
        The release. It needs an intercept, but for "second_moment" and "raw" of columns centred at zero.
    what : str, default "covariance"
        "covariance", "correlation", "partial_correlation", "precision", "mean", "second_moment" (repaired) or
        "raw" (unrepaired second moment); in original units.

    Returns
    -------
    pandas.DataFrame
        The columns of the release on both sides. Its ``attrs`` carry the promise, warnings as "labels", and what
        people call the columns as "titles".

    Raises
    ------
    ParameterError
        There is no such matrix (E258), pandas is not installed (E259), or there is no intercept (E255).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.interop import to_pandas
    >>> schema = pc.Schema.from_dict({"columns": {"dose": {"lower": 0, "upper": 1}}})
    >>> release = pc.release(np.ones((9, 1)), schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> list(to_pandas(release, "second_moment").columns)
    ['(Intercept)', 'dose']
    """
    rows, columns, values = _table(release, what)
    frame = _library("pandas").DataFrame(values, index=list(rows), columns=list(columns))
    frame.attrs.update({"what": what, "labels": _labels(release), "guarantee": str(release.certificate.loss)})
    frame.attrs["titles"] = release.schema.titles
    if _labels(release):
        frame.index.name = REHEARSAL
    return frame


def to_polars(release: Release, what: str = "covariance") -> polars.DataFrame:
    """Return a matrix of a release as a polars frame.

    Parameters
    ----------
    release : Release
        The release. It needs an intercept, but for "second_moment" and "raw" of columns centred at zero.
    what : str, default "covariance"
        Which matrix: see ``to_pandas``.

    Returns
    -------
    polars.DataFrame
        Its first column holds the names. That column is called REHEARSAL where the release is one.

    Raises
    ------
    ParameterError
        There is no such matrix (E258), polars is not installed (E259), or there is no intercept (E255).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.interop import to_polars
    >>> schema = pc.Schema.from_dict({"columns": {"dose": {"lower": 0, "upper": 1}}})
    >>> release = pc.release(np.ones((9, 1)), schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> to_polars(release, "mean").columns
    ['column', 'mean']
    """
    rows, columns, values = _table(release, what)
    first = REHEARSAL if _labels(release) else "column"
    while first in columns:
        first = f"({first})"
    made: dict[str, Any] = {first: list(rows)}
    made |= {name: values[:, i] for i, name in enumerate(columns)}
    frame: polars.DataFrame = _library("polars").DataFrame(made)
    return frame


def to_latex(release: Release, what: str = "covariance", *, digits: int = 4) -> str:
    r"""Return a matrix of a release as a LaTeX table with booktabs rules.

    Parameters
    ----------
    release : Release
        The release. It needs an intercept, but for "second_moment" and "raw" of columns centred at zero.
    what : str, default "covariance"
        Which matrix: see ``to_pandas``.
    digits : int, default 4
        Significant digits of a number, from 1 to 17.

    Returns
    -------
    str
        A ``tabular``, its columns by the labels and units of the schema; warnings and the promise are its last lines.

    Raises
    ------
    ParameterError
        There is no such matrix, the digits are out of range (E258), or there is no intercept (E255).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.interop import to_latex
    >>> schema = pc.Schema.from_dict({"columns": {"dose": {"lower": 0, "upper": 1}}})
    >>> release = pc.release(np.ones((9, 1)), schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> print(to_latex(release, "correlation").splitlines()[2])
     & dose \\
    """
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 17:
        raise ParameterError(
            "E258", f"digits must be a whole number from 1 to 17, got {digits!r}.", "Take 4."
        )
    rows, columns, values = _table(release, what)
    lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
    titles = release.schema.titles
    heads = [latex_text(titles.get(name, name)) for name in columns]
    lines += [" & ".join(["", *heads]) + r" \\", r"\midrule"]
    for name, line in zip(rows, values, strict=True):
        cells = ["--" if np.isnan(value) else f"${value:.{digits}g}$" for value in line]
        lines.append(" & ".join([latex_text(titles[name]), *cells]) + r" \\")
    promise = f"{what.replace('_', ' ')}; {release.certificate.loss}, by {release.certificate.mechanism}"
    wide = [
        rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{{latex_text(note)}}} \\"
        for note in [*_labels(release), promise]
    ]
    return "\n".join([*lines, r"\bottomrule", *wide, r"\end{tabular}"])


def _table(release: Release, what: str) -> tuple[tuple[str, ...], tuple[str, ...], NDArray[np.float64]]:
    if what not in WHAT:
        raise ParameterError(
            "E258", f"what must be one of {', '.join(WHAT)}, got {what!r}.", "Take covariance."
        )
    names = release.columns
    if what in ("second_moment", "raw"):
        return names, names, release.second_moment(raw=what == "raw")
    selection.needs_intercept(release, f"a {what.replace('_', ' ')}")
    if what == "mean":
        return names[1:], ("mean",), release.mean()[:, None]
    if what == "covariance":
        return names[1:], names[1:], release.covariance()
    values: association.NamedMatrix = getattr(association, what)(release)
    return names[1:], names[1:], values.values


def _labels(release: Release) -> list[str]:
    return [REHEARSAL] if release.certificate.randomness == "rehearsal" else []


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ParameterError(
            "E259", f"to_{name} needs {name}.", f"Install it with pip install {name}."
        ) from None
