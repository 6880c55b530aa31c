"""The reference itself, through the same door as everybody.

Small counts run the clear code, large ones its twin, on the same uniforms: the tokens are the same either way, and
the property ``twin-equality`` shows it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from refspec import batched, speculative
from refspec.chance import ReplayedChance
from refspec.knobs import SamplingKnobs
from refspec.table import Table, compile_table
from toy_models import Pair

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
Tokens = tuple[int, ...]
FEW = 64


class Reference:
    """``refspec`` as an adapter."""

    claims = frozenset({"lossless", "standard", "seeded", "target-calls"})

    def __init__(self) -> None:
        self._tables: dict[Any, Table] = {}

    def verify(self, *, target_rows: Any, draft_rows: Any, draft_tokens: Any, seed: int) -> Ints:
        generator = np.random.default_rng(seed)
        chains, lookahead = np.shape(draft_tokens)
        return batched.verify_draft(
            target_rows=target_rows,
            draft_rows=draft_rows,
            draft_tokens=draft_tokens,
            accept_u=generator.random((chains, lookahead)),
            final_u=generator.random(chains),
        )

    def draft_and_verify(
        self, *, pair: Pair, prefix: Tokens, lookahead: int, knobs: SamplingKnobs, count: int, seed: int
    ) -> Ints:
        uniforms = np.random.default_rng(seed).random((count, 2 * lookahead + 1))
        if count <= FEW:
            return np.stack([_clear_step(pair, prefix, knobs, row) for row in uniforms])
        target, draft = self._both_tables(pair, prefix, knobs, (), lookahead + 1)
        return batched.speculative_step(
            target=target,
            draft=draft,
            target_states=batched.start_states(target, [prefix] * count),
            draft_states=batched.start_states(draft, [prefix] * count),
            uniforms=uniforms,
            drafted=np.full(count, lookahead),
        )

    def generate(
        self,
        *,
        pair: Pair,
        prompt: Tokens,
        lookahead: int,
        knobs: SamplingKnobs,
        max_new_tokens: int,
        stop: tuple[Tokens, ...],
        count: int,
        seed: int,
    ) -> Ints:
        uniforms = np.random.default_rng(seed).random((max_new_tokens, count, 2 * lookahead + 1))  # a loop, a chain
        if count <= FEW:
            chains = uniforms.swapaxes(0, 1)
            return np.stack([_clear_output(pair, prompt, lookahead, knobs, max_new_tokens, stop, u) for u in chains])
        ends = tuple(sequence[0] for sequence in stop if len(sequence) == 1)
        target, draft = self._both_tables(pair, prompt, knobs, ends, max_new_tokens + lookahead)
        loops = iter(uniforms)
        return batched.generate(
            target=target,
            draft=draft,
            prompts=[prompt] * count,
            lookahead=lookahead,
            max_new_tokens=max_new_tokens,
            uniforms=lambda chains: next(loops)[chains],
            stop_sequences=stop,
        )

    def _both_tables(self, pair: Pair, *rest: Any) -> tuple[Table, Table]:
        return self._table(pair.target, *rest), self._table(pair.draft, *rest)

    def _table(self, model: Any, prompt: Tokens, knobs: SamplingKnobs, end_tokens: Tokens, depth: int) -> Table:
        key = model, prompt, knobs, end_tokens, depth
        if key not in self._tables:
            self._tables[key] = compile_table(
                model,
                prompts=[prompt],
                knobs=knobs,
                end_tokens=end_tokens,
                depth=depth if knobs.looks_back else None,
            )
        return self._tables[key]


def _clear_step(pair: Pair, prefix: Tokens, knobs: SamplingKnobs, uniforms: Floats) -> Ints:  # [2K+1] -> [K+1]
    lookahead = len(uniforms) // 2
    block = speculative.speculative_step(
        target=pair.target,
        draft=pair.draft,
        prefix=prefix,
        lookahead=lookahead,
        knobs=knobs,
        chance=ReplayedChance(**_slots(uniforms)),
    )
    return _padded(block.tokens, lookahead + 1)


def _clear_output(
    pair: Pair,
    prompt: Tokens,
    lookahead: int,
    knobs: SamplingKnobs,
    max_new_tokens: int,
    stop: tuple[Tokens, ...],
    uniforms: Floats,
) -> Ints:  # [loops, 2K+1] -> [max_new_tokens]
    tokens = speculative.generate(
        target=pair.target,
        draft=pair.draft,
        prompt=prompt,
        lookahead=lookahead,
        knobs=knobs,
        max_new_tokens=max_new_tokens,
        stop_sequences=stop,
        chance=ReplayedChance.over([_slots(row) for row in uniforms]),
    )
    return _padded(tokens, max_new_tokens)


def _slots(uniforms: Floats) -> dict[str, Floats]:
    lookahead = len(uniforms) // 2
    return {"draft_u": uniforms[:lookahead], "accept_u": uniforms[lookahead:-1], "final_u": uniforms[-1:]}


def _padded(tokens: Tokens, length: int) -> Ints:
    return np.array(tokens + (batched.NOTHING,) * (length - len(tokens)), dtype=np.intp)
