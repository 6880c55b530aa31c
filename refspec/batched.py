"""The vectorised twin of the clear code: the same decisions for many chains at once.

It is fast and not for reading first. On equal uniforms it gives the same tokens as ``refspec.speculative``,
token for token: a table has the rows that the clear code computed, and every decision is made of the same
operations on contiguous float64 arrays (a left-to-right ``cumsum``, a comparison without division). It takes floats
alone; fractions are for the clear code.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from refspec.distribution import (
    Rows,
    as_count,
    as_numbers,
    as_tokens,
    cumulative,
    is_exact,
    narrower_type,
    sum_tolerance,
)
from refspec.stopping import Stopping, as_stopping
from refspec.table import UNKNOWN, Table

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
NOTHING = -1  # pads drafted tokens and emitted tokens
FEW = 16  # up to this vocabulary a loop over tokens is faster than one over chains


def index(weights: Floats, u: Floats) -> Ints:  # [B, V], [B] -> [B]
    """Return for each row the index that its uniform selects; as ``refspec.chance.Number.index``."""
    return index_at(np.cumsum(weights, axis=-1), u)


def index_at(edges: Floats, u: Floats) -> Ints:  # [B, V], [B] -> [B]
    """Return the indices that the uniforms select, from cumulative weights."""
    totals = edges[:, -1]
    thresholds = u * totals
    if edges.shape[1] > FEW:
        reached = (edges > thresholds[:, None]) | (edges == totals[:, None])
        return np.asarray(np.argmax(reached, axis=1), dtype=np.intp)
    chosen = np.zeros(len(edges), dtype=np.intp)
    for column in edges.T[:-1]:  # edges ascend: the first that is reached is the number of those that are not
        chosen += ~((column > thresholds) | (column == totals))
    return chosen


def at(matrix: NDArray[Any], rows: Ints, columns: Ints) -> NDArray[Any]:
    """Return ``matrix[rows, columns]``, for indices of one shape; a flat lookup is several times faster."""
    return np.asarray(matrix.ravel().take(rows * matrix.shape[1] + columns))


def verify_draft(
    *, target_rows: ArrayLike, draft_rows: ArrayLike, draft_tokens: ArrayLike, accept_u: ArrayLike, final_u: ArrayLike
) -> Ints:
    """Verify B drafts at once; as ``refspec.speculative.verify_draft`` on each.

    Parameters
    ----------
    target_rows : [B, K+1, V]
    draft_rows : [B, K, V]
    draft_tokens : [B, K]  a ragged batch pads the end of a draft with -1; a padded row of either model is not
        read, and the bonus row of a draft of k tokens is ``target_rows[b, k]``
    accept_u : [B, K]  uniforms in [0, 1)
    final_u : [B]  uniforms in [0, 1)

    Returns
    -------
    [B, K+1]  the emitted tokens, -1 after the last

    Raises
    ------
    ValueError  as the clear code, and names the batch entry
    """
    targets, drafts, tokens, coins, finals = _checked(target_rows, draft_rows, draft_tokens, accept_u, final_u)
    chain, position = np.arange(len(tokens)), np.arange(tokens.shape[1])
    read = np.maximum(tokens, 0)
    target_mass = targets[chain[:, None], position, read]  # [B, K]
    draft_mass = drafts[chain[:, None], position, read]
    kept, rejected = accepted_prefix(target_mass, draft_mass, tokens, coins)
    weights = targets[chain, kept]
    weights[rejected] = recovery(weights[rejected], drafts[chain[rejected], kept[rejected]])
    return _with_final(tokens, kept, index(weights, finals))


def accepted_prefix(
    target_mass: Floats, draft_mass: Floats, draft_tokens: Ints, accept_u: Floats
) -> tuple[Ints, NDArray[np.bool_]]:  # four of [B, K] -> [B], [B]
    """Return how many drafted tokens each chain keeps, and whether it rejected one."""
    drafted = draft_tokens != NOTHING
    accepted = drafted & ((target_mass >= draft_mass) | (accept_u * draft_mass < target_mass))
    kept = np.cumprod(accepted, axis=1).sum(axis=1)
    return kept, np.asarray(kept < drafted.sum(axis=1))


def recovery(target_rows: Floats, draft_rows: Floats) -> Floats:  # [B, V], [B, V] -> [B, V]
    """Return the weights that replace a rejected token; as ``refspec.rejection.recovery``."""
    weights = np.maximum(target_rows - draft_rows, 0)
    return np.where(weights.any(axis=1, keepdims=True), weights, target_rows)


def _with_final(draft_tokens: Ints, kept: Ints, final: Ints) -> Ints:  # [B, K], [B], [B] -> [B, K+1]
    """Return the kept tokens, the final one, and -1 to the end."""
    emitted = np.pad(draft_tokens, ((0, 0), (0, 1)), constant_values=NOTHING)
    emitted[np.arange(emitted.shape[1]) > kept[:, None]] = NOTHING
    emitted[np.arange(len(emitted)), kept] = final
    return emitted


def _checked(
    target_rows: ArrayLike, draft_rows: ArrayLike, draft_tokens: ArrayLike, accept_u: ArrayLike, final_u: ArrayLike
) -> tuple[Floats, Floats, Ints, Floats, Floats]:
    """Return the five inputs as arrays, or refuse them. Rows that are not read come back as zeros."""
    tokens = np.asarray(draft_tokens)
    if tokens.ndim != 2 or tokens.dtype.kind not in "iu":
        raise ValueError(f"draft_tokens: {tokens.dtype} {tokens.shape}; expected integers [B, K]")
    chains, lookahead = tokens.shape
    drafted = tokens != NOTHING
    scored = np.arange(lookahead + 1) <= drafted.sum(axis=1)[:, None]  # [B, K+1] which target rows are read
    targets = _checked_rows(target_rows, "target", scored)
    drafts = _checked_rows(draft_rows, "draft", drafted)
    if targets.shape[2] != drafts.shape[2]:
        raise ValueError(f"vocabularies differ: target {targets.shape[2]}, draft {drafts.shape[2]}")
    after_a_gap = drafted & (np.cumsum(~drafted, axis=1) > 0)
    _refuse_first(after_a_gap, "draft_tokens", tokens, "padding at the end only")
    outside = drafted & ~((tokens >= 0) & (tokens < targets.shape[2]))
    _refuse_first(outside, "draft_tokens", tokens, f"0 to {targets.shape[2] - 1}")
    mass = np.take_along_axis(drafts, np.maximum(tokens, 0)[:, :, None], axis=2)[:, :, 0]
    _refuse_first(drafted & ~(mass > 0), "draft mass of a drafted token", mass, "a drafted token to have mass")
    coins = _checked_uniforms(accept_u, "accept_u", (chains, lookahead))
    return targets, drafts, tokens.astype(np.intp), coins, _checked_uniforms(final_u, "final_u", (chains,))


def _checked_rows(values: ArrayLike, name: str, read: NDArray[np.bool_]) -> Floats:  # [B, n, V], [B, n]
    rows = as_numbers(values, name=name, axes=3)
    _refuse_fractions(rows, f"{name}: fractions")
    _refuse_shape(rows, name, (*read.shape, rows.shape[2]))
    if rows.shape[2] == 0:
        raise ValueError(f"{name}: no entries; expected a vocabulary of 1 or more")
    if not read.all():
        rows = np.where(read[:, :, None], rows, 0.0)
    _refuse_first(read[:, :, None] & ~(rows >= 0), name, rows, "a probability")
    if rows.size:
        tolerance = sum_tolerance(np.asarray(values).dtype, rows.shape[2])
        sums = cumulative(rows)[:, :, -1]
        wrong = read & ~(abs(sums - 1) <= tolerance)
        hint = narrower_type(rows[wrong][0]) if wrong.any() else ""
        _refuse_first(wrong, f"sum of {name} row", sums, f"1 (within {tolerance:.2g}){hint}")
    return rows


def _checked_uniforms(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    uniforms = np.asarray(values, dtype=np.float64)
    _refuse_shape(uniforms, name, shape)
    _refuse_first(~((uniforms >= 0) & (uniforms < 1)), name, uniforms, "0 <= u < 1")
    return uniforms


def _refuse_fractions(rows: Rows, what: str) -> None:
    if is_exact(rows):
        raise ValueError(f"{what}; the twin takes floats, the clear code takes both")


def _refuse_shape(array: Rows, name: str, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name}: shape {array.shape}; expected {shape} (are the roles swapped?)")


def _refuse_first(wrong: NDArray[np.bool_], name: str, values: Rows, expected: str) -> None:
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"{name}{list(first)}: {values[first]}; expected {expected}")


def propose(table: Table, states: Ints, draft_u: Floats, drafted: Ints) -> tuple[Ints, Ints]:
    """Draw for each chain as many tokens as it drafts; return them with the draft states they were drawn in.

    states [B], draft_u [B, K], drafted [B] -> [B, K], [B, K]; -1 after the last token of a chain.
    """
    _refuse_fractions(table.rows, "a table of fractions")
    edges = np.cumsum(table.rows, axis=1)
    tokens = np.empty(draft_u.shape, dtype=np.intp)
    visited = np.empty(draft_u.shape, dtype=np.intp)
    for i in range(draft_u.shape[1]):
        visited[:, i] = states
        tokens[:, i] = np.where(i < drafted, index_at(edges[states], draft_u[:, i]), NOTHING)
        states = following(table, states, tokens[:, i])
    return tokens, visited


def following(table: Table, states: Ints, tokens: Ints) -> Ints:  # [B], [B] -> [B]
    """Return the state after a token; a padded token leaves the state as it is."""
    after = np.where(tokens == NOTHING, states, at(table.successors, states, np.maximum(tokens, 0)))
    if (after == UNKNOWN).any():
        raise ValueError("a chain went beyond the depth of its table; expected one compiled for longer outputs")
    return after


def follow(table: Table, states: Ints, tokens: Ints) -> Ints:  # [B], [B, K] -> [B, K+1]
    """Return the state before each token and after the last."""
    path = [states]
    for column in tokens.T:
        path.append(following(table, path[-1], column))
    return np.stack(path, axis=1)


def speculative_step(
    *, target: Table, draft: Table, target_states: Ints, draft_states: Ints, uniforms: Floats, drafted: Ints
) -> Ints:
    """Run one loop for each chain; as ``refspec.speculative.speculative_step``.

    target_states [B], draft_states [B]; uniforms [B, 2K+1]: K of ``draft_u``, K of ``accept_u``, ``final_u``;
    drafted [B]: how many tokens each chain drafts, at most K. Returns the emitted tokens [B, K+1].
    """
    lookahead = uniforms.shape[1] // 2
    _refuse_shape(uniforms, "uniforms", (len(target_states), 2 * lookahead + 1))
    draft_u, accept_u, final_u = uniforms[:, :lookahead], uniforms[:, lookahead:-1], uniforms[:, -1]
    tokens, visited = propose(draft, draft_states, draft_u, drafted)
    _refuse_fractions(target.rows, "a table of fractions")
    scored = follow(target, target_states, tokens)  # [B, K+1]
    read = np.maximum(tokens, 0)
    target_mass, draft_mass = at(target.rows, scored[:, :-1], read), at(draft.rows, visited, read)  # [B, K]
    kept, rejected = accepted_prefix(target_mass, draft_mass, tokens, accept_u)
    chain = np.arange(len(tokens))
    weights = target.rows[scored[chain, kept]]
    weights[rejected] = recovery(weights[rejected], draft.rows[visited[chain[rejected], kept[rejected]]])
    return _with_final(tokens, kept, index(weights, final_u))


def generate(
    *,
    target: Table,
    draft: Table,
    prompts: Sequence[Sequence[int]],
    lookahead: int,
    max_new_tokens: int | Sequence[int],
    uniforms: Callable[[Ints], Floats],
    end_tokens: Collection[int] = (),
    stop_sequences: Collection[Sequence[int]] = (),
) -> Ints:
    """Continue B prompts, of any lengths, that both tables start from; as ``refspec.speculative.generate`` on each.

    ``uniforms(chains)`` returns [len(chains), 2K+1] for the next loop of those chains, as ``speculative_step``
    takes them. ``max_new_tokens`` is one cap, or [B]. The knobs are those that the tables were compiled with, and so is
    ``min_tokens``. Returns the new tokens [B, the largest cap], -1 after the last.
    """
    as_count(lookahead, name="lookahead")
    outputs = _Outputs(_caps(max_new_tokens, len(prompts)))
    stopping = _stopping(target, end_tokens, stop_sequences, outputs.tokens.shape[1])
    target_states, draft_states = start_states(target, prompts), start_states(draft, prompts)
    chains = np.flatnonzero(outputs.caps > 0)
    while len(chains):
        block = speculative_step(
            target=target,
            draft=draft,
            target_states=target_states[chains],
            draft_states=draft_states[chains],
            uniforms=_checked_uniforms(uniforms(chains), "uniforms", (len(chains), 2 * lookahead + 1)),
            drafted=outputs.drafted(chains, lookahead),
        )
        block, going_on = outputs.take(chains, block, stopping)
        chains, block = chains[going_on], block[going_on]
        target_states[chains] = follow(target, target_states[chains], block)[:, -1]
        draft_states[chains] = follow(draft, draft_states[chains], block)[:, -1]
    return outputs.tokens


def _stopping(
    target: Table, end_tokens: Collection[int], stop_sequences: Collection[Sequence[int]], longest: int
) -> Stopping:
    """Return what ends an output, or refuse end tokens that are not those which the target's minimum bans."""
    stopping = as_stopping(
        end_tokens=end_tokens,
        stop_sequences=stop_sequences,
        min_tokens=target.min_tokens,
        max_new_tokens=longest,
        vocabulary=target.vocabulary,
    )
    ends = stopping.end_tokens
    if target.min_tokens and set(ends) != set(target.end_tokens):
        raise ValueError(f"end tokens {ends}: the target's table bans {target.end_tokens} below its minimum")
    return stopping


