"""The vectorised twin gives the tokens of the clear code, token for token, on equal uniforms."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec import batched, speculative
from refspec.chance import Number, ReplayedChance
from refspec.knobs import SamplingKnobs
from refspec.table import compile_table
from toy_models import TabularModel, get_pair

LARGEST = float(np.nextafter(1, 0))
TINY = float(np.finfo(np.float64).smallest_subnormal)
ABOVE_HALF = float(np.nextafter(0.5, 1))


def clear_tokens(target_rows, draft_rows, draft_tokens, accept_u, final_u):
    """The clear code on one entry of a batch, padded as the twin pads."""
    drafted = int((np.asarray(draft_tokens) != -1).sum())
    block = speculative.verify_draft(
        target_rows=target_rows[: drafted + 1],
        draft_rows=draft_rows[:drafted],
        draft_tokens=draft_tokens[:drafted],
        chance=ReplayedChance(accept_u=accept_u, final_u=final_u),
    )
    return list(block.tokens) + [-1] * (len(draft_tokens) + 1 - len(block.tokens))


def clear_batch(batch):
    return [clear_tokens(**{name: values[b] for name, values in batch.items()}) for b in range(len(batch["final_u"]))]


def fresh_rows(generator, shape):
    """Rows of small integers (zeros and ties) over their total, or nearly one-hot with subnormal entries."""
    weights = generator.integers(0, 4, size=shape)
    certain = np.arange(shape[-1]) == generator.integers(shape[-1], size=shape[:-1])[..., None]
    plain = (weights + certain) / (weights + certain).sum(axis=-1, keepdims=True)
    return np.where(generator.random(shape[:-1])[..., None] < 0.7, plain, np.where(certain, 1, weights * TINY))


def rows_near(generator, rows):
    """Entries an ulp higher in half the rows, an ulp up or down in the others: residuals of no mass, or of ulps."""
    lowest = generator.integers(-1, 1, size=rows.shape[:-1])[..., None]
    return np.maximum(rows + generator.integers(lowest, 2, size=rows.shape) * np.spacing(rows) * (rows > 0), 0)


def uniforms_near(generator, edges):
    """For each edge a boundary uniform: it, a neighbour of it, an end of [0, 1), an eighth; or any uniform."""
    eighths, anything = generator.integers(0, 8, size=edges.shape) / 8, generator.random(edges.shape)
    ends = np.where(anything < 0.3, 0.0, LARGEST)
    choices = np.stack([edges, np.nextafter(edges, 0), np.nextafter(edges, 1), ends, ends, eighths, anything])
    return np.clip(generator.permuted(choices, axis=0)[0], 0, LARGEST)


def final_edges(generator, weights):
    """For each row of weights one of its cumulative edges, as a part of the total."""
    edges = np.cumsum(weights, axis=-1, dtype=np.float64)
    chosen = edges[np.arange(len(edges)), generator.integers(weights.shape[1], size=len(edges))]
    return chosen / np.where(edges[:, -1] > 0, edges[:, -1], 1)


def hostile_batch(generator, chains, lookahead, vocabulary, dtype):
    target_rows = fresh_rows(generator, (chains, lookahead + 1, vocabulary)).astype(dtype)
    near = rows_near(generator, target_rows[:, :-1]).astype(dtype)
    fresh = fresh_rows(generator, near.shape).astype(dtype)
    draft_rows = np.where(generator.random((chains, lookahead, 1)) < 0.5, near, fresh)
    tokens = np.argmax(generator.random(near.shape) * (draft_rows > 0), axis=2)
    masses = [np.take_along_axis(rows, tokens[..., None], axis=2)[..., 0] for rows in (target_rows[:, :-1], draft_rows)]
    drafted = generator.integers(0, lookahead + 1, size=chains)
    chain, row = np.arange(chains), generator.integers(0, drafted + 1)
    left = target_rows[chain, row].astype(np.float64)
    left[row < drafted] -= draft_rows[chain[row < drafted], row[row < drafted]]
    return {
        "target_rows": target_rows,
        "draft_rows": draft_rows,
        "draft_tokens": np.where(np.arange(lookahead) < drafted[:, None], tokens, -1),
        "accept_u": uniforms_near(generator, np.minimum(*masses).astype(np.float64) / masses[1]),
        "final_u": uniforms_near(generator, final_edges(generator, np.maximum(left, 0))),
    }


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    chains=st.integers(1, 40),
    lookahead=st.integers(0, 5),
    vocabulary=st.integers(1, 6),
    dtype=st.sampled_from([np.float64, np.float32]),
    order=st.sampled_from("CF"),
    seed=st.integers(0, 2**32 - 1),
)
def test_verify_draft_equals_the_clear_code_on_hostile_rows_and_uniforms(
    chains, lookahead, vocabulary, dtype, order, seed
):
    batch = hostile_batch(np.random.default_rng(seed), chains, lookahead, vocabulary, dtype)
    batch = {name: np.asarray(values, order=order) for name, values in batch.items()}
    assert batched.verify_draft(**batch).tolist() == clear_batch(batch)


@pytest.mark.parametrize(
    ("target_row", "draft_row", "token", "accept_u", "final_u", "emitted"),
    [
        pytest.param([1, TINY], [1, TINY], 1, LARGEST, 0.25, [1, 0], id="equal-subnormal-masses-accept"),
        pytest.param([1, 0], [1, TINY], 1, 0.0, LARGEST, [0, -1], id="no-target-mass-rejects-at-zero"),
        pytest.param([0.25, 0.75], [0.5, 0.5], 0, 0.5, 0.0, [1, -1], id="exactly-the-ratio-rejects"),
        pytest.param([0.25, 0.75], [0.5, 0.5], 0, np.nextafter(0.5, 0), 0.25, [0, 1], id="below-the-ratio-accepts"),
        pytest.param([0.5, 0.5], [0.5, ABOVE_HALF], 1, LARGEST, 0.75, [1, -1], id="no-residual-draws-from-the-target"),
        pytest.param([TINY, 1], [0, 1 + 2**-52], 1, LARGEST, LARGEST, [0, -1], id="a-subnormal-residual-is-drawn"),
        pytest.param([0.5, 0.5], [0.5, 0.5], 0, LARGEST, 0.5, [0, 1], id="exactly-an-edge-draws-what-follows"),
    ],
)
def test_a_boundary_is_decided_by_hand(target_row, draft_row, token, accept_u, final_u, emitted):
    batch = {
        "target_rows": np.array([[target_row, target_row]], dtype=np.float64),
        "draft_rows": np.array([[draft_row]], dtype=np.float64),
        "draft_tokens": np.array([[token]]),
        "accept_u": np.array([[accept_u]]),
        "final_u": np.array([final_u]),
    }
    assert batched.verify_draft(**batch).tolist() == clear_batch(batch) == [emitted]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    vocabulary=st.integers(1, 6),
    scale=st.sampled_from([1.0, 3e-300, 3 * TINY]),
    order=st.sampled_from("CF"),
    seed=st.integers(0, 2**32 - 1),
)
def test_index_equals_the_clear_index_at_the_edges(vocabulary, scale, order, seed):
    generator = np.random.default_rng(seed)
    weights = np.asarray(fresh_rows(generator, (100, vocabulary)) * scale, order=order)
    us = uniforms_near(generator, final_edges(generator, weights))
    indices = batched.index(weights, us)
    assert indices.tolist() == [Number(u).index(row) for u, row in zip(us.tolist(), weights, strict=True)]
    assert weights[np.arange(100), indices].all(), "a token without mass was drawn"


def quantised_steps(size, vocabulary, generator):
    """Single-token drafts of rows k/8 and uniforms k/8; in every eighth the draft row is an ulp above the target's."""
    target_rows = generator.multinomial(8, [1 / vocabulary] * vocabulary, size=(size, 2)) / 8
    draft_rows = generator.multinomial(8, [1 / vocabulary] * vocabulary, size=(size, 1)) / 8
    draft_rows[::8] = np.nextafter(target_rows[::8, :1], 1) * (target_rows[::8, :1] > 0)
    tokens = np.argmax(generator.random(draft_rows.shape) * (draft_rows > 0), axis=2)
    uniforms = generator.integers(0, 8, size=(size, 2)) / 8
    uniforms[::8, 0] = LARGEST
    return target_rows, draft_rows, tokens, uniforms[:, :1], uniforms[:, 1]


