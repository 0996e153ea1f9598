"""How far one neighbour can move the Gram matrix, in each norm. No other file may hold a sensitivity.

D = Σ xxᵀ − Σ x′x′ᵀ is what changes between two neighbouring tables whose rows have squared norm at most R²: the sums
over one person's rows in either table, at most m of them, not the same number, possibly none.
Every function returns an upper bound as an exact rational in the unit of R² (grid units, when R² is the
integer bound of the grid): irrational bounds are rounded up. Proofs, and the pairs that attain each bound:
docs/proofs/sensitivity.md. Such a person moves D by at most m times as much as one with one row, in every norm.

Of a stratified release D is the tuple of changes D_k, one for each stratum. Under replace-one a person may move: then
one D_k is xxᵀ and another −yyᵀ. What a norm means then is said at each; proofs: docs/proofs/strata.md. The sum over
strata, released beside them, changes by Σ D_k, as a single matrix does: its bounds are those without strata.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from privcov.errors import ParameterError
from privcov.privacy import Neighbours
from privcov.schema.grid import Grid

_BITS = 64


def sqrt_up(value: Fraction | int) -> Fraction:
    """The least multiple of 2^-64 whose square is at least ``value``."""
    scaled = -((-Fraction(value) * 4**_BITS) // 1)
    root = isqrt(scaled)
    return Fraction(root + (root * root < scaled), 2**_BITS)


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """Bounds on D for one neighbouring relation, dimension, squared row norm and rows per person."""

    neighbours: Neighbours
    dimension: int
    squared_norm: Fraction
    rows_per_person: int = 1
    strata: bool = False
    """Whether D is one change for each stratum, and a person may move from one to another."""

    @classmethod
    def of(cls, grid: Grid, neighbours: Neighbours) -> Sensitivity:
        """In grid units of the Gram matrix."""
        return cls(
            neighbours=neighbours,
            dimension=grid.dimension,
            squared_norm=Fraction(grid.squared_norm_bound),
            rows_per_person=grid.max_rows_per_person,
            strata=grid.strata,
        )

    @property
    def _one_number(self) -> bool:
        """Whether D is a single number: the difference of two squares is then no larger than one of them."""
        return self.dimension == 1 and not self.strata

    def _scaled(self, add_remove: Fraction, replace_one: Fraction) -> Fraction:
        unit = add_remove if self.neighbours is Neighbours.ADD_REMOVE else replace_one
        return unit * self.squared_norm * self.rows_per_person

    @property
    def frobenius(self) -> Fraction:
        """‖D‖_F ≤ 1 (add-remove) or √2 (replace-one, attained by orthogonal rows), times R².

        Of strata, √(Σ ‖D_k‖_F²): the same, attained by a person who moves.
        """
        both = 1 if self._one_number else sqrt_up(2)
        return self._scaled(Fraction(1), Fraction(both))

    @property
    def frobenius_sum(self) -> Fraction:
        """Σ ‖D_k‖_F over strata ≤ 1 or 2, times R²: a person who moves changes two of them. Else ‖D‖_F."""
        return self._scaled(Fraction(1), Fraction(2)) if self.strata else self.frobenius

    @property
    def nuclear(self) -> Fraction:
        """‖D‖_* ≤ 1 or 2, times R²; in one dimension both are 1. Of strata, Σ ‖D_k‖_*: 1 or 2 in every dimension."""
        return self._scaled(Fraction(1), Fraction(1 if self._one_number else 2))

    @property
    def operator(self) -> Fraction:
        """|uᵀDu| ≤ 1 for every unit u under both relations, times R²."""
        return self._scaled(Fraction(1), Fraction(1))

    @property
    def trace(self) -> Fraction:
        """|tr D| ≤ 1 under both relations, times R²: squared norms are in [0, R²]."""
        return self._scaled(Fraction(1), Fraction(1))

    @property
    def cut_off(self) -> Fraction:
        """Σ max(0, |x|² − r²) moves by at most 1 under both relations, times R², at every radius r."""
        return self._scaled(Fraction(1), Fraction(1))

    @property
    def cut_off_moves_one_way(self) -> bool:
        """Whether one person moves that sum at all radii in one direction, so that no two of them part.

        Not under replace-one with several rows a person, where one row may grow and another shrink. Proof, with
        the two bounds above: docs/proofs/adaptive.md.
        """
        return self.neighbours is Neighbours.ADD_REMOVE or self.rows_per_person == 1

    @property
    def spread(self) -> Fraction:
        """λ_max(D) − λ_min(D) ≤ 1 or 2, times R²: the range of a quadratic form's change."""
        return self._scaled(Fraction(1), Fraction(1 if self.dimension == 1 else 2))

    def values_l1(self, count: int, *, excess: Fraction) -> Fraction:
        """ℓ1 of ``count`` rounded eigenvalues, or of θᵀCθ for vectors orthonormal up to ``excess``.

        Σ|θᵀDθ| and Σ|λᵢ(C) − λᵢ(C + D)| are at most ‖D‖_*; rounding to the grid adds one step to each value.
        """
        return (1 + excess) * self.nuclear + count

    def values_l2(self, count: int, *, excess: Fraction) -> Fraction:
        """ℓ2 of the same values: at most ‖D‖_F (Hoffman and Wielandt), and √count for the rounding."""
        return (1 + excess) * self.frobenius + sqrt_up(count)

    def product_l2(self, columns: int, *, excess: Fraction) -> Fraction:
        """‖DX‖_F for ``columns`` columns X orthonormal up to ``excess``, and √(d·columns) for the rounding of CX.

        At most ‖D‖_2 for one column and ‖D‖_F for more: 1 or √2 under replace-one, times R². Proof:
        docs/proofs/power-method.md.
        """
        moved = self.operator if columns == 1 else self.frobenius
        return (1 + excess) * moved + sqrt_up(self.dimension * columns)

    def product_l1(self, columns: int, *, excess: Fraction) -> Fraction:
        """ℓ1 of the entries of the same: at most √(d·columns) times ℓ2, attained under add-remove."""
        return sqrt_up(self.dimension * columns) * self.product_l2(columns, excess=excess)

    @property
    def frame_range(self) -> Fraction:
        """The range of tr VᵀDV over all V of orthonormal columns: 1 (add-remove) or 2 (replace-one), times R².

        Proof, also of the two bounds below: docs/proofs/matrix-bingham.md.
        """
        return self.spread

    def block_nuclear(self, count: int, *, excess: Fraction) -> Fraction:
        """‖VᵀDV‖_* for ``count`` columns V orthonormal up to ``excess``; rounding the block adds count^1.5."""
        return (1 + excess) * self.nuclear + sqrt_up(count**3)

    def block_frobenius(self, count: int, *, excess: Fraction) -> Fraction:
        """‖VᵀDV‖_F for the same; rounding the block adds ``count``."""
        return (1 + excess) * self.frobenius + count

    def joint_moments(self, *, intercept: int, sum_weight: Fraction) -> Fraction:
        """√(w·‖change of the intercept's row‖² + ‖change of the block of the other columns‖_F²), public count.

        The intercept is the integer ``intercept`` in every row, so the others have norm r, r² = R² − intercept²;
        with α = w·intercept² it is √(2αr² + 2r⁴ + α²/2) for α ≤ 2r², and √(4αr²) beyond.
        Proof: docs/proofs/joint-gaussian.md.
        """
        if not self.neighbours.count_is_public(self.rows_per_person):
            raise ParameterError(
                "E207", "the number of rows is public only under replace-one with one row per person."
            )
        rest, alpha = self.squared_norm - intercept**2, sum_weight * intercept**2
        below = 2 * alpha * rest + 2 * rest**2 + alpha**2 / 2
        return sqrt_up(below if alpha <= 2 * rest else 4 * alpha * rest)

    @property
    def triangle_l1(self) -> Fraction:
        """ℓ1 of the upper triangle with diagonal: (d+1)/2, or min(d/√2 + 1, √((d² + 3d)/2)), times R².

        Of strata, the sum over them: (d+1)/2, or d+1 where a person moves.
        """
        d = self.dimension
        if self.strata:
            return self._scaled(Fraction(d + 1, 2), Fraction(d + 1))
        if d == 1:
            return self._scaled(Fraction(1), Fraction(1))
        replace_one = min(sqrt_up(Fraction(d * d, 2)) + 1, sqrt_up(Fraction(d * d + 3 * d, 2)))
        return self._scaled(Fraction(d + 1, 2), replace_one)

    @property
    def row_sum_squared(self) -> Fraction:
        """‖Σx − Σx′‖² ≤ R² (add-remove) or 4R² (replace-one, attained by opposite rows), times m² exactly.

        Proof: docs/proofs/unbounded.md.
        """
        return self._scaled(Fraction(1), Fraction(4)) * self.rows_per_person

    @property
    def free_trace_frobenius(self) -> Fraction:
        """√(‖D‖_F² + (tr D)²) ≤ √2 under replace-one: the trace may be d+1 times as precise at no cost.

        In the norm ‖D‖_F² + κ (tr D)²/d with κ = d. Under add-remove the same norm is also √2, where it is
        no bargain: ‖D‖_F alone is 1. In one dimension it is √2 under both. Of strata, with every trace
        squared, it is 2 where a person moves: there the trace is not free.
        """
        return self._scaled(sqrt_up(2), Fraction(2) if self.strata else sqrt_up(2))