class _Outputs:
    """The outputs of all chains so far: tokens [B, L], -1 after the last of each; lengths [B]; caps [B]."""

    def __init__(self, caps: Ints) -> None:
        self.caps = caps
        self.lengths = np.zeros_like(caps)
        self.tokens = np.full((len(caps), caps.max(initial=0)), NOTHING, dtype=np.intp)

    def drafted(self, chains: Ints, lookahead: int) -> Ints:
        return np.asarray(np.minimum(lookahead, self.caps[chains] - self.lengths[chains] - 1))

    def take(self, chains: Ints, block: Ints, stopping: Stopping) -> tuple[Ints, NDArray[np.bool_]]:
        """Append to each chain what its output takes of its block; return that, and which of the chains go on."""
        places = self.lengths[chains][:, None] + np.arange(block.shape[1])
        block, ended = _cut(block, self.tokens[chains], places, stopping)
        emitted = block != NOTHING
        self.tokens[np.broadcast_to(chains[:, None], places.shape)[emitted], places[emitted]] = block[emitted]
        self.lengths[chains] += emitted.sum(axis=1)
        return block, ~ended & (self.lengths[chains] < self.caps[chains])


def _caps(max_new_tokens: int | Sequence[int], chains: int) -> Ints:
    given = [max_new_tokens] if np.ndim(max_new_tokens) == 0 else list(max_new_tokens)  # type: ignore[arg-type]
    caps = np.array([as_count(cap, name="max_new_tokens") for cap in given], dtype=np.intp)  # type: ignore[arg-type]
    if len(caps) not in (1, chains):
        raise ValueError(f"max_new_tokens: {len(caps)} caps for {chains} prompts; expected one, or one for each")
    return np.array(np.broadcast_to(caps, (chains,)))