def clear_steps(target_rows, draft_rows, tokens, accept_u, final_u):
    """The rule of the clear code on single-token drafts, replayed loop by loop; tokens padded to two."""
    loops = [{"accept_u": u, "final_u": v} for u, v in zip(accept_u[:, 0].tolist(), final_u.tolist(), strict=True)]
    drafted = tokens[:, 0].tolist()
    emitted = np.full((len(tokens), 2), -1)

    def step(chance, done):
        block = speculative.apply_rule(target_rows[done], draft_rows[done], (drafted[done],), chance)
        emitted[done, : len(block.tokens)] = block.tokens
        return 1

    ReplayedChance.over(loops).repeat(step, 0, done=lambda done: done == len(tokens), alike=lambda done: done)
    return emitted


@pytest.mark.no_cover  # what it runs is covered elsewhere, and tracing it would take minutes
def test_a_million_steps_equal_the_clear_code():
    """Single-token drafts on coarse rows and uniforms: ties, zeros, residuals of nothing or of one ulp."""
    generator = np.random.default_rng(20230202)
    without_residual = rejections = 0
    for shard in range(40):
        steps = quantised_steps(25_000, 2 + shard % 4, generator)
        emitted = batched.verify_draft(
            **dict(zip(("target_rows", "draft_rows", "draft_tokens", "accept_u", "final_u"), steps, strict=True))
        )
        np.testing.assert_array_equal(emitted, clear_steps(*steps))
        rejected = emitted[:, 1] == -1
        rejections += rejected.sum()
        without_residual += (rejected & ~(steps[0][:, 0] > steps[1][:, 0]).any(axis=1)).sum()
    assert rejections > 50_000
    assert without_residual > 10_000


