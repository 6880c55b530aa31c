"""A model as two arrays: each state's row, and the state after each token."""

import re
from itertools import product

import numpy as np
import pytest

from refspec.history import History
from refspec.knobs import SamplingKnobs
from refspec.model import CountedModel, next_rows
from refspec.table import UNKNOWN, TooManyStatesError, compile_table
from toy_models.pairs import get_pair
from toy_models.random_logits import RandomLogitModel


@pytest.mark.parametrize(
    "model", [get_pair("context").target, get_pair("second-order").draft, RandomLogitModel(3, seed=1, order=2)]
)
@pytest.mark.parametrize("knobs", [SamplingKnobs(), SamplingKnobs(temperature=0), SamplingKnobs(top_k=2)])
def test_following_the_table_gives_the_rows_of_the_model(model, knobs):
    table = compile_table(model, knobs=knobs)
    assert table.vocabulary == model.vocabulary
    states = {}
    for tokens in product(range(model.vocabulary), repeat=3):
        state = table.starts[()]
        for length, token in enumerate(tokens):
            assert state == states.setdefault(model.state_key(tokens[:length]), state)
            (row,) = next_rows(model, tokens[:length], knobs=knobs)
            assert table.rows[state].tolist() == row.tolist()
            state = table.successors[state, token]


@pytest.mark.parametrize(("name", "states"), [("context", 5), ("second-order", 7), ("g3", 3)])
def test_each_state_has_one_row(name, states):
    model = CountedModel(get_pair(name).target)
    table = compile_table(model)
    assert model.calls == states
    assert table.rows.shape == table.successors.shape == (states, model.vocabulary)
    assert set(table.successors.flat) <= set(range(states))
    assert table.successors.dtype == np.intp


def test_only_states_after_the_prompts_are_in_the_table():
    model = get_pair("second-order").target
    after_two, also_after_one = compile_table(model, prompts=[(0, 0)]), compile_table(model, prompts=[(0, 0), (1,)])
    assert (len(after_two.rows), len(also_after_one.rows)) == (4, 5)
    assert set(also_after_one.starts) == {(0, 0), (1,)}
    for prompt, state in also_after_one.starts.items():
        assert also_after_one.rows[state].tolist() == next_rows(model, prompt)[0].tolist()


def test_no_prompt_is_refused():
    with pytest.raises(ValueError, match="prompts: none; expected one or more"):
        compile_table(get_pair("context").target, prompts=[])


HISTORIES = [
    SamplingKnobs(repetition_penalty=1.5),
    SamplingKnobs(presence_penalty=0.5),
    SamplingKnobs(frequency_penalty="0.25"),
    SamplingKnobs(min_tokens=2),
    SamplingKnobs(0.7, top_k=2, repetition_penalty=0.8, frequency_penalty=-0.5, min_tokens=1),
]


@pytest.mark.parametrize("knobs", HISTORIES)
@pytest.mark.parametrize("prompt", [(), (0, 2, 2)])
def test_with_knobs_that_look_back_a_table_is_followed_as_deep_as_was_asked(knobs, prompt):
    model, depth = get_pair("context").floats.target, 3
    table = compile_table(model, prompts=[prompt], knobs=knobs, end_tokens=(1,), depth=depth)
    for output in product(range(4), repeat=depth + 1):
        state = table.starts[prompt]
        for length in range(depth + 1):
            history = History(prompt, output[:length], end_tokens=(1,))
            assert table.rows[state].tolist() == next_rows(model, history, knobs=knobs)[0].tolist()
            state = table.successors[state, output[length]]
        if knobs.frequency_penalty:
            assert state == UNKNOWN


def test_a_table_needs_a_depth_where_tokens_are_counted_and_nowhere_else():
    model = get_pair("context").floats.target
    for knobs in (HISTORIES[0], HISTORIES[1], HISTORIES[3]):
        assert (compile_table(model, knobs=knobs, end_tokens=(1,)).successors != UNKNOWN).all()
    with pytest.raises(TooManyStatesError):
        compile_table(model, knobs=HISTORIES[2], max_states=500)


def test_exact_rows_stay_exact_and_float_rows_float():
    assert compile_table(get_pair("context").target).rows.dtype == object
    assert compile_table(get_pair("context").floats.target).rows.dtype == np.float64


def test_too_many_states_are_refused():
    model = get_pair("context").target
    assert len(compile_table(model, max_states=5).rows) == 5
    with pytest.raises(TooManyStatesError, match="more than 4 states follow the prompts") as caught:
        compile_table(model, max_states=4)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"depth": -1}, "depth: -1 is negative"),
        ({"depth": 1.5}, "depth: 1.5 is not an integer"),
        ({"end_tokens": (9,)}, "end_tokens[0]: token 9 is out of range"),
        ({"end_tokens": None}, "end_tokens: None; expected a sequence of token ids"),
    ],
)
def test_a_table_that_cannot_be_made_is_refused(asked, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        compile_table(get_pair("context").target, **asked)
