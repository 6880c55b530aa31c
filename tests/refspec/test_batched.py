"""The vectorised twin gives the tokens of the clear code, token for token, on equal uniforms."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from refspec import batched, speculative
from refspec.chance import Number, ReplayedChance
from refspec.knobs import SamplingKnobs
from refspec.rejection import residual
from refspec.table import compile_table
from toy_models import TabularModel, get_pair

LARGEST = float(np.nextafter(1, 0))
TINY = float(np.finfo(np.float64).smallest_subnormal)
EIGHTHS = st.integers(0, 7).map(lambda k: k / 8)


def arrays(drafts):
    """Several drafts of equal shape, each a dictionary of the arguments of one, stacked."""
    return {name: np.stack([draft[name] for draft in drafts]) for name in drafts[0]}


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


@st.composite
def fresh_rows(draw, vocabulary):
    """A row of small integers (zeros and ties), of eighths, or nearly one-hot with subnormal entries."""
    if draw(st.booleans()):
        weights = draw(st.lists(st.integers(0, 4), min_size=vocabulary, max_size=vocabulary).filter(any))
        return np.array(weights) / sum(weights)
    row = np.array(draw(st.lists(st.integers(0, 3), min_size=vocabulary, max_size=vocabulary))) * TINY
    row[draw(st.integers(0, vocabulary - 1))] = 1
    return row


@st.composite
def rows_near(draw, row):
    """The same row, each entry up to two ulps away: a residual then has no mass, or an ulp of it."""
    ulps = draw(st.lists(st.integers(-2, 2), min_size=len(row), max_size=len(row)))
    return np.maximum(row + np.array(ulps) * np.spacing(row) * (row > 0), 0)


@st.composite
def uniforms_near(draw, edges):
    """Boundary uniforms: the ends of [0, 1), eighths, and the edges with their neighbours."""
    around = [float(near) for edge in edges for near in (edge, np.nextafter(edge, 0), np.nextafter(edge, 1))]
    hostile = [0.0, TINY, LARGEST, *(u for u in around if 0 <= u < 1)]
    return draw(st.sampled_from(hostile) | EIGHTHS | st.floats(0, 1, exclude_max=True))


@st.composite
def one_draft(draw, lookahead, vocabulary, dtype):
    target_rows = np.stack([draw(fresh_rows(vocabulary)) for _ in range(lookahead + 1)]).astype(dtype)
    draft_rows = np.empty((lookahead, vocabulary), dtype=dtype)
    tokens = np.full(lookahead, -1)
    accept_u = np.array([draw(EIGHTHS) for _ in range(lookahead)])
    drafted = draw(st.integers(0, lookahead))
    for i in range(lookahead):
        draft_rows[i] = draw(rows_near(target_rows[i]) | fresh_rows(vocabulary))
        assume(draft_rows[i].any())
    for i in range(drafted):
        tokens[i] = draw(st.sampled_from(np.flatnonzero(draft_rows[i]).tolist()))
        ratio = float(target_rows[i, tokens[i]]) / float(draft_rows[i, tokens[i]])
        accept_u[i] = draw(uniforms_near([ratio]))
    row = draw(st.integers(0, drafted))
    weights = residual(target_rows[row], draft_rows[row]) if row < drafted else target_rows[row]
    edges = np.cumsum(weights, dtype=np.float64)
    final_u = draw(uniforms_near(edges / edges[-1] if edges[-1] else [0.5]))
    return {
        "target_rows": target_rows,
        "draft_rows": draft_rows,
        "draft_tokens": tokens,
        "accept_u": accept_u,
        "final_u": np.float64(final_u),
    }


@st.composite
def hostile_batches(draw):
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    lookahead, vocabulary = draw(st.integers(0, 5)), draw(st.integers(1, 6))
    batch = arrays(draw(st.lists(one_draft(lookahead, vocabulary, dtype), min_size=1, max_size=4)))
    if draw(st.booleans()):
        batch = {name: np.asfortranarray(values) for name, values in batch.items()}
    return batch


@settings(deadline=None, derandomize=True, max_examples=400)
@given(hostile_batches())
def test_verify_draft_equals_the_clear_code_on_hostile_rows_and_uniforms(batch):
    assert batched.verify_draft(**batch).tolist() == clear_batch(batch)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.data(), st.integers(1, 6))
def test_index_equals_the_clear_index_at_the_edges(data, vocabulary):
    weights = data.draw(fresh_rows(vocabulary) | fresh_rows(vocabulary).map(lambda row: row * 3e-300))
    assume(weights.any())
    edges = np.cumsum(weights)
    us = [data.draw(uniforms_near(edges / edges[-1])) for _ in range(8)]
    indices = batched.index(np.tile(weights, (8, 1)), np.array(us))
    assert indices.tolist() == [Number(u).index(weights) for u in us]
    assert weights[indices].all(), "a token without mass was drawn"


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


def test_a_million_single_token_drafts_equal_the_clear_code():
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
    assert rejections > 100_000
    assert without_residual > 10_000


PROMPTS = [(), (0,), (1,), (1, 0), (0, 1, 1)]
AWKWARD = np.array([0.0, TINY, LARGEST, *(k / 8 for k in range(1, 8)), *(k / 10 for k in range(1, 10))])


def generate_both(target, draft, prompts, uniforms, lookahead, knobs, draft_knobs, **limits):
    """Generate by the twin and by the clear code from the same uniforms [loop, B, 2K+1]; return both outputs."""
    tables = {
        "target": compile_table(target, prompts=prompts, knobs=knobs),
        "draft": compile_table(draft, prompts=prompts, knobs=draft_knobs),
    }
    starts = {
        f"{name}_states": batched.start_states(tables[name], [model.state_key(prompt) for prompt in prompts])
        for name, model in [("target", target), ("draft", draft)]
    }
    loop = np.zeros(len(prompts), dtype=int)

    def next_uniforms(chains):
        loop[chains] += 1
        return uniforms[loop[chains] - 1, chains]

    fast = batched.generate(**tables, **starts, lookahead=lookahead, uniforms=next_uniforms, **limits)
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
            **limits,
        )
        for b, prompt in enumerate(prompts)
    ]
    return [tuple(row[row != -1].tolist()) for row in fast], clear


KNOBS = [SamplingKnobs(), SamplingKnobs(temperature=0.7), SamplingKnobs(top_k=2), SamplingKnobs(temperature=0)]


@pytest.mark.parametrize("name", ["context", "exact-zeros", "second-order", "near-ties", "random-logits", "identical"])
@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    lookahead=st.integers(0, 5),
    max_new_tokens=st.integers(0, 7),
    end_tokens=st.sets(st.integers(0, 1)),
    knobs=st.sampled_from(KNOBS),
    draft_knobs=st.sampled_from(KNOBS),
    seed=st.integers(0, 2**32 - 1),
)
def test_generate_equals_the_clear_code(name, lookahead, max_new_tokens, end_tokens, knobs, draft_knobs, seed):
    pair = get_pair(name).floats
    uniforms = np.random.default_rng(seed).choice(AWKWARD, size=(max_new_tokens, len(PROMPTS), 2 * lookahead + 1))
    limits = {"max_new_tokens": max_new_tokens, "end_tokens": end_tokens}
    fast, clear = generate_both(pair.target, pair.draft, PROMPTS, uniforms, lookahead, knobs, draft_knobs, **limits)
    assert fast == clear


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


def test_generate_leaves_the_start_states_as_they_were():
    pair = get_pair("context").floats
    table = compile_table(pair.target)
    starts = batched.start_states(table, [(), (2,)])
    batched.generate(
        target=table,
        draft=table,
        target_states=starts,
        draft_states=starts,
        lookahead=2,
        max_new_tokens=4,
        uniforms=lambda chains: np.full((len(chains), 5), 0.5),
    )
    assert starts.tolist() == [table.states[()], table.states[(2,)]]


def test_speculative_step_equals_the_clear_code():
    pair = get_pair("context").floats
    target, draft = compile_table(pair.target), compile_table(pair.draft)
    chains, lookahead = 200, 3
    uniforms = np.random.default_rng(3).integers(0, 20, size=(chains, 2 * lookahead + 1)) / 20
    drafted = np.arange(chains) % (lookahead + 1)
    prefixes = [(b % 4,) for b in range(chains)]
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
        ("draft_tokens", (1, 0), -1, "draft_tokens[1, 0]: 0; expected padding at the end only"),
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


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("target_rows", (2, 2, 3), "target: shape (2, 2, 3); expected (2, 3, 3)"),
        ("draft_rows", (2, 3, 3), "draft: shape (2, 3, 3); expected (2, 2, 3)"),
        ("draft_rows", (2, 2, 4), "draft: shape (2, 2, 4); expected (2, 2, 3)"),
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
@given(dtype=st.sampled_from([np.float16, np.float32, np.float64]), roundings=st.integers(-40, 40), row=EIGHTHS)
def test_the_twin_refuses_a_sum_exactly_where_the_clear_code_does(dtype, roundings, row):
    batch = {name: value[:1] for name, value in sound().items()}
    at = int(row * 16) % 3
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
    table = compile_table(TabularModel({(): (1, 1), (0,): (1, 2), (1,): (2, 1)}, exact=False))
    start, zero, one = (table.states[key] for key in ((), (0,), (1,)))
    path = batched.follow(table, np.array([start, start]), np.array([[0, 1], [1, -1]]))
    assert path.tolist() == [[start, zero, one], [start, one, one]]
