"""Rows: what is accepted, what is refused with its place and value, and how far apart two rows are."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec.distribution import (
    as_count,
    as_logits,
    as_numbers,
    as_rows,
    as_step,
    as_tokens,
    as_weights,
    is_exact,
    overlap,
    sum_tolerance,
    total,
    total_variation,
)

NAN, INF = float("nan"), float("inf")
HALF = Fraction(1, 2)


def row(*weights):
    return np.array([Fraction(weight, sum(weights)) for weight in weights], dtype=object)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, NAN]], "target row 0, index 1: nan is not a probability"),
        ([[1.0, 0.0], [1.5, -0.5]], "target row 1, index 1: -0.5 is not a probability"),
        ([[-INF, INF]], "target row 0, index 0: -inf is not a probability"),
        ([[HALF, HALF], [Fraction(3, 2), -HALF]], "target row 1, index 1: -1/2 is not a probability"),
        ([[0.5, 0.5], [0.5, 0.4]], "target row 1: sums to 0.9"),
        ([[INF, 0.0]], "target row 0, index 0: inf is not a probability"),
        ([[0.0, 0.0]], "target row 0: sums to 0.0"),
        ([[HALF, Fraction(1, 3)]], "target row 0: sums to 5/6"),
        ([[1, 1]], "target row 0: sums to 2.0"),
        ([[0.333984375] * 3], "target row 0: sums to 1.001953125"),
        ([[HALF, 0.5]], "target[0, 1]: 0.5 is no fraction"),
        ([[HALF, None]], "target[0, 1]: None is no fraction"),
        ([[0.5, 0.5], [1.0]], "target: rows differ in length"),
        ([[HALF, HALF], [Fraction(1)]], "target: rows differ in length"),
        ([0.5, 0.5], "target: shape (2,) has 1 axes; expected 2"),
        ([[[0.5, 0.5]]], "target: shape (1, 1, 2) has 3 axes; expected 2"),
        ([[0.5 + 0j, 0.5]], "target: dtype complex128"),
        ([["0.5", "0.5"]], "target: dtype <U3"),
        ([[True, False]], "target: dtype bool"),
    ],
)
def test_rows_that_are_no_distributions_are_refused(rows, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_rows(rows, name="target")


@pytest.mark.parametrize("dtype", [float, object])
def test_an_empty_vocabulary_is_refused(dtype):
    with pytest.raises(ValueError, match="target row 0"):
        as_rows(np.empty((1, 0), dtype=dtype), name="target")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, NAN], "weights, index 1: nan is not a weight"),
        ([1.0, -2.0], "weights, index 1: -2.0 is not a weight"),
        ([Fraction(1), Fraction(-2)], "weights, index 1: -2 is not a weight"),
        ([1.0, INF], "weights, index 1: inf is not a weight"),
        ([0.0, 0.0, 0.0], "weights: 3 weights, none above 0"),
        ([], "weights: 0 weights, none above 0"),
        ([[1.0]], "weights: shape (1, 1) has 2 axes; expected 1"),
    ],
)
def test_weights_that_cannot_be_drawn_from_are_refused(weights, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_weights(weights, name="weights")


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([0.0, NAN], "logits, index 1: nan is not a logit"),
        ([INF, 0.0], "logits, index 0: inf is not a logit"),
        ([-INF, -INF], "logits: 2 logits, all -inf"),
        ([], "logits: 0 logits, all -inf"),
    ],
)
def test_bad_logits_are_refused(logits, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_logits(logits, name="logits")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([0, 4], "prompt[1]: token 4 is out of range; expected 0 to 3"),
        ([-1], "prompt[0]: token -1 is out of range"),
        ([0, 1.0], "prompt[1]: 1.0 is not a token id"),
        (["1"], "prompt[0]: '1' is not a token id"),
        ([None], "prompt[0]: None is not a token id"),
    ],
)
def test_bad_tokens_are_refused(tokens, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_tokens(tokens, vocabulary=4, name="prompt")


@pytest.mark.parametrize(
    ("count", "message"), [(-1, "lookahead: -1 is negative"), (2.0, "lookahead: 2.0 is not an integer")]
)
def test_bad_counts_are_refused(count, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_count(count, name="lookahead")


def test_tokens_become_a_tuple_of_plain_integers():
    tokens = as_tokens(np.array([3, 0], dtype=np.uint8), vocabulary=4, name="prompt")
    assert tokens == (3, 0)
    assert [type(token) for token in tokens] == [int, int]


def test_counts_of_numpy_become_plain_integers():
    assert type(as_count(np.int64(3), name="lookahead")) is int


def test_float32_rows_are_widened_and_may_miss_one_by_their_own_rounding():
    third = np.float32(1 / 3)
    rows = as_rows(np.full((1, 3), third), name="draft")
    assert rows.dtype == np.float64
    assert rows.tolist() == [[float(third)] * 3]
    with pytest.raises(ValueError, match=r"draft row 0: sums to 1\.00000002"):
        as_rows(np.full((1, 3), float(third)), name="draft")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_an_honest_row_of_any_float_type_is_accepted(dtype):
    rows = as_rows(np.full((1, 10), dtype(1) / 10), name="target")
    assert rows.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_sum_beyond_the_tolerance_of_its_type_is_refused(dtype):
    tolerance = sum_tolerance(np.dtype(dtype), 2)
    inside, outside = dtype(0.5 + 0.9 * tolerance), dtype(0.5 + 1.4 * tolerance)
    assert as_rows(np.array([[0.5, inside]], dtype=dtype), name="target")[0, 1] == inside
    with pytest.raises(ValueError, match=r"target row 0: sums to 1\.0"):
        as_rows(np.array([[0.5, outside]], dtype=dtype), name="target")


def test_fractions_and_integers_have_no_tolerance():
    assert sum_tolerance(np.dtype(object), 1000) == 0
    assert sum_tolerance(np.dtype(int), 1000) == 0
    with pytest.raises(ValueError, match=re.escape("expected 1 (within 0)")):
        as_rows([[HALF, HALF + Fraction(1, 10**30)]], name="target")


def test_fractions_stay_fractions_and_integers_among_them_become_fractions():
    rows = as_rows([[1, Fraction(0)], [HALF, HALF]], name="target")
    assert is_exact(rows)
    assert {type(value) for value in rows.flat} == {Fraction}
    assert rows.tolist() == [[1, 0], [HALF, HALF]]


def test_an_integer_one_hot_row_is_a_row_of_floats():
    rows = as_rows([[0, 1]], name="target")
    assert rows.dtype == np.float64
    assert not is_exact(rows)


def test_numbers_are_contiguous_whatever_the_order_they_came_in():
    rows = np.asfortranarray([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375]])
    widened = as_numbers(rows, name="target", axes=2)
    assert widened.flags.c_contiguous
    assert widened.tolist() == rows.tolist()
    assert as_rows(rows[:, ::-1], name="target").tolist() == rows[:, ::-1].tolist()


@pytest.mark.parametrize("rows", [np.array([[0.25, 0.75]]), np.float32([[0.25, 0.75]]), row(1, 3)[None]])
def test_checking_writes_to_nothing(rows):
    before = rows.copy()
    rows.flags.writeable = False
    as_rows(rows, name="target")
    as_weights(rows[0], name="weights")
    as_step(np.concatenate([rows, rows]), rows, [0])
    assert (rows == before).all()


def test_the_total_of_floats_runs_from_left_to_right():
    """The small numbers are lost one by one after the 1, and add up before it."""
    assert total(np.array([1.0] + [1e-16] * 20)) == 1.0
    assert total(np.array([1e-16] * 20 + [1.0])) == 1 + 2e-15


@given(st.lists(st.fractions(0, 1, max_denominator=50), min_size=1, max_size=6))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_the_total_of_fractions_is_exact(values):
    assert total(np.array(values, dtype=object)) == sum(values)


@pytest.mark.parametrize(
    ("target_row", "draft_row", "shared"),
    [
        (row(4, 3, 2, 1), row(1, 2, 3, 4), Fraction(3, 5)),
        (row(1, 2), row(2, 1), Fraction(2, 3)),
        (row(1, 2, 1), row(2, 1, 1), Fraction(3, 4)),
        (row(1, 0), row(0, 1), 0),
        (row(5, 3), row(5, 3), 1),
    ],
)
def test_overlap_and_total_variation_by_hand(target_row, draft_row, shared):
    assert overlap(target_row, draft_row) == overlap(draft_row, target_row) == shared
    assert total_variation(target_row, draft_row) == total_variation(draft_row, target_row) == 1 - shared


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            ([[0.5, 0.5]], [[0.5, 0.5]] * 2, [0]),
            "1 target rows and 2 draft rows for 1 drafted tokens; expected 2 and 1",
        ),
        (([[0.5, 0.5]], [[0.5, 0.5]], [0]), "1 target rows and 1 draft rows for 1 drafted tokens"),
        (([[0.5, 0.5]] * 3, [[0.5, 0.5]] * 2, [0]), "3 target rows and 2 draft rows for 1 drafted tokens"),
        (([[0.5, 0.5]] * 2, [], [0]), "2 target rows and 0 draft rows for 1 drafted tokens"),
        (([[0.5, 0.5]] * 2, [[0.5, 0.25, 0.25]], [0]), "vocabularies differ: target 2, draft 3"),
        (([[0.5, 0.5]] * 2, [[HALF, HALF]], [0]), "target is float64, draft is object"),
        (([[HALF, HALF]] * 2, [[0.5, 0.5]], [0]), "target is object, draft is float64"),
        (([[0.5, 0.5]] * 2, [[0.0, 1.0]], [0]), "draft row 0, index 0: 0.0, but draft_tokens[0] is 0"),
        (([[HALF, HALF]] * 2, [[1, Fraction(0)]], [1]), "draft row 0, index 1: 0, but draft_tokens[0] is 1"),
        (([[0.5, 0.5]] * 2, [[0.5, NAN]], [0]), "draft row 0, index 1: nan is not a probability"),
        (([[0.5, 0.5]] * 2, [[0.5, 0.5]], [2]), "draft_tokens[0]: token 2 is out of range; expected 0 to 1"),
        (([[0.5, 0.5]] * 2, [[0.5, 0.5]], [0.0]), "draft_tokens[0]: 0.0 is not a token id"),
    ],
)
def test_a_step_that_does_not_fit_together_is_refused(inputs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_step(*inputs)


@pytest.mark.parametrize("nothing", [[], (), np.empty((0, 2)), np.empty((0, 2), dtype=object)])
def test_a_step_without_a_draft_has_one_target_row(nothing):
    target_rows, draft_rows, tokens = as_step([[HALF, HALF]], nothing, [])
    assert target_rows.tolist() == [[HALF, HALF]]
    assert draft_rows.shape == (0, 2)
    assert tokens == ()


@pytest.mark.parametrize("distance", [overlap, total_variation])
@pytest.mark.parametrize(("target_row", "draft_row"), [([1, 2], [2, 1]), ([NAN, 1.0], [0.5, 0.5]), ([0.5, 0.5], [1.0])])
def test_distances_are_of_rows_alone(distance, target_row, draft_row):
    with pytest.raises(ValueError, match=r"target row 0|vocabularies differ"):
        distance(target_row, draft_row)
