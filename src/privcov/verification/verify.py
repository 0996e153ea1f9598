"""``privcov verify``: every check of a file that needs no data, as a list of verdicts.

Every check is a sentence that holds or does not. Nothing here opens a table: what is recomputed follows from
the file alone. What no check can tell is in docs/explain/signing.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from privcov.errors import VerificationError
from privcov.privacy import display
from privcov.releases import codec, documents, strata
from privcov.releases.release import Release, assembled
from privcov.releases.signing import PublicKey
from privcov.report.rounds import budget
from privcov.schema.grid import Grid
from privcov.unbounded import codec as estimates
from privcov.unbounded.estimate import GaussianEstimate
from privcov.verification.consistency import confirmed, disagreements, pooled_disagreements, rederived


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at, whether it holds, and what was found.

    Attributes
    ----------
    name : str
        What was looked at: "form", "bytes", "origin", "randomness", "rows", "certificate", "total" or "seal".
    holds : bool
        Whether it holds.
    words : str
        What was found, as a sentence.

    Examples
    --------
    >>> Check(name="origin", holds=True, words="Signed with the key you gave.").holds
    True
    """

    name: str
    holds: bool
    words: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Everything that ``verify`` looked at, and whether it holds.

    Where the seal fails, nothing else is looked at, because no field could be believed. The same is true where
    a key was given and the file is not, byte for byte, what this key signed.

    Attributes
    ----------
    what : str
        What the file is: "release", "stratified release" or "estimate".
    checks : tuple of Check
        One for each thing that was looked at.
    signer : PublicKey or None
        The key whose signature holds, whoever has its private half. None for a file that is not signed.

    Examples
    --------
    >>> verdict = Verdict(what="release", checks=(Check(name="seal", holds=True, words="It holds."),), signer=None)
    >>> verdict.holds, verdict.insist("people.release.json")
    (True, None)
    """

    what: str
    checks: tuple[Check, ...]
    signer: PublicKey | None

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def insist(self, path: str | Path) -> None:
        """Raise an error if a check does not hold; return silently if all hold.

        Parameters
        ----------
        path : str or Path
            The name of the file, for the message.

        Raises
        ------
        VerificationError
            At least one check does not hold (E609).
        """
        if not self.holds:
            failed = ", ".join(check.name for check in self.checks if not check.holds)
            raise VerificationError(
                "E609", f"{path} did not pass verification: {failed}.", "Do not use it; ask its steward."
            )


def verify(path: str | Path, *, key: PublicKey | None = None) -> Verdict:
    """Check a release or an estimate as its reader should before using it.

    A verdict that holds for a ``key`` means that the owner of its private half signed exactly these bytes, and
    that the certificate is consistent: the stated noise gives the stated loss. Without a key, it means only
    that the file is whole and consistent.

    Parameters
    ----------
    path : str or Path
        The file of a release or of an estimate.
    key : PublicKey, optional
        The steward's public key: then the file must be signed with it.

    Returns
    -------
    Verdict
        Every check with what was found, and whether all hold.

    Raises
    ------
    ReleaseError
        The file cannot be read as a release or an estimate (E6xx).

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> path = tempfile.mkdtemp() + "/people.release.json"
    >>> pc.release(np.full((9, 1), 80.0), schema=schema, loss=loss).save(path)
    >>> verdict = pc.verify(path)
    >>> verdict.holds, [check.name for check in verdict.checks]
    (True, ['form', 'bytes', 'origin', 'randomness', 'certificate'])
    """
    with documents.opened(path, what="release") as (text, body):
        document = documents.parse(text, what="release", where=str(path))
        family = document["format"].rpartition("/")[0]
        forms = {one.family: one for one in (estimates.FORM, strata.FORM)}
        form = forms.get(family, codec.FORM)
        form.of_this_version(document)
        try:
            signer = form.signer(document)
            canonical = documents.to_text(document) == text
            told = (
                Check(name="bytes", holds=canonical, words=_CANONICAL if canonical else _REWRITTEN),
                _origin(signer, key),
            )
            if key is not None and not all(check.holds for check in told):
                return Verdict(what=form.what, checks=told, signer=signer)
            if form is estimates.FORM:
                about = tuple(_about_estimate(form.decoded(document, estimates.unsealed)))
            elif form is strata.FORM:
                about = tuple(_about_strata(form.decoded(document, strata.unsealed)))
            else:
                about = tuple(_about_release(assembled(form.decoded(document, codec.unsealed, body))))
        except VerificationError as failure:
            broken = Check(
                name="seal", holds=False, words=f"{failure.sentence[0].upper()}{failure.sentence[1:]}"
            )
            return Verdict(what=form.what, checks=(broken,), signer=None)
    known = Check(name="form", holds=True, words=_FORM.format(form.format))
    return Verdict(what=form.what, checks=(known, *told, *about), signer=signer)


_FORM = "The format is {}: all fields are known, all numbers are exact, all sizes are right, repeated facts agree."
_CANONICAL = "The file is, byte for byte, what privcov wrote."
_REWRITTEN = "The file was rewritten by another program: privcov writes other bytes."


def _origin(signer: PublicKey | None, key: PublicKey | None) -> Check:
    if signer is None:
        words = "NOT SIGNED. The digest matches, so the file is undamaged; but anyone could have written it."
        if key is not None:
            words += f" You expected the key {key.fingerprint}."
        return Check(name="origin", holds=key is None, words=words)
    if key is None:
        words = (
            f"The signature is valid; its key is {signer.fingerprint}. Anyone can make a key: compare these words "
            "with those that the steward published, or give the steward's public key with --key."
        )
        return Check(name="origin", holds=True, words=words)
    if signer == key:
        return Check(name="origin", holds=True, words=f"Signed with the key you gave: {key.fingerprint}.")
    words = f"Signed with ANOTHER KEY, {signer.fingerprint}; you gave {key.fingerprint}."
    return Check(name="origin", holds=False, words=words)


def _about_release(release: Release) -> Iterator[Check]:
    certificate = release.certificate
    yield _randomness(certificate.randomness, certificate.arithmetic)
    against = disagreements(release)
    if against:
        words = f"The certificate contradicts itself: {'; '.join(against)}."
    else:
        said = f"The certificate is consistent: {confirmed(release)}."
        words = " ".join([said, release.schema.person_words, *rederived(release.schema), *_frame(release)])
    yield Check(name="certificate", holds=not against, words=words)


def _about_strata(made: strata.StratifiedRelease) -> Iterator[Check]:
    """One certificate for all of them, so that the first stratum, as drawn, is asked for all; then the total."""
    about = f"There are {len(made):,} strata, by {made.strata.title}, with one promise for all of them."
    first = made.uncombined(made.names[0])
    if made.rows is not None and not first.certificate.loss.neighbours.count_is_public(
        made.schema.max_rows_per_person
    ):
        yield Check(
            name="rows", holds=False, words="The number of rows is stated, but a person can change it."
        )
    yield from _counted(made, first)
    holds = True
    for check in _about_release(first):
        holds &= check.holds
        yield replace(check, words=f"{check.words} {about}") if check.name == "certificate" else check
    if made.pooled is not None and holds:
        against = pooled_disagreements(first, made.pooled.law)
        words = (
            f"The total has {display(made.pooled.share)} of the loss and the strata together the rest: noise of scale "
            f"{made.pooled.law.scale:.6g} for the total."
            if not against
            else f"The certificate contradicts itself: {'; '.join(against)}."
        )
        yield Check(name="total", holds=not against, words=words)


def _counted(made: strata.StratifiedRelease, first: Release) -> Iterator[Check]:
    """That strata have more rows than the file states, beyond what noise does in one file of 10 million.

    Fewer rows are no contradiction: others may be in no stratum, or emptied.
    """
    if (
        made.rows is None
        or first.law is None
        or not first.schema.intercept
        or first.schema.weight is not None
    ):
        return
    rows = sum(upper[0] for upper in made.uppers) * float(Grid.of(first.schema).unit)
    spread = math.sqrt(len(made) * first.law.entry_variances[0, 0])
    if rows - made.rows > _FAR * spread:
        words = f"The strata have {rows:,.0f} ± {2 * spread:,.0f} rows together, and the file states {made.rows:,}."
        yield Check(name="rows", holds=False, words=words)


_FAR = 12.0
"""So many standard deviations off is one number in 10 million at most: Laplace's noise has the longest tails."""


def _frame(release: Release) -> Iterator[str]:
    """Where the budget of a framed release went, once its rounds are known to give its frame."""
    if release.certificate.rounds:
        count = len(release.certificate.rounds)
        yield f"The stated frame is the one that its {count} rounds give: {budget(release.certificate)}"


def _about_estimate(estimate: GaussianEstimate) -> Iterator[Check]:
    made = estimate.certificate
    yield _randomness(made.randomness, made.arithmetic)
    words = (
        f"The budget shares of the {len(made.budget)} rounds add up to exactly rho = {display(made.loss.rho)}. "
        "The file does not state the size of the noise, so that cannot be checked."
    )
    yield Check(
        name="certificate", holds=True, words=words
    )  # shares that do not add up are refused by the reader


def _randomness(source: str, arithmetic: str) -> Check:
    if source != "kernel":
        return Check(
            name="randomness",
            holds=False,
            words="This is a REHEARSAL: its noise can be repeated, so it protects nobody.",
        )
    words = {
        "exact": "The certificate states exact noise from the operating system's random source.",
        "idealized": "The certificate states noise from the operating system's random source, but IDEALIZED: in "
        "floating point.",
    }[arithmetic]
    return Check(name="randomness", holds=True, words=words)
