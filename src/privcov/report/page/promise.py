"""The certificate in plain words: who is protected against what, on what terms, and what is not covered."""

from __future__ import annotations

from privcov.privacy import SYMBOLS, Loss, display
from privcov.releases.release import Release
from privcov.report import rounds, words
from privcov.report.doubts import doubts
from privcov.report.drawing import Markup, join, tag
from privcov.report.page.elements import Section, facts, listed, paragraphs, side_by_side, warning
from privcov.report.standing import standing
from privcov.report.summary import effective_rows, sentences, weighed


def overview(release: Release) -> Section:
    """The first thing to know: how much, how private, how noisy."""
    found = standing(release)
    columns = len(release.schema.columns)
    known = [
        ("Columns", f"{columns:,}" + _levels(release)),
        ("Rows", "private" if release.rows is None else f"{release.rows:,}"),
        ("Promise", amounts(release.certificate.loss)),
        ("Neighbours", str(release.certificate.loss.neighbours)),
        ("Mechanism", release.certificate.mechanism),
        ("Made", release.certificate.created.replace("T", " ").replace("Z", " UTC")),
    ]
    if release.schema.weight is not None:
        rows = effective_rows(release)
        known.insert(
            2, ("Rows, effectively", "hidden by the noise" if rows is None else f"about {rows:,.0f}")
        )
    if found is not None:
        known.insert(4, ("Correlations clear of the noise", found.counted))
        known.insert(5, ("Verdict", found.verdict))
    body = [facts(known), *([tag("p", said)] if (said := weighed(release)) else []), misread(release)]
    if release.certificate.randomness == "rehearsal":
        body.insert(0, warning(words.REHEARSAL))
    if release.certificate.rounds:
        body.append(
            tag(
                "p", f"{rounds.budget(release.certificate)} {rounds.shortened(release)} {rounds.cut(release)}"
            )
        )
    if release.sketch is not None:
        body += [tag("p", _sketch(release))]
    return Section(name="overview", heading="In short", body=join([*body, *map(_line, sentences(release))]))


def misread(release: Release) -> Markup:
    """What makes it look as if the table was not read as meant; nothing, for most."""
    found = doubts(release)
    more = len(found) - words.MOST_TOLD
    said = [*map(str, found[: words.MOST_TOLD]), *([f"… and {more} more."] if more > 0 else [])]
    return join([*map(warning, said), *([tag("p", words.MISREAD, class_="note")] if said else [])])


def promise(release: Release) -> Section:
    """Who is protected, against whom, how far; what it rests on; what it does not cover."""
    most, change = release.schema.max_rows_per_person, words.change(release)
    rows = "one row" if most == 1 else f"at most {most} rows"
    whom = "whatever the number of their rows" if release.schema.enforced else f"with {rows}"
    body = [
        tag("h3", "Who is protected against what"),
        paragraphs(
            f"Every person {whom} in the table is protected against anyone who reads this release, whatever their "
            "skill and whatever else they know.",
            f"{change[0].upper()}{change[1:]} {words.effect(release)}.",
            words.graded(release.certificate.loss),
        ),
        side_by_side(
            tag("div", tag("h3", "What it rests on"), listed(words.particulars(release))),
            tag("div", tag("h3", "What it does not cover"), listed(words.uncovered(release))),
        ),
    ]
    return Section(name="promise", heading="The promise", body=join(body))


def _line(sentence: str) -> Markup:
    return warning(sentence) if "LARGE" in sentence else tag("p", sentence)


def amounts(loss: Loss) -> str:
    """A loss as people write it.

    >>> from privcov.privacy import PureDP
    >>> amounts(PureDP(epsilon=1, neighbours="replace-one"))
    'ε = 1 (pure)'
    """
    said = ", ".join(f"{SYMBOLS[name]} = {display(value)}" for name, value in loss.amounts.items())
    return f"{said} ({'zCDP' if loss.kind == 'zcdp' else loss.kind})"


def _levels(release: Release) -> str:
    made = len(release.columns) - release.schema.intercept
    return "" if made == len(release.schema.columns) else f" ({made:,} with one for each level)"


def _sketch(release: Release) -> str:
    count = len(release.sketch or ())
    return (
        f"This release consists of {count:,} sketched rows and the matrix computed from them. Each row is a random "
        f"mixture of the whole table plus a ridge of {release.sketch_ridge:.4g} (scaled units); none is a person."
    )
