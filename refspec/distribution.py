"""What a row is, and how far apart two rows are. The one place that refuses numbers.

A *row* is a distribution over the vocabulary: [V] entries, each at least zero, that sum to one. It is either
exact (an object array of ``Fraction``) or float64. Narrower floats (float32, float16, bfloat16) are widened once, on
entry, and may then miss a sum of one by the rounding of the type they came in.

Every refusal is written so that NaN fails it, and names the row, the index and the value.
"""

from collections.abc import Iterable, Sequence, Sized
from fractions import Fraction
from math import lcm
from numbers import Integral, Rational
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Row = NDArray[Any]  # [V]
Rows = NDArray[Any]  # [N, V]


def is_exact(row: Row) -> bool:
    """Whether the numbers are fractions, so that every result about them is a proof."""
    return row.dtype == object


def overlap(target_row: ArrayLike, draft_row: ArrayLike) -> Any:
    """Return the mass two rows share: the probability that a token drafted from one is accepted by the other.

        overlap = sum over y of min(target[y], draft[y])

    [V], [V] -> a fraction, or a float. Refuses what is no row. Leviathan et al. 2022, Lemma 3.3 and Theorem 3.5 (their
    beta, for one context; its mean over contexts is their alpha, Corollary 3.6).

    >>> float(overlap(np.array([0.5, 0.5]), np.array([0.25, 0.75])))
    0.75
    """
    return total(np.minimum(*as_two_rows(target_row, draft_row)))


def total_variation(target_row: ArrayLike, draft_row: ArrayLike) -> Any:
    """Return half the sum of absolute differences: the largest error in the probability of any event.

    [V], [V] -> a fraction, or a float. Refuses what is no row. It is ``1 - overlap``.

    >>> float(total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75])))
    0.25
    """
    return total(abs(np.subtract(*as_two_rows(target_row, draft_row)))) / 2


def as_numbers(values: ArrayLike, *, name: str, axes: int) -> Row:
    """Return ``values`` as float64 (contiguous) or as an object array of fractions, with ``axes`` axes.

    Raises ``ValueError`` for ragged or non-numeric input, and for an object array that holds a float.
    """
    array = _as_array(values, name)
    if array.ndim != axes:
        raise ValueError(f"{name}: shape {array.shape} has {array.ndim} axes; expected {axes}")
    if array.dtype == object:
        return _as_fractions(array, name)
    if array.dtype.kind not in "fiu" and array.dtype.name not in ROUNDINGS:
        found = f", first value {shortened(array.flat[0])}" if array.size else ""
        raise ValueError(f"{name}: dtype {array.dtype}{found}; expected floats, integers or fractions")
    return np.ascontiguousarray(array, dtype=np.float64)


def _as_array(values: ArrayLike, name: str) -> Row:
    if np.ma.isMaskedArray(values):
        raise ValueError(f"{name}: a masked array, {shortened(values)}; expected plain numbers")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: rows differ in length, {shortened(values)}; expected a rectangle") from error
    except (TypeError, RuntimeError) as error:  # what the tensors of other libraries raise
        raise ValueError(f"{name}: NumPy cannot read {shortened(values)} ({error}); expected an array") from error


def _as_fractions(array: Row, name: str) -> Row:
    if set(map(type, array.flat)) == {Fraction}:
        return array
    for at, value in np.ndenumerate(array):
        if not isinstance(value, Rational):
            raise ValueError(f"{name}{list(at)}: {value!r} is no fraction; an exact row holds fractions only")
    return np.array([Fraction(value) for value in array.flat], dtype=object).reshape(array.shape)


