"""What the knobs of a position may look at: the history it has, as a value that nothing writes to."""

import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from refspec.chance import ReplayedChance
from refspec.history import NO_HISTORY, History, as_history
from refspec.knobs import SamplingKnobs
from refspec.model import lifted, next_rows
from refspec.speculative import propose, speculative_step
from toy_models import TabularModel

HALF = SamplingKnobs(presence_penalty=float(np.log(2)))  # a token of the output weighs half
EVEN = TabularModel({(): (1, 1), (0,): (1, 1), (1,): (1, 1)}, exact=False)


def test_a_model_reads_prompt_and_output():
    assert History((3, 1), (2,)).tokens == (3, 1, 2)
    assert NO_HISTORY.tokens == ()


def test_more_output_makes_another_history():
    before = History((3,), (1,), end_tokens=(0,))
    assert before.then((2, 2)) == History((3,), (1, 2, 2), (0,))
    assert before == History((3,), (1,), (0,))
    with pytest.raises(FrozenInstanceError):
        before.output = ()


def test_a_bare_prefix_is_all_prompt_and_a_history_stays_what_it_is():
    assert as_history([1, 0], vocabulary=2) == History(prompt=(1, 0))
    assert as_history(History((1,), (np.intp(0),)), vocabulary=2) == History((1,), (0,))


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ([0, 2], "prefix"),
        (History(prompt=(2,)), "prompt"),
        (History(output=(0, -1)), "output"),
        (History(end_tokens=(7,)), "end_tokens"),
    ],
)
def test_a_token_that_the_vocabulary_has_not_is_refused_by_its_place(prefix, message):
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}"):
        as_history(prefix, vocabulary=2)


def test_a_history_may_be_made_of_any_sequences():
    made = History([0], np.array([1, 1]), {2})
    assert made == History((0,), (1, 1), (2,))
    assert made.tokens == (0, 1, 1)


def test_knobs_take_no_bare_sequence_for_a_history():
    with pytest.raises(TypeError, match=re.escape("history: (0, 1); expected a History")):
        HALF.row([1.0, 1.0], kind="weights", history=(0, 1))


def test_each_row_of_one_call_sees_the_drafts_before_it():
    rows = next_rows(EVEN, History(prompt=(0,), output=(1,)), (0, 0), knobs=HALF)
    np.testing.assert_allclose(rows, [[2 / 3, 1 / 3], [1 / 2, 1 / 2], [1 / 2, 1 / 2]], rtol=1e-15)


def test_a_penalty_on_occurrences_grows_inside_a_draft():
    """vllm-project/vllm PR#30122: after the run (0, 0) token 0 weighs a quarter."""
    knobs = SamplingKnobs(frequency_penalty=float(np.log(2)))
    rows = next_rows(EVEN, History(), (0, 0), knobs=knobs)
    np.testing.assert_allclose(rows[:, 0], [1 / 2, 1 / 3, 1 / 5], rtol=1e-15)


def test_a_draft_is_drawn_under_its_own_history():
    tokens, rows = propose(draft=EVEN, prefix=(1,), lookahead=2, chance=ReplayedChance(draft_u=[0, 0]), knobs=HALF)
    assert tokens == (0, 0)
    np.testing.assert_allclose(rows, [[1 / 2, 1 / 2], [1 / 3, 2 / 3]], rtol=1e-15)


def test_a_rejected_draft_leaves_no_trace():
    """ml-explore/mlx-lm #1175: draft 1 is rejected, 0 comes instead; the next row is (1/3, 2/3), not (1/2, 1/2)."""
    target = TabularModel({(): (1, 0), (0,): (1, 1), (1,): (1, 1)}, exact=False)
    start = History()
    chance = ReplayedChance(draft_u=[0.9], accept_u=0, final_u=0)
    block = speculative_step(target=target, draft=EVEN, prefix=start, lookahead=1, chance=chance, knobs=HALF)
    assert (block.tokens, block.accepted, start) == ((0,), 0, History())
    np.testing.assert_allclose(next_rows(target, start.then(block.tokens), knobs=HALF), [[1 / 3, 2 / 3]], rtol=1e-15)


@pytest.mark.parametrize("prompt", [(), (1,), (0, 0)])
def test_a_lifted_model_knows_where_the_output_begins(prompt):
    exact = lifted(EVEN, HALF, prompt_length=len(prompt))
    rows = next_rows(EVEN, History(prompt), (0, 1), knobs=HALF)
    np.testing.assert_allclose(next_rows(exact, prompt, (0, 1)).astype(float), rows, rtol=1e-15)


@pytest.mark.parametrize(
    ("knobs", "alike", "different"),
    [
        # knobs, two histories that are read alike, two that are not
        (SamplingKnobs(), ((0, 1), (1, 1)), None),
        (SamplingKnobs(presence_penalty=1), ((0, 1), (1, 0)), ((0, 1), (1, 1))),
        (SamplingKnobs(presence_penalty=1), ((0, 0, 1), (0, 1)), ((0,), ())),
        (SamplingKnobs(frequency_penalty=1), ((0, 1), (1, 0)), ((0, 0, 1), (0, 1))),
        (SamplingKnobs(repetition_penalty=2), ((0, 1), (1, 0, 0)), ((0, 1), (1, 1))),
        (SamplingKnobs(min_tokens=2), ((0, 1), (1, 0, 0)), ((0,), (0, 0))),
    ],
)
def test_knobs_tell_apart_exactly_the_histories_that_they_read(knobs, alike, different):
    first, second = (knobs.reads(History(output=output)) for output in alike)
    assert first == second
    if different:
        first, second = (knobs.reads(History(output=output)) for output in different)
        assert first != second
