"""When an output is over; that what is returned, counted and kept as history agree."""

import re
from itertools import accumulate, product

import pytest

from refspec import autoregressive
from refspec.block import count
from refspec.chance import ReplayedChance
from refspec.knobs import SamplingKnobs
from refspec.law import exact_law
from refspec.speculative import generate, generate_blocks
from refspec.stopping import Stopping, as_stopping
from toy_models import TabularModel
from toy_models.pairs import get_pair


def stopping(*sequences, min_tokens=0, max_new_tokens=9):
    return Stopping(sequences, min_tokens, max_new_tokens)


# Cases: output so far, the run that follows, what ends it, what is taken of the run.


@pytest.mark.parametrize(
    ("output", "run", "stops", "taken"),
    [
        ((), (0, 2, 1, 1), [(2,)], (0, 2)),  # huggingface/transformers #47912: an end token inside an accepted run
        ((0, 1), (2, 3), [(1, 2)], (2,)),  # PaddlePaddle/FastDeploy PR#7121: begun in the loop before
        ((), (0, 1, 1, 2), [(1, 1)], (0, 1, 1)),  # vllm-project/vllm PR#47616: the ids end where the text ends
        ((), (1, 1, 1), [(1, 1)], (1, 1)),  # one that overlaps itself
        ((0,), (0, 1, 0), [(0, 0, 1), (0, 1)], (0, 1)),  # two are completed by one token
        ((), (3, 2, 1), [(1,), (2,), (3,)], (3,)),  # of several end tokens the first to come
        ((), (0, 3, 2), [(2,), (0, 3)], (0, 3)),  # whichever comes first
        ((1,), (1, 2), [(1, 2, 3)], (1, 2)),  # begun, not completed
        ((1, 2), (4, 3), [(1, 2, 3)], (4, 3)),  # broken off
        ((), (1, 2), [], (1, 2)),
        ((5,), (), [(5,)], ()),
    ],
)
def test_a_run_is_cut_where_the_output_ends(output, run, stops, taken):
    assert stopping(*stops).cut(output, run) == taken


@pytest.mark.parametrize(("least", "taken"), [(0, (1,)), (1, (1, 0, 1)), (2, (1, 0, 1)), (3, (1, 0, 1, 1))])
def test_no_end_is_an_end_within_the_first_min_tokens(least, taken):
    assert stopping((1,), min_tokens=least).cut((), (1, 0, 1, 1)) == taken


def test_an_output_is_done_at_a_stop_or_at_the_cap():
    ends = stopping((1, 2), max_new_tokens=3)
    assert [ends.done(output) for output in ((), (1,), (1, 2), (2, 1), (0, 1, 2), (0, 0, 0))] == [
        False,
        False,
        True,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("sequences", [((0, 1), (1, 1, 0)), ((1, 1),), ((0,), (1, 0, 1)), ()])
@pytest.mark.parametrize("least", [0, 3])
def test_outputs_that_are_read_alike_end_alike(sequences, least):
    """Over every text of up to five tokens, and every one of up to three that follows."""
    ends = stopping(*sequences, min_tokens=least)
    seen = {}
    followers = [run for length in range(4) for run in product(range(2), repeat=length)]
    for output in (text for length in range(6) for text in product(range(2), repeat=length)):
        if any(map(ends.stops, accumulate(map(tuple, zip(output, strict=True))))):
            continue
        cuts = tuple(ends.cut(output, run) for run in followers)
        assert seen.setdefault(ends.reads(output), cuts) == cuts
    assert len(seen) < 2**5


# A request.


def request(**change):
    asked = {"end_tokens": (), "stop_sequences": (), "min_tokens": 0, "max_new_tokens": 4, "vocabulary": 3}
    return as_stopping(**asked | change)


def test_end_tokens_are_stop_sequences_of_one_token_and_none_is_kept_twice():
    made = request(end_tokens=[2, 0], stop_sequences=[[0], [1, 2], (1, 2)])
    assert made == Stopping(((2,), (0,), (1, 2)), 0, 4)
    assert made.end_tokens == (2, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end_tokens": (3,)}, "end_tokens"),
        ({"stop_sequences": [(0, 1), (0, -1)]}, "stop_sequences[1]"),
        ({"stop_sequences": [(0, 1), ()]}, "stop_sequences[1]: empty; expected one token id or more"),
        ({"stop_sequences": 2}, "stop_sequences: 2; expected sequences of token ids"),
        ({"stop_sequences": (1, 2)}, "stop_sequences[0]"),
        ({"stop_sequences": ["ab"]}, "stop_sequences[0]"),
        *(({name: wrong}, name) for name in ("max_new_tokens", "min_tokens") for wrong in (-1, 2.5, None, True, "2")),
    ],
)
def test_a_request_that_cannot_be_followed_is_refused(change, message):
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}"):
        request(**change)


# Generation. `written` is a pair of models that write one text and nothing else, so that every draft is accepted.


