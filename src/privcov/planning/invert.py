"""The smallest budget, or the fewest rows, for an accuracy: the forecast turned around, and checked forwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any, Literal

from privcov.errors import ParameterError
from privcov.planning.candidates import Candidate, candidate, choose
from privcov.planning.forecast import Forecast, check_rows, forecast
from privcov.planning.moments import PublicMoments
from privcov.planning.targets import Target, check_moments
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, Neighbours, PureDP, decimal_text
from privcov.schema import Schema
from privcov.schema.grid import Grid

Kind = Literal["pure", "approximate", "zcdp"]
MOST = 100
"""A budget beyond this protects nobody, so it is not offered as an answer."""
LEAST = Fraction(1, 10**6)
MOST_ROWS = 10**12


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a target needs, and what the forecast says when it is put back."""

    target: Target
    loss: Loss
    rows: int
    mechanism: str
    error: float
    """The error at this loss and these rows, in the units of the target."""
    hidden: bool = False
    """Whether noise hides what was asked about: the error is as wide as all that is possible, or wider."""

    @classmethod
    def of(cls, target: Target, made: Forecast, schema: Schema, *, rows: int, error: float) -> Answer:
        """The answer that a forecast gives."""
        return cls(
            target=target,
            loss=made.loss,
            rows=rows,
            mechanism=made.mechanism.name,
            error=error,
            hidden=target.is_hidden(error, schema),
        )

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return {
            "target": self.target.text,
            "loss": loss_values(self.loss),
            "rows": self.rows,
            "mechanism": self.mechanism,
            "error": self.error,
            "hidden": self.hidden,
            "reached": self.error <= self.target.bound,
        }


def answer(
    *,
    schema: Schema,
    rows: int,
    loss: Loss,
    target: Target,
    mechanism: str = "auto",
    moments: PublicMoments | None = None,
    **options: Any,
) -> Answer:
    """What a given loss and number of rows mean for a target."""
    check_rows(rows)
    error, made = _error(mechanism, loss, schema, Grid.of(schema), rows, target, moments, options)
    return Answer.of(target, made, schema, rows=rows, error=error)


def required_loss(
    *,
    schema: Schema,
    rows: int,
    kind: Kind,
    neighbours: Neighbours | str,
    error: float | None = None,
    target: str | None = None,
    delta: Amount | None = None,
    mechanism: str = "auto",
    moments: PublicMoments | None = None,
    **options: Any,
) -> Loss:
    """Find the smallest loss for an accuracy.

    The answer is checked by the forecast, and is right to 1 % of the loss. Give either ``error`` or ``target``.

    Parameters
    ----------
    schema : Schema
        The columns with their public bounds.
    rows : int
        The number of rows, from 2: public, or a guess.
    kind : {"pure", "approximate", "zcdp"}
        The kind of loss asked for.
    neighbours : Neighbours or str
        "replace-one" or "add-remove". There is no default.
    error : float, optional
        The expected Frobenius error per row that would do, in scaled units.
    target : str, optional
        Any other accuracy, in words and original units: "mean(age)=0.5", "covariance(age, income)=20",
        "correlation(age, income)=0.05", "se(income ~ age: age)=50".
    delta : Fraction, float or str, optional
        The δ of an approximate loss, between 0 and 1; required there and refused elsewhere.
    mechanism : str, default "auto"
        The name of the mechanism.
    moments : PublicMoments, optional
        Stands in for the table where the error depends on it: see ``surrogate``. A target "se(…)" needs them.
    **options : Any
        Options of the mechanism itself, by name.

    Returns
    -------
    PureDP, ApproxDP or ZCDP
        The smallest loss of this kind, four digits.

    Raises
    ------
    ParameterError
        The target cannot be read (E263) or is out of reach (E264), or a parameter is out of range (E2xx).

    Examples
    --------
    >>> import privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> needed = pc.required_loss(schema=schema, rows=10_000, error=0.001, kind="pure", neighbours="replace-one")
    >>> 0.5 < needed.epsilon < 2
    True
    """
    return answer_loss(
        schema=schema,
        rows=rows,
        kind=kind,
        neighbours=neighbours,
        target=_wanted(error, target, schema),
        delta=delta,
        mechanism=mechanism,
        moments=moments,
        **options,
    ).loss


def answer_loss(
    *,
    schema: Schema,
    rows: int,
    kind: Kind,
    neighbours: Neighbours | str,
    target: Target,
    delta: Amount | None = None,
    mechanism: str = "auto",
    moments: PublicMoments | None = None,
    **options: Any,
) -> Answer:
    """``required_loss`` with everything that was found."""
    check_rows(rows)
    _loss(kind, Fraction(1), delta, neighbours)  # contradictory guarantees are refused before any work
    grid = Grid.of(schema)
    if target.needs_moments:
        check_moments(target.formula, schema, moments)

    def look(amount: Fraction) -> tuple[float, Forecast]:
        loss = _loss(kind, amount, delta, neighbours)
        return _error(mechanism, loss, schema, grid, rows, target, moments, options)

    best, _ = look(Fraction(MOST))
    if best > target.bound:
        what = f"gives {best:.4g}" if math.isfinite(best) else "leaves it hidden"
        raise ParameterError(
            "E264",
            f"{target.text} cannot be reached with {rows} rows: even {_letter(kind)} = {MOST} {what}.",
            f"Ask for less accuracy, or plan for more rows (--rows ?). {target.supposed(schema, moments)}".strip(),
        )
    amount = _least(lambda value: look(value)[0] <= target.bound)
    error, made = look(amount)
    return Answer.of(target, made, schema, rows=rows, error=error)


