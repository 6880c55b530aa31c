"""The draft, the loop and the generation: golden vectors, the theorem, stops, counters and refusals."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec import autoregressive
from refspec.block import Block, Counters, count
from refspec.chance import ReplayedChance, SampledChance
from refspec.knobs import SamplingKnobs
from refspec.law import exact_law
from refspec.model import CountedModel, lifted
from refspec.speculative import generate, generate_blocks, propose, speculative_step, verify_draft
from toy_models.pairs import get_pair
from toy_models.random_logits import NearbyModel, RandomLogitModel
from toy_models.tabular import TabularModel

NAN = float("nan")
LAST = float(np.nextafter(1.0, 0.0))  # the largest uniform
PLAIN = SamplingKnobs()
COLD = SamplingKnobs(temperature=0.7)


class Unshared(CountedModel):
    """A model that calls no two prefixes alike."""

    def state_key(self, tokens):
        return tokens


@st.composite
def table(draw, vocabulary):
    """A rational table of order 1, zeros among its weights."""
    weights = st.lists(st.integers(0, 5), min_size=vocabulary, max_size=vocabulary).filter(any)
    contexts = [(), *((token,) for token in range(vocabulary))]
    return TabularModel({context: draw(weights) for context in contexts})


two_tables = st.integers(1, 3).flatmap(lambda vocabulary: st.tuples(table(vocabulary), table(vocabulary)))
exact_knobs = st.sampled_from(
    [
        PLAIN,
        SamplingKnobs(temperature=0),
        SamplingKnobs(temperature="1/2"),
        SamplingKnobs(top_k=2),
        SamplingKnobs(top_p="0.8"),
        SamplingKnobs(min_p="0.3"),
        SamplingKnobs(temperature="1/2", top_k=2, top_p="0.9", min_p="0.1"),
    ]
)


def two_laws(target, draft, *, lookahead, draft_knobs=None, **shared):
    """The law of the speculative sampler, and of the baseline."""
    ours = exact_law(
        lambda chance: generate(
            target=target, draft=draft, lookahead=lookahead, draft_knobs=draft_knobs, chance=chance, **shared
        )
    )
    return ours, exact_law(lambda chance: autoregressive.generate(target=target, chance=chance, **shared))


def by_count(law, attribute=lambda block: len(block.tokens)):
    counts = {}
    for block, mass in law.items():
        counts[attribute(block)] = counts.get(attribute(block), 0) + mass
    return counts


def step_law(name, lookahead, **knobs):
    pair = get_pair(name)
    return exact_law(
        lambda chance: speculative_step(
            target=pair.target, draft=pair.draft, prefix=(), lookahead=lookahead, chance=chance, **knobs
        )
    )


# The rule.

CONTEXT_VECTORS = [
    # draft, accept_u, final_u, tokens: the rows are those of the pair "context" after token 0
    ((2, 0), (0.9, 0.1), 0.6, (0,)),
    ((2, 0), (0.6, 0.1), 0.8, (1,)),
    ((0, 1), (0.95, 0.99), 0.5, (0, 1, 1)),
    ((0, 1), (0.95, 0.99), 0.85, (0, 1, 3)),
    ((3, 3), (0.2, 0.8), 0.7, (3, 1)),
    ((2, 1), (0.5, 0.2), 0.5, (2, 2)),
    ((1, 3), (0.3, 0.999), 0.62, (1, 3, 2)),
    ((3, 0), (0.9, 0.5), 0.1, (0,)),
    ((2,), (0.8,), 0.74, (0,)),
]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("draft_tokens", "accept_u", "final_u", "tokens"), CONTEXT_VECTORS)
def test_golden_vectors(draft_tokens, accept_u, final_u, tokens, exact):
    pair = get_pair("context") if exact else get_pair("context").floats
    block = verify_draft(
        target_rows=pair.target.score((0,), draft_tokens),
        draft_rows=pair.draft.score((0,), draft_tokens[:-1]),
        draft_tokens=draft_tokens,
        chance=ReplayedChance(accept_u=accept_u, final_u=final_u),
    )
    assert block.tokens == tokens
    assert block.drafted == len(draft_tokens)
    assert block.accepted == len(tokens) - 1
    assert block.verified == min(len(tokens), len(draft_tokens))


@pytest.mark.parametrize("number", [float, Fraction])
@pytest.mark.parametrize(
    ("target_row", "draft_row", "accept_u", "final_u", "tokens"),
    [
        (("0", "0.6", "0.4"), ("0.5", "0.3", "0.2"), 0.0, 0.7, (2,)),
        (("0.25", "0.75"), ("0.5", "0.5"), 0.5, 0.2, (1,)),
    ],
)
def test_golden_vectors_at_the_edge(target_row, draft_row, accept_u, final_u, tokens, number):
    target_row, draft_row = ([number(mass) for mass in row] for row in (target_row, draft_row))
    block = verify_draft(
        target_rows=[target_row, target_row],
        draft_rows=[draft_row],
        draft_tokens=[0],
        chance=ReplayedChance(accept_u=accept_u, final_u=final_u),
    )
    assert block == Block(tokens, drafted=1, verified=1, accepted=0)


def test_a_rejected_draft_reads_no_more_uniforms():
    chance = ReplayedChance(accept_u=[0.9, 0.1], final_u=0.6)
    pair = get_pair("context")
    verify_draft(
        target_rows=pair.target.score((0,), (2, 0)),
        draft_rows=pair.draft.score((0,), (2,)),
        draft_tokens=(2, 0),
        chance=chance,
    )
    assert chance.used == {"accept_u": 1, "final_u": 1}


def test_without_a_draft_the_bonus_row_is_drawn_from():
    block = verify_draft(
        target_rows=[[0.25, 0.75]], draft_rows=[], draft_tokens=[], chance=ReplayedChance(final_u=0.25)
    )
    assert block == Block((1,), drafted=0, verified=0, accepted=0)


def test_a_rejection_without_a_residual_draws_from_the_target_row():
    third = 1 / 3
    block = verify_draft(
        target_rows=[[third] * 3] * 2,
        draft_rows=[[float(np.nextafter(third, 1)), third, third]],
        draft_tokens=[0],
        chance=ReplayedChance(accept_u=LAST, final_u=0.5),
    )
    assert block == Block((1,), drafted=1, verified=1, accepted=0)


SOUND = {"target_rows": [[0.5, 0.5], [0.5, 0.5]], "draft_rows": [[0.25, 0.75]], "draft_tokens": [0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target_rows": [[0.5, 0.5], [NAN, 0.5]]}, "target row 1, index 0: nan is not a probability"),
        ({"draft_rows": [[1.25, -0.25]]}, "draft row 0, index 1: -0.25 is not a probability"),
        ({"target_rows": [[0.5, 0.5], [0.5, 0.6]]}, "target row 1: sums to 1.1"),
        ({"draft_rows": [[0.25, 0.7]]}, "draft row 0: sums to 0.95"),
        ({"target_rows": [[0.5, 0.5], [1.0]]}, "target: rows differ in length"),
        ({"target_rows": [[Fraction(1, 2), 0.5]] * 2}, "target[0, 1]: 0.5 is no fraction"),
        ({"draft_rows": [[Fraction(1, 4), Fraction(3, 4)]]}, "target is float64, draft is object"),
        ({"draft_rows": [[0.25 + 0j, 0.75]]}, "draft: dtype complex128"),
        ({"draft_rows": [["a", "b"]]}, "draft: dtype <U1"),
        ({"target_rows": [[True, False]] * 2}, "target: dtype bool"),
        (
            {"target_rows": SOUND["draft_rows"], "draft_rows": SOUND["target_rows"]},
            "1 target rows and 2 draft rows for 1 drafted tokens; expected 2 and 1 (are the roles swapped?)",
        ),
        ({"draft_tokens": []}, "2 target rows and 1 draft rows for 0 drafted tokens"),
        ({"draft_tokens": [2]}, "draft_tokens[0]: token 2 is out of range; expected 0 to 1"),
        ({"draft_tokens": [-1]}, "draft_tokens[0]: token -1 is out of range; expected 0 to 1"),
        ({"draft_tokens": [0.0]}, "draft_tokens[0]: 0.0 is not a token id"),
        ({"draft_rows": [[0.0, 1.0]]}, "draft row 0, index 0: 0.0, but draft_tokens[0] is 0"),
        ({"draft_rows": [[0.25, 0.25, 0.5]]}, "vocabularies differ: target 2, draft 3"),
        ({"chance": ReplayedChance(final_u=0.5)}, "loop 0 asks for accept_u[0]; 0 were given"),
        ({"chance": ReplayedChance(accept_u=0.5)}, "loop 0 asks for final_u[0]; 0 were given"),
    ],
)
def test_a_draft_that_is_not_sound_is_refused(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        verify_draft(**{**SOUND, "chance": ReplayedChance(accept_u=0.5, final_u=0.5), **change})


@pytest.mark.parametrize("dtype", [np.float64, np.float32, object])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_not_written_to_and_their_layout_decides_nothing(dtype, order):
    pair = get_pair("context")
    arrays = [
        np.array(rows.astype(dtype), order=order)
        for rows in (pair.target.score((0,), (2, 1)), pair.draft.score((0,), (2,)))
    ]
    tokens = np.array([2, 1])
    before = [array.tolist() for array in (*arrays, tokens)]
    for array in (*arrays, tokens):
        array.flags.writeable = False
    block = verify_draft(
        target_rows=arrays[0],
        draft_rows=arrays[1],
        draft_tokens=tokens,
        chance=ReplayedChance(accept_u=(0.5, 0.2), final_u=0.5),
    )
    assert block == Block((2, 2), drafted=2, verified=2, accepted=1)
    assert [array.tolist() for array in (*arrays, tokens)] == before


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.floats(0, LAST), min_size=2, max_size=2),
    st.floats(0, LAST),
    st.lists(st.integers(0, 63), min_size=2, max_size=2),
)
@settings(deadline=None, max_examples=100, derandomize=True)
def test_fortran_order_gives_the_same_tokens(seed, accept_u, final_u, draft_tokens):
    rows = np.random.default_rng(seed).dirichlet(np.ones(64), size=5)
    blocks = [
        verify_draft(
            target_rows=order(rows[:3]),
            draft_rows=order(rows[3:]),
            draft_tokens=draft_tokens,
            chance=ReplayedChance(accept_u=accept_u, final_u=final_u),
        )
        for order in (np.ascontiguousarray, np.asfortranarray)
    ]
    assert blocks[0] == blocks[1]


@given(two_tables, st.integers(0, 2))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_a_block_is_the_beginning_of_a_sample_of_the_target(tables, lookahead):
    """Completed to K+1 tokens by the target, it has the target's joint law."""
    target, draft = tables

    def completed(chance):
        tokens, draft_rows = propose(draft=draft, prefix=(), lookahead=lookahead, chance=chance)
        block = verify_draft(
            target_rows=target.score((), tokens), draft_rows=draft_rows, draft_tokens=tokens, chance=chance
        )
        rest = lookahead + 1 - len(block.tokens)
        return block.tokens + autoregressive.generate(
            target=target, prompt=block.tokens, max_new_tokens=rest, chance=chance
        )

    baseline = exact_law(
        lambda chance: autoregressive.generate(target=target, prompt=(), max_new_tokens=lookahead + 1, chance=chance)
    )
    assert exact_law(completed) == baseline


