"""Every error privcov raises on purpose: a code, a sentence, and a remedy.

    PrivcovError                exit code
    ├── InputError        E1xx      2      the data file, table or schema cannot be used
    ├── ParameterError    E2xx      2      a public parameter is out of range
    ├── BudgetError       E3xx      3      the ledger refuses
    ├── OutputError       E4xx      2      the result cannot be written where asked
    ├── RandomnessError   E5xx      2      the kernel gives no randomness
    ├── ReleaseError      E6xx      2      a release file or a key cannot be read or trusted
    │   └── VerificationError       4      a digest, a signature or a certificate does not hold
    └── InternalError     E900     70      a fault of ours after data was read; its text is fixed

A message may echo a public parameter. It never contains a data value or a statistic of the data, and once
the first value has been read only ``InternalError`` can occur.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, TypeVarTuple

T = TypeVar("T")
Secrets = TypeVarTuple("Secrets")


class PrivcovError(Exception):
    """The root of the tree; ``str`` gives ``E203 delta must be …, got 2. See privcov release --help.``

    >>> print(ParameterError("E203", "delta must be between 0 and 1, got 2.", "Choose a delta below 1/rows."))
    E203 delta must be between 0 and 1, got 2. Choose a delta below 1/rows.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, code: str, sentence: str, remedy: str = "") -> None:
        super().__init__(f"{code} {sentence} {remedy}".rstrip())
        self.code = code
        self.sentence = sentence
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[PrivcovError], tuple[str, str, str]]:
        return type(self), (self.code, self.sentence, self.remedy)


class InputError(PrivcovError):
    """The data file, the table or the schema cannot be used."""


class ParameterError(PrivcovError, ValueError):
    """A public parameter is out of range."""


class BudgetError(PrivcovError):
    """The ledger refuses: nothing was drawn, nothing was read."""

    exit_code = 3


class OutputError(PrivcovError):
    """The result cannot be written where it was asked for."""


class RandomnessError(PrivcovError):
    """The kernel gives no randomness; there is no fallback."""


class ReleaseError(PrivcovError):
    """A release file is truncated, altered, or of a format this version does not know; or a key is unusable."""


class VerificationError(ReleaseError):
    """A file that can be read is not what it says: its digest, its signature or its certificate does not hold."""

    exit_code = 4


class InternalError(PrivcovError):
    """A fault after data was read. The text is fixed, because what went wrong may depend on a person."""

    exit_code = 70

    def __init__(self) -> None:
        super().__init__("E900", "internal error; the budget stays charged and nothing was released.")

    def __reduce__(self) -> tuple[type[PrivcovError], tuple[str, str, str]]:
        return InternalError, ()  # type: ignore[return-value]


def without_reasons(work: Callable[[*Secrets], T], *secrets: *Secrets) -> T:
    """Do what reads values; if it fails, do not say why: the reason may be a person's value.

    Only an ``InputError`` passes, because readers raise it from public facts alone: the row count, or a file
    that changed while it was read. Everything else becomes an ``InternalError``. See ``without_frames``.
    """
    held = [_unexplained, work, *secrets]
    del work, secrets
    return _let_go(_let_go, _begun, held)


def without_frames(work: Callable[[*Secrets], T], *secrets: *Secrets) -> T:
    """Do what holds secrets in its variables; what it raises is raised anew, without a frame, cause or context of it.

    A service that records the variables of every frame of a failure then sees nothing of the work. What it is given
    as ``secrets`` is known to the frames of the work alone, once it has begun.
    """
    held = [work, *secrets]
    del work, secrets
    return _let_go(_let_go, _begun, held)


def _let_go(work: Callable[..., T], *given: object) -> T:
    """Called twice, one in the other: the outer lets go of what interrupts the inner at it, such as Ctrl-C."""
    try:
        return work(*given)
    except BaseException as error:
        raised = error  # and raised below, outside the handler, so that nothing is kept as its context
    raised.__traceback__ = raised.__cause__ = raised.__context__ = None
    raise raised


def _begun(held: list[Any]) -> Any:
    work, *secrets = held
    held.clear()
    return work(*secrets)


def _unexplained(work: Callable[..., T], *secrets: object) -> T:
    try:
        return work(*secrets)
    except InputError:
        raise
    except Exception:
        raise InternalError from None
