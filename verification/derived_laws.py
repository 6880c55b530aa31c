"""The exact laws a second time: products of minima and of positive parts, by recursion over prefixes.

Imports nothing of ``refspec``: two derivations that cannot see each other. For a standard rule

    P(the block is exactly y_1 .. y_m) = prod_{i<m} min(target_i, draft_i)(y_i) * max(target_m - draft_m, 0)(y_m)

for m <= K, and with the bonus row in place of the positive part for m = K+1.
"""

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Chain(Protocol):
    """The rows of a model, state by state [S, V], and the state that each token leads to [S, V]."""

    @property
    def rows(self) -> NDArray[Any]: ...

    @property
    def successors(self) -> NDArray[np.intp]: ...


class Level(NamedTuple):
    """All situations in which i tokens are out and one more comes: the states of both models, and their weights.

    In a level of prefixes, entry ``code`` is the prefix whose tokens are the digits of ``code`` in base V.
    """

    target_states: NDArray[np.intp]
    draft_states: NDArray[np.intp]
    weight: NDArray[Any]


def accepted_levels(target: Chain, draft: Chain, start: tuple[int, int], lookahead: int) -> list[Level]:
    """Return the levels 0 to K of one loop; the weight is the probability that the prefix is accepted."""
    levels = [Level(np.array([start[0]]), np.array([start[1]]), np.array([1]))]
    for _ in range(lookahead):
        targets, drafts, weight = levels[-1]
        shared = np.minimum(target.rows[targets], draft.rows[drafts])  # [V**i, V]
        levels.append(
            Level(
                target.successors[targets].ravel(), draft.successors[drafts].ravel(), (weight[:, None] * shared).ravel()
            )
        )
    return levels


def merged_levels(target: Chain, draft: Chain, start: tuple[int, int], lookahead: int) -> list[Level]:
    """Return the same levels with prefixes merged that lead both models to the same states, in ascending order."""
    levels = [Level(np.array([start[0]]), np.array([start[1]]), np.array([1.0]))]
    for _ in range(lookahead):
        targets, drafts, weight = levels[-1]
        shared = (weight[:, None] * np.minimum(target.rows[targets], draft.rows[drafts])).ravel()
        codes = joint_codes(target.successors[targets].ravel(), draft.successors[drafts].ravel(), draft)
        states, where = np.unique(codes, return_inverse=True)
        count = len(draft.rows)
        levels.append(Level(states // count, states % count, np.bincount(where.ravel(), weights=shared)))
    return levels


def joint_codes(target_states: NDArray[np.intp], draft_states: NDArray[np.intp], draft: Chain) -> NDArray[np.intp]:
    """Return one number for a pair of states."""
    return target_states * len(draft.rows) + draft_states


def block_law(target: Chain, draft: Chain, levels: list[Level]) -> NDArray[Any]:
    """Return the law of the block of the standard rule: the blocks of 1 token, then of 2, ... of K+1, by code."""
    parts = []
    for targets, drafts, weight in levels[:-1]:
        rejected = np.maximum(target.rows[targets] - draft.rows[drafts], 0)
        parts.append((weight[:, None] * rejected).ravel())
    targets, _, weight = levels[-1]
    parts.append((weight[:, None] * target.rows[targets]).ravel())
    return np.concatenate(parts)


def count_law(levels: list[Level]) -> NDArray[Any]:
    """Return P(the block has m tokens) for m = 1 to K+1."""
    survived = np.array([level.weight.sum() for level in levels])
    return np.append(survived[:-1] - survived[1:], survived[-1])


def output_levels(
    target: Chain, start: int, length: int, stop: Collection[tuple[int, ...]], least: int = 0
) -> list[Level]:
    """Return the levels 0 to length-1 of a whole output; the weight is the target's, 0 after a stop.

    An output stops with a sequence of ``stop``, unless its last token is among the first ``least``.
    """
    levels = [Level(np.array([start]), np.array([0]), np.array([1]))]
    for out in range(1, length):
        targets, _, weight = levels[-1]
        going_on = ~stopped(out, target.rows.shape[1], stop) | (out <= least)
        after = target.successors[targets].ravel()
        reached = np.where(going_on, (weight[:, None] * target.rows[targets]).ravel(), 0)
        levels.append(Level(after, np.zeros_like(after), reached))
    return levels


def stopped(length: int, vocabulary: int, stop: Collection[tuple[int, ...]]) -> NDArray[np.bool_]:
    """Return for the code of each output of a length whether it ends in one of the sequences."""
    codes = np.arange(vocabulary**length)
    ended = np.zeros(len(codes), dtype=bool)
    for sequence in stop:
        if len(sequence) <= length:
            tail = sum(token * vocabulary**i for i, token in enumerate(reversed(sequence)))
            ended |= codes % vocabulary ** len(sequence) == tail
    return ended
