"""The knobs: each by hand, their order, their ties, and what they refuse."""

import re
from fractions import Fraction

import numpy as np
import pytest

from refspec.knobs import SamplingKnobs
from refspec.temperature import greedy, power_weights, softmax_weights
from refspec.truncation import min_p, normalised, top_k, top_p

NAN, INF = float("nan"), float("inf")


def exact(*numbers):
    return np.array([Fraction(str(number)) for number in numbers], dtype=object)


BY_HAND = [
    # knobs, weights, the row
    ({}, (".4", ".3", ".3"), ("2/5", "3/10", "3/10")),
    ({}, (2, 1, 1), ("1/2", "1/4", "1/4")),
    ({"top_k": 2}, (".4", ".3", ".3"), ("4/7", "3/7", 0)),
    ({"top_k": 2}, (".3", ".3", ".4"), ("3/7", 0, "4/7")),
    ({"top_k": 1}, (".25", ".25", ".25", ".25"), (1, 0, 0, 0)),
    ({"top_k": 9}, (".4", ".6"), ("2/5", "3/5")),
    ({"top_p": "0.9"}, (".5", ".3", ".15", ".05"), ("10/19", "6/19", "3/19", 0)),
    ({"top_p": "0.5"}, (".25", ".25", ".25", ".25"), ("1/2", "1/2", 0, 0)),
    ({"top_p": "0.1"}, (".2", ".2", ".6"), (0, 0, 1)),
    ({"top_p": 1}, (".75", ".25", 0), ("3/4", "1/4", 0)),
    ({"min_p": "0.2"}, (".6", ".25", ".1", ".05"), ("12/17", "5/17", 0, 0)),
    ({"min_p": "0.5"}, (".5", ".25", ".25"), ("1/2", "1/4", "1/4")),
    ({"min_p": 1}, (".25", ".375", ".375"), (0, "1/2", "1/2")),
    ({"min_p": 0}, (".75", ".25", 0), ("3/4", "1/4", 0)),
    ({"temperature": "0.5"}, (".5", ".3", ".2"), ("25/38", "9/38", "4/38")),
    ({"temperature": 0}, (".4", ".4", ".2"), (1, 0, 0)),
    ({"temperature": 0}, (".2", ".4", ".4"), (0, 1, 0)),
    # two knobs: the row would differ in another order
    ({"top_k": 2, "top_p": "0.5"}, (".4", ".3", ".2", ".1"), (1, 0, 0, 0)),
    ({"temperature": "0.5", "top_p": "0.6"}, (".5", ".3", ".2"), (1, 0, 0)),
    ({"temperature": "0.5", "min_p": "0.5"}, (".5", ".3", ".2"), (1, 0, 0)),
    ({"top_p": "0.75", "min_p": "0.4"}, (".4", ".3", ".2", ".1"), ("4/9", "3/9", "2/9", 0)),
    ({"temperature": 0, "top_k": 3, "top_p": "0.5", "min_p": "0.1"}, (".3", ".5", ".2"), (0, 1, 0)),
]


@pytest.mark.parametrize(("knobs", "weights", "row"), BY_HAND)
def test_rows_by_hand_are_exact_on_fractions(knobs, weights, row):
    made = SamplingKnobs(**knobs).row(exact(*weights), kind="weights")
    assert made.tolist() == exact(*row).tolist()


@pytest.mark.parametrize("knobs", [{}, {"temperature": 0}, {"temperature": "1/2"}, {"top_k": 1}, {"top_p": 0.5}])
def test_an_exact_row_holds_fractions_only(knobs):
    row = SamplingKnobs(**knobs).row(exact(".4", ".4", ".2"), kind="weights")
    assert [type(mass) for mass in row] == [Fraction] * 3


@pytest.mark.parametrize(("knobs", "weights", "row"), BY_HAND)
def test_rows_by_hand_on_floats(knobs, weights, row):
    made = SamplingKnobs(**knobs).row(exact(*weights).astype(float), kind="weights")
    assert made.dtype == np.float64
    np.testing.assert_allclose(made, exact(*row).astype(float), rtol=1e-15, atol=0)


