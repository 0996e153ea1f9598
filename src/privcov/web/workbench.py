"""Every question of the page, by name: each answer is a call of the library with the values of the fields.

Questions come through ``guard.py``. The table is opened for its header here, and by ``privcov.release``; nothing else
reads it.

A release as the page shows it: the sections of the report, and models on demand. Post-processing, and free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from privcov.errors import BudgetError, InputError, OutputError, ParameterError, PrivcovError
from privcov.ledger import Ledger
from privcov.mechanisms import MECHANISMS
from privcov.models.ols import Errors, ols
from privcov.models.strata import differences
from privcov.planning.forecast import check_rows
from privcov.planning.purpose import Purpose
from privcov.privacy import Loss
from privcov.releases.loading import load, load_strata
from privcov.releases.release import Release
from privcov.releases.signing import PrivateKey
from privcov.report.page import Section, sections
from privcov.report.page.models import model
from privcov.schema.strata import THE_SUM
from privcov.text import files
from privcov.verification.reporting import Verified, beside
from privcov.version import __version__
from privcov.web import charting, drafting, forecasting, releasing
from privcov.web.asking import (
    LARGEST_DOWNLOAD,
    Answer,
    Download,
    Given,
    Question,
    Refused,
    all_of,
    as_loss,
    at,
    flag,
    part,
    text,
    whole,
    width,
)
from privcov.web.forecasting import Asked
from privcov.web.places import Directory
from privcov.web.releasing import Jobs, Order
from privcov.web.simulating import Simulator, Task
from privcov.web.till import Choice, Till

_OF_STRATA = {
    **dict.fromkeys(("E185", "E186", "E187", "E189", "E282", "E283"), "by"),
    "E188": "rest",
    "E284": "sizes",
    **dict.fromkeys(("E225", "E226"), "share"),
}
"""The field that is beside what is refused of strata: their columns, the others, their sizes, or the total's share."""


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """One directory, one signing key at most, and the work in progress."""

    directory: Directory
    key: PrivateKey | None = None
    given: Given = field(default_factory=Given)
    jobs: Jobs = field(default_factory=Jobs)
    simulator: Simulator = field(default_factory=Simulator)
    loaded: dict[tuple[object, ...], Release] = field(default_factory=dict)
    """The release that was read last, with what was computed from it."""

    def close(self) -> None:
        """End what can be ended; a release that is paid for comes to its end."""
        self.simulator.close()
        self.jobs.close()

    @property
    def questions(self) -> dict[str, Callable[[Question], Answer]]:
        """What can be asked."""
        return {
            "start": self.start,
            "columns": self.columns,
            "schema/open": self.schema_open,
            "schema/check": self.schema_check,
            "schema/guess": self.schema_guess,
            "schema/save": self.schema_save,
            "plan": self.plan,
            "regression": self.regression,
            "ledger": self.ledger,
            "ledger/open": self.ledger_open,
            "quote": self.quote,
            "release": self.release,
            "job": self.job,
            "strata": self.strata,
            "differences": self.differences,
            "result": self.result,
            "fit": self.fit,
            "download": self.download,
        }

    def start(self, question: Question) -> Answer:
        """The files there are, what the command line named, and where sliders stop."""
        found = self.directory.files()
        given = self.given
        if given.ledger and given.ledger not in found["ledgers"]:
            found["ledgers"].insert(0, given.ledger)
        return {
            "version": __version__,
            "directory": self.directory.root.name,
            "files": found,
            "given": {"data": given.data, "schema": given.schema, "ledger": given.ledger},
            "draft": self._given_draft(),
            "mechanisms": list(MECHANISMS),
            "signed": "" if self.key is None else self.key.public.fingerprint,
            "stops": {
                "epsilon": list(charting.stops(-2, 1)),
                "delta": list(charting.stops(-12, -2)),
                "rho": list(charting.stops(-4, 1)),
                "rows": [stop for stop in charting.stops(1, 9) if "." not in stop],
            },
        }

    def _given_draft(self) -> dict[str, Any] | None:
        """The schema that the command line named; one that cannot be opened is left for the page to ask for."""
        if not self.given.schema:
            return None
        try:
            return drafting.opened(self.directory.existing(self.given.schema))
        except PrivcovError:
            return None

    def columns(self, question: Question) -> Answer:
        """A blank draft with the column names of a table."""
        with at("data"):
            return {"draft": drafting.blank(self.directory.existing(text(question, "data")))}

    def schema_open(self, question: Question) -> Answer:
        """A schema file as a draft."""
        with at("schema"):
            return {"draft": drafting.opened(self.directory.existing(text(question, "schema")))}

    def schema_check(self, question: Question) -> Answer:
        """What a draft amounts to, or every refusal beside its field."""
        return drafting.summary(self._draft(question))

    def schema_guess(self, question: Question) -> Answer:
        """Guesses that need no knowledge, for every column."""
        return {"guesses": drafting.even_guess(self._draft(question).schema)}

    def schema_save(self, question: Question) -> Answer:
        """Write the schema file; nothing is replaced."""
        made = drafting.saved_text(self._draft(question))
        with at("name"):
            path = self.directory.new(text(question, "name"), ending=".toml")
            files.write(path, made, force=False)
        return {"schema": path.name}

    def plan(self, question: Question) -> Answer:
        """The error of every mechanism at a loss, and its curve; what is simulated comes later."""
        asked = self._asked(question)
        with at("question"):
            target = charting.question(
                asked.schema, text(question, "word"), text(question, "one"), text(question, "other")
            )
        with at("epsilon"):
            known = forecasting.planned(asked, self.simulator)
            chart: str = ""
            pending: tuple[Task, ...] = ()
            if flag(question, "chart", default=True):
                chart, pending = charting.drawn(asked, target, self.simulator, width=width(question))
        self.simulator.want([*known.pending, *pending])
        told = forecasting.told(asked, target, known)
        return {
            **told,
            "unit": charting.unit_words(target),
            "chart": chart,
            "unfinished": len(pending),
            "strata": self._planned_strata(question, asked),
        }

    def _planned_strata(self, question: Question, asked: Asked) -> Answer | None:
        """What each stratum would be worth, where columns are named that make some."""
        choice = self._choice(question)
        if not choice.by:
            return None
        try:
            return self._till(asked.draft, asked.loss, asked.rows, choice).told_strata()
        except PrivcovError as reason:
            raise Refused([(_OF_STRATA.get(reason.code, "by"), reason)]) from None

    def regression(self, question: Question) -> Answer:
        """The width of the intervals that a regression would have."""
        return charting.expected(
            self._asked(question),
            text(question, "formula", longest=20_000),
            self.simulator,
            width=width(question),
        )

    def ledger(self, question: Question) -> Answer:
        """Where a ledger stands."""
        with at("ledger"):
            return releasing.balance(self._ledger(question))

    def ledger_open(self, question: Question) -> Answer:
        """Open a new ledger; none is ever replaced."""
        budget = as_loss(part(question, "budget"))
        with at("name"):
            path = self.directory.new(text(question, "name"), ending=".ledger")
            ledger = Ledger.init(path, budget)
        return {"ledger": path.name, **releasing.balance(ledger)}

    def quote(self, question: Question) -> Answer:
        """What a release would cost, and whether the ledger would refuse it."""
        draft, loss = self._draft(question), as_loss(part(question, "loss"))
        choice, name = self._choice(question), text(question, "data")
        with at("data"):
            look = choice.by or (name and choice.needs_a_look)
            data = self.directory.existing(name) if look else None
        with at("ledger"):
            ledger = self._ledger(question)
        try:
            quoted = releasing.quote(draft.schema, loss, ledger, choice=choice, data=data)
        except PrivcovError as reason:
            raise Refused([(_quoted_at(reason), reason)]) from None
        rows = self._rows(question) if text(question, "rows") else None
        till = None if rows is None else self._till(draft, loss, rows, choice)
        return {
            **quoted,
            **({"verdict": "", "verdicts": "", "exits": []} if till is None else till.told()),
            "balance": releasing.balance(ledger),
        }

    def release(self, question: Question) -> Answer:
        """Start a release, or find the one that this request started."""
        draft, loss = self._draft(question), as_loss(part(question, "loss"))
        with at(None):
            request, choice = text(question, "request"), self._choice(question)
            names = {word: text(question, word) for word in ("data", "ledger", "output")}
            facts = {
                **names,
                **choice.words,
                "loss": str(loss),
                "exact": repr(loss),
                "schema": draft.schema.to_toml(),
            }
            known = self.jobs.known(request, facts)
        if known is not None:
            return known.told()
        with at("data"):
            data = self.directory.existing(names["data"])
        with at("ledger"):
            ledger = self._ledger(question)
        with at("output"):
            output = self.directory.new(names["output"], ending=".release.json")
        order = Order(
            data=data,
            schema=draft.schema,
            loss=loss,
            ledger=ledger,
            output=output,
            key=self.key,
            choice=choice,
        )
        with at(None):
            return self.jobs.start(request, facts, order.made).told()

    def job(self, question: Question) -> Answer:
        """How far a release is."""
        with at("request"):
            return self.jobs.find(text(question, "request")).told()

    def strata(self, question: Question) -> Answer:
        """The strata that a release file has a matrix for each of; none of a file with one matrix."""
        with at("release"):
            path = self.directory.existing(_release_name(question))
            names = list(Verified.file(path).strata)
            return (
                {"names": names, "total": THE_SUM if "total" in names else "total"}
                if names
                else {"names": names}
            )

    def differences(self, question: Question) -> Answer:
        """What one stratum of a release file has more than another, with intervals."""
        with at("release"):
            path = self.directory.existing(_release_name(question))
            Verified.file(path)
            made = load_strata(path)
        with at("against"):
            formula = text(question, "formula", longest=20_000) or None
            found = differences(made, text(question, "stratum"), text(question, "against"), formula=formula)
        heads, lines, told = found.lines
        return {"heads": heads, "lines": lines, "words": told}

    def result(self, question: Question) -> Answer:
        """A release file in words and charts: all of it, or one ``section``, as some take long of a wide release."""
        return shown(self._loaded(question), text(question, "section"))

    def fit(self, question: Question) -> Answer:
        """A regression from a release file."""
        made = self._loaded(question)
        with at("formula"):
            return fitted(made, text(question, "formula", longest=20_000), _errors(question))

    def download(self, question: Question) -> Answer:
        """The release file as it is, or the page on it that ``privcov report`` would make."""
        with at("release"):
            path = self.directory.existing(_release_name(question))
            if path.stat().st_size > LARGEST_DOWNLOAD:
                raise OutputError(
                    "E408",
                    f"{path.name} is too large for a browser.",
                    "Find it in the directory that the workbench serves.",
                )
            found = Verified.file(path)
            if text(question, "what") != "report":
                return Download(name=path.name, kind="application/json", content=path.read_bytes())
            stratum = text(question, "stratum") or None
        with at("formula"):
            formula = text(question, "formula", longest=20_000)
            models = [formula] if formula else []
            made = found.page(models=models, errors=_errors(question), stratum=stratum)
        return Download(name=beside(path).name, kind="text/html; charset=utf-8", content=made)

    def _draft(self, question: Question) -> drafting.Draft:
        with at(None):
            given = part(question, "draft")
        return drafting.drafted(given)

    def _asked(self, question: Question) -> Asked:
        draft, loss, count = all_of(
            lambda: self._draft(question),
            lambda: as_loss(part(question, "loss")),
            lambda: self._rows(question),
        )
        try:
            moments = draft.moments
        except Refused:  # half typed; the plan says ≤ in place of ~, and the regression says what is wrong
            moments = None
        choice = self._choice(question)
        with at("purpose"):
            purpose = str(Purpose.parse(choice.purpose))
        with at("focus"):
            weighed = choice.weighed(draft.schema)
        return Asked(
            draft=replace(draft, schema=weighed),
            declared=draft.schema,
            rows=count,
            loss=loss,
            purpose=purpose,
            frame=choice.frame,
            cut=choice.cut,
            moments=None if choice.emphasis else moments,
        )

    def _rows(self, question: Question) -> int:
        with at("rows"):
            count = whole(text(question, "rows"), "the number of rows", "E260")
            check_rows(count)
            return count

    def _choice(self, question: Question) -> Choice:
        with at("frame"):
            return Choice.of(question)

    def _till(self, draft: drafting.Draft, loss: Loss, rows: int, choice: Choice) -> Till:
        try:
            moments = draft.moments
        except Refused:  # half typed
            moments = None
        return Till(schema=draft.schema, loss=loss, rows=rows, choice=choice, moments=moments)

    def _ledger(self, question: Question) -> Ledger:
        name = text(question, "ledger")
        if not name:
            raise BudgetError("E302", "no ledger was picked.", "Pick one, or open a new one.")
        if name == self.given.ledger:
            return Ledger.open(self.given.ledger_place)
        if not name.endswith(".ledger"):
            raise ParameterError(
                "E296", "the page opens only ledgers that end in .ledger.", "Pick one from the list."
            )
        return Ledger.open(self.directory.existing(name))

    def _loaded(self, question: Question) -> Release:
        with at("release"):
            path = self.directory.existing(_release_name(question))
            seen = path.stat()
            stratum = text(question, "stratum")
            facts = (path, seen.st_mtime_ns, seen.st_size, seen.st_ino, stratum)
            if facts not in self.loaded:
                Verified.file(path)
                made = load(path, stratum=stratum or None)
                self.loaded.clear()
                self.loaded[facts] = made
            return self.loaded[facts]


