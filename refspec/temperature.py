"""What temperature makes of scores: weights, the largest of them made larger or smaller against the rest."""

from fractions import Fraction
from typing import Any

import numpy as np

from refspec.distribution import Row, is_exact
from refspec.truncation import keep


def tempered(scores: Row, temperature: Any, *, kind: str) -> Row:  # [V] -> [V]
    """Return the weights of logits or weights at a temperature; at 0 the one-hot row at the first maximum."""
    if temperature == 0:
        return greedy(scores)
    return (softmax_weights if kind == "logits" else power_weights)(scores, temperature)


def greedy(scores: Row) -> Row:  # [V] -> [V]
    """Return the one-hot row at the first maximum."""
    return keep(scores**0, np.argmax(scores))  # ones, of the same sort as the scores


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