PROMPTS = [(), (0,), (1,), (1, 0), (0, 1, 1)]
AWKWARD = np.array([0.0, TINY, LARGEST, *(k / 8 for k in range(1, 8)), *(k / 10 for k in range(1, 10))])


def generate_both(target, draft, prompts, uniforms, lookahead, knobs, draft_knobs, *, max_new_tokens, **stops):
    """Generate by the twin and by the clear code from the same uniforms [loop, B, 2K+1]; return both outputs.

    ``max_new_tokens`` is one cap, or one for each prompt.
    """
    caps = np.broadcast_to(max_new_tokens, len(prompts)).tolist()
    singles = tuple(sequence[0] for sequence in stops.get("stop_sequences", ()) if len(sequence) == 1)
    end_tokens = (*stops.get("end_tokens", ()), *singles)
    tables = {
        name: compile_table(
            model, prompts=prompts, knobs=turned, end_tokens=end_tokens, depth=max(caps) + lookahead + 1
        )
        for name, model, turned in [("target", target, knobs), ("draft", draft, draft_knobs)]
    }
    loop = np.zeros(len(prompts), dtype=int)

    def next_uniforms(chains):
        loop[chains] += 1
        return uniforms[loop[chains] - 1, chains]

    fast = batched.generate(
        **tables,
        prompts=prompts,
        lookahead=lookahead,
        max_new_tokens=max_new_tokens,
        uniforms=next_uniforms,
        **stops,
    )
    assert fast.shape == (len(prompts), max(caps))
    clear = [
        speculative.generate(
            target=target,
            draft=draft,
            prompt=prompt,
            lookahead=lookahead,
            knobs=knobs,
            draft_knobs=draft_knobs,
            chance=ReplayedChance.over(
                [{"draft_u": u[:lookahead], "accept_u": u[lookahead:-1], "final_u": u[-1]} for u in uniforms[:, b]]
            ),
            max_new_tokens=caps[b],
            **stops,
        )
        for b, prompt in enumerate(prompts)
    ]
    return [tuple(row[row != -1].tolist()) for row in fast], clear


