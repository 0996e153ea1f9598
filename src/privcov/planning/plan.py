"""Every mechanism a promise can be kept with, its error before anything is spent, and the one to take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from privcov.frame.emphasis import emphasis_of, emphasised
from privcov.frame.terms import check_cut
from privcov.linalg.arrays import Floats
from privcov.planning.candidates import Candidate, Refusal, candidate, candidates, choose
from privcov.planning.exits import exits, outlook_of
from privcov.planning.forecast import Forecast, Spread, Step, check_rows, count_is_public, forecast, steps
from privcov.planning.framed import framed
from privcov.planning.invert import loss_values, pick
from privcov.planning.moments import PublicMoments, cautious, says_nothing
from privcov.planning.outlook import Outlook
from privcov.planning.purpose import Purpose
from privcov.planning.signal import SignalRange
from privcov.planning.words import as_text, reason
from privcov.privacy import Loss
from privcov.report.standing import Verdict
from privcov.schema import Feature, Schema
from privcov.schema.grid import Grid

Key = TypeVar("Key")
"""What forecasts are kept under: candidates, or their names."""


@dataclass(frozen=True, kw_only=True)
class ColumnError:
    """What the noise does to one column, 95 times in 100.

    Attributes
    ----------
    column : str
        The name in the matrix.
    mean : float or None
        The error on its mean stays below this, in original units. None without an intercept.
    variance : float
        The error on its variance stays below this, in squared original units, wherever in its bounds the mean is; or
        for the mean that was declared public.
    hidden : tuple of str
        Of "mean" and "variance", those that noise hides: their error is as wide as the bounds allow, or wider, so that
        a release would say no more of them than the bounds do.

    Examples
    --------
    >>> ColumnError(column="age", mean=0.2, variance=3.0).mean
    0.2
    >>> made = ColumnError(column="age", mean=665.0, variance=3.0, hidden=("mean",))
    >>> made.size("mean"), made.size("variance")
    ('hidden', '3')
    """

    column: str
    mean: float | None
    variance: float
    hidden: tuple[str, ...] = ()

    def size(self, what: Literal["mean", "variance"]) -> str:
        """Return an error as text, to three digits.

        Parameters
        ----------
        what : {"mean", "variance"}
            Of which number.

        Returns
        -------
        str
            The error; "hidden" where noise hides the number, and nothing where there is no mean.
        """
        if what in self.hidden:
            return "hidden"
        error = self.mean if what == "mean" else self.variance
        return "" if error is None else f"{error:.3g}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What each mechanism would cost in accuracy, from the schema, the number of rows and the loss alone.

    Made by ``privcov.plan``; ``print(plan)`` shows it as a table.

    Attributes
    ----------
    schema : Schema
        The public facts about the table.
    rows : int
        The number of rows planned for.
    loss : PureDP, ApproxDP or ZCDP
        The loss planned for.
    purpose : Purpose
        What "auto" chooses for.
    forecasts : tuple of Forecast
        One per mechanism, in order of the expected Frobenius error.
    refusals : tuple of Refusal
        The mechanisms that cannot keep this promise here, and why.
    choice : Forecast
        What ``mechanism="auto"`` takes.
    signal : SignalRange
        The public range of the norm of the true matrix, per row, in scaled units.
    moments : PublicMoments or None
        What the verdicts are for, where someone declared it public; else they are for a range of tables.
    cut : {"told", "counted"}
        What would become of the length that a private frame cuts off long rows: see ``release``.
    emphasis : tuple of str
        The columns that matter most; ``schema`` then has the other numeric columns with half their weight.
    declared : Schema or None
        The schema without an emphasis, where there is one.

    Examples
    --------
    >>> import privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 100} for n in ("age", "math", "art")}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> plan = pc.plan(schema=schema, rows=4000, loss=loss, mechanisms=["symmetric-wishart", "laplace"])
    >>> plan.choice.mechanism.name, plan.verdict(plan.choice), len(plan.reason) > 0
    ('symmetric-wishart', 'marginal', True)
    >>> [column.column for column in plan.columns()], plan.to_dict()["rows"], plan.focus
    (['age', 'math', 'art'], 4000, None)
    >>> pc.plan(schema=schema, rows=200, loss=loss, mechanisms=["laplace"]).exits[-1]
    'Spend more: from ε = 2.5 on it would be marginal.'
    """

    schema: Schema
    rows: int
    loss: Loss
    purpose: Purpose
    forecasts: tuple[Forecast, ...]
    refusals: tuple[Refusal, ...]
    choice: Forecast
    signal: SignalRange
    moments: PublicMoments | None = None
    cut: Literal["told", "counted"] = "told"
    emphasis: tuple[str, ...] = ()
    declared: Schema | None = None

    @property
    def focus(self) -> tuple[float, float] | None:
        """The noise on products of columns in focus, and of the others, over what it is without a focus.

        None where there is no focus, or where the noise has no law.
        """
        law = self.choice.law
        if self.declared is None or law is None:
            return None
        plain = self.choice.mechanism.law(loss=self.choice.loss, grid=Grid.of(self.declared))
        if plain is None:
            return None
        ratio = math.sqrt(law.offdiagonal_variance / plain.offdiagonal_variance)
        return ratio, 4 * ratio  # each of two other columns reaches half as far

    @property
    def reason(self) -> str:
        """Why "auto" takes what it takes, in a sentence."""
        return reason(self)

    def verdict(self, made: Forecast) -> Verdict:
        """Say what the noise of a mechanism means for correlations.

        Parameters
        ----------
        made : Forecast
            One of ``forecasts``.

        Returns
        -------
        {"useful", "marginal", "worse than publishing zeros"}
            The verdict on the unrepaired matrix: useful where a correlation of 0.2 is told from zero even in
            columns that fill a fifth of their bounds; worse than publishing zeros where none does in columns that
            fill less than half of them.
        """
        return self.outlook(made).verdict

    def outlook(self, made: Forecast | None = None) -> Outlook:
        """Return how large a correlation must be to stand clear of the noise of a mechanism.

        Parameters
        ----------
        made : Forecast, optional
            One of ``forecasts``. By default the mechanism that "auto" takes.

        Returns
        -------
        Outlook
            With a ``verdict``, and as a sentence if it is printed.

        Examples
        --------
        >>> import privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 100} for n in ("age", "score")}})
        >>> loss = pc.ZCDP(rho="0.1", neighbours="replace-one")
        >>> pc.plan(schema=schema, rows=100_000, loss=loss, mechanisms=["gaussian"]).outlook().verdict
        'useful'
        """
        one = self.choice if made is None else made
        counted = count_is_public(self.schema, one.loss)
        if one.law is not None:
            return Outlook.by_law(self.schema, one.law, rows=one.rows, counted=counted, moments=self.moments)
        count = 0.0 if counted else one.diagonal.high
        # A matrix of one number has none off the diagonal.
        entry = one.entry.high or one.diagonal.high
        return Outlook.of(self.schema, entry=entry, count=count, moments=self.moments)

    @cached_property
    def exits(self) -> tuple[str, ...]:
        """What else would be better than zeros where the release would not be, in sentences; each was tried."""
        if self.outlook().verdict != "worse than publishing zeros" or self.choice.law is None:
            return ()
        return tuple(exits(self._worth, schema=self.declared or self.schema, loss=self.loss))

    def _worth(
        self, *, schema: Schema | None = None, loss: Loss | None = None, frame: str = "declared"
    ) -> Outlook | None:
        """The outlook of another order; of fewer columns without a focus, which may lie on the others."""
        moments = self.moments
        return outlook_of(
            schema or self.declared or self.schema,
            loss=loss or self.loss,
            rows=self.rows,
            purpose=self.purpose,
            frame=frame,
            cut=self.cut,
            emphasis=() if schema else self.emphasis,
            moments=moments.part(schema) if moments and schema else moments,
        )

    def columns(self, made: Forecast | None = None) -> tuple[ColumnError, ...]:
        """Return the error on every column in original units.

        Parameters
        ----------
        made : Forecast, optional
            One of ``forecasts``. By default the mechanism that "auto" takes.

        Returns
        -------
        tuple of ColumnError
            One per column of the matrix but the intercept.
        """
        highs = self._highs(self.choice if made is None else made)
        return tuple(
            self._column(feature, float(highs[0, j]), float(highs[j, j]))
            for j, feature in enumerate(self.schema.features)
            if feature.kind != "intercept"
        )

    def _column(self, feature: Feature, mean: float, variance: float) -> ColumnError:
        """The errors of a column, from those in scaled units."""
        mean, variance = feature.unit * mean, feature.unit * (feature.unit * variance)
        if not self.schema.intercept:
            return ColumnError(column=feature.name, mean=None, variance=variance)
        found = {"mean": says_nothing(mean, feature), "variance": says_nothing(variance, feature, feature)}
        hidden = tuple(word for word, hides in found.items() if hides)
        return ColumnError(column=feature.name, mean=mean, variance=variance, hidden=hidden)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan for programs.

        Returns
        -------
        dict
            JSON values.
        """
        return {
            "rows": self.rows,
            "loss": loss_values(self.loss),
            "for": str(self.purpose),
            "auto": {"mechanism": self.choice.mechanism.name, "reason": self.reason},
            "covariance_95": self._covariances(),
            "signal": {"low": self.signal.low, "high": self.signal.high},
            "mechanisms": [
                {
                    "mechanism": made.mechanism.name,
                    "arithmetic": made.mechanism.arithmetic,
                    "guarantee": loss_values(made.loss),
                    "basis": made.basis,
                    "error": {name: _spread(spread) for name, spread in made.errors.items()},
                    "relative": [
                        made.frobenius.mean / self.signal.high,
                        made.frobenius.mean / self.signal.low,
                    ],
                    "verdict": (outlook := self.outlook(made)).verdict,
                    "clear_from": [outlook.low, outlook.high],
                    "columns": [
                        {
                            "column": c.column,
                            "mean_95": c.mean,
                            "variance_95": c.variance,
                            "hidden": list(c.hidden),
                        }
                        for c in self.columns(made)
                    ],
                }
                for made in self.forecasts
            ],
            "exits": list(self.exits),
            "correlations": None if (other := framed(self)) is None else vars(other),
            "emphasis": list(self.emphasis),
            "focus": None if (focus := self.focus) is None else {"columns": focus[0], "others": focus[1]},
            "refused": [{"mechanism": no.name, "reason": no.reason} for no in self.refusals],
        }

    def _covariances(self) -> dict[str, dict[str, float]]:
        """Noise on every covariance in original units, 95 times in 100, of the mechanism ``auto`` takes."""
        features = [(j, f) for j, f in enumerate(self.schema.features) if f.kind != "intercept"]
        highs = self._highs(self.choice)
        return {
            one.name: {other.name: one.unit * (other.unit * float(highs[i, j])) for j, other in features}
            for i, one in features
        }

    def _highs(self, made: Forecast) -> Floats:
        """Errors of means, variances and covariances, 95 times in 100, in scaled units."""
        if not self.schema.intercept:
            return made.highs_of(self.schema)
        return made.centred_highs(self.schema, cautious(self.schema, self.moments)[0])

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        from privcov.planning.display import html  # on use: most plans are made for programs and terminals

        return html(self)


def plan(
    *,
    schema: Schema,
    rows: int,
    loss: Loss,
    purpose: str = "covariance",
    mechanisms: Sequence[str] | None = None,
    moments: PublicMoments | None = None,
    cut: Literal["told", "counted"] = "told",
    emphasis: str | Sequence[str] | None = None,
    progress: Any = None,
) -> Plan:
    """Compare the error of every mechanism that can keep a promise, before anything is spent.

    No data file is opened.

    Parameters
    ----------
    schema : Schema
        The columns with their public bounds.
    rows : int
        The number of rows, from 2: public, or a guess.
    loss : PureDP, ApproxDP or ZCDP
        What the release would cost.
    purpose : str, default "covariance"
        What "auto" chooses for: "covariance", "regression", or "pca:K".
    mechanisms : sequence of str, optional
        The mechanisms to compare. By default all.
    moments : PublicMoments, optional
        Stands in for the table where an error depends on it: see ``surrogate``. Without them such errors are
        those of the worst table.
    cut : {"told", "counted"}, default "told"
        For the forecast of a private frame: whether intervals are to count what it cuts off long rows, which costs a
        twentieth of the loss. See ``release``.
    emphasis : str or sequence of str, optional
        The columns that matter most, as names or as a formula, as for ``release``; by default those of the formula of a
        purpose. Public moments are then not used.
    progress : callable, optional
        Called as ``progress(total)`` with the number of simulations; what it returns is called after each.

    Returns
    -------
    Plan
        The forecasts in order of their error, and the choice of "auto".

    Raises
    ------
    ParameterError
        A parameter is out of range, or no mechanism can promise this loss (E2xx).

    Examples
    --------
    >>> import privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 100} for n in ("age", "math", "art")}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> made = pc.plan(schema=schema, rows=4000, loss=loss, mechanisms=["symmetric-wishart", "laplace"])
    >>> made.choice.mechanism.name, made.verdict(made.choice)
    ('symmetric-wishart', 'marginal')
    """
    check_rows(rows)
    check_cut(cut, "auto")
    wanted, declared = Purpose.parse(purpose), schema
    if first := emphasis_of(wanted.formula if emphasis is None else emphasis, schema):
        schema, moments = emphasised(schema, first), None
    grid = Grid.of(schema)
    chosen = choose(loss=loss, grid=grid, purpose=wanted)
    able: list[Candidate]
    refused: list[Refusal] = []
    if mechanisms is None:
        able, refused = candidates(loss=loss, grid=grid)
    else:
        able = [candidate(name, loss=loss, grid=grid) for name in mechanisms]
    taken = Candidate(mechanism=chosen.mechanism, loss=chosen.loss)
    if taken not in able:
        able.append(taken)
    spectrum = None if moments is None else moments.spectrum.tolist()
    total = sum(steps(one.mechanism, loss=one.loss, grid=grid, surrogate=moments is not None) for one in able)
    step: Step = (lambda: None) if progress is None else progress(total)
    made = {
        one: forecast(one.mechanism, loss=one.loss, grid=grid, rows=rows, spectrum=spectrum, step=step)
        for one in able
    }
    made_of: Any = {"rows": rows, "loss": loss, "purpose": wanted, "moments": moments, "cut": cut}
    found = plan_of(schema, made, taken, refused, **made_of)
    return replace(found, emphasis=first, declared=declared) if first else found


def plan_of(
    schema: Schema,
    forecasts: Mapping[Key, Forecast],
    choice: Key,
    refusals: Iterable[Refusal],
    *,
    rows: int,
    loss: Loss,
    purpose: str | Purpose,
    moments: PublicMoments | None = None,
    cut: Literal["told", "counted"] = "told",
) -> Plan:
    """A plan of forecasts and the key of the choice: the best first, with the public range of the matrix."""
    return Plan(
        schema=schema,
        rows=rows,
        loss=loss,
        purpose=Purpose.parse(purpose),
        forecasts=tuple(sorted(forecasts.values(), key=lambda one: one.frobenius.mean)),
        refusals=tuple(refusals),
        choice=forecasts[choice],
        signal=SignalRange.of(schema),
        moments=moments,
        cut=cut,
    )


def accuracy(
    *,
    schema: Schema,
    rows: int,
    loss: Loss,
    mechanism: str = "auto",
    moments: PublicMoments | None = None,
    **options: Any,
) -> Forecast:
    """Forecast the error of one mechanism, before anything is spent.

    Parameters
    ----------
    schema : Schema
        The columns with their public bounds.
    rows : int
        The number of rows, from 2: public, or a guess.
    loss : PureDP, ApproxDP or ZCDP
        What the release would cost.
    mechanism : str, default "auto"
        The name of the mechanism.
    moments : PublicMoments, optional
        Stands in for the table where the error depends on it: see ``surrogate``.
    **options : Any
        Options of the mechanism itself, by name.

    Returns
    -------
    Forecast
        Errors of the unrepaired matrix per row, in scaled units.

    Raises
    ------
    ParameterError
        A parameter is out of range, or the mechanism cannot promise this loss (E2xx).

    Examples
    --------
    >>> import privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 100} for n in ("age", "math", "art")}})
    >>> made = pc.accuracy(schema=schema, rows=4000, loss=pc.ZCDP(rho="0.1", neighbours="replace-one"))
    >>> made.mechanism.name, made.frobenius.mean < made.frobenius.high
    ('gaussian', True)
    """
    grid = Grid.of(schema)
    taken = pick(mechanism, loss=loss, grid=grid, **options)
    spectrum = None if moments is None else moments.spectrum.tolist()
    return forecast(taken.mechanism, loss=taken.loss, grid=grid, rows=rows, spectrum=spectrum)


def _spread(spread: Spread) -> dict[str, float]:
    return {"expected": spread.mean, "high_95": spread.high}
