"""``block-length``: a call emits something, and never more than K+1 tokens."""

import numpy as np
from numpy.typing import NDArray

from verification.properties.base import DETERMINISTIC, LOSSLESS, DeterministicJudge, Property
from verification.scenario import NOTHING, Ints, Scenario


class BlockLength(Property):
    """Between 1 and K+1 token ids, then -1 to the end: never empty, never a gap, never an id outside [0, V)."""

    id = "block-length"
    sentence = "a call emits 1 to K+1 token ids of the vocabulary, then -1"
    profile = LOSSLESS
    tier = DETERMINISTIC
    source = "Chen et al. 2023, Algorithm 2: an accepted prefix and one token more"

    def judge(self, scenario: Scenario) -> DeterministicJudge:
        return sound_reply(scenario)


def sound_reply(scenario: Scenario, *, may_be_empty: bool = False) -> DeterministicJudge:
    """Judge the shape of a reply; nothing else can be said of one that is malformed."""

    def malformed(tokens: Ints) -> NDArray[np.bool_]:
        empty = tokens[:, 0] == NOTHING if tokens.shape[1] else np.zeros(len(tokens), dtype=bool)
        return np.asarray((empty & (not may_be_empty)) | malformed_tokens(tokens, scenario.vocabulary))

    def describe(reply: tuple[int, ...]) -> str:
        least = 0 if may_be_empty else 1
        return f"{reply} is not {least} to {len(reply)} tokens in 0..{scenario.vocabulary - 1}, then -1"

    return DeterministicJudge(malformed, describe)


def malformed_tokens(tokens: Ints, vocabulary: int) -> NDArray[np.bool_]:  # [B, n] -> [B]
    """Return which replies have an id outside the vocabulary, or a token after the first -1."""
    over = np.cumsum(tokens == NOTHING, axis=1) > 0
    outside = ~over & ((tokens < 0) | (tokens >= vocabulary))
    return np.asarray((outside | (over & (tokens != NOTHING))).any(axis=1))
