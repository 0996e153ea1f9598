"""The bridge from unbounded rows to a public estimate: check, pay, read, centre, estimate, certify.

Everything that can be refused is refused from public facts; after the first value is read there are no
data-dependent errors, only the row count, which is public, can still be too small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privcov.errors import InputError, ParameterError
from privcov.ledger import Ledger, Request
from privcov.linalg.arrays import Floats
from privcov.mechanisms.gaussian import Gaussian
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import ZCDP, Amount, decimal_text
from privcov.publish.paying import Bill
from privcov.publish.sequence import guarded
from privcov.unbounded.covariance import METHODS, Facts, Found, recursive_mean
from privcov.unbounded.estimate import GaussianCertificate, GaussianEstimate
from privcov.unbounded.moments import TIGHT, Spent
from privcov.unbounded.parameters import positive, probability, whole_rounds, zcdp
from privcov.unbounded.rows import centred, column_names, fingerprint, open_rows, read_rows

MEAN_SHARE = Fraction(1, 10)
"""Of ρ, for the mean where one is asked for: d numbers are far cheaper than d(d+1)/2."""
PUBLISHED_TAIL = Fraction(1, 10)


def estimate_gaussian(
    data: Any,
    *,
    loss: ZCDP,
    largest_variance: Amount,
    columns: Sequence[str] | None = None,
    method: str = "coinpress",
    rounds: int = 5,
    known_mean: Sequence[float] | None = None,
    mean_radius: Amount | None = None,
    smallest_variance: Amount = 1,
    tail: Amount = "0.1",
    as_published: bool = False,
    ledger: str | Path | Ledger | None = None,
    deliver: Callable[[GaussianEstimate], object] | None = None,
    randomness: Randomness | None = None,
) -> GaussianEstimate:
    """Estimate a private covariance, and a mean if asked for, of unbounded rows that look roughly Gaussian.

    The guarantee is ρ-zCDP under replace-one for every table, whatever its law. The Gaussian assumption and
    the public bounds matter for accuracy alone. Proof: docs/proofs/unbounded.md.

    Parameters
    ----------
    data : array, frame, table or path
        The rows, in original units: any form that ``release`` reads in this process.
    loss : ZCDP
        What the estimate may cost, under "replace-one".
    largest_variance : Fraction, int, float or str
        Public: no direction varies more than this, in squared original units. A guess that may be far too large.
    columns : sequence of str, optional
        The numeric columns to use. Required, but for an array: its columns are then x1, x2, ….
    method : {"coinpress", "truncated", "preconditioned"}, default "coinpress"
        How rows are whitened: in rounds that work well in practice, not at all, or in rounds with proven
        constants.
    rounds : int, default 5
        How often "coinpress" whitens.
    known_mean : sequence of float, optional
        Public: the mean, one number per column, in original units. Without it the covariance is that of
        differences of neighbouring rows; their order must then not depend on their values.
    mean_radius : Fraction, int, float or str, optional
        Public: the mean is no longer than this, in original units. It buys a mean for a tenth of ρ.
    smallest_variance : Fraction, int, float or str, default 1
        Public: no direction varies less than this, in squared original units. Read by "preconditioned" only.
    tail : Fraction, float or str, default "0.1"
        Under the assumption, the share of rows ("coinpress"), or the chance of any row (the others), that
        clipping may touch; between 0 and 1.
    as_published : bool, default False
        Whether "coinpress" takes the noise and the constants of its public code, without that code's two errors.
    ledger : str, Path or Ledger, optional
        The budget to pay from, before anything is read.
    deliver : callable, optional
        Called with the estimate before the ledger records it as delivered.
    randomness : Randomness, optional
        Where random bits come from. By default the kernel. Any other source makes a rehearsal, which cannot be
        saved.

    Returns
    -------
    GaussianEstimate
        The covariance and the mean in original units, with their certificate.

    Raises
    ------
    InputError
        The table cannot be used, or has too few rows (E1xx).
    ParameterError
        A parameter is out of range (E24x).
    BudgetError
        The ledger refuses (E3xx). Nothing was drawn and nothing was read.
    InternalError
        Something failed after rows were read (E900).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    >>> rows = np.sin(np.arange(4000.0).reshape(2000, 2) ** 2)
    >>> pc.estimate_gaussian(rows, loss=loss, largest_variance=100, known_mean=[0, 0]).covariance.shape
    (2, 2)
    """
    if method not in METHODS:
        raise ParameterError("E248", f"method must be {' or '.join(METHODS)}, got {method!r}.")
    zcdp(loss)
    largest = positive("largest_variance", largest_variance)
    smallest = positive("smallest_variance", smallest_variance)
    facts = Facts(
        largest_variance=largest,
        # The other methods need no lower bound; any value that passes the check will do for them.
        smallest_variance=smallest if method == "preconditioned" else largest,
        tail=probability("tail", tail),
        rounds=whole_rounds(rounds),
        noise=_published(method, tail) if as_published else TIGHT,
    )
    radius = None if mean_radius is None else positive("mean_radius", mean_radius)
    names = column_names(data, columns)
    mean = None if known_mean is None else _vector(known_mean, len(names))
    if mean is not None and radius is not None:
        raise ParameterError(
            "E249", "known_mean and mean_radius were both given.", "Leave one of the two out."
        )
    source = kernel() if randomness is None else randomness
    table = open_rows(data, names)
    options = _options(facts, method, known_mean=known_mean is not None, radius=radius)
    order = Request(
        loss=loss, mechanism=method, options=options, grid={"dimension": len(names)}, rho=loss.rho
    )

    def read(bill: Bill) -> GaussianEstimate:
        rows = read_rows(table)
        bill.saw(lambda key: fingerprint(rows, names, key))
        _enough(len(rows), paired=mean is None)
        with np.errstate(all="ignore"):  # a warning would tell that a huge value is there
            found, made_mean, spent = _estimate(rows, mean, radius, method, facts, loss, source)
        return GaussianEstimate(
            columns=names,
            mean=made_mean,
            covariance=found.covariance,
            certificate=GaussianCertificate(
                mechanism=method,
                options=options,
                loss=loss,
                budget=tuple((share.step, share.rho) for share in spent),
                rows=len(rows),
                arithmetic="exact",
                randomness=source.kind,
                created=bill.created,
            ),
        )

    return guarded(
        lambda: order,
        ledger=ledger,
        randomness=source,
        draw=lambda: (),  # each round draws after the last one was read
        read=read,
        document=GaussianEstimate.to_dict,
        deliver=deliver,
    )


def _estimate(
    rows: Floats,
    mean: Floats | None,
    radius: Fraction | None,
    method: str,
    facts: Facts,
    loss: ZCDP,
    randomness: Randomness,
) -> tuple[Found, Floats | None, tuple[Spent, ...]]:
    share = Fraction(0) if radius is None else MEAN_SHARE * loss.rho
    left = ZCDP(rho=loss.rho - share, neighbours=loss.neighbours)
    found = METHODS[method](centred(rows, mean), facts, left, randomness)
    if radius is None:
        return found, mean, found.spent
    estimated, spent = recursive_mean(
        rows,
        found.whitening,
        radius=radius,
        rounds=facts.rounds,
        loss=ZCDP(rho=share, neighbours=loss.neighbours),
        randomness=randomness,
    )
    return found, estimated, (*found.spent, *spent)


def _published(method: str, tail: Amount) -> Gaussian:
    """The noise of the public code: independent entries of one size. Refused where it would not be sound."""
    if method != "coinpress":
        raise ParameterError(
            "E248",
            f"{method} as published is not private under replace-one: its noise is not symmetric, "
            "and too small by a factor of √2.",
            "Leave as_published out, or use coinpress.",
        )
    if probability("tail", tail) != PUBLISHED_TAIL:
        raise ParameterError("E241", f"coinpress as published needs tail = {PUBLISHED_TAIL}, got {tail}.")
    return Gaussian(constants="published")


def _enough(rows: int, *, paired: bool) -> None:
    """The row count is public under replace-one, so an error may depend on it."""
    if rows < (2 if paired else 1):
        raise InputError(
            "E108",
            f"the table has {rows} rows; an estimate needs at least {'two' if paired else 'one'}.",
            "Without a known mean the estimate is made from differences between pairs of rows.",
        )


def _vector(given: Sequence[float], dimension: int) -> Floats:
    try:
        vector = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.full(1, np.nan)
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise ParameterError("E247", f"known_mean must be {dimension} finite numbers, one for each column.")
    return vector


def _options(facts: Facts, method: str, *, known_mean: bool, radius: Fraction | None) -> dict[str, str]:
    """The public facts the estimate rests on, as the certificate writes them."""
    used = {"coinpress": ("rounds",), "preconditioned": ("smallest_variance",), "truncated": ()}[method]
    said = {
        "largest_variance": decimal_text(facts.largest_variance),
        "smallest_variance": decimal_text(facts.smallest_variance),
        "tail": decimal_text(facts.tail),
        "rounds": str(facts.rounds),
    }
    kept = {name: said[name] for name in ("largest_variance", "tail", *used)}
    if radius is not None:
        kept |= {"mean_radius": decimal_text(radius), "rounds": str(facts.rounds)}
    if facts.noise != TIGHT:
        kept["constants"] = "published"
    return kept | {"centring": "known mean" if known_mean else "differences of rows"}
