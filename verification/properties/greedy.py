"""``greedy``: temperature 0 is the target's first maximum, token by token."""

import numpy as np
from numpy.typing import NDArray

from verification.properties.base import DETERMINISTIC, LOSSLESS, DeterministicJudge, Property
from verification.scenario import NOTHING, Ints, Scenario, follow


class Greedy(Property):
    """Both models are one-hot at their first maximum; no draft can change the text."""

    id = "greedy"
    sentence = "at temperature 0 the tokens are those of the target's greedy decoding, the first maximum of ties"
    profile = LOSSLESS
    tier = DETERMINISTIC
    source = "Chen et al. 2023, Table 1, greedy rows: the same rule on one-hot rows"

    def judge(self, scenario: Scenario) -> DeterministicJudge:
        best = scenario.target.rows.argmax(axis=1)  # [S]

        def expected(tokens: Ints) -> Ints:  # [B, n] -> [B, n]
            return np.asarray(best[follow(scenario.target, scenario.start[0], tokens)[:, :-1]])

        def wrong(tokens: Ints) -> NDArray[np.bool_]:
            return np.asarray(((tokens != NOTHING) & (tokens != expected(tokens))).any(axis=1))

        def describe(reply: tuple[int, ...]) -> str:
            return f"{reply} where greedy decoding gives {tuple(expected(np.array([reply]))[0].tolist())}"

        return DeterministicJudge(wrong, describe)
