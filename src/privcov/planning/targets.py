"""An accuracy someone wants, as they would say it, and the number a forecast gives for it.

``frobenius=0.02``, ``spectral=…``, ``entry=…``: the expected error of the matrix per row, in scaled units; with a
95 after the word, the error it stays below 95 times in 100. In original units, 95 times in 100: ``mean(age)=0.5``,
``covariance(age, income)=20``; without a unit ``correlation(age, income)=0.05``. Where nobody declared a column's mean
and standard deviation public, bad ones are taken: a mean at a bound, values that fill a fifth of the bounds. A standard
error in original units, sampling and privacy together: ``se(income ~ age + educ: educ)=50``. A name that has brackets,
commas or colons goes between backticks, as in a formula: ``mean(`Household Income (USD)`)=500``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from privcov.errors import ParameterError
from privcov.models.formula import LONGEST_FORMULA, Formula
from privcov.planning.forecast import Forecast
from privcov.planning.moments import PublicMoments, cautious, says_nothing
from privcov.privacy import exact
from privcov.schema import Schema
from privcov.schema.names import INTERCEPT, QUOTED, toml_key, unquoted

_SHAPE = re.compile(
    r"\s*(?:(?P<norm>frobenius|spectral|entry)(?P<high>95)?"
    rf"|mean\((?P<mean>\s*+{QUOTED}\s*+|[^()`]+)\)"
    rf"|(?P<pair>covariance|correlation)\((?P<one>\s*+{QUOTED}\s*+|[^(),`]+),(?P<other>\s*+{QUOTED}\s*+|[^(),`]+)\)"
    rf"|se\((?P<formula>(?:{QUOTED}|[^:`])++):(?P<term>.+)\))\s*=\s*(?P<bound>[^=]+)"
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """One question about accuracy, and the largest error that would do."""

    text: str
    bound: float
    norm: str = ""
    high: bool = False
    places: tuple[int, ...] = ()
    correlation: bool = False
    formula: str = ""
    term: str = ""

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Target:
        """A target in words, against the columns of a schema.

        >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> Target.parse("frobenius=0.02", schema).bound
        0.02
        """
        found = _SHAPE.fullmatch(text) if len(text) <= LONGEST_FORMULA else None
        if found is None:
            raise ParameterError(
                "E263",
                f"a target is written as frobenius=0.02, mean(age)=0.5, covariance(age, income)=20, "
                f'correlation(age, income)=0.05 or "se(income ~ age: age)=50", got {text[:200]!r}.',
            )
        try:
            bound = float(exact(found["bound"].strip()))
        except (ValueError, TypeError):
            bound = math.nan
        if not bound > 0:
            raise ParameterError(
                "E263", f"the value of a target must be above 0, got {found['bound'].strip()}."
            )
        said = text.strip()
        if found["norm"]:
            return cls(text=said, bound=bound, norm=found["norm"], high=found["high"] is not None)
        if found["formula"]:
            return cls._of_model(said, bound, found["formula"].strip(), unquoted(found["term"]), schema)
        names = [found["mean"]] if found["mean"] else [found["one"], found["other"]]
        if found["mean"] and not schema.intercept:
            raise ParameterError(
                "E263", "a target for a mean needs an intercept.", "Set intercept = true in the schema."
            )
        places = tuple(_place(unquoted(name), schema) for name in names)
        correlation = found["pair"] == "correlation"
        if correlation and (not schema.intercept or places[0] == places[1] or 0 in places):
            raise ParameterError(
                "E263", "a target for a correlation needs two columns, and intercept = true in the schema."
            )
        return cls(text=said, bound=bound, places=places, correlation=correlation)

    @classmethod
    def _of_model(cls, said: str, bound: float, formula: str, term: str, schema: Schema) -> Target:
        parsed = Formula.parse(formula, schema)
        names = [one.name for one in parsed.regressors(schema)]
        terms = [INTERCEPT, *names] if parsed.intercept else names
        if term not in terms:
            raise ParameterError("E263", f"{formula} has no term {term!r}.", f"It has: {', '.join(terms)}.")
        return cls(text=said, bound=bound, formula=formula, term=term)

    @property
    def name(self) -> str:
        """What is asked about, without the number."""
        return self.text.rpartition("=")[0].strip()

    @property
    def needs_moments(self) -> bool:
        """Whether the answer depends on the table, so that public moments must stand in for it."""
        return bool(self.formula)

    def supposed(self, schema: Schema, moments: PublicMoments | None) -> str:
        """What is taken of columns that nobody described, where it matters, in a sentence; else nothing."""
        told = frozenset[str]() if moments is None else moments.columns
        pair = [schema.features[place] for place in self.places if len(self.places) == 2]
        numbers = dict.fromkeys(feature.column for feature in pair if feature.kind == "numeric")
        unknown = [column for column in numbers if column not in told]
        if not unknown or not schema.intercept:
            return ""
        key = f"[planning.columns.{toml_key(unknown[0])}]"
        return (
            f"The schema gives no mean and std of {' and '.join(unknown)}, so this assumes the unfavourable case: "
            f"means at a bound, and values that fill a fifth of the bounds. "
            f"Add mean and std to {key}: the answer may be better."
        )

    def error(self, forecast: Forecast, schema: Schema, moments: PublicMoments | None) -> float:
        """The error a forecast gives for this question."""
        if self.norm:
            spread = forecast.errors[self.norm]
            return spread.high if self.high else spread.mean
        if self.formula:
            return self._standard_error(forecast, schema, moments)
        features = schema.features
        if len(self.places) == 1:
            (j,) = self.places
            means, _ = cautious(schema, moments)
            return features[j].unit * float(forecast.centred_highs(schema, means)[0, j])
        i, j = self.places
        if not schema.intercept:
            return features[i].unit * features[j].unit * float(forecast.highs_of(schema)[i, j])
        means, spreads = cautious(schema, moments)
        if self.correlation:
            told = 0.0 if moments is None else float(moments.matrix[i, j]) - means[i] * means[j]
            said = moments is not None and {features[i].column, features[j].column} <= moments.columns
            rho = told / (spreads[i] * spreads[j]) if said and spreads[i] * spreads[j] > 0 else 0.0
            rho = float(np.clip(rho, -1, 1))
            return forecast.correlation_high(schema, (i, j), means=means, spreads=spreads, correlation=rho)
        return features[i].unit * features[j].unit * float(forecast.centred_highs(schema, means)[i, j])

    def is_hidden(self, error: float, schema: Schema) -> bool:
        """Whether an error says no more than what the bounds, or the nature of a correlation, allow."""
        if self.correlation:
            return error >= 1
        if not self.places or not schema.intercept or 0 in self.places:
            return False
        return says_nothing(error, *(schema.features[place] for place in self.places))

    def _standard_error(self, forecast: Forecast, schema: Schema, moments: PublicMoments | None) -> float:
        check_moments(self.formula, schema, moments)
        assert moments is not None
        if forecast.law is None:
            raise ParameterError(
                "E263",
                f"the noise of {forecast.mechanism.name} has no known distribution, so it has no standard errors.",
                "Plan with symmetric-wishart or gaussian.",
            )
        from privcov.models.ols import (
            ols,
        )  # on use: it loads SciPy, and a plan that is known loads none of it

        pretend = moments.pretend(rows=forecast.rows, loss=forecast.loss, law=forecast.law)
        return float(ols(pretend, self.formula, method="wald").bse[self.term])


def check_moments(formula: str, schema: Schema, moments: PublicMoments | None) -> None:
    """Refuse a question about a model for which nobody has said what the table might be like."""
    parsed = Formula.parse(formula, schema)
    places = [*parsed.features(schema), [f.name for f in schema.features].index(parsed.target)]
    used = {schema.features[place].column for place in places}
    missing = sorted(used - (frozenset() if moments is None else moments.columns))
    if missing:
        raise ParameterError(
            "E263",
            f"the error of a model depends on the table, but the schema gives no public moments of {missing[0]}.",
            f"Add [planning.columns.{toml_key(missing[0])}] with mean and std to the schema, "
            "or give a public --surrogate.",
        )


def _place(name: str, schema: Schema) -> int:
    names = [feature.name for feature in schema.features]
    if name not in names:
        raise ParameterError(
            "E263", f"there is no column {name!r}.", f"The columns are {', '.join(names[:12])}."
        )
    return names.index(name)
