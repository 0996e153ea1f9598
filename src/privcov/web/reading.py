"""A release as the page shows it: the sections of the report, and models on demand. Post-processing, and free."""

from __future__ import annotations

from typing import Any

from privcov.models.ols import ols
from privcov.releases.release import Release
from privcov.report.page import Section, sections
from privcov.report.page.models import model

SHOWN = ("overview", "promise", "matrix", "spectrum", "columns")
"""The sections of the report that the page shows, in its order; the report has all of them."""


def shown(release: Release) -> dict[str, Any]:
    """The certificate in plain words, the matrix, the spectrum and the columns, as markup."""
    made = {section.name: section for section in sections(release)}
    return {
        "columns": [column.name for column in release.schema.columns],
        "mechanism": release.certificate.mechanism,
        "loss": str(release.certificate.loss),
        "signed": "" if release.signer is None else release.signer.fingerprint,
        "sections": [_told(made[name]) for name in SHOWN if name in made],
    }


def fitted(release: Release, formula: str) -> dict[str, Any]:
    """A regression from the release, with intervals that count the noise."""
    fit = ols(release, formula)
    return {
        "formula": str(fit.formula),
        "method": fit.method,
        "section": _told(model(fit)),
        "summary": "" if fit.method == "none" else fit.summary(),
    }


def _told(section: Section) -> dict[str, str]:
    return {"name": section.name, "heading": section.heading, "body": section.body}
