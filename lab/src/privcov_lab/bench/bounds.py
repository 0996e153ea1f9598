"""Public tables with the bounds that a steward would write: round numbers, known without looking at the rows.

Numbers come first and levels after them, as places in the list of levels. Cells are clipped to the bounds as they
are written here, so that a table stays the same where the bounds are made wider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import special

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness, rehearsal
from privcov.schema import Categorical, Numeric, Schema
from privcov_lab.reproduce.datasets import Dataset, Datasets

Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Which columns and rows of which file, and what is declared of them."""

    source: str
    numbers: Bounds
    levels: Mapping[str, int] = field(default_factory=dict)
    """How many levels a column has. It is in the file as so many indicators, or as one column of 0, 1, …"""
    sample: int | None = None
    """How many rows are taken, by a fixed seed; None takes all."""

    @property
    def schema(self) -> Schema:
        numbers = [
            Numeric(name=name, lower=lower, upper=upper) for name, (lower, upper) in self.numbers.items()
        ]
        levels = [Categorical(name=name, levels=tuple(range(count))) for name, count in self.levels.items()]
        return Schema(columns=(*numbers, *levels))

    def rows(self, data: Dataset) -> Floats:
        """The columns in the order of the schema, clipped to the bounds."""
        found = data.rows if self.sample is None else data.rows[_some(len(data.rows), self.sample)]
        places = {name: place for place, name in enumerate(data.columns)}
        numbers = [found[:, places[name]].clip(*bounds) for name, bounds in self.numbers.items()]
        return np.column_stack([*numbers, *(_codes(found, places, name) for name in self.levels)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A table in memory, with its schema."""

    name: str
    rows: Floats
    schema: Schema

    @cached_property
    def numeric(self) -> int:
        """How many numeric columns there are; they come first."""
        return sum(isinstance(column, Numeric) for column in self.schema.columns)

    @cached_property
    def expanded(self) -> Floats:
        """The rows with one indicator for each level, as a release has them, but for the intercept."""
        parts = [self.rows[:, : self.numeric]]
        for place, column in enumerate(self.schema.columns):
            if isinstance(column, Categorical):
                parts.append(self.rows[:, [place]] == np.arange(len(column.levels)))
        return np.hstack(parts)

    @property
    def first_levels(self) -> list[bool]:
        """Which of the expanded columns are the first level of a categorical column."""
        firsts = {(c.name, c.levels[0]) for c in self.schema.columns if isinstance(c, Categorical)}
        return [(one.column, one.level) in firsts for one in self.schema.features if one.kind != "intercept"]

    def widened(self, factor: float) -> Schema:
        """The schema with every numeric bound so many times as far from the middle."""
        columns = [
            replace(
                column,
                lower=column.middle - factor * column.half_width,
                upper=column.middle + factor * column.half_width,
            )
            if isinstance(column, Numeric)
            else column
            for column in self.schema.columns
        ]
        return self.schema if factor == 1 else replace(self.schema, columns=tuple(columns))


def cases(directory: str | Path, names: Sequence[str]) -> tuple[list[Case], list[dict[str, str]]]:
    """The tables that are there, and why the others are skipped."""
    data, found, skipped = Datasets(Path(directory), online=False), list[Case](), list[dict[str, str]]()
    for name in names:
        recipe = RECIPES[name]
        try:
            rows = recipe.rows(data.load(recipe.source))
        except InputError as reason:
            skipped.append({"table": name, "reason": reason.sentence})
            continue
        found.append(Case(name=name, rows=rows, schema=recipe.schema))
    return found, skipped


@dataclass(frozen=True, kw_only=True)
class Design:
    """A kind of table with skewed columns that no constant of a frame was set on: rows are drawn anew each time."""

    name: str
    bounds: Bounds
    draw: Callable[[Randomness, int], Floats]
    rows: int = 10_000

    def case(self, seed: int, rows: int | None = None) -> Case:
        """A table of this kind, clipped to its bounds."""
        lower, upper = np.array(list(self.bounds.values()), dtype=np.float64).T
        drawn = self.draw(rehearsal(2**42 + seed), rows or self.rows).clip(lower, upper)
        return Case(name=self.name, rows=drawn, schema=Recipe(source="", numbers=self.bounds).schema)


def _gammas(source: Randomness, shape: float, scale: float, rows: int) -> Floats:
    return np.asarray(scale * special.gammaincinv(shape, source.uniforms(rows)))


def _wages(source: Randomness, rows: int) -> Floats:
    """Wages with a long tail, on schooling and years of work, and hours that hardly vary."""
    school, years = 13 + 2.5 * source.normals(rows), _gammas(source, 2.5, 6, rows)
    hours = 38 + 6 * source.normals(rows)
    wage = 900 * school + 350 * years + 200 * hours + 9_000 * np.exp(0.9 * source.normals(rows))
    return np.column_stack([school, years, hours, wage])


def _claims(source: Randomness, rows: int) -> Floats:
    """Claims that are mostly zero, and large where they are not; more of them with age, and costs on top of them."""
    age, risk = 18 + 62 * source.uniforms(rows), _gammas(source, 1.5, 1, rows)
    made = source.uniforms(rows) < 0.05 + 0.001 * age
    claims = np.where(made, np.exp(7 + source.normals(rows)), 0.0)
    return np.column_stack(
        [age, risk, claims, 300 + 0.8 * claims + 90 * risk + _gammas(source, 2, 150, rows)]
    )


def _towns(source: Randomness, rows: int) -> Floats:
    """Sizes like those of towns, with a tail like u⁻³, and what goes with them."""
    size = source.uniforms(rows) ** (-1 / 3)
    shops = 4 * size + 2 * source.normals(rows)
    noise = [special.stdtrit(5, source.uniforms(rows)) for _ in range(2)]
    return np.column_stack([size, shops, 2 + 0.5 * shops + noise[0], 10 + 1.5 * size + 2 * noise[1]])


DESIGNS = (
    Design(
        name="wages",
        bounds={"school": (0, 30), "years": (0, 80), "hours": (0, 100), "wage": (0, 500_000)},
        draw=_wages,
    ),
    Design(
        name="claims",
        bounds={"age": (0, 120), "risk": (0, 20), "claims": (0, 100_000), "cost": (0, 100_000)},
        draw=_claims,
    ),
    Design(
        name="towns",
        bounds={"size": (0, 50), "shops": (-20, 200), "rent": (-50, 150), "traffic": (-50, 200)},
        draw=_towns,
    ),
)


def _some(rows: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """So many of the rows, the same ones every time."""
    return np.argsort(rehearsal(count).uniforms(rows), kind="stable")[:count]


def _codes(rows: Floats, places: Mapping[str, int], name: str) -> Floats:
    """The place of each row's level: from a column of numbers, or from the indicators ``name=level`` of a file."""
    if name in places:
        return rows[:, places[name]]
    indicators = [place for column, place in places.items() if column.startswith(f"{name}=")]
    return rows[:, indicators].argmax(axis=1).astype(np.float64)


_ADULT: Bounds = {
    "age": (0, 100),
    "fnlwgt": (0, 1_500_000),
    "education_num": (0, 20),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 10_000),
    "hours_per_week": (0, 100),
}
_ADULT_LEVELS = {
    "workclass": 9,
    "education": 16,
    "marital_status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "native_country": 42,
}
_COVTYPE: Bounds = {
    "Elevation": (0, 9_000),
    "Aspect": (0, 360),
    "Slope": (0, 90),
    "Horizontal_Distance_To_Hydrology": (0, 2_000),
    "Vertical_Distance_To_Hydrology": (-500, 1_000),
    "Horizontal_Distance_To_Roadways": (0, 10_000),
    "Hillshade_9am": (0, 255),
    "Hillshade_Noon": (0, 255),
    "Hillshade_3pm": (0, 255),
    "Horizontal_Distance_To_Fire_Points": (0, 10_000),
}
_WINE: Bounds = {
    "alcohol": (0, 20),
    "malic_acid": (0, 10),
    "ash": (0, 5),
    "alcalinity_of_ash": (0, 50),
    "magnesium": (0, 200),
    "total_phenols": (0, 5),
    "flavanoids": (0, 10),
    "nonflavanoid_phenols": (0, 1),
    "proanthocyanins": (0, 5),
    "color_intensity": (0, 20),
    "hue": (0, 2),
    "od280_od315": (0, 5),
    "proline": (0, 2_000),
}
_AIRFOIL: Bounds = {
    "frequency_hz": (0, 25_000),
    "angle_of_attack_deg": (0, 30),
    "chord_length_m": (0, 0.5),
    "free_stream_velocity_mps": (0, 100),
    "suction_side_displacement_thickness_m": (0, 0.1),
    "scaled_sound_pressure_level_db": (80, 160),
}
RECIPES = {
    "wine": Recipe(source="wine", numbers=_WINE),
    "airfoil": Recipe(source="airfoil", numbers=_AIRFOIL),
    "pums": Recipe(
        source="pums",
        numbers={"age": (0, 100), "educ": (0, 20), "income": (0, 500_000)},
        levels=dict.fromkeys(("sex", "latino", "black", "asian", "married"), 2),
    ),
    "adult-numbers": Recipe(source="adult", numbers=_ADULT),
    "adult": Recipe(source="adult", numbers=_ADULT, levels=_ADULT_LEVELS),
    "covtype-20000": Recipe(source="covtype", numbers=_COVTYPE, sample=20_000),
    "covtype-200000": Recipe(source="covtype", numbers=_COVTYPE, sample=200_000),
}
"""Seven tables of six files; "adult-numbers" has the numeric columns of adult alone."""