def _cut(block: Ints, output: Ints, places: Ints, stopping: Stopping) -> tuple[Ints, NDArray[np.bool_]]:
    """Remove what comes after the first token of each block that ends its output; say which blocks have one.

    [B, K+1], [B, L], [B, K+1] -> [B, K+1], [B]
    """
    longest = max((len(sequence) for sequence in stopping.sequences), default=1)
    before = places[:, :1] - np.arange(longest - 1, 0, -1)  # [B, longest - 1] the last places of the output
    known = np.where(before < 0, NOTHING, np.take_along_axis(output, np.maximum(before, 0), axis=1))
    recent = np.concatenate([known, block], axis=1)
    ends = np.zeros(block.shape, dtype=bool)
    for sequence in stopping.sequences:
        first, width = longest - len(sequence), block.shape[1]
        columns = [recent[:, first + i : first + i + width] == token for i, token in enumerate(sequence)]
        ends |= np.logical_and.reduce(columns)
    ends &= places >= stopping.min_tokens
    after = np.cumsum(ends, axis=1) - ends > 0
    return np.where(after, NOTHING, block), np.asarray(ends.any(axis=1))


def start_states(table: Table, prompts: Sequence[Sequence[int]]) -> Ints:  # B prompts -> [B]
    """Return the state of a table after each of its prompts."""
    states = []
    for prompt in prompts:
        tokens = as_tokens(prompt, vocabulary=table.vocabulary, name="prompt")
        if tokens not in table.starts:
            raise ValueError(f"prompt {tokens}: the table does not start from it; expected one of its prompts")
        states.append(table.starts[tokens])
    return np.array(states, dtype=np.intp)
