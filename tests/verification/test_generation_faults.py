"""Wrong histories and wrong ends: each is caught by a named property; how far each is off, exactly.

Verdicts are those of the suite, at a false-alarm rate of 1e-6 a run; a cell of the smallest budget finds a joint total
variation of 0.05 with probability 0.99. Nothing here is random otherwise: the seed of the suite is fixed.
"""

from math import log

import pytest

from refspec import SamplingKnobs, autoregressive, exact_law
from toy_models import TabularModel
from toy_models.pairs import Pair
from verification.adapters.protocol import Implementation
from verification.faults import history, knobs, stopping
from verification.faults.generation import Asked, Engine, Place
from verification.finding import BROKEN, HOLDS
from verification.runner import BUDGETS, Selection, check

HISTORY = {  # the wrong history, the pair and the property that shows it
    history.FrozenAtLoopStart: ("random-logits", "knobs-before-rule"),
    history.FrozenEverywhere: ("random-logits", "knobs-before-rule"),
    history.FrozenForTheTarget: ("random-logits", "knobs-before-rule"),
    history.FrozenAtBonus: ("context", "complete-output"),
    history.OneTokenLate: ("context", "greedy"),
    history.RefusedRemembered: ("context", "greedy"),
    history.PlaceholdersCounted: ("context", "greedy"),
    history.LoopsForgotten: ("context", "greedy"),
    history.PromptForgotten: ("context", "complete-output"),
    history.PromptCounted: ("context", "greedy"),
    history.CountedOnce: ("context", "complete-output"),
    history.BonusAlone: ("random-logits", "support"),
}
TURNED = {  # the wrong knob, the pair and the property that shows it
    knobs.GreedyAsTheModelSays: ("random-logits", "greedy"),
    knobs.NegativePenaltiesIgnored: ("random-logits", "knobs-before-rule"),
    knobs.PresenceOrFrequency: ("random-logits", "knobs-before-rule"),
    knobs.FirstBanAlone: ("random-logits", "support"),
    knobs.FirstEndHeldBack: ("context", "support"),
    knobs.BiasAfterTemperature: ("random-logits", "knobs-before-rule"),
    knobs.TruncationOfTheModel: ("random-logits", "knobs-before-rule"),
}
STOPPING = {  # the wrong end, and the pair that shows it
    stopping.PastTheEnd: "context",
    stopping.WithinALoop: "context",
    stopping.OneTokenLate: "context",
    stopping.StopNotReturned: "context",
    stopping.CapOvershot: "context",
    stopping.FewerThanAsked: "context",
    stopping.FirstEndTokenAlone: "context",
    stopping.PromptCompletesAStop: "context",
    stopping.BeforeTheMinimum: "context",
    stopping.PromptEndsTheOutput: "context",
    stopping.NothingToFallBackOn: "second-order",
}


def verdict(made, *properties, pair="context"):
    selection = Selection(properties, (pair,), (2,))
    return check(Implementation(made(), made.__name__), budget=BUDGETS["smoke"], selection=selection)


@pytest.mark.parametrize("made", HISTORY, ids=lambda made: made.__name__)
def test_a_wrong_history_is_caught(made):
    pair, name = HISTORY[made]
    result = verdict(made, name, pair=pair)
    assert {f.property for f in result.findings if f.status == BROKEN} == {name}


@pytest.mark.parametrize("made", TURNED, ids=lambda made: made.__name__)
def test_a_wrong_knob_is_caught(made):
    pair, name = TURNED[made]
    result = verdict(made, name, pair=pair)
    assert {f.property for f in result.findings if f.status == BROKEN} == {name}


@pytest.mark.parametrize("made", STOPPING, ids=lambda made: made.__name__)
def test_a_wrong_end_is_caught(made):
    assert verdict(made, "complete-output", pair=STOPPING[made]).verdict == BROKEN


def test_every_engine_is_tested():
    def made_in(module):
        return {made for made in vars(module).values() if isinstance(made, type) and made.__module__ == module.__name__}

    assert made_in(history) == {*HISTORY, history.DraftUnpenalised}
    assert made_in(knobs) == set(TURNED)
    assert made_in(stopping) == set(STOPPING)


