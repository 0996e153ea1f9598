"""A release as a job: started once, whatever is clicked twice, and found again after a reload.

The page names a request before it sends it. The same name is the same job, and the ledger pays for a name once
(``Ledger.once``), so that a double click, a reload or a restart of the server cannot pay twice for one click.
Between two requests the ledger decides.

The ledger as the page sees it: what is left, what a release would cost, and why it would be refused.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any

from privcov.errors import BudgetError, OutputError, ParameterError, PrivcovError
from privcov.ledger import Ledger
from privcov.ledger.rules import short
from privcov.planning.candidates import decide
from privcov.privacy import Loss, display
from privcov.publish.check import check, frame_words
from privcov.publish.paying import counts_rho, order_for
from privcov.publish.release import release
from privcov.releases.release import Release
from privcov.releases.signing import PrivateKey
from privcov.releases.strata import StratifiedRelease
from privcov.report.doubts import doubts
from privcov.report.words import MOST_TOLD
from privcov.schema import Schema
from privcov.text import files
from privcov.text.grammar import escaped
from privcov.web.till import Choice

MOST_JOBS = 1000
_NAME = re.compile(r"[0-9a-f]{32}")


Before = Callable[[], object]
"""Called when everything else is in place and the ledger is about to be paid; may refuse."""
Made = Release | StratifiedRelease
Maker = Callable[["Job", Before], Made]


@dataclass
class Job:
    """One request: what it asked for, how far it is, and how it ended."""

    request: str
    facts: dict[str, Any]
    """What was asked, to tell a repetition from another question under the same name."""
    state: str = "waiting"
    share: float | None = None
    """The part of the file that was read; amounts are not shown, as the number of rows may be private."""
    error: dict[str, Any] | None = None
    result: dict[str, Any] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """As the page shows it."""
        percent = None if self.share is None else min(100, round(100 * self.share))
        return {
            "request": self.request,
            "state": self.state,
            "percent": percent,
            "error": self.error,
            **{word: self.facts[word] for word in ("data", "ledger", "output", "loss")},
            **self.result,
        }

    def progress(self, rows: int, read: int | None, size: int | None) -> None:
        """A step of the reader; the count of rows goes nowhere."""
        self.state = "reading"
        self.share = read / size if read is not None and size else None


@dataclass(frozen=True, kw_only=True)
class Order:
    """A release, all but its name: what is read, what is promised, who pays, where it goes."""

    data: Path
    schema: Schema
    loss: Loss
    choice: Choice
    ledger: Ledger
    output: Path
    key: PrivateKey | None

    def made(self, job: Job, before: Before) -> Made:
        """Pay under the name of the job, release, and write the file where there is none; ``before`` may refuse."""
        with files.reserved(self.output, force=False):
            made: Made = release(
                self.data,
                schema=self.schema,
                loss=self.loss,
                **self.choice.words,
                ledger=self.ledger.once(job.request).announcing(before),
                deliver=lambda made: made.save(self.output, key=self.key, force=False),
                progress=job.progress,
            )
        strata = {"strata": len(made)} if isinstance(made, StratifiedRelease) else {}
        job.result["receipt"] = self.receipt() | strata
        return made

    def receipt(self) -> dict[str, Any]:
        """What was bought: the file and its digest, who signed it, and what is left."""
        return {
            "file": self.output.name,
            "digest": hashlib.sha256(self.output.read_bytes()).hexdigest(),
            "signed": "" if self.key is None else self.key.public.fingerprint,
            "paid": str(self.loss),
            "left": [
                f"{one['word']}: {one['left']} of {one['total']}" for one in balance(self.ledger)["amounts"]
            ],
        }


class Jobs:
    """Every request since the server began; two run at a time, so that a slow table does not hold up another."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="release")
        self._ending = False

    def known(self, request: str, facts: dict[str, Any]) -> Job | None:
        """The job of this name, if there is one for the same question; another question is refused."""
        if not _NAME.fullmatch(request):
            raise ParameterError("E292", "a request id must be 32 hexadecimal digits.", "Reload the page.")
        known = self._jobs.get(request)
        if known is not None and known.facts != facts:
            raise ParameterError(
                "E293",
                "this request id was already used for another release.",
                "Reload the page and try again.",
            )
        return known

    def start(self, request: str, facts: dict[str, Any], make: Maker) -> Job:
        """The job of this name: the one there is, or a new one."""
        with self._lock:
            known = self.known(request, facts)
            if known is not None:
                return known
            if len(self._jobs) >= MOST_JOBS:
                raise ParameterError(
                    "E294", f"the workbench has reached its limit of {MOST_JOBS} requests.", "Start it again."
                )
            job = self._jobs[request] = Job(request=request, facts=facts)
        self._threads.submit(self._run, job, make)
        return job

    def find(self, request: str) -> Job:
        """A job by name."""
        found = self._jobs.get(request)
        if found is None:
            raise ParameterError(
                "E295",
                "the workbench does not know this request: it was restarted in between.",
                "The ledger shows whether it was paid; look for the release among the files.",
            )
        return found

    @property
    def running(self) -> bool:
        """Whether a release is under way."""
        return any(job.state in ("paying", "reading") for job in self._jobs.values())

    def close(self) -> None:
        """Let what is paid for come to its end; what is not yet paid is not begun."""
        self._ending = True
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _unless_ending(self) -> None:
        if self._ending:
            raise OutputError("E431", "the workbench is shutting down.", "Nothing was paid.")

    def _run(self, job: Job, make: Maker) -> None:
        job.state = "paying"
        try:
            made = make(job, self._unless_ending)
        except PrivcovError as reason:
            job.error = {"code": reason.code, "text": escaped(f"{reason.sentence} {reason.remedy}".rstrip())}
            job.state = "refused" if reason.exit_code == 3 else "failed"
        except Exception:  # its text could carry a value
            job.error = {"code": "E900", "text": "Internal error; the budget stays charged."}
            job.state = "failed"
        else:
            whole = made.total() if isinstance(made, StratifiedRelease) else made
            told = [str(doubt) for doubt in doubts(whole)[:MOST_TOLD]]
            job.result |= {"taken": made.certificate.mechanism, "doubts": told}
            job.state = "done"