# The loop.


def test_propose_draws_token_after_token_from_the_rows_it_returns():
    draft = get_pair("context").draft
    tokens, rows = propose(draft=draft, prefix=(0,), lookahead=3, chance=ReplayedChance(draft_u=(0.9, 0.0, 0.35)))
    assert tokens == (3, 0, 2)  # after 0: (.1, .2, .35, .35); after 3: (.15, ...)
    assert rows.tolist() == draft.score((0,), (3, 0)).tolist()


def test_propose_nothing():
    tokens, rows = propose(draft=get_pair("context").draft, prefix=(), lookahead=0, chance=ReplayedChance())
    assert tokens == ()
    assert rows.shape == (0, 4)


def test_the_loop_law_of_g1():
    law = {block.tokens: mass for block, mass in step_law("g1", 2).items()}
    expected = {(0, 0, 0): 1, (0, 0, 1): 2, (0, 1, 0): 1, (0, 1, 1): 2, (1, 0, 0): 1, (1, 0, 1): 2, (1, 1, 0): 1}
    expected = {tokens: Fraction(weight, 27) for tokens, weight in {**expected, (1, 1, 1): 2}.items()}
    assert law == {**expected, (1,): Fraction(1, 3), (0, 1): Fraction(1, 9), (1, 1): Fraction(1, 9)}


