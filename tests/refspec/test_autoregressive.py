"""The baseline: its law is the chain rule, and it stops where it should."""

import re
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from refspec.autoregressive import generate
from refspec.chance import ReplayedChance, SampledChance
from refspec.knobs import SamplingKnobs
from refspec.law import exact_law
from refspec.model import CountedModel
from toy_models.pairs import get_pair

MODEL = get_pair("second-order").target


@pytest.mark.parametrize("prompt", [(), (1,), (0, 1)])
def test_the_law_is_the_product_of_the_rows(prompt):
    law = exact_law(lambda chance: generate(target=MODEL, prompt=prompt, max_new_tokens=3, chance=chance))
    expected = {}
    for tokens in product(range(2), repeat=3):
        rows = MODEL.score(prompt, tokens)
        expected[tokens] = prod((rows[i][token] for i, token in enumerate(tokens)), start=Fraction(1))
    assert law == expected


def test_an_end_token_ends_and_is_returned():
    law = exact_law(lambda chance: generate(target=MODEL, prompt=(1,), max_new_tokens=3, end_tokens={1}, chance=chance))
    assert set(law) == {(1,), (0, 1), (0, 0, 1), (0, 0, 0)}
    assert law[1,] == MODEL.score((1,), ())[0][1]


def test_one_uniform_and_one_call_for_each_token():
    model = CountedModel(get_pair("context").target)
    chance = ReplayedChance.over([{"token_u": 0.5}, {"token_u": [0.9, 0.1]}, {"token_u": 0.2}])
    tokens = generate(target=model, prompt=(0,), max_new_tokens=3, chance=chance)
    assert tokens == (1, 3, 0)  # after 0: (.4, .3, ...); after 1: (.1, .45, .15, .3); after 3: (.3, ...)
    assert model.calls == 3


def test_nothing_is_called_when_no_token_is_wanted():
    model = CountedModel(MODEL)
    assert generate(target=model, prompt=(1,), max_new_tokens=0, chance=ReplayedChance()) == ()
    assert model.calls == 0


def test_knobs_are_applied():
    law = exact_law(
        lambda chance: generate(
            target=get_pair("context").target,
            prompt=(),
            max_new_tokens=2,
            knobs=SamplingKnobs(temperature=0),
            chance=chance,
        )
    )
    assert law == {(0, 0): 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": (2,)}, "prompt[0]: token 2 is out of range"),
        ({"end_tokens": (-1,)}, "end_tokens[0]: token -1 is out of range"),
        ({"max_new_tokens": -2}, "max_new_tokens: -2 is negative"),
        ({"max_new_tokens": 1.5}, "max_new_tokens: 1.5 is not an integer"),
        ({"chance": ReplayedChance(token_u=0.5)}, "loop 1 asks for token_u; uniforms were given for 1 loops"),
        ({"chance": ReplayedChance(final_u=0.5)}, "loop 0 asks for token_u[0]; 0 were given"),
    ],
)
def test_a_request_that_is_not_sound_is_refused(change, message):
    request = {"prompt": (), "max_new_tokens": 3, "chance": SampledChance(np.random.default_rng(0))}
    with pytest.raises(ValueError, match=re.escape(message)):
        generate(target=MODEL, **{**request, **change})
