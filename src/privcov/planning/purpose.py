"""What a release is wanted for, in the words of the command line: covariance, means, regression:FORMULA or pca:K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from privcov.errors import ParameterError
from privcov.schema.names import is_formula


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """The use whose error ``auto`` makes small.

    Parameters
    ----------
    kind : {"covariance", "means", "regression", "pca"}
        What is asked of the release.
    rank : int, optional
        Of "pca": the number of components.
    formula : str, optional
        Of "regression": the one that matters. Its columns are those of an emphasis.
    """

    kind: Literal["covariance", "means", "regression", "pca"]
    rank: int | None = None
    formula: str | None = None

    @classmethod
    def parse(cls, given: str | Purpose) -> Purpose:
        """From words.

        >>> Purpose.parse("pca:2").rank, Purpose.parse("regression: income ~ age").formula
        (2, 'income ~ age')
        """
        if isinstance(given, Purpose):
            return given
        kind, colon, number = str(given).partition(":")
        if kind in ("covariance", "means", "regression") and not colon:
            return cls(kind=cast(Literal["covariance", "means", "regression"], kind))
        if kind == "regression" and is_formula(number):
            return cls(kind="regression", formula=number.strip())
        if kind == "pca" and number.isascii() and number.isdecimal() and int(number) >= 1:
            return cls(kind="pca", rank=int(number))
        raise ParameterError(
            "E261",
            f"purpose must be covariance, means, regression, regression:FORMULA or pca:K, got {given!r}.",
        )

    @property
    def of_matrix(self) -> Purpose:
        """What the matrix of a private frame is for: means have a round of their own there."""
        return Purpose(kind="covariance") if self.kind == "means" else self

    def check(self, dimension: int) -> None:
        """Refuse more components than there are columns."""
        if self.rank is not None and self.rank > dimension:
            raise ParameterError(
                "E261", f"pca:{self.rank} asks for {self.rank} components of {dimension} columns."
            )

    def __str__(self) -> str:
        detail = self.formula if self.rank is None else self.rank
        return self.kind if detail is None else f"{self.kind}:{detail}"