KNOBS = [
    SamplingKnobs(),
    SamplingKnobs(temperature=0.7),
    SamplingKnobs(top_k=2),
    SamplingKnobs(temperature=0),
    SamplingKnobs(repetition_penalty=1.5, logit_bias={0: -1}),
    SamplingKnobs(temperature=0.7, presence_penalty=1, frequency_penalty=-0.5),
]
STOP_SEQUENCES = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3).map(tuple), max_size=2, unique=True)


@pytest.mark.parametrize("name", ["context", "exact-zeros", "second-order", "near-ties", "random-logits", "identical"])
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    lookahead=st.integers(0, 5),
    caps=st.one_of(st.integers(0, 7), st.lists(st.integers(0, 7), min_size=len(PROMPTS), max_size=len(PROMPTS))),
    end_tokens=st.sets(st.integers(0, 1), max_size=1),
    stop_sequences=STOP_SEQUENCES,
    knobs=st.sampled_from(KNOBS),
    draft_knobs=st.sampled_from(KNOBS),
    seed=st.integers(0, 2**32 - 1),
)
def test_generate_equals_the_clear_code(name, lookahead, caps, end_tokens, stop_sequences, knobs, draft_knobs, seed):
    """Prompts of different lengths in one batch, each with its cap; short ones where a token of five is drawn."""
    pair = get_pair(name).floats
    if pair.vocabulary > 4:
        lookahead, caps = min(lookahead, 2), np.minimum(caps, 4).tolist()
    uniforms = np.random.default_rng(seed).choice(AWKWARD, size=(np.max(caps), len(PROMPTS), 2 * lookahead + 1))
    limits = {"max_new_tokens": caps, "end_tokens": end_tokens, "stop_sequences": stop_sequences}
    fast, clear = generate_both(pair.target, pair.draft, PROMPTS, uniforms, lookahead, knobs, draft_knobs, **limits)
    assert fast == clear


@pytest.mark.parametrize("min_tokens", [1, 2, 4])
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    lookahead=st.integers(0, 4),
    stop_sequences=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=2).map(tuple), max_size=2, unique=True),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_chain_ends_before_it_has_the_minimum_of_tokens(min_tokens, lookahead, stop_sequences, seed):
    pair, knobs = get_pair("context").floats, SamplingKnobs(min_tokens=min_tokens)
    uniforms = np.random.default_rng(seed).choice(AWKWARD, size=(6, len(PROMPTS), 2 * lookahead + 1))
    limits = {"max_new_tokens": 6, "stop_sequences": stop_sequences}
    fast, clear = generate_both(pair.target, pair.draft, PROMPTS, uniforms, lookahead, knobs, knobs, **limits)
    assert fast == clear
    assert min(map(len, fast)) > min_tokens


def test_chains_that_finish_in_different_loops_equal_the_clear_code():
    model = get_pair("identical").floats.target
    prompts = [(), (1,), (2,), (3,)]
    uniforms = np.full((6, 4, 3), 0.95)
    uniforms[2, 1:3] = uniforms[1, 2] = 0.0
    fast, clear = generate_both(
        model, model, prompts, uniforms, 1, KNOBS[0], KNOBS[0], max_new_tokens=6, end_tokens=(0, 1)
    )
    assert fast == clear
    assert len({len(tokens) for tokens in fast}) == 3