def balance(ledger: Ledger) -> dict[str, Any]:
    """Budget, spent and left, in words and as shares for a bar."""
    found = ledger.balance()
    account = found.account
    return {
        "budget": str(found.budget),
        "rule": account.rule,
        "neighbours": str(found.budget.neighbours),
        "amounts": [
            {
                "word": word,
                "total": short(total),
                "spent": display(account.spent[word]) if account.spent[word] else "0",
                "left": short(account.left[word]),
                "percent": math.ceil(100 * account.spent[word] / total),
            }
            for word, total in account.total.items()
            if total
        ],
        "releases": found.releases,
        "burned": found.burned,
        "empty": not any(account.left.values()),
    }


def quote(
    schema: Schema, loss: Loss, ledger: Ledger, *, choice: Choice, data: Path | None = None
) -> dict[str, Any]:
    """What a release would cost, and the refusal in words where the ledger would refuse. Nothing is paid.

    With ``data`` its header is looked at too, as a private frame and a focus ask for: the answer of ``privcov check``.
    """
    if data is not None:
        return _checked(schema, loss, ledger, choice=choice, data=data)
    taken = decide(
        choice.mechanism, loss=loss, schema=schema, purpose=choice.purpose, as_asked=counts_rho(ledger)
    )
    found: dict[str, Any] = {
        "mechanism": taken.mechanism.name,
        "promise": str(taken.loss),
        "price": "",
        "refusal": "",
        "stronger": taken.loss.kind != loss.kind,
        "frame": "",
        "strata": 1,
    }
    try:
        price, _ = ledger.quote(order_for(taken.mechanism, loss=taken.loss, schema=schema, choice=None))
        found["price"] = _price(price)
    except BudgetError as refusal:
        found["refusal"] = _words(refusal)
    return found


def _checked(schema: Schema, loss: Loss, ledger: Ledger, *, choice: Choice, data: Path) -> dict[str, Any]:
    refusal = ""
    try:
        seen = check(data, schema=schema, loss=loss, **choice.words, ledger=ledger)
    except BudgetError as reason:
        refusal, seen = _words(reason), check(data, schema=schema, loss=loss, **choice.words)
    return {
        "mechanism": seen.mechanism,
        "promise": str(seen.loss),
        "price": "" if seen.price is None else _price(seen.price),
        "refusal": refusal,
        "stronger": seen.loss.kind != loss.kind,
        "frame": frame_words(seen.frame),
        "strata": seen.strata,
    }


def _price(amounts: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{word} {display(amount)}" for word, amount in amounts.items() if amount)


def _words(reason: PrivcovError) -> str:
    return f"{reason.sentence} {reason.remedy}".rstrip()