@pytest.mark.parametrize(
    ("name", "lookahead", "pmf"),
    [
        ("g1", 2, ("1/3", "2/9", "4/9")),
        ("g2", 2, ("2/5", "6/25", "9/25")),
        ("g3", 2, ("1/4", "1/5", "11/20")),
        ("g3", 4, ("1/4", "1/5", "3/25", "2/25", "7/20")),
        ("disjoint", 3, ("1",)),
        ("identical", 2, ("0", "0", "1")),
        ("context", 2, ("2/5", "11/50", "19/50")),
    ],
)
def test_the_number_of_tokens_of_a_loop(name, lookahead, pmf):
    expected = {tokens: Fraction(mass) for tokens, mass in enumerate(pmf, start=1) if mass != "0"}
    assert by_count(step_law(name, lookahead)) == expected


@pytest.mark.parametrize(
    ("name", "lookahead", "mean"),
    [
        ("g1", 2, "19/9"),
        ("g1", 3, "65/27"),
        ("g1", 4, "211/81"),
        ("g2", 2, "49/25"),
        ("g2", 3, "272/125"),
        ("g3", 1, "7/4"),
        ("g3", 2, "23/10"),
        ("g3", 3, "273/100"),
        ("g3", 4, "77/25"),
        ("context", 2, "99/50"),
        ("context", 3, "278/125"),
    ],
)
def test_the_mean_number_of_tokens_of_a_loop(name, lookahead, mean):
    law = by_count(step_law(name, lookahead))
    assert sum(tokens * mass for tokens, mass in law.items()) == Fraction(mean)


