"""``support``: no token without target mass."""

import numpy as np
from numpy.typing import NDArray

from verification.properties.base import DETERMINISTIC, LOSSLESS, DeterministicJudge, Property
from verification.scenario import NOTHING, Ints, Scenario, follow


class Support(Property):
    """One such token is enough: this needs no statistics and raises no false alarm."""

    id = "support"
    sentence = "a token to which the target gives no mass is never emitted"
    profile = LOSSLESS
    tier = DETERMINISTIC
    source = "Chen et al. 2023, Theorem 1: P(y) = target(y), zero included"

    def judge(self, scenario: Scenario) -> DeterministicJudge:
        target = scenario.target

        def impossible(tokens: Ints) -> NDArray[np.bool_]:  # [B, n] -> [B, n]
            states = follow(target, scenario.start[0], tokens)[:, :-1]
            return np.asarray((tokens != NOTHING) & ~(target.rows[states, np.maximum(tokens, 0)] > 0))

        def describe(reply: tuple[int, ...]) -> str:
            at = int(np.argmax(impossible(np.array([reply]))[0]))
            return f"token {reply[at]} after {reply[:at]} has target mass 0"

        return DeterministicJudge(lambda tokens: np.asarray(impossible(tokens).any(axis=1)), describe)
