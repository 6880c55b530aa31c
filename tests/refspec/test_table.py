"""A model as two arrays: each state's row, and the state after each token."""

from itertools import product

import numpy as np
import pytest

from refspec.knobs import SamplingKnobs
from refspec.model import CountedModel, next_rows
from refspec.table import TooManyStatesError, compile_table
from toy_models.pairs import get_pair
from toy_models.random_logits import RandomLogitModel


@pytest.mark.parametrize(
    "model", [get_pair("context").target, get_pair("second-order").draft, RandomLogitModel(3, seed=1, order=2)]
)
@pytest.mark.parametrize("knobs", [SamplingKnobs(), SamplingKnobs(temperature=0), SamplingKnobs(top_k=2)])
def test_following_the_table_gives_the_rows_of_the_model(model, knobs):
    table = compile_table(model, knobs=knobs)
    assert table.vocabulary == model.vocabulary
    for tokens in product(range(model.vocabulary), repeat=3):
        state = table.states[model.state_key(())]
        for length, token in enumerate(tokens):
            assert state == table.states[model.state_key(tokens[:length])]
            (row,) = next_rows(model, tokens[:length], knobs=knobs)
            assert table.rows[state].tolist() == row.tolist()
            state = table.successors[state, token]


@pytest.mark.parametrize(("name", "states"), [("context", 5), ("second-order", 7), ("g3", 3)])
def test_each_state_has_one_row(name, states):
    model = CountedModel(get_pair(name).target)
    table = compile_table(model)
    assert model.calls == states
    assert table.rows.shape == table.successors.shape == (states, model.vocabulary)
    assert sorted(table.states.values()) == list(range(states))
    assert table.successors.dtype == np.intp


def test_only_states_after_the_prompts_are_in_the_table():
    model = get_pair("second-order").target
    assert set(compile_table(model, prompts=[(0, 0)]).states) == set(product(range(2), repeat=2))
    assert set(compile_table(model, prompts=[(0, 0), (1,)]).states) == {*product(range(2), repeat=2), (1,)}


def test_exact_rows_stay_exact_and_float_rows_float():
    assert compile_table(get_pair("context").target).rows.dtype == object
    assert compile_table(get_pair("context").floats.target).rows.dtype == np.float64


def test_too_many_states_are_refused():
    model = get_pair("context").target
    assert len(compile_table(model, max_states=5).states) == 5
    with pytest.raises(TooManyStatesError, match="more than 4 states follow the prompts") as caught:
        compile_table(model, max_states=4)
    assert isinstance(caught.value, ValueError)