def written(text, vocabulary=10):
    """A model that writes a text for certain, each token by the one before; a text without repeats."""
    after = dict(zip(((), *((token,) for token in text)), text, strict=False))
    rows = {context: [int(token == after.get(context, 0)) for token in range(vocabulary)] for context in CONTEXTS}
    return TabularModel(rows)


CONTEXTS = [(), *((token,) for token in range(10))]


def blocks_of(text, **more):
    model = written(text)
    asked = {"target": model, "draft": model, "prompt": (), "max_new_tokens": 8, **more}
    (blocks,) = exact_law(lambda chance: generate_blocks(**asked, chance=chance))
    return blocks


def test_counters_count_what_was_returned():
    """vllm-project/vllm #56101: drafts 5 6 E 8, all accepted, then 9; three are committed, not five."""
    (block,) = blocks_of((5, 6, 2, 8, 9), lookahead=4, end_tokens=(2,))
    assert block.tokens == (5, 6, 2)
    assert (block.counters.accepted, block.counters.emitted, block.counters.drafted) == (4, 3, 4)


@pytest.mark.parametrize("lookahead", range(5))
@pytest.mark.parametrize("cap", range(1, 8))
@pytest.mark.parametrize("stop", [((5,),), ((4, 5),), ((3, 4, 5),), ((2,), (4, 5)), ((9, 9),), ((1, 2), (2, 3))])
def test_returned_counted_and_kept_agree_whatever_the_loops(lookahead, cap, stop):
    """The text 1 2 3 4 5 6 7 8 in loops of any size: a stop across loops, and a cap and a stop in the same run."""
    text = (1, 2, 3, 4, 5, 6, 7, 8)
    ends = [end for end in range(1, 9) if any(text[:end][-len(s) :] == s for s in stop)]
    expected = text[: min([cap, *ends])]
    blocks = blocks_of(text, lookahead=lookahead, max_new_tokens=cap, stop_sequences=stop)
    assert sum((block.tokens for block in blocks), ()) == expected
    counters = count(blocks)
    assert counters.emitted == len(expected)
    assert counters.target_calls == len(blocks)
    model = written(text)
    (output,) = exact_law(
        lambda chance: generate(
            target=model,
            draft=model,
            prompt=(),
            lookahead=lookahead,
            max_new_tokens=cap,
            stop_sequences=stop,
            chance=chance,
        )
    )
    assert output == expected


def test_a_cap_of_one_is_one_token():
    """ohdearquant/lattice PR#245: cap 1, four drafts that would all be accepted."""
    assert [block.tokens for block in blocks_of((1, 2, 3, 4, 5), lookahead=4, max_new_tokens=1)] == [(1,)]


@pytest.mark.parametrize("prompt", [(0, 2), (2,)])
def test_the_prompt_does_not_begin_a_stop_sequence(prompt):
    pair = get_pair("context")
    asked = {"prompt": prompt, "max_new_tokens": 2, "stop_sequences": [(2, 0)]}
    law = exact_law(lambda chance: generate(target=pair.target, draft=pair.draft, lookahead=1, chance=chance, **asked))
    assert {tokens[:1] for tokens in law} == {(token,) for token in range(4)}
    assert {len(tokens) for tokens in law} == {2}


@pytest.mark.parametrize("stops", [[(0, 2), (3, 3)], [(1, 0, 2)], [(1,), (0, 3)], [(0, 0)], [(0,), (1,), (3,)]])
@pytest.mark.parametrize("lookahead", [1, 2, 3])
@pytest.mark.parametrize("least", [0, 2])
def test_the_law_with_stops_is_the_law_of_the_target_alone(stops, lookahead, least):
    pair, knobs = get_pair("context"), SamplingKnobs(min_tokens=least)
    asked = {"target": pair.target, "prompt": (2,), "max_new_tokens": 4, "stop_sequences": stops, "knobs": knobs}
    ours = exact_law(lambda chance: generate(draft=pair.draft, lookahead=lookahead, chance=chance, **asked))
    assert ours == exact_law(lambda chance: autoregressive.generate(chance=chance, **asked))
    assert sum(ours.values()) == 1


def test_a_minimum_that_bans_every_token_is_refused():
    pair = get_pair("context")
    asked = {"target": pair.target, "draft": pair.draft, "prompt": (), "lookahead": 1, "max_new_tokens": 2}
    with pytest.raises(ValueError, match="without the banned tokens"):
        generate(end_tokens=range(4), knobs=SamplingKnobs(min_tokens=1), chance=ReplayedChance(draft_u=0), **asked)


def test_a_replayed_stop_across_loops_reads_no_further_loop():
    """PaddlePaddle/FastDeploy PR#7121 with the loops of one draft: 0 1 | 2; the second loop's bonus is cut off."""
    model = written((0, 1, 2, 3))
    loops = [{"draft_u": 0, "accept_u": 0, "final_u": 0}] * 2
    chance = ReplayedChance.over(loops)
    asked = {"target": model, "draft": model, "prompt": (), "lookahead": 1, "max_new_tokens": 8}
    assert generate(stop_sequences=[(1, 2)], chance=chance, **asked) == (0, 1, 2)
