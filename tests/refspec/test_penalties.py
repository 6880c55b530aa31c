"""What changes logits before temperature, each by hand; what is refused."""

import re
from fractions import Fraction

import numpy as np
import pytest

from refspec import penalties
from refspec.history import History
from refspec.knobs import SamplingKnobs

INF = float("inf")
LOGITS = np.array([2.0, 1.0, -1.0])


def softmax(logits):
    weights = np.exp(np.array(logits) - max(logits))
    return weights / weights.sum()


def test_a_repetition_penalty_divides_what_is_positive_and_multiplies_what_is_not():
    """sgl-project/sglang PR#21258: logits (2, 1, -1), penalty 2, tokens 0 and 2 seen."""
    assert penalties.repetition(LOGITS, (0, 2), 2).tolist() == [1, 1, -2]


def test_a_token_seen_twice_is_penalised_once():
    assert penalties.repetition(LOGITS, (0, 0, 2, 0), 2).tolist() == [1, 1, -2]


def test_a_repetition_penalty_below_one_favours_what_was_seen():
    assert penalties.repetition(LOGITS, (0, 2), 0.5).tolist() == [4, 1, -0.5]


def test_a_logit_of_zero_and_a_banned_token_stay_as_they_are():
    assert penalties.repetition(np.array([0.0, -INF, 1.0]), (0, 1), 3).tolist() == [0, -INF, 1]


def test_presence_counts_once_and_frequency_each_time():
    assert penalties.presence_and_frequency(LOGITS, (0, 2, 0, 0), 0.5, 0).tolist() == [1.5, 1, -1.5]
    assert penalties.presence_and_frequency(LOGITS, (0, 2, 0, 0), 0, 0.5).tolist() == [0.5, 1, -1.5]
    assert penalties.presence_and_frequency(LOGITS, (0, 2, 0, 0), 0.5, 0.5).tolist() == [0, 1, -2]


def test_a_bias_is_added_and_a_ban_takes_a_token_away():
    assert penalties.biased(LOGITS, ((0, -1), (2, 3.5))).tolist() == [1, 1, 2.5]
    assert penalties.ban(LOGITS, (1,), kind="logits").tolist() == [2, -INF, -1]
    assert penalties.ban(np.array([2.0, 1.0]), (0,), kind="weights").tolist() == [0, 1]


def test_weights_have_the_logits_of_their_probabilities():
    """A repetition penalty on them is a power: 1/2 ** 2 beside 1/4 and 1/4."""
    row = SamplingKnobs(repetition_penalty=2).row([2.0, 1.0, 1.0], kind="weights", history=History(prompt=(0,)))
    np.testing.assert_allclose(row, [1 / 3, 1 / 3, 1 / 3], rtol=1e-15)


SEEN = History(prompt=(0,), output=(2, 2, 1), end_tokens=(1,))
BY_HAND = [
    # knobs, the logits (2, 1, -1) after the history: prompt 0, output 2 2 1, of which 1 would end it
    ({"repetition_penalty": 2}, [1, 0.5, -2]),
    ({"presence_penalty": 0.5}, [2, 0.5, -1.5]),
    ({"frequency_penalty": 0.5}, [2, 0.5, -2]),
    ({"frequency_penalty": -0.5}, [2, 1.5, 0]),
    ({"presence_penalty": 0.25, "frequency_penalty": 0.5}, [2, 0.25, -2.25]),
    ({"min_tokens": 4}, [2, -INF, -1]),
    ({"min_tokens": 3}, [2, 1, -1]),
    ({"logit_bias": {0: -3, 2: 1}}, [-1, 1, 0]),
    ({"banned_tokens": {2}}, [2, 1, -INF]),
    # in this order: bias, repetition, presence and frequency, temperature
    ({"logit_bias": {0: -3}, "repetition_penalty": 2}, [-2, 0.5, -2]),
    ({"repetition_penalty": 2, "frequency_penalty": 1}, [1, -0.5, -4]),
    ({"presence_penalty": 1, "temperature": "0.5"}, [4, 0, -4]),
    ({"banned_tokens": [0], "logit_bias": {0: 9}}, [-INF, 1, -1]),
]


@pytest.mark.parametrize(("knobs", "logits"), BY_HAND)
def test_rows_by_hand(knobs, logits):
    row = SamplingKnobs(**knobs).row(LOGITS, kind="logits", history=SEEN)
    np.testing.assert_allclose(row, softmax(logits), rtol=1e-15)


def test_penalties_come_before_greedy_decoding_and_before_truncation():
    flat = [1.0, 0.9, 0.8]
    assert SamplingKnobs(presence_penalty=0.15, temperature=0).row(
        flat, kind="logits", history=History(output=(0,))
    ).tolist() == [0, 1, 0]
    survivors = SamplingKnobs(presence_penalty=0.5, top_k=2).row(flat, kind="logits", history=History(output=(0,)))
    assert np.flatnonzero(survivors).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "prompt_counts"), [("presence_penalty", False), ("frequency_penalty", False), ("repetition_penalty", True)]
)
def test_presence_and_frequency_look_at_the_output_and_repetition_at_the_prompt_too(name, prompt_counts):
    knobs = SamplingKnobs(**{name: 2})
    histories = History(), History(prompt=(0,)), History(output=(0,))
    none, prompt, output = (knobs.row(LOGITS, kind="logits", history=history)[0] for history in histories)
    assert output < none
    assert prompt == (output if prompt_counts else none)


