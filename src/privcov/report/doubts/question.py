"""What a doubt is, and what a kind of doubt must say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from privcov.report.doubts.evidence import Evidence
from privcov.report.drawing.numbers import plus_minus

Subject = TypeVar("Subject")


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Something in a release that the release of a table read as meant would hardly have.

    Attributes
    ----------
    kind : str
        One word or two, for programs.
    columns : tuple of str
        The columns it is about, as the schema names them.
    sentence : str
        What the release says.
    cause : str
        What has most likely happened.
    figure : float
        The number in the sentence: a share of the rows (1 is all of them), or a mean in original units.
    std_error : float
        One standard deviation of the noise on the figure, in the same unit.

    Examples
    --------
    >>> doubt = Doubt(kind="unread", columns=("age",), sentence="No row has an age.",
    ...               cause="Likely: a wrong separator.", figure=0.0, std_error=0.001)
    >>> print(doubt)
    No row has an age. Likely: a wrong separator.
    >>> doubt.to_dict()["kind"]
    'unread'
    """

    kind: str
    columns: tuple[str, ...]
    sentence: str
    cause: str
    figure: float
    std_error: float

    def __str__(self) -> str:
        return f"{self.sentence} {self.cause}"

    def to_dict(self) -> dict[str, Any]:
        """Return the doubt for programs.

        Returns
        -------
        dict
            JSON values.
        """
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "sentence": self.sentence,
            "cause": self.cause,
            "figure": self.figure,
            "std_error": self.std_error,
        }


class Question(ABC):
    """A kind of doubt. The docstring of each says which tables are clean: the odds of a false alarm are theirs."""

    kind: ClassVar[str]

    @abstractmethod
    def count(self, seen: Evidence) -> int:
        """How often it is asked; may depend on the schema, never on the matrix."""

    @abstractmethod
    def answers(self, seen: Evidence, odds: float) -> Iterator[Doubt]:
        """Every doubt of this kind; that one of them is false has at most these odds."""


class OneByOne(Question, Generic[Subject]):
    """A question about one thing after the other, each with its part of the odds."""

    @abstractmethod
    def subjects(self, seen: Evidence) -> Sequence[Subject]:
        """What it is asked about, from public facts."""

    @abstractmethod
    def answer(self, seen: Evidence, subject: Subject, odds: float) -> Doubt | None:
        """The doubt about one of them, where it is certain but for these odds."""

    def count(self, seen: Evidence) -> int:
        return len(self.subjects(seen))

    def answers(self, seen: Evidence, odds: float) -> Iterator[Doubt]:
        subjects = self.subjects(seen)
        found = (self.answer(seen, subject, odds / len(subjects)) for subject in subjects)
        return (doubt for doubt in found if doubt is not None)


def percent(share: float, std_error: float) -> str:
    """A share of the rows with its noise.

    >>> percent(0.00123, 0.0042)
    '0.12 % ± 0.42 %'
    """
    if not std_error > 0:
        return f"{100 * share:.4g} %"
    value, noise = plus_minus(100 * share, 100 * std_error)
    return f"{value} % ± {noise} %"


def within(share: float) -> float:
    """A share as it can be: noise takes it below nothing and above all."""
    return min(1.0, max(0.0, share))


def measured(value: float, std_error: float) -> str:
    """A value in its own units with its noise.

    >>> measured(50.0134, 0.1043)
    '50.01 ± 0.10'
    """
    return " ± ".join(plus_minus(value, std_error)) if std_error > 0 else f"{value:.6g}"
