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
        return sound_reply(scenario, least=1, most=scenario.lookahead + 1)


def sound_reply(scenario: Scenario, *, least: int, most: int) -> DeterministicJudge:
    """Judge the shape of a reply; nothing else can be said of one that is malformed."""

    def malformed(tokens: Ints) -> NDArray[np.bool_]:
        lengths = (tokens != NOTHING).sum(axis=1)
        return np.asarray((lengths < least) | (lengths > most) | malformed_tokens(tokens, scenario.vocabulary))

    def describe(reply: tuple[int, ...]) -> str:
        return f"{reply} is not {least} to {most} tokens in 0..{scenario.vocabulary - 1}, then -1"

    return DeterministicJudge(malformed, describe)


def malformed_tokens(tokens: Ints, vocabulary: int) -> NDArray[np.bool_]:  # [B, n] -> [B]
    """Return which replies have an id outside the vocabulary, or a token after the first -1."""
    over = np.cumsum(tokens == NOTHING, axis=1) > 0
    outside = ~over & ((tokens < 0) | (tokens >= vocabulary))
    return np.asarray((outside | (over & (tokens != NOTHING))).any(axis=1))
