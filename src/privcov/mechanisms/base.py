"""What a mechanism is: a file that owns its claim, its calibration, its sampler and the law of its noise.

A mechanism is a frozen value; its fields are its options. ``draw`` takes everything random that does not
depend on data *before* any data is read, and returns a draw whose ``answer`` is then given the Gram matrix.
To add one, see CONTRIBUTING: one file here, one proof page, one test file, one line in the registry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from privcov.accounting import pure_to_zcdp
from privcov.errors import InternalError, ParameterError
from privcov.linalg.triangle import is_wide
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import FirstBit, NoBits, Randomness
from privcov.privacy import ZCDP, Loss, Neighbours, PureDP
from privcov.releases.sketch import Sketch
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram, Sealed, upper_of

Arithmetic = Literal["exact", "idealized"]
Upper = NDArray[Any]
"""Integers of an upper triangle, diagonal included, in the order of ``numpy.triu_indices``."""


class Draw(Sealed, ABC):
    """A mechanism's random draw, waiting for the data. It answers once and is empty from then on.

    Noise and release together are the data: where the release is, the noise is no more. A subclass is a dataclass with
    ``repr=False, eq=False``.
    """

    _refusal = "a draw is sensitive: with the release it gives the data away"

    def answer(self, gram: Gram) -> Upper:
        """The private integers of the release."""
        return self.taken()._answer(gram)

    @abstractmethod
    def _answer(self, gram: Gram) -> Upper: ...

    def taken(self) -> Self:
        """What it holds, in a draw that only the one who answers knows; this one is empty."""
        if not self.__dict__:  # a second answer with the same noise would tell the difference of two tables
            raise InternalError
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        self.__dict__.clear()
        return other


class SketchDraw(Draw):
    """A draw that publishes rows: its answer is the estimate from them."""

    @abstractmethod
    def _sketch(self, gram: Gram) -> Sketch:
        """The private rows."""

    @abstractmethod
    def _estimate(self, sketch: Sketch) -> Upper:
        """The integers that follow from the rows: post-processing."""

    def _answer(self, gram: Gram) -> Upper:
        return self._estimate(self._sketch(gram))


def answer(draw: Draw, gram: Gram) -> tuple[Upper, Sketch | None]:
    """The private integers of the release, and the rows they follow from where a mechanism publishes rows."""
    if not isinstance(draw, SketchDraw):
        return draw.answer(gram), None
    taken = draw.taken()
    sketch = taken._sketch(gram)
    return taken._estimate(sketch), sketch


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A way to release the Gram matrix; the docstring of each subclass states its guarantee."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    """The kinds of loss it can promise: pure, approximate, zcdp."""
    summary: ClassVar[str]
    best_at: ClassVar[str]
    proof: ClassVar[str]
    as_published: ClassVar[Mapping[str, str]] = {}
    """The options that make it what its paper ran; empty where there is nothing to reproduce."""
    relations: ClassVar[tuple[Neighbours, ...]] = tuple(Neighbours)
    """The neighbouring relations it has a promise for."""
    row_norm: ClassVar[str | None] = None
    """The private choice of a row-norm bound that is part of it; none where one is an extra for any mechanism."""
    most_columns: ClassVar[int] = 4_096
    """The columns beyond which a draw would take hours or more memory than a machine has."""
    needs_intercept: ClassVar[bool] = False
    """Whether it works only on a grid whose first column is the intercept in every row."""
    takes_strata: ClassVar[bool] = False
    """Whether its loss is proven for several matrices between which a person may move: docs/proofs/strata.md."""

    arithmetic: Arithmetic = "exact"

    def __post_init__(self) -> None:
        for option, allowed in self.choices().items():
            value = getattr(self, option)
            fine = value in allowed if allowed else value is None or type(value) is int
            if not fine:
                words = " or ".join(allowed or ("a whole number",))
                raise ParameterError("E209", f"{self.name}: {option} must be {words}, got {value!r}.")

    @classmethod
    def choices(cls) -> dict[str, tuple[str, ...]]:
        """Every option and the words it takes, the default first; none where it takes a number."""
        return dict(_choices(cls))

    @classmethod
    def from_words(cls, options: Mapping[str, Any]) -> Self:
        """With options as a command line gives them: a number may be text."""
        numbers = {name for name, allowed in cls.choices().items() if not allowed}
        given: dict[str, Any] = {
            name: int(value) if name in numbers and str(value).removeprefix("-").isdecimal() else value
            for name, value in options.items()
        }
        return cls(**given)

    @property
    def is_one_gaussian(self) -> bool:
        """Whether its (ε, δ) is the exact profile of one Gaussian, so that μ² adds up with other Gaussians."""
        return False

    @property
    def timing_note(self) -> str:
        """What the certificate says about an observer of run times."""
        return "noise is drawn before data is read, so its timing says nothing about a person"

    @property
    def options(self) -> dict[str, str]:
        """The options in force, as they are written on the certificate; arithmetic has a field of its own."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "arithmetic"}
        return {name: str(value) for name, value in given.items() if value is not None}

    def check(self, loss: Loss) -> None:
        """Refuse a kind of loss this mechanism cannot promise."""
        if loss.kind in self.kinds:
            return
        if loss.kind == "approximate":
            raise ParameterError(
                "E203",
                f"{self.name} gives pure privacy and takes no delta.",
                "Leave delta out, or choose the gaussian mechanism.",
            )
        wanted = {"pure": "a pure loss (epsilon alone)", "zcdp": "a zCDP loss (rho)"}[loss.kind]
        raise ParameterError(
            "E203" if loss.kind == "pure" else "E204",
            f"{self.name} cannot promise {wanted}.",
            "Give a delta or a rho." if loss.kind == "pure" else "Give epsilon, or choose gaussian.",
        )

    def check_width(self, dimension: int) -> None:
        """Refuse more columns than this mechanism can draw for."""
        if dimension > self.most_columns:
            raise ParameterError(
                "E267",
                f"{self.name} takes at most {self.most_columns:,} columns, got {dimension:,}.",
                "Use gaussian (with a delta or a rho) or frobenius (without).",
            )

    def check_strata(self, grid: Grid) -> None:
        """Refuse several matrices where the loss of this mechanism is not proven for a person who moves."""
        if grid.strata and not self.takes_strata:
            raise ParameterError(
                "E282",
                f"{self.name} cannot release strata: its loss for a person who moves between strata is not proven.",
                "Use symmetric-wishart, gaussian, frobenius or laplace.",
            )

    @abstractmethod
    def law(self, *, loss: Loss, grid: Grid) -> NoiseLaw | None:
        """The law of the noise in scaled units, a public fact; None where the noise is not additive."""

    def as_zcdp(self, loss: Loss) -> Fraction | None:
        """The ρ that a release at this loss is known to cost as zCDP; None where only (ε, δ) is known."""
        if isinstance(loss, ZCDP):
            return loss.rho
        return pure_to_zcdp(loss).rho if isinstance(loss, PureDP) else None

    def refuse_early(self, *, loss: Loss, grid: Grid) -> None:
        """Raise whatever ``draw`` refuses from public facts: it is run up to its first random bit, and no further."""
        with suppress(FirstBit):
            self.draw(loss=loss, grid=grid, randomness=NoBits())

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float | None:
        """The root mean square Frobenius error of the raw matrix, in scaled units, by a formula.

        For a table whose Gram matrix has these eigenvalues (scaled units, any order), which are public: a guess
        or a bound. None where no formula is good to 10 %; ``predicted.simulated_differences`` then simulates it.
        """
        return None

    def idealized(self) -> Self:
        """The same mechanism in float64, for simulation."""
        return replace(self, arithmetic="idealized")

    @abstractmethod
    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Draw:
        """Everything random that does not depend on data."""