def total(weights: Row) -> Any:  # [V] -> a number
    """Return the sum: exact for fractions, left to right for floats, as every total here that decides anything."""
    if not is_exact(weights):
        return cumulative(weights)[-1]
    ratios = [weight.as_integer_ratio() for weight in weights]
    denominator = lcm(*{below for _, below in ratios})
    return Fraction(sum([above * (denominator // below) for above, below in ratios]), denominator)


def cumulative(weights: Row) -> Row:  # [..., V] -> [..., V]
    """Return the running sums from left to right: the only reduction that decides anything."""
    with np.errstate(over="ignore"):  # a total that overflows is infinite, and refused where it is used
        return np.cumsum(weights, axis=-1)


ROUNDINGS = {  # the distance from 1 to the next number of a type, by name: NumPy has no bfloat16
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}


def sum_tolerance(dtype: np.dtype[Any], vocabulary: int) -> float:
    """Return how far the sum of an honest row may be from one. A fraction or an integer has no rounding to excuse.

    - one rounding of the type: half for the entries, half for a total that was rounded to it;
    - eight roundings of float32 (of float64 there): the logarithm in a log-softmax, below 32;
    - ``V`` halves of the same: the total was added up in it, in any order. That is twice what the entries of
      a float16 row can be off that are too small to be normal numbers there.
    """
    return 0.0 if dtype.kind in "Oiu" else _tolerance(dtype.name, vocabulary)


def _tolerance(name: str, vocabulary: int) -> float:
    rounding = ROUNDINGS.get(name, ROUNDINGS["float64"])  # wider floats are rounded to float64
    return rounding + min(rounding, ROUNDINGS["float32"]) * (8 + vocabulary / 2)


def narrower_type(row: Row) -> str:
    """Return a hint if a row that is refused would be accepted in a narrower type, which holds all its numbers."""
    missing = np.inf if is_exact(row) else abs(total(row) - 1)
    for name in ("bfloat16", "float16", "float32"):
        scale = 2 / ROUNDINGS[name]  # makes an integer of a significand that has no more bits than the type
        if missing <= _tolerance(name, len(row)) and not (np.frexp(row)[0] * scale % 1).any():
            return f"; its entries are {name} numbers: give it as {name}, or normalise it"
    return ""


def as_rows(values: ArrayLike, *, name: str) -> Rows:
    """Return ``values`` [N, V] as rows; refuse whatever is not a distribution.

    Raises ``ValueError`` that names the row, the index and the value.
    """
    rows = as_numbers(values, name=name, axes=2)
    if rows.shape[1] == 0 and len(rows):
        raise ValueError(f"{name} row 0: no entries; expected a vocabulary of 1 or more")
    tolerance = sum_tolerance(np.asarray(values).dtype, rows.shape[1])
    for i, row in enumerate(rows):
        for y in _not_finite_or_negative(row):
            raise ValueError(f"{name} row {i}, index {y}: {row[y]} is not a probability; expected 0 to 1")
        if not abs((mass := total(row)) - 1) <= tolerance:
            hint = narrower_type(row)
            raise ValueError(f"{name} row {i}: sums to {mass}; expected 1 (within {tolerance:.2g}){hint}")
    return rows


def _not_finite_or_negative(numbers: Row) -> Sequence[int]:
    """Return where a number is not a finite number of at least zero. NaN is not."""
    if is_exact(numbers):
        return [y for y, number in enumerate(numbers) if number.numerator < 0]
    return [int(y) for y in np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))]


def as_weights(values: ArrayLike, *, name: str) -> Row:
    """Return ``values`` [V] as weights: finite, at least zero, not all zero. They need not sum to one."""
    weights = as_numbers(values, name=name, axes=1)
    for y in _not_finite_or_negative(weights):
        raise ValueError(f"{name}, index {y}: {weights[y]} is not a weight; expected a finite number >= 0")
    if not weights.any():
        raise ValueError(f"{name}: {len(weights)} weights, none above 0; expected a total above 0")
    return weights


def as_drawable(values: ArrayLike) -> Row:
    """Return ``values`` [V] as the weights of a draw; integers stay exact."""
    given = _as_array(values, "draw")
    weights = as_weights(given.astype(object) if given.dtype.kind in "iu" else given, name="draw")
    if not is_exact(weights) and not total(weights) < np.inf:
        raise ValueError(f"draw: {len(weights)} weights sum to inf; expected a finite total")
    return weights


def refuse_negative(numerator: Any, denominator: Any) -> None:
    """Refuse a ratio of masses that are not both at least zero. NaN is not."""
    if not (numerator >= 0 and denominator >= 0):
        raise ValueError(f"accept: {numerator} / {denominator}; expected two numbers of at least 0")


def as_logits(values: ArrayLike, *, name: str) -> Row:
    """Return ``values`` [V] as logits: numbers or minus infinity (a banned token), not all banned."""
    logits = as_numbers(values, name=name, axes=1)
    for y in np.flatnonzero(~(logits < np.inf).astype(bool)):
        raise ValueError(f"{name}, index {y}: {logits[y]} is not a logit; expected a number or -inf")
    if not (logits > -np.inf).any():
        raise ValueError(f"{name}: {len(logits)} logits, all -inf; expected at least one token that is not banned")
    return logits


def as_tokens(values: Iterable[int], *, vocabulary: int, name: str) -> tuple[int, ...]:
    """Return ``values`` as a tuple of token ids in ``[0, vocabulary)``."""
    if not isinstance(values, Iterable):
        raise ValueError(f"{name}: {values!r}; expected a sequence of token ids")
    tokens: list[int] = []
    for i, value in enumerate(values):
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise ValueError(f"{name}[{i}]: {value!r} is not a token id; expected an integer")
        tokens.append(int(value))
        if not 0 <= tokens[-1] < vocabulary:
            raise ValueError(f"{name}[{i}]: token {value} is out of range; expected 0 to {vocabulary - 1}")
    return tuple(tokens)


def as_count(value: int, *, name: str) -> int:
    """Return ``value`` as an integer that is at least zero."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name}: {value!r} is not an integer")
    if value < 0:
        raise ValueError(f"{name}: {value} is negative; expected 0 or more")
    return int(value)


def as_step(
    target_rows: ArrayLike, draft_rows: ArrayLike, draft_tokens: Sequence[int]
) -> tuple[Rows, Rows, tuple[int, ...]]:
    """Return the three inputs of a verification as rows and tokens, or refuse them."""
    target_rows = as_rows(target_rows, name="target")
    vocabulary = target_rows.shape[1]
    if isinstance(draft_rows, Sized) and len(draft_rows) == 0 and np.ndim(draft_rows) == 1:  # []: nothing was drafted
        draft_rows = target_rows[:0]
    draft_rows = as_rows(draft_rows, name="draft")
    draft_tokens = as_tokens(draft_tokens, vocabulary=vocabulary, name="draft_tokens")
    lookahead = len(draft_tokens)
    if (len(target_rows), len(draft_rows)) != (lookahead + 1, lookahead):
        raise ValueError(
            f"{len(target_rows)} target rows and {len(draft_rows)} draft rows for {lookahead} drafted tokens; "
            f"expected {lookahead + 1} and {lookahead} (are the roles swapped?)"
        )
    if draft_rows.shape[1] != vocabulary:
        raise ValueError(f"vocabularies differ: target {vocabulary}, draft {draft_rows.shape[1]}")
    refuse_mixture(target_rows, draft_rows)
    for i, token in enumerate(draft_tokens):
        if not draft_rows[i, token] > 0:
            raise ValueError(
                f"draft row {i}, index {token}: {draft_rows[i, token]}, but draft_tokens[{i}] is {token}; "
                "expected a drafted token to have mass in its own row"
            )
    return target_rows, draft_rows, draft_tokens


def refuse_mixture(target_rows: Rows, draft_rows: Rows) -> None:
    """Refuse fractions beside floats: their difference would be a float, and a proof would be none."""
    if len(draft_rows) and is_exact(target_rows) != is_exact(draft_rows):
        raise ValueError(
            f"target is {target_rows.dtype}, draft is {draft_rows.dtype}; expected both floats or both fractions"
        )


def as_two_rows(target_row: ArrayLike, draft_row: ArrayLike) -> tuple[Row, Row]:
    """Return two rows over one vocabulary, both exact or both floats."""
    (target,) = as_rows(_as_array(target_row, "target")[None], name="target")
    (draft,) = as_rows(_as_array(draft_row, "draft")[None], name="draft")
    if len(target) != len(draft):
        raise ValueError(f"vocabularies differ: target {len(target)}, draft {len(draft)}")
    refuse_mixture(target, draft)
    return target, draft
