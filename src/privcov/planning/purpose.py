"""What a release is wanted for, in the words of the command line: covariance, regression, or pca:K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from privcov.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """The use whose error ``auto`` makes small."""

    kind: Literal["covariance", "regression", "pca"]
    rank: int | None = None

    @classmethod
    def parse(cls, given: str | Purpose) -> Purpose:
        """From words.

        >>> Purpose.parse("pca:2").rank
        2
        """
        if isinstance(given, Purpose):
            return given
        kind, colon, number = str(given).partition(":")
        if kind in ("covariance", "regression") and not colon:
            return cls(kind=cast(Literal["covariance", "regression"], kind))
        if kind == "pca" and number.isascii() and number.isdecimal() and int(number) >= 1:
            return cls(kind="pca", rank=int(number))
        raise ParameterError("E261", f"purpose must be covariance, regression or pca:K, got {given!r}.")

    def check(self, dimension: int) -> None:
        """Refuse more components than there are columns."""
        if self.rank is not None and self.rank > dimension:
            raise ParameterError(
                "E261", f"pca:{self.rank} asks for {self.rank} components of {dimension} columns."
            )

    def __str__(self) -> str:
        return self.kind if self.rank is None else f"{self.kind}:{self.rank}"
