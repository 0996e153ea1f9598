"""Several releases of one payment: a matrix for each stratum, with one certificate, in one file.

How many rows a stratum has is private under both relations; under replace-one the number of all rows is public. The
file is canonical JSON of format ``privcov/strata/1``, closed, and read back as that of a release is (``codec.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from privcov.errors import ReleaseError
from privcov.noise.composed import summed
from privcov.noise.laws import LAWS, NoiseLaw
from privcov.privacy import decimal_text, exact
from privcov.releases import codec
from privcov.releases.certificate import TOTAL, Certificate
from privcov.releases.documents import Form, Written
from privcov.releases.release import Release
from privcov.releases.signing import PrivateKey, PublicKey
from privcov.schema import Categorical, Column, Schema
from privcov.schema.derived import Recipe
from privcov.schema.strata import MOST_STRATA, Strata
from privcov.text.display import Shown
from privcov.text.grammar import brief

FORM = Form("stratified release", "privcov/strata/1")


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """The sum over all strata as it was drawn beside them, for a share of the loss.

    Attributes
    ----------
    share : Fraction
        The share of the loss that it cost, between 0 and 1: of a pure ε, or of ρ.
    law : NoiseLaw
        The law of its noise, of the same kind as that of a stratum.
    upper : tuple of int
        The noisy integers of the upper triangle, row by row, in units of the grid.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}})
    >>> loss = pc.ZCDP(rho=1, neighbours="add-remove")
    >>> made = pc.release(np.ones((9, 2)), schema=schema, loss=loss, by="area", total_share="0.25").pooled
    >>> str(made.share), made.law.name, len(made.upper)
    ('1/4', 'gaussian', 3)
    """

    share: Fraction
    law: NoiseLaw
    upper: tuple[int, ...]


class _Consistent(NamedTuple):
    """Strata and total after generalised least squares: the strata add up to the total."""

    uppers: tuple[tuple[int, ...], ...]
    law: NoiseLaw
    total: tuple[int, ...]
    total_law: NoiseLaw


def trust(law: NoiseLaw, total: NoiseLaw, strata: int) -> Fraction:
    """How much of a total is that drawn for itself, where variances are those of these laws; the rest is the sum's.

    >>> from privcov.noise.laws import GaussianEnsemble
    >>> one, other = (GaussianEnsemble(dimension=2, scale=scale) for scale in (1.0, 2.0))
    >>> str(trust(one, other, 4)), str(trust(one, other, 12))
    ('1/2', '3/4')
    """
    apart, own = strata * Fraction(law.scale) ** 2, Fraction(total.scale) ** 2
    return apart / (apart + own)


def consistent_laws(law: NoiseLaw, total: NoiseLaw, strata: int) -> tuple[NoiseLaw, NoiseLaw]:
    """The law of each of so many strata, and of the total, once they are combined: docs/proofs/strata.md.

    ``law`` is that of a stratum as drawn, ``total`` that of a total as drawn, of the same kind.

    >>> from privcov.noise.laws import GaussianEnsemble
    >>> found = consistent_laws(*(GaussianEnsemble(dimension=2, scale=1.0),) * 2, 3)
    >>> [round(one.scale**2, 9) for one in found]  # 1 − 1/4, and 3/4 of that of the total
    [0.75, 0.75]
    """
    own = float(trust(law, total, strata))
    lent = own / strata
    terms = [(_times(law, 1 - lent), 1), (_times(law, lent), strata - 1), (_times(total, lent), 1)]
    both = [(_times(law, 1 - own), strata), (_times(total, own), 1)]
    return summed(*(one for one in terms if one[1])), summed(*both)


def _times(law: NoiseLaw, factor: float) -> NoiseLaw:
    return replace(law, scale=factor * law.scale)


@dataclass(frozen=True, kw_only=True)
class StratifiedRelease(Written, Shown, Mapping[str, Release]):
    """A differentially private second-moment matrix of each stratum of a table, paid for once.

    A mapping: ``strata["Kern"]`` is a ``Release`` that every model takes. Noise is independent between strata, as long
    as no total was paid for: with one, strata and total are combined, so that they add up. Made by
    ``privcov.release(…, by=…)`` and ``privcov.load_strata``.

    Attributes
    ----------
    strata : Strata
        The columns whose levels make the strata, and the name of the one for all other rows, if there is one.
    schema : Schema
        The public facts about the other columns.
    rows : int or None
        The number of all rows of the table, also of those in no stratum, where it is public (replace-one, one row per
        person). How many a stratum has is always private.
    uppers : tuple of tuple of int
        For each stratum the noisy integers of the upper triangle, row by row, in units of the grid, as they were drawn.
    certificate : Certificate
        What was promised, for all strata together; its law is that of the noise on a stratum as drawn.
    pooled : Pooled or None
        The sum over all strata as it was drawn beside them, where a share of the loss was spent on it.
    signer : PublicKey or None
        The key whose signature ``load_strata`` checked.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> columns = {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}
    >>> table = np.column_stack([np.full(4000, 80.0), np.repeat([1, 2], 2000)])
    >>> loss = pc.PureDP(epsilon=9, neighbours="add-remove")
    >>> strata = pc.release(table, schema=pc.Schema.from_dict({"columns": columns}), loss=loss, by="area")
    >>> strata.names, len(strata), strata["2"].mean().round()
    (('1', '2'), 2, array([80.]))
    >>> bool(3900 < strata.total().count() < 4100), strata.to_dict()["format"]
    (True, 'privcov/strata/1')
    """

    strata: Strata
    schema: Schema
    rows: int | None
    uppers: tuple[tuple[int, ...], ...]
    certificate: Certificate
    pooled: Pooled | None = None
    signer: PublicKey | None = field(default=None, init=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The strata, in the order of the declared levels."""
        return self.strata.names

    def __getitem__(self, name: str | Sequence[str]) -> Release:
        return self._parts[self.strata.place(name)]

    def get(self, name: object, default: Any = None) -> Any:
        """Return one stratum by its name, or something else where there is none of that name.

        Parameters
        ----------
        name : str
            A stratum.
        default : object, optional
            What to return in place of a stratum that is not there.

        Returns
        -------
        Release
            The stratum, or ``default``.

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}})
        >>> strata = pc.release(np.ones((9, 2)), schema=schema, loss=pc.ZCDP(rho=1, neighbours="add-remove"), by="area")
        >>> strata.get("1") == strata["1"], strata.get("3")
        (True, None)
        """
        return self[name] if isinstance(name, str) and name in self else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __hash__(self) -> int:
        return hash(self.uppers)

    if not TYPE_CHECKING:  # else every attribute would be one

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(Release, name):
                raise AttributeError(f"a release of strata has no {name}")
            raise AttributeError(
                f"{name} is of one matrix, and these are {len(self):,} strata: take one of them, "
                f"release[{self.names[0]!r}], or their sum, release.total()"
            )

    @cached_property
    def _parts(self) -> tuple[Release, ...]:
        found = self._consistent
        uppers = self.uppers if found is None else found.uppers
        own = {} if found is None else {"law": found.law}
        return tuple(
            self._release(name, upper, **own) for name, upper in zip(self.names, uppers, strict=True)
        )

    def uncombined(self, name: str | Sequence[str]) -> Release:
        """Return a stratum as it was drawn: with noise of its own, which no other stratum shares.

        Where no total was paid for, it is the stratum itself.

        Parameters
        ----------
        name : str or sequence of str
            The stratum.

        Returns
        -------
        Release
            The stratum. It may be saved.

        Raises
        ------
        ParameterError
            There is no such stratum (E284).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}})
        >>> loss = pc.ZCDP(rho=1, neighbours="add-remove")
        >>> strata = pc.release(np.ones((9, 2)), schema=schema, loss=loss, by="area", total_share="0.5")
        >>> strata["1"].law.scale < strata.uncombined("1").law.scale
        True
        """
        place = self.strata.place(name)
        return (
            self._parts[place]
            if self.pooled is None
            else self._release(self.names[place], self.uppers[place])
        )

    @cached_property
    def _consistent(self) -> _Consistent | None:
        """Generalised least squares, in whole numbers: what the total lacks is given to the strata in equal parts."""
        law, pooled, count = self.certificate.law, self.pooled, len(self)
        if law is None or pooled is None:
            return None
        part, both = consistent_laws(law, pooled.law, count)
        share = trust(law, pooled.law, count)
        columns, totals = [], []
        for found, *entries in zip(pooled.upper, *self.uppers, strict=True):
            apart = sum(entries)
            lacking = round(share * (found - apart))
            each, more = divmod(lacking, count)
            columns.append([entry + each + (place < more) for place, entry in enumerate(entries)])
            totals.append(apart + lacking)
        uppers = tuple(zip(*columns, strict=True))
        return _Consistent(uppers=uppers, law=part, total=tuple(totals), total_law=both)

    def _release(self, name: str, upper: tuple[int, ...], **own: Any) -> Release:
        combined = {"combined": "with the total"} if own and self.pooled is not None else {}
        framed = self.rows is not None and bool(self.certificate.rounds)
        all_rows = {"all_rows": str(self.rows)} if framed else {}
        options = {**self.certificate.options, "stratum": name, **combined, **all_rows}
        certificate = replace(self.certificate, **{"options": options, **own})
        rows = self.rows if name == TOTAL and self.strata.other is not None else None
        made = Release(schema=self.schema, rows=rows, upper=upper, certificate=certificate)
        object.__setattr__(made, "signer", self.signer)
        return made

    def part(self, name: str) -> Release:
        """Return one stratum by its name, or the total.

        Parameters
        ----------
        name : str
            A stratum; or "total" for the sum over all of them, which is "(total)" where a stratum is called total.

        Returns
        -------
        Release
            The stratum, or the sum.

        Raises
        ------
        ParameterError
            There is no such stratum (E284).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}})
        >>> loss = pc.ZCDP(rho=1, neighbours="add-remove")
        >>> strata = pc.release(np.ones((9, 2)), schema=schema, loss=loss, by="area")
        >>> strata.part("total") == strata.total(), strata.part("2") == strata["2"]
        (True, True)
        """
        return self.total() if name == TOTAL or (name == "total" and name not in self) else self[name]

    def total(self) -> Release:
        """Return the sum over all strata, with the law of its noise.

        Variances add: with K strata its noise is √K times that of a stratum, and as much larger than that of a release
        of the whole table. Where a share of the loss was spent on a total, it is the average of both that has the least
        variance. Where there is a stratum for all other rows and the number of rows is public, that number is the
        total's.

        Returns
        -------
        Release
            The sum. It has no file of its own (E614): it follows from this one.

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> columns = {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}
        >>> schema, loss = pc.Schema.from_dict({"columns": columns}), pc.ZCDP(rho=1, neighbours="replace-one")
        >>> table = np.array([[35.0, 1], [61.0, 2], [48.0, 7]])
        >>> pc.release(table, schema=schema, loss=loss, by="area", other="elsewhere").total().rows
        3
        """
        return self._total

    @cached_property
    def _total(self) -> Release:
        law, found = self.certificate.law, self._consistent
        if found is not None:
            return self._release(TOTAL, found.total, law=found.total_law)
        own = {} if law is None else {"law": summed((law, len(self)))}
        return self._release(TOTAL, tuple(map(sum, zip(*self.uppers, strict=True))), **own)

    def to_dict(self, *, key: PrivateKey | None = None) -> dict[str, Any]:
        """Return the strata as the JSON values of their file.

        Parameters
        ----------
        key : PrivateKey, optional
            The key to sign with. Without one the document carries a digest, and no signature.

        Returns
        -------
        dict
            The document: format, strata, columns, scaling, rows, matrices, certificate and signature; and a total,
            where a share of the loss was spent on one.
        """
        return FORM.sealed(self._body(), key)

    def _body(self) -> dict[str, Any]:
        body = codec.body_of(self.schema, self.rows, (), None, self.certificate)
        grid = body.pop("matrix")["grid"]
        uppers = [[str(value) for value in upper] for upper in self.uppers]
        by = [codec.bounds_of(column) for column in self.strata.by]
        return {
            **body,
            "strata": {"by": by, "other": self.strata.other},
            "matrices": {"grid": grid, "uppers": uppers},
            **({} if self.pooled is None else {"total": _pooled(self.pooled)}),
        }

    def __repr__(self) -> str:
        return (
            f"<StratifiedRelease of {len(self):,} strata by {self.strata.title}, {self.schema.dimension} columns each: "
            f"{self.certificate.mechanism}, {self.certificate.loss}>"
        )