@pytest.mark.parametrize(
    ("name", "lookahead", "variance"),
    [("g1", 2, "62/81"), ("g2", 2, "474/625"), ("g2", 3, "21516/15625"), ("g3", 2, "71/100")],
)
def test_the_variance_of_the_number_of_tokens_of_a_loop(name, lookahead, variance):
    law = by_count(step_law(name, lookahead))
    mean = sum(tokens * mass for tokens, mass in law.items())
    assert sum((tokens - mean) ** 2 * mass for tokens, mass in law.items()) == Fraction(variance)


def test_a_loop_without_lookahead_is_a_step_of_the_baseline():
    assert step_law("context", 0) == {
        Block((y,), drafted=0, verified=0, accepted=0): Fraction(weight, 10) for y, weight in enumerate((4, 3, 2, 1))
    }


def test_every_block_counts_what_it_did():
    for block in step_law("context", 3):
        assert block.drafted == 3
        assert block.accepted == len(block.tokens) - 1
        assert block.verified == min(block.accepted + 1, 3)


def test_draft_knobs_are_the_knobs_unless_they_are_given():
    knobs, flat = SamplingKnobs(top_k=1), PLAIN
    same = step_law("near-ties", 1, knobs=knobs)
    assert same == step_law("near-ties", 1, knobs=knobs, draft_knobs=knobs)
    assert same != step_law("near-ties", 1, knobs=knobs, draft_knobs=flat)


# The generation.