@pytest.mark.parametrize(("knobs", "weights", "row"), [case for case in BY_HAND if case[0] != {"min_p": "0.5"}])
def test_logits_of_the_weights_give_the_same_row(knobs, weights, row):
    """One case is left out: it rests on an equality that the rounding of a logarithm may break."""
    with np.errstate(divide="ignore"):
        logits = np.log(exact(*weights).astype(float)) + 3
    made = SamplingKnobs(**knobs).row(logits, kind="logits")
    np.testing.assert_allclose(made, exact(*row).astype(float), rtol=1e-14, atol=0)


def test_a_softmax_by_hand():
    row = SamplingKnobs().row([2.0, 1.0, 0.5], kind="logits")
    np.testing.assert_allclose(row, [0.6285, 0.2312, 0.1402], rtol=0, atol=5e-5)
    colder = SamplingKnobs(temperature=0.5).row([1.0, 0.5, 0.25], kind="logits")
    np.testing.assert_allclose(colder, row, rtol=1e-15)


@pytest.mark.parametrize("temperature", [0, 0.3, 1, 2])
def test_minus_infinity_bans_a_token(temperature):
    row = SamplingKnobs(temperature=temperature).row([-INF, 0.0, -INF, 0.0], kind="logits")
    assert row.tolist() == ([0, 1, 0, 0] if temperature == 0 else [0, 0.5, 0, 0.5])


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1.0])
def test_extreme_logits_do_not_overflow(temperature):
    row = SamplingKnobs(temperature=temperature).row([1e308, -1e308, 0.0], kind="logits")
    assert row.tolist() == [1, 0, 0]


def test_a_temperature_that_is_hot_flattens_and_one_that_is_cold_sharpens():
    weights = [0.5, 0.25, 0.25]
    hot = SamplingKnobs(temperature=2).row(weights, kind="weights")
    np.testing.assert_allclose(hot, np.sqrt(weights) / np.sqrt(weights).sum(), rtol=1e-15)
    cold = SamplingKnobs(temperature=1e-320).row(weights, kind="weights")
    assert cold.tolist() == [1, 0, 0]


def test_a_string_is_exact_and_a_float_is_the_float():
    """0.9 as a float is above nine tenths, so one token more is needed to reach it."""
    weights = exact(".5", ".4", ".1")
    assert SamplingKnobs(top_p="0.9").row(weights, kind="weights").tolist() == [Fraction(5, 9), Fraction(4, 9), 0]
    assert SamplingKnobs(top_p=Fraction(9, 10)) == SamplingKnobs(top_p="0.9")
    assert SamplingKnobs(top_p=0.9).row(weights, kind="weights").tolist() == weights.tolist()