def required_rows(
    *,
    schema: Schema,
    loss: Loss,
    error: float | None = None,
    target: str | None = None,
    mechanism: str = "auto",
    moments: PublicMoments | None = None,
    **options: Any,
) -> int:
    """Find the fewest rows for an accuracy at a given loss. Give either ``error`` or ``target``.

    Parameters
    ----------
    schema : Schema
        The columns with their public bounds.
    loss : PureDP, ApproxDP or ZCDP
        What the release would cost.
    error : float, optional
        The expected Frobenius error per row that would do, in scaled units.
    target : str, optional
        Any other accuracy, in words: see ``required_loss``.
    mechanism : str, default "auto"
        The name of the mechanism.
    moments : PublicMoments, optional
        Stands in for the table where the error depends on it: see ``surrogate``.
    **options : Any
        Options of the mechanism itself, by name.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    ParameterError
        The target cannot be read (E263) or is out of reach (E264), or a parameter is out of range (E2xx).

    Examples
    --------
    >>> import privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> 5_000 < pc.required_rows(schema=schema, loss=loss, error=0.001) < 20_000
    True
    """
    wanted = _wanted(error, target, schema)
    return answer_rows(
        schema=schema, loss=loss, target=wanted, mechanism=mechanism, moments=moments, **options
    ).rows


def answer_rows(
    *,
    schema: Schema,
    loss: Loss,
    target: Target,
    mechanism: str = "auto",
    moments: PublicMoments | None = None,
    **options: Any,
) -> Answer:
    """``required_rows`` with everything that was found."""
    grid = Grid.of(schema)
    if target.needs_moments:
        check_moments(target.formula, schema, moments)

    def look(rows: int) -> tuple[float, Forecast]:
        return _error(mechanism, loss, schema, grid, rows, target, moments, options)

    # A model needs more rows than it has coefficients.
    enough = low = max(2, schema.dimension + 1) if target.needs_moments else 2
    while look(enough)[0] > target.bound:
        low, enough = enough, 2 * enough
        if enough > MOST_ROWS:
            raise ParameterError("E264", f"{target.text} cannot be reached, even with {MOST_ROWS:.0e} rows.")
    while enough - low > 1:
        middle = (low + enough) // 2
        low, enough = (low, middle) if look(middle)[0] <= target.bound else (middle, enough)
    error, made = look(enough)
    return Answer.of(target, made, schema, rows=enough, error=error)


def pick(mechanism: str, *, loss: Loss, grid: Grid, **options: Any) -> Candidate:
    """A mechanism by name, or what ``auto`` would take."""
    if mechanism == "auto":
        return choose(loss=loss, grid=grid, **options)
    return candidate(mechanism, loss=loss, grid=grid, **options)


def _error(
    mechanism: str,
    loss: Loss,
    schema: Schema,
    grid: Grid,
    rows: int,
    target: Target,
    moments: PublicMoments | None,
    options: dict[str, Any],
) -> tuple[float, Forecast]:
    taken = pick(mechanism, loss=loss, grid=grid, **options)
    made = forecast(
        taken.mechanism,
        loss=taken.loss,
        grid=grid,
        rows=rows,
        spectrum=None if moments is None else moments.spectrum.tolist(),
    )
    return target.error(made, schema, moments), made


def _least(enough: Callable[[Fraction], bool]) -> Fraction:
    """The least amount of four digits that is enough, for a question more budget always helps."""
    low, high = math.log(LEAST), math.log(MOST)
    if enough(LEAST):
        return LEAST
    while high - low > 2e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(_four_digits(math.exp(middle))) else (middle, high)
    amount = _four_digits(math.exp(high))
    assert enough(amount), "more budget made an error larger"
    return amount


def _four_digits(value: float) -> Fraction:
    number = Decimal(value)
    return Fraction(number.quantize(Decimal(1).scaleb(number.adjusted() - 3), rounding=ROUND_CEILING))


def _loss(kind: str, amount: Fraction, delta: Amount | None, neighbours: Neighbours | str) -> Loss:
    if (delta is not None) != (kind == "approximate"):
        raise ParameterError(
            "E204",
            f"a {kind} loss {'needs a' if delta is None else 'takes no'} delta.",
            "The kinds are pure (epsilon), approximate (epsilon and delta) and zcdp (rho).",
        )
    if kind == "pure":
        return PureDP(epsilon=amount, neighbours=neighbours)
    if kind == "approximate":
        return ApproxDP(epsilon=amount, delta=delta or 0, neighbours=neighbours)
    if kind == "zcdp":
        return ZCDP(rho=amount, neighbours=neighbours)
    raise ParameterError("E204", f"kind must be pure, approximate or zcdp, got {kind!r}.")


def loss_values(loss: Loss) -> dict[str, str]:
    """A loss as JSON values."""
    amounts = {name: decimal_text(value) for name, value in loss.amounts.items()}
    return {"kind": loss.kind, **amounts, "neighbours": str(loss.neighbours)}


def _letter(kind: str) -> str:
    return "rho" if kind == "zcdp" else "epsilon"


def _wanted(error: float | None, target: str | None, schema: Schema) -> Target:
    if (error is None) == (target is None):
        raise ParameterError("E263", "give either an error or a target.")
    return Target.parse(f"frobenius={error}" if target is None else target, schema)
