"""The promise of a release and the size of its noise, in plain words."""

from __future__ import annotations

import math

from privcov.privacy import Loss, Neighbours, display
from privcov.releases.certificate import TOTAL, proof_address
from privcov.releases.release import Release
from privcov.report import rounds
from privcov.report.doubts import ODDS, doubts
from privcov.schema import Column, Numeric
from privcov.schema.names import quoted
from privcov.text.aligning import cut, paragraph

MISREAD = (
    f"A table that was read correctly gives such a warning in at most {100 * ODDS:.0f} % of releases. "
    "docs/explain/misread.md says what each warning means and what to do."
)
MOST_TOLD = 6
"""Doubts that are told; a hundred columns that were not read need not be told one by one."""
REHEARSAL = "THIS IS A REHEARSAL with repeatable noise: it protects nobody and cannot be saved."


def promise(release: Release) -> str:
    """The certificate as sentences a person can defend."""
    lines = [f"The promise: {change(release)} {effect(release)}."]
    if release.certificate.randomness == "rehearsal":
        lines.append(REHEARSAL)
    return "\n".join(paragraph(line) for line in [*lines, *particulars(release)])


def misread(release: Release) -> str:
    """The doubts whether the table was read as meant, with their likely causes; empty where there are none."""
    found = doubts(release)
    if not found:
        return ""
    lines = [paragraph(f"WARNING: {doubt}") for doubt in found[:MOST_TOLD]]
    if len(found) > MOST_TOLD:
        lines.append(f"… and {len(found) - MOST_TOLD} more warnings (privcov show --json prints all).")
    return "\n".join([*lines, paragraph(MISREAD)])


def change(release: Release) -> str:
    """What may happen to one person's data without anyone noticing."""
    schema = release.schema
    most = schema.max_rows_per_person
    one = "one person's row" if most == 1 else f"one person's rows, up to {most} of them,"
    other = "any other" if most == 1 else f"any other rows, more or fewer, up to {most} of them,"
    if schema.enforced:
        one, other = "all rows of one person", "those of any other person"
    if release.certificate.loss.neighbours is Neighbours.REPLACE_ONE:
        return f"replacing {one} by {other}"
    return f"adding or removing {one}"


def particulars(release: Release) -> list[str]:
    """What the promise rests on: rows, persons, rounds, mechanism, proof, arithmetic, noise, bounds, timing."""
    certificate = release.certificate
    what = "persons" if release.schema.enforced else "rows"
    part = " of each stratum" if certificate.strata is not None else ""
    rows = (
        f"The number of {what}, {release.rows:,}, is public."
        if release.rows is not None
        else f"The number of rows{part} is private; the release holds a noisy count of them."
    )
    exact = {
        "exact": "The noise is exact: whole numbers from the operating system's random source, with no "
        "floating-point error that could give a person away.",
        "idealized": "The noise is IDEALIZED: it was drawn in floating point, and the proof covers ideal real "
        "numbers only.",
    }[certificate.arithmetic]
    weight = release.schema.weight_words
    return [
        rows,
        *strata_told(release),
        release.schema.person_words,
        *([weight] if weight else []),
        *rounds.told(release),
        f"Mechanism: {certificate.mechanism}.",
        f"Proof: {proof_address(certificate.proof, certificate.version)}.",
        exact,
        _noise(release),
        f"Declared as public: {_bounds(release)}.",
        f"Timing: {certificate.timing}.",
    ]


def strata_told(release: Release) -> list[str]:
    """That there are several strata, and what the promise says of a person who moves; else nothing."""
    options = release.certificate.options
    if "strata" not in options:
        return []
    moves = (
        " A person who moves from one to another is covered."
        if release.certificate.loss.neighbours is Neighbours.REPLACE_ONE
        else ""
    )
    share = options.get("total_share")
    paid = "" if share is None else f" A share of {share} of the loss was spent on their total."
    which = "The sum of" if options.get("stratum") == TOTAL else "There are"
    page = proof_address("docs/proofs/strata.md", release.certificate.version)
    return [
        f"{which} {options['strata']} strata, with one promise for all of them together.{moves}{paid} Proof: {page}."
    ]


def uncovered(release: Release) -> list[str]:
    """What the promise does not cover, a sentence each; a reader who skips these believes too much."""
    schema, loss = release.schema, release.certificate.loss
    public = "the names, bounds and levels of the columns" + (
        f", and the number of {'persons' if schema.enforced else 'rows'}" if release.rows is not None else ""
    )
    most = "one row" if schema.max_rows_per_person == 1 else f"{schema.max_rows_per_person} rows"
    sentences = [
        f"What was declared public: {public}. If a bound was read off the data, the promise does not cover it.",
        "Facts about people in general. A release that shows that income rises with age says something about "
        "everyone whose age is known, whether they are in the table or not.",
        "Anyone with several ids in the table: to the promise they are several persons."
        if schema.enforced
        else f"Anyone with more than {most} in the table: each further row weakens the promise for that person.",
        "Other publications about the same people. Their privacy losses add up; a ledger keeps the sum.",
        "Anyone who can watch the machine while it works: its memory, its power use, its run time "
        f"({release.certificate.timing}).",
    ]
    if loss.kind == "approximate":
        delta = display(loss.amounts["delta"])
        sentences.insert(0, f"Rare outcomes: with probability {delta} the factor above may be exceeded.")
    if release.certificate.arithmetic == "idealized":
        sentences.append(
            "The last digits: the noise was drawn in floating point, and the proof is about ideal real numbers."
        )
    return sentences