def halves(chains):
    return np.full((len(chains), 5), 0.5)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"prompts": [(), (2,)]}, "prompt (2,): the table does not start from it"),
        ({"prompts": [(4,)]}, "prompt[0]: token 4 is out of range"),
        ({"max_new_tokens": [1, 2, 3]}, "max_new_tokens: 3 caps for 2 prompts"),
        ({"max_new_tokens": [1, -2]}, "max_new_tokens: -2"),
        ({"max_new_tokens": 9}, "beyond the depth of its table"),
        ({"max_new_tokens": [True, 2]}, "max_new_tokens: True is not an integer"),
        ({"stop_sequences": [()]}, "stop_sequences[0]: empty"),
        ({"lookahead": -1}, "lookahead: -1 is negative"),
        ({"lookahead": 1.5}, "lookahead: 1.5 is not an integer"),
        ({"lookahead": 1}, "uniforms: shape (2, 5); expected (2, 3)"),
        ({"uniforms": lambda chains: halves(chains)[:, 1:]}, "uniforms: shape (2, 4); expected (2, 5)"),
        ({"uniforms": lambda chains: halves(chains) * 2}, "uniforms[0, 0]: 1.0; expected 0 <= u < 1"),
        ({"uniforms": lambda chains: halves(chains) * np.nan}, "uniforms[0, 0]: nan; expected 0 <= u < 1"),
    ],
)
def test_what_cannot_be_generated_is_refused(asked, message):
    pair = get_pair("context").floats
    tables = {
        name: compile_table(
            getattr(pair, name), prompts=[(), (1, 3)], knobs=SamplingKnobs(frequency_penalty=1), depth=6
        )
        for name in ("target", "draft")
    }
    sound = {"prompts": [(), (1, 3)], "max_new_tokens": 4, "lookahead": 2, "uniforms": halves}
    assert batched.generate(**tables, **sound).shape == (2, 4)
    with pytest.raises(ValueError, match=re.escape(message)):
        batched.generate(**tables, **sound | asked)


def test_ends_that_the_minimum_of_the_target_does_not_ban_are_refused():
    """They would be drawn before the output has its minimum of tokens."""
    pair, knobs = get_pair("context").floats, SamplingKnobs(min_tokens=2)
    tables = {
        name: compile_table(getattr(pair, name), knobs=knobs, end_tokens=(1,), depth=6) for name in ("target", "draft")
    }
    asked = {"prompts": [()], "max_new_tokens": 4, "lookahead": 2, "uniforms": halves}
    assert batched.generate(**tables, **asked, end_tokens=(1,)).shape == (1, 4)
    with pytest.raises(ValueError, match=re.escape("end tokens (2,): the target's table bans (1,)")):
        batched.generate(**tables, **asked, end_tokens=(2,))


def test_a_step_with_a_column_of_uniforms_too_few_is_refused():
    table = compile_table(get_pair("context").floats.target)
    states = np.zeros(2, dtype=int)
    asked = {"target": table, "draft": table, "target_states": states, "draft_states": states}
    with pytest.raises(ValueError, match=re.escape("uniforms: shape (2, 4); expected (2, 5)")):
        batched.speculative_step(**asked, uniforms=np.full((2, 4), 0.5), drafted=np.full(2, 2))


def test_speculative_step_equals_the_clear_code():
    pair = get_pair("context").floats
    chains, lookahead = 200, 3
    uniforms = np.random.default_rng(3).integers(0, 20, size=(chains, 2 * lookahead + 1)) / 20
    drafted = np.arange(chains) % (lookahead + 1)
    prefixes = [(b % 4,) for b in range(chains)]
    target, draft = (compile_table(model, prompts=prefixes) for model in (pair.target, pair.draft))
    blocks = batched.speculative_step(
        target=target,
        draft=draft,
        target_states=batched.start_states(target, prefixes),
        draft_states=batched.start_states(draft, prefixes),
        uniforms=uniforms,
        drafted=drafted,
    )
    for b, block in enumerate(blocks):
        draft_u, accept_u, final_u = uniforms[b, :lookahead], uniforms[b, lookahead:-1], uniforms[b, -1]
        clear = speculative.speculative_step(
            target=pair.target,
            draft=pair.draft,
            prefix=prefixes[b],
            lookahead=int(drafted[b]),
            chance=ReplayedChance(draft_u=draft_u, accept_u=accept_u, final_u=final_u),
        )
        assert tuple(block[block != -1].tolist()) == clear.tokens


