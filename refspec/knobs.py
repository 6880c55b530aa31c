"""The knobs of sampling: from the scores of one position to the row its token is drawn from.

Order: temperature, then top-k, top-p and min-p, each on the renormalised survivors of the one before. Both
models apply their knobs before the rule sees a row, as Chen et al. 2023 do.

On fractions temperature 0 and 1/n (a power) and all truncations are exact; any other knob needs
``refspec.model.lifted``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from refspec.distribution import Row, as_logits, as_weights, is_exact, total

Value = int | float | Fraction | str


@dataclass(frozen=True)
class SamplingKnobs:
    """How a row is made from scores. The defaults leave the model's own distribution.

    temperature  at least 0; 0 is greedy, the one-hot row at the first maximum
    top_k        how many tokens survive: exactly k, the lowest index wins a tie
    top_p        the smallest set of likeliest tokens whose mass reaches it survives, the crossing token included
    min_p        a token survives if it has at least this part of the largest probability

    None switches a truncation off. A value may be a string or a fraction where exactness matters:
    ``"0.9"`` is nine tenths, ``0.9`` is the float next to it.
    """

    temperature: Value = 1
    top_k: int | None = None
    top_p: Value | None = None
    min_p: Value | None = None

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p"):
            object.__setattr__(self, name, _as_value(getattr(self, name), name))
        _refuse_unless(0 <= self.temperature < np.inf, "temperature", self.temperature, "0 or more")  # type: ignore[operator]
        if self.top_k is not None:
            whole = isinstance(self.top_k, int | np.integer) and not isinstance(self.top_k, bool)
            _refuse_unless(whole and self.top_k >= 1, "top_k", self.top_k, "an integer of 1 or more, or None")
        if self.top_p is not None:
            _refuse_unless(0 < self.top_p <= 1, "top_p", self.top_p, "above 0 and at most 1, or None")  # type: ignore[operator]
        if self.min_p is not None:
            _refuse_unless(0 <= self.min_p <= 1, "min_p", self.min_p, "0 to 1, or None")  # type: ignore[operator]

    def row(self, scores: ArrayLike, *, kind: str) -> Row:  # [V] -> [V]
        """Return the row of one position.

        Parameters
        ----------
        scores : [V]  logits (-inf bans a token) or weights (at least 0, any total)
        kind : "logits" or "weights"

        Raises
        ------
        ValueError  a NaN, +inf, a negative weight, nothing left to draw: names the index and the value
        TypeError   a temperature that has no exact value on fractions, or logits that are fractions
        """
        weights = _weights_at(self.temperature, scores, kind)
        if self.top_k is not None:
            weights = top_k(weights, self.top_k)
        if self.top_p is not None:
            weights = top_p(weights, self.top_p)
        if self.min_p is not None:
            weights = min_p(weights, self.min_p)
        return normalised(weights)


def normalised(weights: Row) -> Row:  # [V] -> [V]
    """Return weights divided by their total, which must be finite."""
    mass = total(weights)
    if not mass < np.inf:
        raise ValueError(f"weights sum to {mass}; expected a finite total")
    return weights if mass == 1 else weights / mass


def greedy(scores: Row) -> Row:  # [V] -> [V]
    """Return the one-hot row at the first maximum."""
    return _keep(scores**0, np.argmax(scores))  # ones, of the same sort as the scores


def softmax_weights(logits: Row, temperature: Any) -> Row:  # [V] -> [V]
    """Return exp(logits / temperature), scaled so that the largest weight is 1."""
    if is_exact(logits):
        raise TypeError("a softmax of fractions is no fraction; use refspec.model.lifted")
    with np.errstate(over="ignore"):  # a temperature next to 0 sends all but the largest to -inf, as it should
        return np.asarray(np.exp((logits - logits.max()) / float(temperature)))


def power_weights(weights: Row, temperature: Any) -> Row:  # [V] -> [V]
    """Return weights ** (1 / temperature): what temperature does to a distribution given as weights."""
    if temperature == 1:
        return weights
    if not is_exact(weights):
        return np.asarray((weights / weights.max()) ** (1 / float(temperature)))
    power = 1 / Fraction(temperature)
    if power.denominator != 1:
        raise TypeError(f"temperature {temperature} has no exact value on fractions; use refspec.model.lifted")
    return np.asarray(weights ** int(power))


def top_k(weights: Row, count: int) -> Row:  # [V] -> [V]
    """Keep the ``count`` largest weights; of equal ones the lower index."""
    return _keep(weights, _descending(weights)[:count])


def top_p(weights: Row, mass: Any) -> Row:  # [V] -> [V]
    """Keep the smallest prefix of the descending order whose mass reaches ``mass``, the crossing token included."""
    if mass == 1:
        return weights
    order = _descending(weights)
    reached = np.cumsum(weights[order])  # [V]
    crossing = int(np.argmax(reached >= _beside(weights, mass) * reached[-1]))
    return _keep(weights, order[: crossing + 1])


def min_p(weights: Row, part: Any) -> Row:  # [V] -> [V]
    """Keep the weights that are at least ``part`` times the largest."""
    return _keep(weights, np.flatnonzero(weights >= _beside(weights, part) * weights.max()))


def _weights_at(temperature: Any, scores: ArrayLike, kind: str) -> Row:
    checked: dict[str, tuple[Callable[..., Row], Callable[..., Row]]] = {
        "logits": (as_logits, softmax_weights),
        "weights": (as_weights, power_weights),
    }
    if kind not in checked:
        raise ValueError(f"kind: {kind!r}; expected 'logits' or 'weights'")
    check, temper = checked[kind]
    numbers = check(scores, name=kind)
    return greedy(numbers) if temperature == 0 else temper(numbers, temperature)


def _descending(weights: Row) -> Row:
    return np.asarray(np.argsort(-weights, kind="stable"))


def _keep(weights: Row, kept: Any) -> Row:
    survivors = weights * 0
    survivors[kept] = weights[kept]
    return survivors


def _beside(weights: Row, value: Any) -> Any:
    """The value as a number of the same sort as the weights."""
    return Fraction(value) if is_exact(weights) else float(value)


def _as_value(value: Any, name: str) -> Any:
    """Return a knob's value as a number that is also a float; a string becomes a fraction."""
    if value is None and name != "temperature":
        return None
    try:
        number = Fraction(value) if isinstance(value, str) else value
        rounds_to_zero = float(number) == 0 != number
    except (ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"{name}: {value!r} is not a number") from error
    if rounds_to_zero or isinstance(number, bool) or not isinstance(number, Rational | float | np.floating):
        raise ValueError(f"{name}: {value!r} is not a number of a float's range")
    return number


def _refuse_unless(holds: bool, name: str, value: Any, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name}: {value!r}; expected {expected}")


PLAIN = SamplingKnobs()
