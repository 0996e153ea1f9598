"""A release that tells when its table was misread: doubts, from the release alone.

Post-processing: no budget, no data. Each kind of doubt is a test of the noisy matrix against what it would be of a
table that was read as meant (a clean one; each kind says what that is), and speaks only where the noise cannot explain
it. All doubts about a release of a clean table together have odds of at most ``ODDS``, one in a hundred: the odds are
divided evenly over the kinds that apply, and over all that a kind asks about (Bonferroni). See docs/explain/misread.md.

A new kind is a class (``question.py``) and its name in ``QUESTIONS``.
"""

from __future__ import annotations

from privcov.releases.release import Release
from privcov.releases.triangle import Triangle
from privcov.report.doubts.columns import AtBound, Constant, NothingRead, OneLevel, Same, Uncovered, Unread
from privcov.report.doubts.evidence import Evidence
from privcov.report.doubts.question import Doubt, Question
from privcov.report.doubts.rows import Impossible, LostRows, Weightless

__all__ = ["Doubt", "ODDS", "QUESTIONS", "can_doubt", "doubts"]

ODDS = 0.01
"""The most odds of any doubt about a clean table."""
QUESTIONS: tuple[Question, ...] = (
    LostRows(),
    Weightless(),
    NothingRead(),
    Uncovered(),
    Unread(),
    AtBound(),
    Constant(),
    OneLevel(),
    Same(),
    Impossible(),
)


def doubts(release: Release) -> tuple[Doubt, ...]:
    """Say what makes a release look as if its table was not read as meant; for most releases, nothing.

    It costs no privacy, and the same release gives the same doubts. About a release of a table that was read
    as meant, any doubt at all has odds of at most one in a hundred.

    Parameters
    ----------
    release : Release
        The release, made here or loaded.

    Returns
    -------
    tuple of Doubt
        The doubts, gravest kinds first. Always empty for a mechanism without a law of its noise, for a release
        whose rows nobody counts (add-remove without an intercept), and for a wide one (more than 1,447 columns).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> unread = pc.release(np.full((50_000, 1), np.nan), schema=schema, loss=loss)
    >>> [doubt.kind for doubt in pc.doubts(unread)]
    ['unread']
    """
    if not can_doubt(release):
        return ()
    seen = Evidence.of(release)
    asked = [question for question in QUESTIONS if question.count(seen)]
    found = [doubt for question in asked for doubt in question.answers(seen, ODDS / len(asked))]
    if any(doubt.kind == NothingRead.kind for doubt in found):  # which says the same of every column
        found = [doubt for doubt in found if doubt.kind != Unread.kind]
    return tuple(found)


def can_doubt(release: Release) -> bool:
    """Whether a release without doubts says anything: whether they could be told from noise at all."""
    counted = release.schema.intercept or release.rows is not None
    return release.certificate.law is not None and counted and not isinstance(release.upper, Triangle)