def sound():
    """Two drafts of two tokens over three, every entry different."""
    return {
        "target_rows": np.array([[[1, 2, 1], [2, 1, 1], [1, 1, 2]], [[2, 1, 1], [1, 2, 1], [1, 1, 2]]]) / 4,
        "draft_rows": np.array([[[2, 1, 1], [1, 2, 1]], [[1, 1, 2], [2, 2, 0]]]) / 4,
        "draft_tokens": np.array([[0, 1], [2, 0]]),
        "accept_u": np.array([[0.25, 0.5], [0.125, 0.75]]),
        "final_u": np.array([0.375, 0.625]),
    }


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("target_rows", (1, 2, 0), np.nan, "target[1, 2, 0]: nan;"),
        ("target_rows", (0, 1, 2), -0.25, "target[0, 1, 2]: -0.25;"),
        ("target_rows", (0, 1, 2), np.inf, "sum of target row[0, 1]: inf;"),
        ("target_rows", (1, 0, 1), 0.5, "sum of target row[1, 0]: 1.25;"),
        ("draft_rows", (1, 0, 2), np.nan, "draft[1, 0, 2]: nan;"),
        ("draft_rows", (0, 1, 0), -0.5, "draft[0, 1, 0]: -0.5;"),
        ("draft_rows", (0, 1, 0), 0.0, "sum of draft row[0, 1]: 0.75;"),
        ("draft_tokens", (1, 0), 3, "draft_tokens[1, 0]: 3;"),
        ("draft_tokens", (0, 1), -2, "draft_tokens[0, 1]: -2;"),
        ("draft_tokens", (1, 1), 2, "draft mass of a drafted token[1, 1]: 0.0;"),
        ("accept_u", (1, 0), 1.0, "accept_u[1, 0]: 1.0;"),
        ("accept_u", (0, 1), -0.125, "accept_u[0, 1]: -0.125;"),
        ("accept_u", (0, 0), np.nan, "accept_u[0, 0]: nan;"),
        ("final_u", (1,), 1.0, "final_u[1]: 1.0;"),
        ("final_u", (0,), np.nan, "final_u[0]: nan;"),
    ],
)
def test_a_refusal_names_the_index_and_the_value(name, at, value, message):
    batch = sound()
    batch[name][at] = value
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        batched.verify_draft(**batch)


def test_padding_in_the_middle_is_refused_at_an_index_that_holds_the_value_named():
    batch = sound()
    batch["draft_tokens"][1, 0] = -1
    with pytest.raises(ValueError, match=r"^draft_tokens\[.*padding at the end only") as refusal:
        batched.verify_draft(**batch)
    chain, position, value = map(int, re.findall(r"-?\d+", str(refusal.value)))
    assert batch["draft_tokens"][chain, position] == value


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("target_rows", (2, 2, 3), "target: shape (2, 2, 3); expected (2, 3, 3)"),
        ("draft_rows", (2, 3, 3), "draft: shape (2, 3, 3); expected (2, 2, 3)"),
        ("draft_rows", (2, 2, 4), "vocabularies differ: target 3, draft 4"),
        ("target_rows", (3, 3), "target: shape (3, 3) has 2 axes; expected 3"),
        ("accept_u", (2, 3), "accept_u: shape (2, 3); expected (2, 2)"),
        ("final_u", (2, 1), "final_u: shape (2, 1); expected (2,)"),
    ],
)
def test_a_wrong_shape_is_refused(name, shape, message):
    batch = sound() | {name: np.full(shape, 0.25)}
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        batched.verify_draft(**batch)


def test_swapped_roles_are_refused():
    batch = sound()
    batch["target_rows"], batch["draft_rows"] = batch["draft_rows"], batch["target_rows"]
    with pytest.raises(ValueError, match="are the roles swapped"):
        batched.verify_draft(**batch)


@pytest.mark.parametrize("tokens", [np.zeros((2, 2)), np.zeros(2, dtype=int), np.zeros((2, 2), dtype=bool)])
def test_tokens_that_are_no_matrix_of_integers_are_refused(tokens):
    with pytest.raises(ValueError, match=r"^draft_tokens: .*expected integers \[B, K\]"):
        batched.verify_draft(**sound() | {"draft_tokens": tokens})


