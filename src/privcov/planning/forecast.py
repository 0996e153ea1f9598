"""The error a release will have, before anything is spent: from the law of its noise, or by rehearsal.

A mechanism that adds noise of a known law errs by that noise whatever the table says: its norms are simulated
once for each dimension (the scale is a factor) and kept. The error of any other mechanism depends on the table.
Nothing may look at it, so the mechanism is rehearsed on made-up matrices: on the surrogate the user declares
public, or on a range of spectra with the largest trace the schema admits, of which the worst is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism
from privcov.mechanisms.predicted import simulated_differences
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import rehearsal
from privcov.planning.cache import known, remembered
from privcov.privacy import Loss
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.recovery import recovery

Basis = Literal["law", "surrogate", "worst case"]
Step = Callable[[], None]
NORMS = ("frobenius", "spectral", "entry", "diagonal")
MARGIN = 0.1
"""By how much the worst of the spectra tried is raised."""
_SEED = 20261115


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A random error: its expectation, and the value it stays below with probability 95 %.

    Attributes
    ----------
    mean : float
        The expected error, per row and in scaled units.
    high : float
        The error stays below this 95 times in 100.

    Examples
    --------
    >>> Spread(mean=1.0, high=2.0) * 3
    Spread(mean=3.0, high=6.0)
    """

    mean: float
    high: float

    def __mul__(self, factor: float) -> Spread:
        return Spread(mean=self.mean * factor, high=self.high * factor)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The error of the unrepaired matrix of one mechanism, divided by the number of rows, in scaled units.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism; ``mechanism.name`` is its name.
    loss : PureDP, ApproxDP or ZCDP
        What it would promise: the loss asked for, or a stronger one.
    basis : {"law", "surrogate", "worst case"}
        Where the numbers come from: "law" holds for every table; "surrogate" for a table like the public one;
        "worst case" is the largest error over made-up spectra, and a real table should do better.
    rows : int
        The number of rows.
    dimension : int
        The number of columns of the matrix.
    frobenius : Spread
        The Frobenius norm of the error.
    spectral : Spread
        The largest absolute eigenvalue of the error.
    entry : Spread
        The size of the error on an entry off the diagonal.
    diagonal : Spread
        The size of the error on an entry of the diagonal.
    law : NoiseLaw or None
        The law of the noise, where it is additive.

    Examples
    --------
    >>> import privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> made = pc.accuracy(schema=schema, rows=4000, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> made.basis, sorted(made.errors), made.entry_highs.shape, made.highs_of(schema).shape
    ('law', ['diagonal', 'entry', 'frobenius', 'spectral'], (2, 2), (2, 2))
    >>> import numpy as np
    >>> bool(made.centred_highs(schema, np.array([1.0, 0.5]))[1, 1] > made.entry_highs[1, 1])
    True
    >>> made.correlation_high(schema, (1, 1), means=np.ones(2), spreads=np.zeros(2), correlation=0.0)
    inf
    """

    mechanism: Mechanism
    loss: Loss
    basis: Basis
    rows: int
    dimension: int
    frobenius: Spread
    spectral: Spread
    entry: Spread
    diagonal: Spread
    law: NoiseLaw | None = None

    @property
    def errors(self) -> dict[str, Spread]:
        """The four spreads by name."""
        return {name: getattr(self, name) for name in NORMS}

    @cached_property
    def entry_highs(self) -> Floats:
        """For each entry of the matrix, the size its error stays below 95 times in 100, per row, scaled units."""
        d, law = self.dimension, self.law
        highs = np.full((d, d), self.entry.high)
        np.fill_diagonal(highs, self.diagonal.high)
        if law is None:
            return highs
        typical = np.full((d, d), law.offdiagonal_variance)
        np.fill_diagonal(typical, law.diagonal_variance)
        return np.asarray(highs * np.sqrt(law.entry_variances / typical))

    def highs_of(self, schema: Schema) -> Floats:
        """Return the same for the features of a schema: where levels are exhaustive, of what is recovered for them.

        Parameters
        ----------
        schema : Schema
            The schema that the forecast is for.

        Returns
        -------
        ndarray of shape (d, d)
            Per row, in scaled units.
        """
        back = recovery(schema)
        return self.entry_highs if back is None else np.sqrt(back.entry_variances(self.entry_highs**2, 0.0))

    def centred_highs(self, schema: Schema, means: Floats) -> Floats:
        """Return the same for each variance and covariance, which carry the noise of two means too.

        To first order the noise N of the sums moves a covariance by (e_i − m_i e_0)ᵀ N (e_j − m_j e_0), with e_0 the
        intercept. Its parts are added in quadrature; the noise of the count is one where the count is private.

        Parameters
        ----------
        schema : Schema
            The schema that the forecast is for.
        means : ndarray of shape (d,)
            Means of the columns in scaled units; of the intercept, the first column, 1.

        Returns
        -------
        ndarray of shape (d, d)
            Per row, in scaled units. The row of the intercept is that of the means.
        """
        squares, own = self.highs_of(schema) ** 2, means**2
        count = 0.0 if count_is_public(schema, self.loss) else float(squares[0, 0])
        made = squares + np.outer(own, squares[0]) + np.outer(squares[0], own) + count * np.outer(own, own)
        made[np.diag_indices(len(own))] += 2 * own * squares[0]  # the same mean twice: 2m, squared
        # The noise of a private count moves a mean in proportion to itself.
        made[0] = made[:, 0] = squares[0] + count * own
        return np.sqrt(made)

    def correlation_high(
        self, schema: Schema, places: tuple[int, int], *, means: Floats, spreads: Floats, correlation: float
    ) -> float:
        """Return what the error on a correlation stays below 95 times in 100, to first order.

        Parameters
        ----------
        schema : Schema
            The schema that the forecast is for.
        places : (int, int)
            Of two columns.
        means, spreads : ndarray of shape (d,)
            Means and standard deviations of the columns in scaled units.
        correlation : float
            The correlation, from -1 to 1.

        Returns
        -------
        float
            The error, without unit; infinite for a column whose variance may be off by half or more.
        """
        i, j = places
        if not (spreads[i] > 0 and spreads[j] > 0):
            return math.inf
        (a, b), (c, d) = means[[i, j]] / spreads[[i, j]], 1 / spreads[[i, j]]
        parts = {
            (i, j): c * d,
            (i, i): -correlation * c**2 / 2,
            (j, j): -correlation * d**2 / 2,
            (0, i): c * (correlation * a - b),
            (0, j): d * (correlation * b - a),
        }
        if not count_is_public(schema, self.loss):
            parts[0, 0] = a * b - correlation * (a**2 + b**2) / 2
        highs = self.highs_of(schema)
        variances = np.diag(self.centred_highs(schema, means))[[i, j]]
        if (variances > spreads[[i, j]] ** 2 / 2).any():  # nothing of first order is known of such a ratio
            return math.inf
        return math.sqrt(sum((weight * highs[place]) ** 2 for place, weight in parts.items()))


def count_is_public(schema: Schema, loss: Loss) -> bool:
    """Whether the number that sums are divided by is public."""
    public = loss.neighbours.count_is_public(schema.max_rows_per_person)
    return public and not schema.empties_rows and schema.weight is None


def forecast(
    mechanism: Mechanism,
    *,
    loss: Loss,
    grid: Grid,
    rows: int,
    spectrum: Sequence[float] | None = None,
    step: Step = lambda: None,
) -> Forecast:
    """The error of one mechanism; ``spectrum`` holds the eigenvalues of a public surrogate, per row.

    >>> from privcov.mechanisms import find
    >>> from privcov.privacy import PureDP
    >>> loss = PureDP(epsilon=1, neighbours="replace-one")
    >>> grid = Grid(dimension=6, exponent=20, squared_norm_bound=2**40)
    >>> made = forecast(find("symmetric-wishart", loss=loss), loss=loss, grid=grid, rows=1503)
    >>> 0.015 < made.frobenius.mean < 0.017
    True
    """
    check_rows(rows)
    law = mechanism.law(loss=loss, grid=grid)
    basis: Basis
    if law is not None:
        basis, numbers = "law", unit_norms(law, step)
        numbers = tuple(law.scale / rows * value for value in numbers)
    else:
        spectra = worst_spectra(grid) if spectrum is None else [np.asarray(spectrum, dtype=np.float64)]
        basis = "worst case" if spectrum is None else "surrogate"
        each = [_rehearsed(mechanism, loss, grid, rows, values, step, of=len(spectra)) for values in spectra]
        raised = 1 + MARGIN if spectrum is None else 1.0
        numbers = tuple(raised * max(column) / rows for column in zip(*each, strict=True))
    spreads = {
        name: Spread(mean=mean, high=high)
        for name, mean, high in zip(NORMS, numbers[::2], numbers[1::2], strict=True)
    }
    return Forecast(
        mechanism=mechanism, loss=loss, basis=basis, rows=rows, dimension=grid.dimension, law=law, **spreads
    )


def steps(mechanism: Mechanism, *, loss: Loss, grid: Grid, surrogate: bool = False) -> int:
    """How many times ``forecast`` will call ``step``."""
    if mechanism.law(loss=loss, grid=grid) is not None or surrogate:
        return 1
    return len(worst_spectra(grid))


def check_rows(rows: int) -> None:
    """Refuse a number of rows no covariance can be made of."""
    if isinstance(rows, bool) or not isinstance(rows, int) or not 2 <= rows <= 10**15:
        raise ParameterError("E260", f"rows must be a whole number from 2, got {rows}.")


def unit_norms(law: NoiseLaw, step: Step = lambda: None) -> tuple[float, ...]:
    """Mean and 95 % quantile of each norm of the law at scale 1, simulated once per dimension and kept."""
    unit = type(law)(dimension=law.dimension, scale=1.0)

    def make() -> tuple[float, ...]:
        return summarize(unit.simulations(rehearsal(_SEED), _draws(law.dimension)))

    numbers = remembered(f"norms of {law.name} in {law.dimension} dimensions", make)
    step()
    return numbers


def is_known(law: NoiseLaw) -> bool:
    """Whether the norms of this law were simulated before."""
    return known(f"norms of {law.name} in {law.dimension} dimensions")


def summarize(differences: Floats, *, margin: float = 0.0) -> tuple[float, ...]:
    """Mean and 95 % quantile of every norm in ``NORMS`` over a stack of symmetric error matrices.

    With a ``margin`` both are raised by so many standard errors of the simulation.
    """
    runs, d = len(differences), differences.shape[-1]
    level = min(0.95 + margin * math.sqrt(0.05 * 0.95 / runs), 1.0)
    sizes = [
        np.sqrt((differences**2).sum(axis=(1, 2))),
        np.abs(np.linalg.eigvalsh(differences)).max(axis=1),
        np.abs(differences[:, *np.triu_indices(d, 1)]).ravel() if d > 1 else np.zeros(1),
        np.abs(np.diagonal(differences, axis1=1, axis2=2)).ravel(),
    ]
    spread = margin / math.sqrt(runs)
    pairs = ((size.mean() + spread * size.std(), np.quantile(size, level)) for size in sizes)
    return tuple(float(value) for pair in pairs for value in pair)


def worst_spectra(grid: Grid) -> list[Floats]:
    """Eigenvalues per row, of the largest trace the grid admits: concentrated on few directions, and spread.

    No data-dependent mechanism erred by more than a tenth beyond the worst of these on any spectrum we measured; that
    is an observation, not a proof, and the forecast says ``worst case`` in that sense.
    """
    d = grid.dimension
    trace = float(grid.squared_norm_bound * grid.unit)
    ranks = sorted({1, 4, max(1, d // 4), d} & set(range(1, d + 1)))
    flat = [np.where(np.arange(d) < rank, trace / rank, 0.0) for rank in ranks]
    place = np.arange(d)
    falling = [1.0 / (1.0 + place), 0.01 ** (place / max(1, d - 1)), 1e-4 ** (place / max(1, d - 1))]
    return [*flat, *(trace * shape / shape.sum() for shape in falling)]


def _rehearsed(
    mechanism: Mechanism, loss: Loss, grid: Grid, rows: int, spectrum: Floats, step: Step, *, of: int
) -> tuple[float, ...]:
    """The norms with one spectrum; where it is one of several, all of them together take the time of one."""
    runs = int(np.clip(1400 // (of * grid.dimension), 6, 175 // of))
    said = ", ".join(f"{name}={value}" for name, value in sorted(mechanism.options.items()))
    spectral = " ".join(f"{value:.6g}" for value in spectrum)
    key = f"{mechanism.name} ({said}) under {loss!r} on {grid} with {rows} rows of spectrum {spectral}, {runs} runs"

    def make() -> tuple[float, ...]:
        return summarize(
            simulated_differences(
                mechanism,
                loss=loss,
                grid=grid,
                spectrum=[float(value) * rows for value in spectrum],
                rows=rows,
                runs=runs,
                seed=_SEED,
            ),
            margin=2.0,
        )

    numbers = remembered(key, make)
    step()
    return numbers


def _draws(dimension: int) -> int:
    """Enough for 2 % on a quantile: norms of large matrices hardly vary, those of small ones are cheap."""
    return int(np.clip(10**7 // dimension**3, 64, 10_000))
