"""What cuts a row: top-k, top-p, min-p. Each takes weights of any total; what survives keeps its weight."""

from fractions import Fraction
from typing import Any

import numpy as np

from refspec.distribution import Row, is_exact, total


def normalised(weights: Row) -> Row:  # [V] -> [V]
    """Return weights divided by their total, which must be finite."""
    mass = total(weights)
    if not mass < np.inf:
        raise ValueError(f"weights sum to {mass}; expected a finite total")
    return weights if mass == 1 else weights / mass


def top_k(weights: Row, count: int) -> Row:  # [V] -> [V]
    """Keep the ``count`` largest weights; of equal ones the lower index."""
    return keep(weights, _descending(weights)[:count])


def top_p(weights: Row, mass: Any) -> Row:  # [V] -> [V]
    """Keep the smallest prefix of the descending order whose mass reaches ``mass``, the crossing token included."""
    if mass == 1:
        return weights
    order = _descending(weights)
    reached = np.cumsum(weights[order])  # [V]
    crossing = int(np.argmax(reached >= _beside(weights, mass) * reached[-1]))
    return keep(weights, order[: crossing + 1])


def min_p(weights: Row, part: Any) -> Row:  # [V] -> [V]
    """Keep the weights that are at least ``part`` times the largest."""
    return keep(weights, np.flatnonzero(weights >= _beside(weights, part) * weights.max()))


def _descending(weights: Row) -> Row:
    return np.asarray(np.argsort(-weights, kind="stable"))


def keep(weights: Row, kept: Any) -> Row:  # [V] -> [V]
    """Return the weights at the indices ``kept``, and zero elsewhere."""
    survivors = weights * 0
    survivors[kept] = weights[kept]
    return survivors


def _beside(weights: Row, value: Any) -> Any:
    """The value as a number of the same sort as the weights."""
    return Fraction(value) if is_exact(weights) else float(value)