@pytest.mark.parametrize("temperature", [0.7, Fraction(2, 3), 2, "1.5"])
def test_a_temperature_without_an_exact_value_is_named(temperature):
    knobs = SamplingKnobs(temperature=temperature)
    with pytest.raises(TypeError, match=re.escape(f"temperature {knobs.temperature} has no exact value on fractions")):
        knobs.row(exact(".5", ".5"), kind="weights")


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"temperature": -1}, "temperature: -1; expected 0 or more"),
        ({"temperature": -5e-324}, "temperature: -5e-324; expected 0 or more"),
        ({"temperature": NAN}, "temperature: nan; expected 0 or more"),
        ({"temperature": INF}, "temperature: inf; expected 0 or more"),
        ({"temperature": "-0.5"}, "temperature: Fraction(-1, 2); expected 0 or more"),
        ({"temperature": "hot"}, "temperature: 'hot' is not a number"),
        ({"temperature": None}, "temperature: None is not a number"),
        ({"temperature": 1j}, "temperature: 1j is not a number"),
        ({"temperature": [1]}, "temperature: [1] is not a number"),
        ({"top_k": 0}, "top_k: 0; expected an integer of 1 or more"),
        ({"top_k": -1}, "top_k: -1; expected an integer of 1 or more"),
        ({"top_k": 2.0}, "top_k: 2.0; expected an integer of 1 or more"),
        ({"top_k": True}, "top_k: True; expected an integer of 1 or more"),
        ({"top_k": "3"}, "top_k: '3'; expected an integer of 1 or more"),
        ({"top_p": 0}, "top_p: 0; expected above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p: 1.5; expected above 0 and at most 1"),
        ({"top_p": "3/2"}, "top_p: Fraction(3, 2); expected above 0 and at most 1"),
        ({"top_p": NAN}, "top_p: nan; expected above 0 and at most 1"),
        ({"top_p": "nan"}, "top_p: 'nan' is not a number"),
        ({"top_p": "1/0"}, "top_p: '1/0' is not a number"),
        ({"min_p": -0.1}, "min_p: -0.1; expected 0 to 1"),
        ({"min_p": 1.1}, "min_p: 1.1; expected 0 to 1"),
        ({"min_p": NAN}, "min_p: nan; expected 0 to 1"),
        ({"min_p": ()}, "min_p: () is not a number"),
    ],
)
def test_bad_knobs_are_refused(knobs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        SamplingKnobs(**knobs)


@pytest.mark.parametrize("knobs", [{}, {"temperature": 0}, {"temperature": 0.5}, {"top_k": 1}, {"min_p": 0.5}])
@pytest.mark.parametrize(
    ("scores", "kind", "message"),
    [
        ([0.0, NAN], "logits", "logits, index 1: nan is not a logit"),
        ([INF, 0.0], "logits", "logits, index 0: inf is not a logit"),
        ([-INF, -INF], "logits", "logits: 2 logits, all -inf"),
        ([1.0, NAN], "weights", "weights, index 1: nan is not a weight"),
        ([1.0, -1.0], "weights", "weights, index 1: -1.0 is not a weight"),
        ([INF, 1.0], "weights", "weights, index 0: inf is not a weight"),
        ([0.0, 0.0], "weights", "weights: 2 weights, none above 0"),
        ([[1.0]], "weights", "weights: shape (1, 1) has 2 axes; expected 1"),
        ([1.0], "probabilities", "kind: 'probabilities'; expected 'logits' or 'weights'"),
    ],
)
def test_bad_scores_are_refused_under_every_knob(knobs, scores, kind, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        SamplingKnobs(**knobs).row(scores, kind=kind)


def test_a_total_that_overflows_is_refused():
    with pytest.raises(ValueError, match="weights sum to inf; expected a finite total"):
        SamplingKnobs().row([1e308, 1e308], kind="weights")


@pytest.mark.parametrize(
    "knob",
    [
        greedy,
        normalised,
        lambda weights: power_weights(weights, Fraction(1, 2)),
        lambda weights: top_k(weights, 1),
        lambda weights: top_p(weights, Fraction(1, 2)),
        lambda weights: min_p(weights, Fraction(1, 2)),
        lambda weights: SamplingKnobs("0.5", top_k=2, top_p="0.9", min_p="0.1").row(weights, kind="weights"),
        lambda weights: softmax_weights(weights.astype(float), 0.5),
    ],
)
@pytest.mark.parametrize("dtype", [object, np.float64, np.float32])
def test_no_knob_writes_to_what_it_was_given(knob, dtype):
    weights = exact(1, 4, 2).astype(dtype)
    weights.flags.writeable = False
    first, second = knob(weights), knob(weights)
    assert weights.tolist() == [1, 4, 2]
    assert first.tolist() == second.tolist()


def test_float32_scores_are_widened_first():
    scores = np.float32([0.1, 0.2, 0.7])
    row = SamplingKnobs(temperature=0.7).row(scores, kind="logits")
    assert row.dtype == np.float64
    assert row.tolist() == SamplingKnobs(temperature=0.7).row(scores.astype(float), kind="logits").tolist()


def test_knobs_can_be_compared_and_kept_in_a_set():
    assert (
        len({SamplingKnobs(), SamplingKnobs(temperature="1"), SamplingKnobs(top_p="1/2"), SamplingKnobs(top_p=0.5)})
        == 2
    )
