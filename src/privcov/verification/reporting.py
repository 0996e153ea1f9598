"""A page on a file, whoever asks for it: the file is verified first, and refused where anything does not hold.

``privcov report`` and the workbench make their pages here, so that neither says of a file what the other would not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privcov.errors import ParameterError
from privcov.models.ols import Errors
from privcov.releases.loading import load, load_strata
from privcov.releases.signing import PublicKey
from privcov.releases.strata import FORM
from privcov.report.page import Source, html
from privcov.unbounded import page as estimates
from privcov.unbounded.estimate import load as load_estimate
from privcov.verification.verify import Verdict, verify

STRATIFIED = FORM.what


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A release or an estimate of which everything that can be checked holds."""

    path: Path
    verdict: Verdict
    source: Source

    @classmethod
    def file(cls, path: str | Path, *, key: PublicKey | None = None, key_name: str | None = None) -> Verified:
        """The file at a path, for a key if one is given; ``VerificationError`` (E609) where something does not hold."""
        verdict = verify(path, key=key)
        verdict.insist(path)
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        checks = tuple(check.words for check in verdict.checks)
        source = Source(name=Path(path).name, sha256=digest, checks=checks, key=key_name)
        return cls(path=Path(path), verdict=verdict, source=source)

    @property
    def strata(self) -> tuple[str, ...]:
        """The names of the strata; none of a file without."""
        return load_strata(self.path).names if self.verdict.what == STRATIFIED else ()

    def page(
        self,
        *,
        models: Sequence[str] = (),
        errors: Errors = "equal",
        components: int | None = None,
        title: str | None = None,
        stratum: str | None = None,
        among: bool = False,
    ) -> bytes:
        """The whole page, of one stratum where there are several; without a title it is called like the file.

        ``among`` pages of several strata, one that is too small for a model says so.
        """
        heading = beside(self.path).stem if title is None else title
        if stratum is not None and (title is None or among):
            heading = f"{heading}: {stratum}"
        if self.verdict.what != "estimate":
            release = load(self.path, stratum=stratum)
            made = html(
                release,
                models=models,
                errors=errors,
                components=components,
                title=heading,
                source=self.source,
                among=among,
            )
        elif models or components is not None:
            raise ParameterError(
                "E286", "an estimate has no models or components to show.", "Leave --model and --pca out."
            )
        else:
            made = estimates.html(load_estimate(self.path), title=heading, source=self.source)
        return made.encode("utf-8")


def beside(path: str | Path) -> Path:
    """The page's own name.

    >>> beside("people.release.json").name
    'people.html'
    """
    given = Path(path)
    stem = given.name.removesuffix(".json").removesuffix(".release")
    return given.with_name((stem or given.name) + ".html")