@given(two_tables, st.integers(0, 2), st.integers(0, 4), exact_knobs, st.none() | exact_knobs, st.data())
@settings(deadline=None, max_examples=150, derandomize=True)
def test_the_law_is_the_target_law(tables, lookahead, max_new_tokens, knobs, draft_knobs, data):
    target, draft = tables
    tokens = st.integers(0, target.vocabulary - 1)
    ours, baseline = two_laws(
        target,
        draft,
        lookahead=lookahead,
        max_new_tokens=max_new_tokens,
        knobs=knobs,
        draft_knobs=draft_knobs,
        prompt=data.draw(st.lists(tokens, max_size=2)),
        end_tokens=data.draw(st.sets(tokens, max_size=1)),
    )
    assert ours == baseline
    assert not any(isinstance(mass, float) for mass in ours.values())


@pytest.mark.parametrize(
    "name",
    ["context", "identical", "disjoint", "exact-zeros", "one-hot-target", "one-hot-draft", "second-order", "g1", "g3"],
)
@pytest.mark.parametrize("end_tokens", [(), {1}])
def test_the_law_is_the_target_law_for_named_pairs(name, end_tokens):
    pair = get_pair(name)
    ours, baseline = two_laws(pair.target, pair.draft, lookahead=2, max_new_tokens=4, prompt=(), end_tokens=end_tokens)
    assert ours == baseline


@pytest.mark.parametrize(
    "draft_knobs",
    [COLD, PLAIN, SamplingKnobs(temperature=1.3, top_p=0.9), SamplingKnobs(temperature=0)],
)
@pytest.mark.parametrize("lookahead", [1, 2])
def test_the_law_is_the_target_law_under_any_knob_of_lifted_models(draft_knobs, lookahead):
    target = RandomLogitModel(3, seed=5)
    draft = NearbyModel(target, distance=0.3, seed=6)
    ours, baseline = two_laws(
        lifted(target, COLD),
        lifted(draft, draft_knobs),
        lookahead=lookahead,
        max_new_tokens=3,
        prompt=(),
        end_tokens={2},
    )
    assert ours == baseline


@given(two_tables)
@settings(deadline=None, max_examples=15, derandomize=True)
def test_the_law_is_the_target_law_for_lifted_tables(tables):
    target, draft = (lifted(model, COLD) for model in tables)
    ours, baseline = two_laws(target, draft, lookahead=2, max_new_tokens=3, prompt=())
    assert ours == baseline


def test_a_draft_that_knows_more_of_the_past_changes_nothing():
    target, draft = get_pair("two-tokens").target, get_pair("second-order").draft
    for one, other in [(target, draft), (draft, target)]:
        ours, baseline = two_laws(one, other, lookahead=2, max_new_tokens=4, prompt=())
        assert ours == baseline


@pytest.mark.parametrize("name", ["g3", "second-order", "single-residual"])
def test_the_law_is_the_same_when_no_states_are_shared(name):
    pair = get_pair(name)
    shared, _ = two_laws(pair.target, pair.draft, lookahead=2, max_new_tokens=4, prompt=(), end_tokens={0})
    single, _ = two_laws(
        Unshared(pair.target), Unshared(pair.draft), lookahead=2, max_new_tokens=4, prompt=(), end_tokens={0}
    )
    assert shared == single


@pytest.mark.parametrize(
    "knobs",
    [
        {"draft_knobs": SamplingKnobs(presence_penalty=2)},
        {"draft_knobs": SamplingKnobs(frequency_penalty=1)},
        {"knobs": SamplingKnobs(repetition_penalty=2), "draft_knobs": PLAIN},
        {"knobs": SamplingKnobs(min_tokens=2), "draft_knobs": PLAIN, "end_tokens": (0,)},
        {"stop_sequences": [(1, 0, 1)]},
    ],
)
def test_blocks_have_one_law_whether_states_are_shared_or_not(knobs):
    """What one of the models reads of the past tells states apart, also where the tokens have the same law."""
    pair = get_pair("second-order").floats
    laws = []
    for made in (lambda model: model, Unshared):
        asked = {"target": made(pair.target), "draft": made(pair.draft), "prompt": (1,), "lookahead": 1, **knobs}
        laws.append(exact_law(lambda chance, asked=asked: generate_blocks(**asked, max_new_tokens=5, chance=chance)))
    assert laws[0].keys() == laws[1].keys()
    assert [laws[0][blocks] for blocks in laws[1]] == pytest.approx(list(laws[1].values()), abs=1e-12)


