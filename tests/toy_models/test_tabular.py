"""Tables of integer weights: exact and float views, refusals, and an honest state key."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toy_models import TabularModel

SECOND_ORDER = {
    context: (1 + len(context), 2 + sum(context), 1 + 3 * (context[:1] == (1,)))
    for length in range(3)
    for context in product(range(3), repeat=length)
}


def test_a_row_is_its_weights_over_their_total():
    model = TabularModel({(): [1, 1, 2], (0,): [0, 3, 0], (1,): [1, 2, 4], (2,): [5, 1, 0]})
    assert model.score((), (1, 0)).tolist() == [
        [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)],
        [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)],
        [0, 1, 0],
    ]
    assert (model.vocabulary, model.order, model.kind) == (3, 1, "weights")


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.integers(0, 10**20), min_size=1, max_size=6).filter(any))
def test_the_exact_row_sums_to_one_and_the_float_row_is_its_rounding(weights):
    exact = TabularModel({(): weights})
    (fractions,), (floats,) = exact.score((), ()), exact.floats.score((), ())
    assert sum(fractions) == 1
    assert set(map(type, fractions)) == {Fraction}
    assert floats.dtype == np.float64
    assert floats.tolist() == [float(fraction) for fraction in fractions]


def test_the_views_lead_back_to_each_other():
    exact = TabularModel(SECOND_ORDER)
    assert (exact.exact, exact.floats.exact, exact.floats.fractions.exact) == (True, False, True)
    again = exact.floats.fractions.score((1,), (2, 0, 1))
    assert (again == exact.score((1,), (2, 0, 1))).all()


def test_the_longest_context_is_the_order_and_shorter_ones_stand_at_the_beginning():
    model = TabularModel(SECOND_ORDER)
    assert model.order == 2
    rows = model.score((), (1, 0, 2))
    for row, context in zip(rows, [(), (1,), (1, 0), (0, 2)], strict=True):
        weights = SECOND_ORDER[context]
        assert row.tolist() == [Fraction(weight, sum(weights)) for weight in weights]


def test_equal_state_keys_have_equal_rows_now_and_after_any_continuation():
    model = TabularModel(SECOND_ORDER)
    prefixes = [prefix for length in range(5) for prefix in product(range(3), repeat=length)]
    first = {}
    for prefix in prefixes:
        like = first.setdefault(model.state_key(prefix), prefix)
        for continuation in product(range(3), repeat=2):
            assert (model.score(prefix, continuation) == model.score(like, continuation)).all()
            assert model.state_key(prefix + continuation) == model.state_key(like + continuation)
    assert len(first) == len(SECOND_ORDER)


def test_a_table_of_one_context_has_one_state():
    model = TabularModel({(): (1, 3)})
    assert model.state_key((0, 1, 1)) == ()
    assert model.score((0, 1), (1,)).tolist() == [[Fraction(1, 4), Fraction(3, 4)]] * 2


def test_a_score_can_be_written_to_without_harm():
    model = TabularModel({(): (1, 3)}, exact=False)
    model.score((), ())[:] = 7
    assert model.score((), ()).tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({(): [1, 1], (0,): [1, 1, 1]}, r"context \(0,\): 3 weights; expected 2"),
        ({(): [1, -2]}, r"context \(\), index 1: -2; expected an integer >= 0"),
        ({(): [1, 1], (1,): [0.5, 1]}, r"context \(1,\), index 0: 0.5; expected an integer >= 0"),
        ({(): [Fraction(1, 3), 1]}, r"context \(\), index 0: Fraction\(1, 3\); expected an integer >= 0"),
        ({(): [1, 1], (1,): [0, 0]}, r"context \(1,\): all weights are 0; expected a total above 0"),
    ],
)
def test_a_refusal_names_the_context_and_the_value(weights, message, exact):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TabularModel(weights, exact=exact)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_a_weight_that_is_not_finite_is_refused(weight):
    with pytest.raises(ValueError, match=rf"^context \(\), index 1: {weight}; expected an integer >= 0$"):
        TabularModel({(): [1, weight]})


def test_a_context_outside_the_table_is_named():
    with pytest.raises(KeyError, match=r"context \(1,\) is not in the table"):
        TabularModel({(): (1, 1), (0,): (1, 1)}).score((0,), (1, 0))