@pytest.mark.parametrize("name", ["target", "draft"])
def test_fractions_are_refused(name):
    batch = sound()
    batch[f"{name}_rows"] = np.vectorize(Fraction, otypes=[object])(batch[f"{name}_rows"])
    with pytest.raises(ValueError, match=f"^{name}: fractions"):
        batched.verify_draft(**batch)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    dtype=st.sampled_from([np.float16, np.float32, np.float64]), roundings=st.integers(-40, 40), at=st.integers(0, 2)
)
def test_the_twin_refuses_a_sum_exactly_where_the_clear_code_does(dtype, roundings, at):
    batch = {name: value[:1] for name, value in sound().items()}
    batch["target_rows"] = batch["target_rows"].astype(dtype)
    batch["target_rows"][0, 0, at] += dtype(roundings) * np.finfo(dtype).eps / 2
    outcomes = []
    for verify in (lambda: batched.verify_draft(**batch).tolist(), lambda: clear_batch(batch)):
        try:
            outcomes.append(verify())
        except ValueError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]


def ragged(garbage):
    """The sound batch with the second draft cut after one token; what comes after it is garbage."""
    batch = sound()
    batch["draft_tokens"][1, 1] = -1
    batch["accept_u"][1] = 0.0
    batch["target_rows"][1, 2] = garbage
    batch["draft_rows"][1, 1] = garbage
    return batch


@pytest.mark.parametrize(
    "garbage",
    [[np.nan] * 3, [-1.0, 7.0, 0.0], [0.0] * 3, [np.inf] * 3, [np.inf, -np.inf, 0.0], [1.5e308, 1.5e308, 0.0]],
    ids=["nan", "negative", "zero", "infinite", "both-infinities", "overflow"],
)
def test_rows_after_the_end_of_a_ragged_draft_are_not_read(garbage):
    batch = ragged(garbage)
    assert batched.verify_draft(**batch).tolist() == clear_batch(batch)


def test_the_bonus_row_of_a_ragged_draft_is_read_and_refused():
    batch = ragged([0.25, 0.5, 0.25])
    batch["target_rows"][1, 1, 0] = np.nan
    with pytest.raises(ValueError, match=re.escape("target[1, 1, 0]: nan;")):
        batched.verify_draft(**batch)


def test_inputs_are_never_written_to():
    batch, before = ragged([0.25, 0.5, 0.25]), ragged([0.25, 0.5, 0.25])
    for values in batch.values():
        values.setflags(write=False)
    batched.verify_draft(**batch)
    for name, values in batch.items():
        np.testing.assert_array_equal(values, before[name])


def test_an_empty_batch_and_an_empty_draft_are_batches():
    none = {name: values[:0] for name, values in sound().items()}
    assert batched.verify_draft(**none).shape == (0, 3)
    short = sound()
    short |= {"target_rows": short["target_rows"][:, :1]}
    short |= {name: short[name][:, :0] for name in ("draft_rows", "draft_tokens", "accept_u")}
    assert batched.verify_draft(**short).tolist() == clear_batch(short) == [[1], [1]]


def test_a_padded_token_leaves_the_state_as_it_is():
    model = TabularModel({(): (1, 1), (0,): (1, 2), (1,): (2, 1)}, exact=False)
    table = compile_table(model, prompts=[(), (0,), (1,)])
    start, zero, one = table.starts.values()
    path = batched.follow(table, np.array([start, start]), np.array([[0, 1], [1, -1]]))
    assert path.tolist() == [[start, zero, one], [start, one, one]]


def test_tables_of_fractions_are_refused():
    exact = get_pair("context")
    tables = {"target": compile_table(exact.target), "draft": compile_table(exact.draft)}
    state = np.zeros(1, dtype=np.intp)
    states = {"target_states": state, "draft_states": state, "drafted": state}
    for lookahead in (0, 1):
        with pytest.raises(ValueError, match="a table of fractions"):
            batched.speculative_step(**tables, **states, uniforms=np.zeros((1, 2 * lookahead + 1)))