@pytest.mark.parametrize("max_new_tokens", range(5))
@pytest.mark.parametrize("lookahead", [0, 1, 4])
def test_the_cap_is_reached_and_never_passed(lookahead, max_new_tokens):
    pair = get_pair("two-tokens")
    ours, _ = two_laws(pair.target, pair.draft, lookahead=lookahead, max_new_tokens=max_new_tokens, prompt=(1,))
    assert {len(tokens) for tokens in ours} == {max_new_tokens}


def test_each_output_stops_at_its_first_end_token():
    pair = get_pair("single-residual")
    ours, _ = two_laws(pair.target, pair.draft, lookahead=3, max_new_tokens=4, prompt=(2, 0), end_tokens=(0, 2))
    for tokens in ours:
        assert set(tokens[:-1]) == ({1} if len(tokens) > 1 else set())
        assert len(tokens) == 4 or tokens[-1] in (0, 2)
    assert len(ours) == 9


END_IN_A_RUN = {"draft_u": (0.5, 0.6, 0.9), "accept_u": (LAST,) * 3, "final_u": 0.5}


def test_an_end_token_inside_an_accepted_run_ends_it_there():
    pair = get_pair("identical")
    arguments = {"target": pair.target, "draft": pair.draft, "prompt": (), "lookahead": 3, "max_new_tokens": 9}
    (block,) = generate_blocks(**arguments, end_tokens={2}, chance=ReplayedChance.over([END_IN_A_RUN]))
    assert block == Block((1, 2), drafted=3, verified=3, accepted=3)
    assert block.counters == Counters(drafted=3, verified=3, accepted=3, emitted=2, target_calls=1)
    assert generate(**arguments, end_tokens={2}, chance=ReplayedChance.over([END_IN_A_RUN])) == (1, 2)


def test_without_the_end_token_the_run_goes_on():
    pair = get_pair("identical")
    (block,) = generate_blocks(
        target=pair.target,
        draft=pair.draft,
        prompt=(),
        lookahead=3,
        max_new_tokens=4,
        chance=ReplayedChance.over([END_IN_A_RUN]),
    )
    assert block.tokens == (1, 2, 3, 1)  # after 3: (.3, .25, .1, .35), and .5 falls on 1


def test_an_end_token_in_the_prompt_does_not_count():
    pair = get_pair("identical")
    tokens = generate(
        target=pair.target,
        draft=pair.draft,
        prompt=(2,),
        lookahead=0,
        max_new_tokens=2,
        end_tokens={2},
        chance=ReplayedChance.over([{"final_u": 0.0}, {"final_u": 0.0}]),
    )
    assert tokens == (0, 0)


def test_near_the_cap_fewer_tokens_are_drafted():
    pair = get_pair("identical")
    blocks = generate_blocks(
        target=pair.target,
        draft=pair.draft,
        prompt=(0,),
        lookahead=3,
        max_new_tokens=7,
        chance=SampledChance(np.random.default_rng(0)),
    )
    assert [(block.drafted, block.verified, block.accepted, len(block.tokens)) for block in blocks] == [
        (3, 3, 3, 4),
        (2, 2, 2, 3),
    ]
    assert count(blocks) == Counters(drafted=5, verified=5, accepted=5, emitted=7, target_calls=2)