class DataDrivenMechanism(Mechanism):
    """A mechanism whose draw needs the matrix: no law of the noise on an entry, and a run time that may tell."""

    @property
    def timing_note(self) -> str:
        return "the promise is for an observer who does not see how long the draw took, which depends on the data"

    def law(self, *, loss: Loss, grid: Grid) -> None:
        """Not additive: there is no law of the noise on an entry."""

    def check_columns(self, dimension: int, *, most: int, instead: str = "symmetric-wishart") -> None:
        """Refuse exact arithmetic beyond the columns it is practical for; there is no silent fallback."""
        if self.arithmetic == "exact" and dimension > most:
            raise ParameterError(
                "E209",
                f"exact {self.name} takes at most {most} columns, got {dimension}.",
                f"Ask for --arithmetic idealized, or use {instead}.",
            )

    @staticmethod
    def rank_of(rank: int | None, dimension: int) -> int:
        """The rank asked for, all by default."""
        if rank is not None and not 1 <= rank <= dimension:
            raise ParameterError("E209", f"rank must be a whole number from 1 to {dimension}, got {rank}.")
        return dimension if rank is None else rank


_SURE = 2**62 - 2**33
"""Noise below this and an exact sum in int64 (``Gram.reveal_to_mechanism``) add up to less than 2^63."""


@dataclass(frozen=True, repr=False, eq=False)
class Noise(Draw):
    """Integer noise, drawn before the data was read; adding it to the integer Gram matrix is exact."""

    upper: Upper

    def _answer(self, gram: Gram) -> Upper:
        exact, noise = gram.reveal_to_mechanism(), self.upper
        if exact.dtype == np.int64 == noise.dtype and max(int(noise.max()), -int(noise.min())) < _SURE:
            exact += noise
            return exact
        return exact.astype(object) + noise.astype(object)


class AdditiveMechanism(Mechanism):
    """Gram matrix plus noise of a known law, on the integer grid of the Gram matrix."""

    @abstractmethod
    def law(self, *, loss: Loss, grid: Grid) -> NoiseLaw: ...

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float | None:
        """That of the noise, whatever the table."""
        return self.law(loss=loss, grid=grid).rms_frobenius

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Noise:
        self.check(loss)
        if self.arithmetic == "exact":
            return Noise(self.exact_noise(loss=loss, grid=grid, randomness=randomness))
        simulated = self.law(loss=loss, grid=grid).simulate(randomness)
        upper = upper_of(simulated) * 4.0**grid.exponent
        if is_wide(grid.dimension) and np.abs(upper).max() < _SURE:
            return Noise(np.rint(upper).astype(np.int64))
        return Noise(np.array([round(value) for value in upper.tolist()], dtype=object))

    @abstractmethod
    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        """Integers whose law is exactly the claimed one, given ideal random bits."""


@cache
def _choices(kind: type[Mechanism]) -> dict[str, tuple[str, ...]]:
    """What ``Mechanism.choices`` says, worked out once for each kind: resolving annotations takes milliseconds."""
    hints = get_type_hints(kind)
    return {
        option.name: get_args(hints[option.name]) if get_origin(hints[option.name]) is Literal else ()
        for option in fields(kind)
    }


def float_up(value: Fraction) -> float:
    """The least float at or above an exact number: scales are rounded toward privacy."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