def _quoted_at(reason: PrivcovError) -> str:
    """The field that a quote was refused for: the strata, the table that was looked at, or else the ledger."""
    if reason.code in _OF_STRATA:
        return _OF_STRATA[reason.code]
    return "data" if isinstance(reason, InputError) else "ledger"


def _release_name(question: Question) -> str:
    name = text(question, "release")
    if not name.endswith(".release.json"):
        raise ParameterError(
            "E297", "the page opens only releases that end in .release.json.", "Pick one from the list."
        )
    return name


SHOWN = ("overview", "promise", "matrix", "spectrum", "columns")
"""The sections of the report that the page shows, in its order; the report has all of them."""


def shown(release: Release, section: str = "") -> dict[str, Any]:
    """The certificate in plain words, the matrix, the spectrum and the columns, as markup: all of it, or a section."""
    if section:
        return {"sections": [_told(one) for one in sections(release, only=section)]}
    made = {one.name: one for one in sections(release)}
    return {
        "columns": [column.name for column in release.schema.columns],
        "mechanism": release.certificate.mechanism,
        "loss": str(release.certificate.loss),
        "signed": "" if release.signer is None else release.signer.fingerprint,
        "sections": [_told(made[name]) for name in SHOWN if name in made],
    }


def _errors(question: Question) -> Errors:
    return "conservative" if flag(question, "conservative") else "equal"


def fitted(release: Release, formula: str, errors: Errors = "equal") -> dict[str, Any]:
    """A regression from the release, with intervals that count the noise."""
    fit = ols(release, formula, errors=errors)
    return {
        "formula": str(fit.formula),
        "method": fit.method,
        "section": _told(model(fit)),
        "summary": "" if fit.method == "none" else fit.summary(),
    }


def _told(section: Section) -> dict[str, str]:
    return {"name": section.name, "heading": section.heading, "body": section.body}