@pytest.mark.parametrize("lookahead", [0, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_each_loop_calls_the_target_once_and_the_draft_once_a_token(lookahead, seed):
    pair = get_pair("context").floats
    target, draft = CountedModel(pair.target), CountedModel(pair.draft)
    blocks = generate_blocks(
        target=target,
        draft=draft,
        prompt=(),
        lookahead=lookahead,
        max_new_tokens=20,
        chance=SampledChance(np.random.default_rng(seed)),
    )
    counters = count(blocks)
    assert target.calls == len(blocks) == counters.target_calls
    assert draft.calls == counters.drafted == sum(block.drafted for block in blocks)
    assert counters.emitted == 20
    assert counters.emitted == counters.accepted + counters.target_calls


@pytest.mark.parametrize("end_tokens", [(), {3}])
@pytest.mark.parametrize("knobs", [PLAIN, COLD, SamplingKnobs(temperature=0), SamplingKnobs(top_k=2)])
def test_tokens_and_blocks_agree_on_equal_uniforms(knobs, end_tokens):
    pair = get_pair("random-logits")
    arguments = {"target": pair.target, "draft": pair.draft, "prompt": (1,), "lookahead": 3, "max_new_tokens": 25}
    for seed in range(5):
        tokens, blocks = (
            run(**arguments, knobs=knobs, end_tokens=end_tokens, chance=SampledChance(np.random.default_rng(seed)))
            for run in (generate, generate_blocks)
        )
        assert tokens == sum((block.tokens for block in blocks), ())
        assert count(blocks).emitted == len(tokens)


def test_tokens_and_blocks_have_one_law():
    pair = get_pair("g3")
    arguments = {"target": pair.target, "draft": pair.draft, "prompt": (0,), "lookahead": 2, "max_new_tokens": 4}
    blocks = exact_law(lambda chance: generate_blocks(**arguments, end_tokens={1}, chance=chance))
    tokens = exact_law(lambda chance: generate(**arguments, end_tokens={1}, chance=chance))
    assert by_count(blocks, lambda loop: sum((block.tokens for block in loop), ())) == tokens


@pytest.mark.parametrize("prompt", [(), (0, 1)])
def test_nothing_is_called_when_no_token_is_wanted(prompt):
    pair = get_pair("g1")
    target, draft = CountedModel(pair.target), CountedModel(pair.draft)
    arguments = {"target": target, "draft": draft, "prompt": prompt, "lookahead": 2, "max_new_tokens": 0}
    assert generate(**arguments, chance=ReplayedChance()) == ()
    assert generate_blocks(**arguments, chance=ReplayedChance()) == ()
    assert target.calls == draft.calls == 0


def test_one_token_is_drawn_from_the_target_alone():
    pair = get_pair("disjoint")
    draft = CountedModel(pair.draft)
    (block,) = generate_blocks(
        target=pair.target,
        draft=draft,
        prompt=(),
        lookahead=4,
        max_new_tokens=1,
        chance=ReplayedChance(final_u=0.8),
    )
    assert block == Block((1,), drafted=0, verified=0, accepted=0)
    assert draft.calls == 0


def test_greedy_decoding_is_greedy_whatever_the_draft_says():
    pair = get_pair("near-ties").floats
    arguments = {"prompt": (0,), "max_new_tokens": 8, "knobs": SamplingKnobs(temperature=0)}
    chance = SampledChance(np.random.default_rng(0))
    tokens = generate(target=pair.target, draft=pair.draft, lookahead=3, chance=chance, **arguments)
    assert tokens == autoregressive.generate(target=pair.target, chance=chance, **arguments)
    assert tokens == (0,) * 8


def test_a_prompt_of_numpy_integers_gives_plain_integers():
    pair = get_pair("g1")
    prompt = np.array([0, 1])
    tokens = generate(
        target=pair.target,
        draft=pair.draft,
        prompt=prompt,
        lookahead=1,
        max_new_tokens=3,
        chance=SampledChance(np.random.default_rng(0)),
    )
    assert {type(token) for token in tokens} == {int}
    assert prompt.tolist() == [0, 1]


@pytest.mark.parametrize("run", [generate, generate_blocks])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draft": RandomLogitModel(3, seed=1)}, "vocabularies differ: target 2, draft 3"),
        ({"prompt": (0, 2)}, "prompt[1]: token 2 is out of range; expected 0 to 1"),
        ({"prompt": (-1,)}, "prompt[0]: token -1 is out of range"),
        ({"prompt": (0.5,)}, "prompt[0]: 0.5 is not a token id"),
        ({"end_tokens": (2,)}, "end_tokens[0]: token 2 is out of range"),
        ({"lookahead": -1}, "lookahead: -1 is negative"),
        ({"lookahead": 1.0}, "lookahead: 1.0 is not an integer"),
        ({"max_new_tokens": -1}, "max_new_tokens: -1 is negative"),
        ({"max_new_tokens": "2"}, "max_new_tokens: '2' is not an integer"),
        ({"chance": ReplayedChance(accept_u=0.5, final_u=0.5)}, "loop 0 asks for draft_u[0]; 0 were given"),
        ({"chance": ReplayedChance()}, "loop 0 asks for draft_u[0]; 0 were given"),
        ({"chance": ReplayedChance.over([])}, "loop 0 asks for draft_u; uniforms were given for 0 loops"),
    ],
)
def test_a_request_that_is_not_sound_is_refused(run, change, message):
    pair = get_pair("g1")
    request = {"target": pair.target, "draft": pair.draft, "prompt": (), "lookahead": 1, "max_new_tokens": 3}
    with pytest.raises(ValueError, match=re.escape(message)):
        run(**{**request, "chance": SampledChance(np.random.default_rng(0)), **change})