def unsealed(document: object) -> StratifiedRelease:
    """The strata of a document whose seal is known to hold; anything unexpected is refused."""
    more = "total" if isinstance(document, dict) and "total" in document else ""
    given = FORM.inside(document, f"columns scaling rows strata matrices certificate {more}")
    about, matrices = FORM.fields(given["strata"], "by other"), FORM.fields(given["matrices"], "grid uppers")
    by, uppers = about["by"], matrices["uppers"]
    if not (
        type(by) is list and type(uppers) is list and 1 <= len(by) <= 64 and len(uppers) <= MOST_STRATA + 1
    ):
        raise ReleaseError("E601", "the file has no strata, or too many.")
    columns = tuple(codec.read_column(column) for column in by)
    if not all(isinstance(column, Categorical) for column in columns):
        raise ValueError("by")
    strata = Strata(by=columns, other=about["other"])  # type: ignore[arg-type]
    if len(strata.names) != len(uppers):
        raise ReleaseError("E601", "the file does not have one matrix for each stratum.")
    common = {word: given[word] for word in ("columns", "scaling", "rows", "certificate")}
    matrix = {"grid": matrices["grid"], "upper": uppers[0], "sketch": None}
    single = {"format": codec.FORM.format, "signature": None, **common, "matrix": matrix}
    schema, rows, first, _, certificate = codec.unsealed(single)
    strata.check_size(schema.dimension)
    _say_the_same(columns, schema)
    if rows is None and certificate.loss.neighbours.count_is_public(schema.max_rows_per_person):
        raise ValueError("rows")  # the number of all rows is stated where it is public
    others = (codec.integers_of(upper, schema, rows, certificate.law) for upper in uppers[1:])
    made = StratifiedRelease(
        strata=strata,
        schema=schema,
        rows=rows,
        uppers=(tuple(first), *others),
        certificate=certificate,
        pooled=_read_pooled(given["total"], schema, rows, certificate) if more else None,
    )
    share = None if made.pooled is None else decimal_text(made.pooled.share)
    _agree(certificate, "number of strata", "strata", str(len(made)))
    _agree(certificate, "share of a total", "total_share", share)
    if made._body() != given:
        raise ValueError("fields disagree")  # whatever is said twice must agree
    return made