def test_bans_are_exact_on_fractions_and_penalties_are_refused_there():
    weights = np.array([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], dtype=object)
    row = SamplingKnobs(banned_tokens=(0,)).row(weights, kind="weights")
    assert row.tolist() == [0, Fraction(2, 3), Fraction(1, 3)]
    assert [type(mass) for mass in row] == [Fraction] * 3
    for name in ("repetition_penalty", "presence_penalty", "frequency_penalty"):
        with pytest.raises(TypeError, match=rf"{name} 2 has no exact value on fractions; use refspec.model.lifted"):
            SamplingKnobs(**{name: 2}).row(weights, kind="weights")


def test_a_knob_is_the_same_however_its_tokens_are_written():
    assert SamplingKnobs(banned_tokens={3, 1}) == SamplingKnobs(banned_tokens=[1, 3, 3]) != SamplingKnobs()
    assert SamplingKnobs(logit_bias={3: 1, 0: 2}) == SamplingKnobs(logit_bias=((0, 2), (3, 1)))
    assert len({SamplingKnobs(logit_bias={0: 1}), SamplingKnobs(logit_bias=((0, 1),))}) == 1


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"repetition_penalty": 0}, "repetition_penalty: 0; expected a number above 0"),
        ({"repetition_penalty": -1.5}, "repetition_penalty: -1.5; expected a number above 0"),
        ({"repetition_penalty": INF}, "repetition_penalty: inf; expected a number above 0"),
        ({"repetition_penalty": None}, "repetition_penalty: None is not a number"),
        ({"presence_penalty": INF}, "presence_penalty: inf; expected a finite number"),
        ({"presence_penalty": float("nan")}, "presence_penalty: nan; expected a finite number"),
        ({"frequency_penalty": "often"}, "frequency_penalty: 'often' is not a number"),
        ({"logit_bias": {0: INF}}, "logit_bias of token 0: inf; expected a finite number"),
        ({"logit_bias": {-1: 1}}, "logit_bias"),
        ({"logit_bias": None}, "logit_bias: None; expected {token: what is added to its logit}"),
        ({"logit_bias": [1, 2]}, "logit_bias: [1, 2]; expected {token: what is added to its logit}"),
        ({"logit_bias": "ab"}, "logit_bias: 'ab'; expected {token: what is added to its logit}"),
        ({"logit_bias": [(1, 2), (1, 3)]}, "logit_bias: [(1, 2), (1, 3)]; expected"),
        ({"banned_tokens": None}, "banned_tokens: None; expected token ids"),
        ({"banned_tokens": 3}, "banned_tokens: 3; expected token ids"),
        ({"logit_bias": {0.5: 1}}, "logit_bias"),
        ({"banned_tokens": (-1,)}, "banned_tokens"),
        ({"banned_tokens": "12"}, "banned_tokens"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"min_tokens": 1.5}, "min_tokens"),
    ],
)
def test_bad_knobs_are_refused_by_name(knobs, message):
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}"):
        SamplingKnobs(**knobs)


@pytest.mark.parametrize(
    ("knobs", "history", "message"),
    [
        ({"banned_tokens": (0, 3)}, History(), "token 3 is out of range; expected 0 to 2"),
        ({"logit_bias": {4: 1}}, History(), "token 4 is out of range; expected 0 to 2"),
        ({"repetition_penalty": 2}, History(prompt=(-1,)), "token -1 is out of range; expected 0 to 2"),
        ({"frequency_penalty": 2}, History(output=(3,)), "token 3 is out of range; expected 0 to 2"),
        ({"banned_tokens": (0, 1, 2)}, History(), "logits without the banned tokens (0, 1, 2)"),
        ({"min_tokens": 1}, History(end_tokens=(0, 1, 2)), "logits without the banned tokens (0, 1, 2)"),
    ],
)
def test_what_the_vocabulary_cannot_follow_is_refused(knobs, history, message):
    """A placeholder of -1 in a history would silently be the last token: vllm-project/vllm PR#30122."""
    with pytest.raises(ValueError, match=re.escape(message)):
        SamplingKnobs(**knobs).row(LOGITS, kind="logits", history=history)
    with pytest.raises(ValueError, match=re.escape(message.removeprefix("logits "))):
        SamplingKnobs(**knobs).row(np.exp(LOGITS), kind="weights", history=history)


@pytest.mark.parametrize("knobs", [knobs for knobs, _ in BY_HAND])
def test_no_penalty_writes_to_what_it_was_given(knobs):
    logits = LOGITS.copy()
    logits.flags.writeable = False
    made = [SamplingKnobs(**knobs).row(logits, kind="logits", history=SEEN).tolist() for _ in range(2)]
    assert made[0] == made[1]
