"""How many directions stand above the noise, and the components asked for."""

from __future__ import annotations

import numpy as np

from privcov.errors import ParameterError
from privcov.models.pca import PCAFit, pca
from privcov.releases.release import Release
from privcov.report.drawing import Markup, heat_map, join, spectrum, tag
from privcov.report.page.elements import Section, figure, number, paragraphs, share, side_by_side, table

_MOST = 8
_ROWS = 14
_UNASKED = 400
"""Columns up to which the noise edge, which is simulated, takes seconds."""


def components(release: Release, rank: int | None = None) -> Section:
    """The spectrum with its noise edge; with a ``rank``, so many components with variances and loadings."""
    if rank is None and len(release.columns) > _UNASKED:
        words = f"The spectrum of {len(release.columns):,} columns takes long to compute: ask for components to see it."
        return Section(name="spectrum", heading="How many directions", body=tag("p", words))
    try:
        fit = pca(release, rank=rank, centred=release.schema.intercept)
    except ParameterError as reason:
        if rank is not None:
            raise
        words = f"There is no spectrum to show: {reason.sentence}"
        return Section(name="spectrum", heading="How many directions", body=tag("p", words))
    pictures = [spectrum_figure(fit)]
    if rank is not None:
        pictures.append(loadings_figure(fit))
    body = [side_by_side(*pictures), variances(fit) if rank is not None else None, _closing(fit)]
    return Section(name="spectrum", heading="How many directions", body=join(part for part in body if part))


def spectrum_figure(fit: PCAFit) -> Markup:
    """Eigenvalues as released, repaired ones behind them, and the edge."""
    edge = fit.noise_edge
    if edge is None:
        why = (
            "has no known distribution" if fit.release.certificate.law is None else "is too wide to simulate"
        )
        told = f"The noise of this mechanism {why}, so no noise edge is drawn."
    else:
        above = int((fit.raw_variance > edge).sum())
        told = f"{above} of {len(fit.columns)} are above the noise edge, which noise alone exceeds in 1 of 20 releases."
    about = "variance" if fit.centred else "mean square"
    picture = spectrum(
        fit.raw_variance.tolist(),
        edge=edge,
        repaired=np.sort(np.linalg.eigvalsh(fit.covariance))[::-1].tolist(),
        title=f"Eigenvalues of {len(fit.columns)} columns",
        description=told,
        y_label=f"{about} along it ({'scaled' if fit.scaled else 'original'} units)",
    )
    return figure(picture, f"Eigenvalues, largest first. {told}")


def loadings_figure(fit: PCAFit) -> Markup:
    """Directions of the kept components as cells, for the columns that matter most to them."""
    shown = min(fit.rank, _MOST)
    if not shown:
        return paragraphs("No component is larger than the noise.")
    loadings = fit.components[:shown].T
    largest = np.argsort(-np.abs(loadings).max(axis=1), kind="stable")[:_ROWS]
    places = np.sort(largest).tolist()
    told = f" The first {shown} of {fit.rank} components." if fit.rank > shown else ""
    if len(places) < len(fit.columns):
        told += f" The {len(places)} of {len(fit.columns)} columns with the largest loadings are shown."
    picture = heat_map(
        [fit.columns[place] for place in places],
        loadings[places].tolist(),
        columns=[f"PC{i + 1}" for i in range(shown)],
        title=f"Loadings of {shown} components",
    )
    return figure(picture, f"What each component is made of: its loadings on the columns.{told}")


def variances(fit: PCAFit, level: float = 0.95) -> Markup:
    """Variance, share and interval of each component."""
    values = fit.to_dict(level)
    ends = values["intervals"]
    heads = ["", "variance", "share", *([f"{100 * level:g} % interval"] if ends else [])]
    rows = []
    for i, (variance, part) in enumerate(
        zip(values["explained_variance"], values["explained_share"], strict=True)
    ):
        row = [f"PC{i + 1}", number(variance), share(part)]
        if ends:
            low, high = ends[i]
            row.append(f"[{number(low, 3)}, " + ("∞)" if high is None else f"{number(high, 3)}]"))
        rows.append(row)
    return table(heads, rows[:50])


def _closing(fit: PCAFit) -> Markup:
    if fit.noise_edge is None:
        return join([])
    return tag(
        "p",
        "The points are the eigenvalues of the matrix as released: unbiased, and possibly negative. The line shows the "
        "repaired matrix. Intervals of components are conservative (Weyl) and valid all at once.",
    )
