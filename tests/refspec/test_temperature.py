"""What temperature makes of scores: greedy, softmax and powers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec.temperature import greedy, softmax_weights, tempered

WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def exact(*numbers):
    return np.array([Fraction(number) for number in numbers], dtype=object)


@given(WEIGHTS)
@settings(deadline=None, max_examples=50, derandomize=True)
def test_greedy_takes_the_first_maximum(weights):
    best = weights.index(max(weights))
    for numbers in (exact(*weights), np.array(weights, dtype=float)):
        assert greedy(numbers).tolist() == [int(y == best) for y in range(len(weights))]


@given(WEIGHTS, st.sampled_from([Fraction(1, 3), Fraction(1, 2), 1]))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_a_power_of_weights_is_the_softmax_of_their_logarithms(weights, temperature):
    """Both are scaled as they like; their normalised rows are equal."""
    powers = tempered(exact(*weights), temperature, kind="weights")
    with np.errstate(divide="ignore"):
        of_logits = tempered(np.log(np.array(weights, dtype=float)), temperature, kind="logits")
    np.testing.assert_allclose((powers / powers.sum()).astype(float), of_logits / of_logits.sum(), rtol=1e-12)


def test_a_softmax_of_fractions_is_refused():
    with pytest.raises(TypeError, match="a softmax of fractions is no fraction"):
        softmax_weights(exact(1, 2), 1)