@pytest.mark.parametrize("made", [Engine, history.DraftUnpenalised])
def test_an_engine_that_is_right_holds(made):
    """Also where the draft sees no penalty: that changes acceptance and nothing else."""
    assert verdict(made, "complete-output", "greedy", "support").verdict == HOLDS


# Exact laws. Two tokens; a token that is there counts half: exp(-log 2).

HALF = SamplingKnobs(presence_penalty=log(2))
HALVED_EACH_TIME = SamplingKnobs(frequency_penalty=log(2))


def table(*row):
    return TabularModel({(): row, (0,): row, (1,): row}, exact=False)


def distance(law, expected):
    return sum(abs(law.get(tokens, 0) - expected.get(tokens, 0)) for tokens in law.keys() | expected.keys()) / 2


def output_law(made, knobs, lookahead, length, *, target=(6, 4), draft=(5, 5), stop=()):
    """The exact law of what an engine of that kind writes, and of what the target alone writes."""
    pair = Pair("two tokens", "", table(*target), table(*draft))
    asked = Asked(pair, (), lookahead, knobs, length, stop, {})
    law = exact_law(lambda chance: made().output(asked, chance))
    alone = {"target": pair.target, "prompt": (), "max_new_tokens": length, "knobs": knobs, "stop_sequences": stop}
    return law, exact_law(lambda chance: autoregressive.generate(**alone, chance=chance))


@pytest.mark.parametrize("made", [Engine, history.DraftUnpenalised])
@pytest.mark.parametrize("knobs", [HALF, HALVED_EACH_TIME])
@pytest.mark.parametrize("stop", [(), ((1,), (0, 0))])
def test_the_right_engine_has_the_law_of_the_target(made, knobs, stop):
    law, expected = output_law(made, knobs, 2, 4, stop=stop)
    assert distance(law, expected) == pytest.approx(0, abs=1e-12)


def test_a_penalty_frozen_at_the_start_of_the_loop():
    """sgl-project/sglang #28180: the first two tokens see no penalty, the bonus does."""

    class DraftAsItIs(history.FrozenAtLoopStart):
        def knobs(self, asked, place):
            return SamplingKnobs() if place.model == "draft" else asked.knobs

    law, expected = output_law(DraftAsItIs, HALF, 2, 3)
    both = [sum(mass for tokens, mass in found.items() if tokens[:2] == (0, 0)) for found in (expected, law)]
    assert both[0] == pytest.approx(9 / 35)
    assert both[1] == pytest.approx(12 / 35)
    assert distance(law, expected) == pytest.approx(51 / 350)


@pytest.mark.parametrize(
    ("made", "place", "knobs", "expected", "found"),
    [
        # ml-explore/mlx-lm #1175: draft 1 was refused, 0 came instead.
        (history.RefusedRemembered, Place("target", (0,), (1,), 2), HALF, [1 / 3, 2 / 3], [1 / 2, 1 / 2]),
        # vllm-project/vllm PR#30122: the run (0, 0) is not in the history.
        (
            history.FrozenEverywhere,
            Place("target", (), (), 2, (0, 0)),
            HALVED_EACH_TIME,
            [1 / 5, 4 / 5],
            [1 / 2, 1 / 2],
        ),
    ],
)
def test_the_row_that_a_wrong_history_makes(made, place, knobs, expected, found):
    pair = Pair("two tokens", "", table(1, 1), table(1, 1))
    assert Engine().row(Asked(pair, (), 2, knobs, 4, (), {}), place) == pytest.approx(expected)
    assert made().row(Asked(pair, (), 2, knobs, 4, (), {}), place) == pytest.approx(found)


def test_every_wrong_history_is_another_law():
    """On three tokens in loops of two drafts, with a prompt; the least wrong of them is off by more than 0.01."""
    knobs = SamplingKnobs(repetition_penalty=1.5, frequency_penalty=1.2, logit_bias={0: 1})
    pair = Pair("two tokens", "", table(6, 4), table(5, 5))
    alone = {"target": pair.target, "prompt": (0, 0), "max_new_tokens": 4, "knobs": knobs}
    expected = exact_law(lambda chance: autoregressive.generate(**alone, chance=chance))
    for made in HISTORY:
        asked = Asked(pair, (0, 0), 2, knobs, 4, (), {})
        law = exact_law(lambda chance, made=made, asked=asked: made().output(asked, chance))
        assert distance(law, expected) > 0.01, made