def origin(release: Release) -> str:
    """Who made the file that a release was loaded from, as far as the file can tell."""
    if release.signer is None:
        return "Not signed: anyone could have written this file."
    words = (
        f"Signed with the key {release.signer.fingerprint}. Compare it with the key that the steward published "
        "(privcov verify)."
    )
    return paragraph(words)


def effect(release: Release) -> str:
    """How little that changes what anyone can see."""
    loss = release.certificate.loss
    amounts = {name: display(value) for name, value in loss.amounts.items()}
    if loss.kind == "zcdp":
        return (
            f"changes what anyone can infer by no more than Gaussian noise with rho = {amounts['rho']} would allow "
            "(zero-concentrated differential privacy)"
        )
    epsilon = float(loss.amounts["epsilon"])
    factor = f"e^{amounts['epsilon']}" + (f" ≈ {math.exp(epsilon):.3g}" if epsilon < 50 else "")
    sentence = f"changes the probability of any outcome by a factor of at most {factor}"
    if loss.kind == "approximate":
        sentence += f", except with probability {amounts['delta']}"
    return sentence + f" ({loss.kind} differential privacy, epsilon = {amounts['epsilon']})"


_GRADES = (
    (0.1, "A reader learns next to nothing about a person from this."),
    (1.0, "A reader learns little about a person from this."),
    (3.0, "A reader may learn something about a person from this."),
    (math.inf, "A reader may learn MUCH about a person from this: at such a budget the promise is weak."),
)
_SELDOM = 1e-6
"""The probability beyond which zero-concentrated privacy is told as a factor."""


def graded(loss: Loss) -> str:
    """What a reader can learn about a person, in words that follow the budget.

    >>> from privcov.privacy import PureDP
    >>> graded(PureDP(epsilon=1, neighbours="replace-one"))[:48]
    'A reader learns little about a person from this.'
    """
    amounts = {word: float(amount) for word, amount in loss.amounts.items()}
    epsilon, seldom = amounts.get("epsilon", 0.0), amounts.get("delta", 0.0)
    if loss.kind == "zcdp":
        epsilon, seldom = amounts["rho"] + 2 * math.sqrt(amounts["rho"] * -math.log(_SELDOM)), _SELDOM
    learnt = next(words for most, words in _GRADES if epsilon <= most)
    sure = math.ceil(1000 / (1 + math.exp(-min(epsilon, 50.0)))) / 10
    believed = f"{sure:g} % likely at most" if sure < 99.9 else "all but certain"
    rare = f" (except with a probability of {seldom:.1g})" if seldom else ""
    return (
        f"{learnt} Someone who thought a guess about a person's data 50 % likely can come to think it "
        f"{believed}{rare}."
    )


def _noise(release: Release) -> str:
    law = release.law
    if law is None:
        return "Noise: not simply added to the matrix, so no formula gives its size on one entry."
    return (
        f"Noise: standard deviation {math.sqrt(law.diagonal_variance):.4g} on diagonal entries and "
        f"{math.sqrt(law.offdiagonal_variance):.4g} on the others, for sums over all rows in scaled units."
    )


def _defined(column: Column) -> str:
    """The name of a column, and what it is where it is derived."""
    return quoted(column.name) + ("" if column.expression is None else f" = {cut(column.expression, 60)}")


def _bounds(release: Release) -> str:
    parts = [
        f"{_defined(column)} in [{column.lower:g}, {column.upper:g}]"
        if isinstance(column, Numeric)
        else f"{_defined(column)} with {len(column.levels)} {'exhaustive ' * column.exhaustive}level"
        + "s" * (len(column.levels) > 1)
        for column in release.schema.columns
    ]
    shown = ", ".join(parts[:8]) + (
        f", and {len(parts) - 8} more column{'s' * (len(parts) > 9)}" if len(parts) > 8 else ""
    )
    norm = math.sqrt(float(release.schema.squared_norm_bound))
    # In a frame the norm is no declaration: it follows from the schema, and the rounds found what it is measured in.
    norms = "" if release.certificate.rounds else f"row norm at most {norm:.4g} in scaled units"
    missing = f"missing cells: {release.schema.missing_words}"
    if "row_norm" in release.certificate.options:
        return f"{shown}; {missing}. Chosen privately: {norms}"
    return "; ".join(part for part in (shown, norms, missing) if part)