def _say_the_same(by: Sequence[Column], schema: Schema) -> None:
    """Refuse columns of strata whose levels are not those of the table, or not those that their expression gives.

    And one that is named twice, or released as well: within a stratum it is constant.
    """
    names = [*(column.name for column in schema.columns), *(column.name for column in by)]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise ReleaseError("E601", f"{twice[0]} is a column of the strata and another column as well.")
    expressions = ((one.name, one.expression) for one in (*schema.columns, *by) if one.expression is not None)
    recipe = Recipe.of(schema.read_columns, tuple(expressions))
    known: dict[str, Any] = {column.name: column for column in schema.sources} | dict(recipe.ranges)
    for column in by:
        if column.name in known and getattr(known[column.name], "levels", None) != getattr(
            column, "levels", None
        ):
            raise ReleaseError("E601", f"the levels of {column.name} are declared in two ways.")


def _agree(certificate: Certificate, what: str, option: str, found: str | None) -> None:
    said = certificate.options.get(option)
    if said != found:
        one, other = ("nothing" if words is None else brief(words) for words in (said, found))
        raise ReleaseError(
            "E601",
            f"the certificate says {one} for the {what}, and the rest of the file says {other}.",
            "It was changed; ask its steward.",
        )


def _pooled(one: Pooled) -> dict[str, Any]:
    return {
        "share": decimal_text(one.share),
        "noise": {"law": one.law.name, "scale": repr(one.law.scale)},
        "upper": [str(value) for value in one.upper],
    }


def _read_pooled(given: object, schema: Schema, rows: int | None, certificate: Certificate) -> Pooled:
    """A total from JSON values, with noise of the kind that the strata have."""
    one = FORM.fields(given, "share noise upper")
    noise, share = FORM.fields(one["noise"], "law scale"), exact(FORM.text(one["share"], most=64))
    if certificate.law is None or noise["law"] != certificate.law.name or not 0 < share < 1:
        raise ValueError("total")
    law = LAWS[noise["law"]](dimension=schema.summed_dimension, scale=codec.scale_of(noise["scale"]))
    return Pooled(share=share, law=law, upper=codec.integers_of(one["upper"], schema, rows, law))
