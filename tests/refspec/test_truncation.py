"""Top-k, top-p and min-p against their definitions, on fractions and floats; ties."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec.truncation import min_p, top_k, top_p

WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def exact(*numbers):
    return np.array([Fraction(number) for number in numbers], dtype=object)


@given(WEIGHTS, st.integers(1, 7))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_top_k_keeps_the_first_k_of_the_descending_order(weights, count):
    kept = sorted(range(len(weights)), key=lambda y: (-weights[y], y))[:count]
    expected = [weight if y in kept else 0 for y, weight in enumerate(weights)]
    assert top_k(exact(*weights), count).tolist() == expected
    assert top_k(np.array(weights, dtype=float), count).tolist() == expected


def test_ties_go_to_the_lower_index_in_a_large_vocabulary():
    weights = np.random.default_rng(0).integers(1, 4, size=1000).astype(float)
    first = np.flatnonzero(weights == 3)[:50]
    assert np.flatnonzero(top_k(weights, 50)).tolist() == first.tolist()
    assert np.flatnonzero(top_p(weights, 150 / weights.sum())).tolist() == first.tolist()


@given(WEIGHTS, st.fractions(Fraction(1, 20), 1, max_denominator=20))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_top_p_keeps_the_smallest_prefix_that_reaches_its_mass(weights, mass):
    order = sorted(range(len(weights)), key=lambda y: (-weights[y], y))
    size = next(n for n in range(1, len(order) + 1) if sum(weights[y] for y in order[:n]) >= mass * sum(weights))
    expected = [weight if y in order[:size] else 0 for y, weight in enumerate(weights)]
    assert top_p(exact(*weights), mass).tolist() == expected


@given(WEIGHTS, st.fractions(0, 1, max_denominator=20))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_min_p_keeps_what_has_its_part_of_the_largest(weights, part):
    expected = [weight if weight >= part * max(weights) else 0 for weight in weights]
    assert min_p(exact(*weights), part).tolist() == expected