def changed_bins(neighbours: Neighbours) -> int:
    """How many counts of a histogram one person can change, by one each: docs/proofs/unbounded.md."""
    return 1 if neighbours is Neighbours.ADD_REMOVE else 2


def counts_l1(neighbours: Neighbours, *, per_row: int, rows_per_person: int) -> int:
    """ℓ1 of the change of counts, where a row is counted in at most ``per_row`` of them: docs/proofs/frame.md.

    A person adds at most m·per_row to the counts, and under replace-one takes as many away elsewhere.
    """
    return changed_bins(neighbours) * per_row * rows_per_person


def counts_l2(neighbours: Neighbours, *, per_row: int, rows_per_person: int) -> Fraction:
    """ℓ2 of the same, where the counts fall into ``per_row`` histograms with at most one count of a row in each.

    In each of them all m rows of a person may leave one bin and enter another: √2·m, or m under add-remove.
    """
    return rows_per_person * sqrt_up(changed_bins(neighbours) * per_row)


def sums_sup(neighbours: Neighbours, *, largest: int, rows_per_person: int) -> int:
    """How far one person moves any of several sums of numbers in [-largest, largest]: docs/proofs/frame.md."""
    return changed_bins(neighbours) * largest * rows_per_person


def sums_l2(neighbours: Neighbours, *, largest: int, columns: int, rows_per_person: int) -> Fraction:
    """ℓ2 of the change of such sums, of which there are ``columns``: all of them may move as far as one can."""
    return sums_sup(neighbours, largest=largest, rows_per_person=rows_per_person) * sqrt_up(Fraction(columns))


def bounded_sum(*, lower: int, upper: int, neighbours: Neighbours) -> int:
    """How far one person moves a sum of numbers in [lower, upper]: docs/proofs/unbounded.md."""
    return max(abs(lower), abs(upper)) if neighbours is Neighbours.ADD_REMOVE else upper - lower
