"""Rows of a model, and the counted and the lifted model."""

import re
from fractions import Fraction

import numpy as np
import pytest

from refspec.knobs import SamplingKnobs
from refspec.model import CountedModel, common_vocabulary, lifted, next_rows
from toy_models.pairs import get_pair
from toy_models.random_logits import RandomLogitModel
from toy_models.tabular import TabularModel


class Scores:
    """A model that returns the scores it was given."""

    def __init__(self, scores, *, kind="weights", vocabulary=2):
        self.scores, self.kind, self.vocabulary = scores, kind, vocabulary

    def score(self, prefix, continuation):
        return self.scores

    def state_key(self, tokens):
        return None


def test_next_rows_are_the_rows_after_each_prefix_of_the_continuation():
    model = get_pair("context").target
    rows = next_rows(model, (3,), (1, 2))
    assert rows.shape == (3, 4)
    assert [list(rows[i]) for i in range(3)] == [list(next_rows(model, (token,))[0]) for token in (3, 1, 2)]
    assert rows[1].tolist() == [Fraction(weight, 100) for weight in (10, 45, 15, 30)]


def test_next_rows_apply_the_knobs_to_each_row():
    rows = next_rows(get_pair("context").target, (0,), (2,), knobs=SamplingKnobs(top_k=1))
    assert rows.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


def test_next_rows_call_the_model_once():
    model = CountedModel(get_pair("context").target)
    next_rows(model, (), (1, 2, 3))
    assert model.calls == 1


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.5, 0.5]], "scores: shape (1, 2); expected (2, 2)"),
        ([[0.5, 0.5]] * 3, "scores: shape (3, 2); expected (2, 2)"),
        ([[1.0]] * 2, "scores: shape (2, 1); expected (2, 2)"),
        ([0.5, 0.5], "scores: shape (2,); expected (2, 2)"),
        ([[0.5, 0.5], [0.5, float("nan")]], "weights, index 1: nan is not a weight"),
    ],
)
def test_a_model_that_returns_no_rows_is_refused(scores, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        next_rows(Scores(scores), (), (0,))


def test_a_kind_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="kind: 'odds'; expected 'logits' or 'weights'"):
        next_rows(Scores([[0.5, 0.5]], kind="odds"), ())


def test_scores_are_not_written_to():
    scores = np.array([[2.0, 1.0]])
    scores.flags.writeable = False
    knobs = SamplingKnobs(temperature=0.5, top_k=1)
    assert next_rows(Scores(scores), (), knobs=knobs).tolist() == [[1, 0]]
    assert scores.tolist() == [[2, 1]]


def test_float32_scores_in_fortran_order_give_the_same_rows():
    scores = np.float32([[2, 1], [1, 3]])
    rows = [next_rows(Scores(order(scores)), (), (0,)) for order in (np.ascontiguousarray, np.asfortranarray)]
    assert rows[0].dtype == rows[1].dtype == np.float64
    assert rows[0].tolist() == rows[1].tolist() == [[2 / 3, 1 / 3], [0.25, 0.75]]


def test_models_of_different_vocabularies_are_refused():
    one, other = RandomLogitModel(3, seed=1), RandomLogitModel(4, seed=1)
    assert common_vocabulary(one, one) == 3
    with pytest.raises(ValueError, match="vocabularies differ: target 3, draft 4"):
        common_vocabulary(one, other)


def test_a_counted_model_is_the_model_and_counts():
    model = get_pair("second-order").target
    counted = CountedModel(model)
    assert (counted.vocabulary, counted.kind, counted.calls) == (2, "weights", 0)
    assert counted.score((1,), (0, 1)).tolist() == model.score((1,), (0, 1)).tolist()
    assert counted.state_key((0, 1, 1)) == (1, 1)
    assert counted.calls == 1


@pytest.mark.parametrize("knobs", [SamplingKnobs(), SamplingKnobs(temperature=0.7, top_p=0.9), SamplingKnobs(0)])
@pytest.mark.parametrize("model", [RandomLogitModel(5, seed=1), get_pair("context").target])
def test_a_lifted_row_is_the_float_row_as_fractions_that_sum_to_one(model, knobs):
    made = lifted(model, knobs)
    floats = model.floats if isinstance(model, TabularModel) else model
    for lifted_row, row in zip(made.score((0,), (3,)), next_rows(floats, (0,), (3,), knobs=knobs), strict=True):
        numbers = [Fraction(float(mass)) for mass in row]
        assert lifted_row.tolist() == [number / sum(numbers) for number in numbers]
        assert sum(lifted_row) == 1
        assert {type(mass) for mass in lifted_row} == {Fraction}
    assert (made.vocabulary, made.kind) == (model.vocabulary, "weights")


def test_a_lifted_model_scores_each_state_once():
    counted = CountedModel(RandomLogitModel(3, seed=1))
    made = lifted(counted)
    made.score((), (0, 1, 0, 1))
    made.score((2, 0), (1, 1))
    assert counted.calls == 3
    assert made.state_key((2, 0)) == made.state_key((0,)) != made.state_key((1,))


def test_a_lifted_row_is_a_row_whatever_the_knobs_say_then():
    rows = next_rows(lifted(RandomLogitModel(4, seed=2), SamplingKnobs(temperature=0.7)), (), (1,))
    assert rows.dtype == object
    assert [sum(row) for row in rows] == [1, 1]
