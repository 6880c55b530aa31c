"""The standard rule on a batch, in parts. A fault replaces one part and leaves the others right."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One batch: what ``verify`` was given, and its own uniforms.

    target_rows [B, K+1, V], draft_rows [B, K, V], draft_tokens [B, K], accept_u [B, K], final_u [B]
    """

    target_rows: Floats
    draft_rows: Floats
    draft_tokens: Ints
    accept_u: Floats
    final_u: Floats

    def mass(self, rows: Floats) -> Floats:  # [B, K or K+1, V] -> [B, K]
        """Return the mass that the rows give to the drafted tokens."""
        lookahead = self.draft_tokens.shape[1]
        return np.take_along_axis(rows[:, :lookahead], self.draft_tokens[:, :, None], axis=2)[:, :, 0]


class Rule:
    """An adapter with the operation ``verify``: the standard rule, unless a part is overridden."""

    claims = frozenset({"lossless", "standard"})

    def verify(self, *, target_rows: Any, draft_rows: Any, draft_tokens: Any, seed: int) -> Ints:
        generator = np.random.default_rng(seed)
        chains, lookahead = np.shape(draft_tokens)
        uniforms = generator.random((chains, lookahead)), generator.random(chains)
        step = Step(target_rows, draft_rows, draft_tokens, *uniforms)
        kept = np.cumprod(self.accepts(step), axis=1).sum(axis=1)  # [B]
        rejected = kept < lookahead
        weights = np.where(rejected[:, None], self.recovery(step, np.minimum(kept, lookahead - 1)), self.bonus(step))
        final = _draw(weights, self.final_u(step, kept, rejected))
        emitted = np.full((chains, lookahead + 1), -1)
        emitted[:, :-1] = np.where(np.arange(lookahead) < kept[:, None], draft_tokens, -1)
        emitted[np.arange(chains), kept] = final
        return emitted

    def accepts(self, step: Step) -> NDArray[np.bool_]:  # -> [B, K]
        """Return which drafted tokens pass their own test."""
        return np.asarray(step.accept_u * step.mass(step.draft_rows) < step.mass(step.target_rows))

    def recovery(self, step: Step, at: Ints) -> Floats:  # [B] -> [B, V]
        """Return the weights that replace the token rejected at each position ``at``."""
        chain = np.arange(len(at))
        return np.maximum(step.target_rows[chain, at] - step.draft_rows[chain, at], 0)

    def bonus(self, step: Step) -> Floats:  # -> [B, V]
        """Return the weights of the token after a fully accepted draft."""
        return step.target_rows[:, -1]

    def final_u(self, step: Step, kept: Ints, rejected: NDArray[np.bool_]) -> Floats:  # -> [B]
        """Return the uniform that draws the last token."""
        return step.final_u


def _draw(weights: Floats, u: Floats) -> Ints:  # [B, V], [B] -> [B]
    edges = np.cumsum(weights, axis=1)
    return np.asarray((edges > u[:, None] * edges[:, -1:]).argmax(axis=1))