def test_a_knob_without_an_exact_value_is_refused_on_fractions():
    pair = get_pair("g1")
    with pytest.raises(TypeError, match=r"temperature 0\.7 has no exact value on fractions"):
        exact_law(
            lambda chance: generate(
                target=pair.target,
                draft=pair.draft,
                prompt=(),
                lookahead=1,
                max_new_tokens=2,
                knobs=COLD,
                chance=chance,
            )
        )


def test_end_tokens_may_be_given_as_an_iterator():
    pair = get_pair("context")
    chance = SampledChance(np.random.default_rng(0))
    request = {"target": pair.target, "prompt": (), "max_new_tokens": 5, "chance": chance}
    assert len(generate(**request, draft=pair.draft, lookahead=2, end_tokens=iter(range(4)))) == 1
    assert len(autoregressive.generate(**request, end_tokens=iter(range(4)))) == 1


@pytest.mark.parametrize("lookahead", [0, 1])
def test_what_is_no_chance_or_no_knobs_is_refused_for_every_lookahead(lookahead):
    pair = get_pair("context")
    step = {"target": pair.target, "draft": pair.draft, "prefix": (), "lookahead": lookahead}
    with pytest.raises(TypeError, match="expected a Chance"):
        speculative_step(**step, chance=np.random.default_rng(0))
    with pytest.raises(TypeError, match="expected SamplingKnobs"):
        speculative_step(**step, chance=SampledChance(np.random.default_rng(0)), knobs={})


def test_knobs_of_the_draft_that_are_none_are_refused():
    pair = get_pair("context")
    chance = SampledChance(np.random.default_rng(0))
    with pytest.raises(TypeError, match="expected SamplingKnobs"):
        speculative_step(target=pair.target, draft=pair.draft, prefix=(), lookahead=1, chance=chance, draft_knobs={})


@pytest.mark.parametrize("given", [{"knobs": None}, {"knobs": {}}, {"draft_knobs": {}}, {"draft_knobs": 0}])
def test_a_generation_takes_no_other_knobs(given):
    """Nothing that is false in Python stands for the knobs of the target."""
    pair, chance = get_pair("context"), SampledChance(np.random.default_rng(0))
    asked = {"target": pair.target, "prompt": (), "max_new_tokens": 2, "chance": chance}
    with pytest.raises(TypeError, match=rf"{next(iter(given))}: .*; expected SamplingKnobs"):
        generate(draft=pair.draft, lookahead=1, **asked, **given)
    if "knobs" in given:
        with pytest.raises(TypeError, match=r"knobs: .*; expected SamplingKnobs"):
            autoregressive.generate(**asked, **given)


def test_ragged_draft_rows_are_refused_by_name():
    with pytest.raises(ValueError, match="draft: rows differ in length"):
        verify_draft(
            target_rows=[[0.5, 0.5]] * 3,
            draft_rows=[[0.5, 0.5], [1.0]],
            draft_tokens=[0, 0],
            chance=SampledChance(np.random.default_rng(0)),
        )
