"""``seeded``: the seed decides everything."""

from collections.abc import Callable

import numpy as np

from verification.properties.base import DETERMINISTIC, Examined, Property
from verification.scenario import Ints, Scenario

CALLS = 64


class Seeded(Property):
    """The same seed gives the same tokens; 64 calls with another seed are not all the same.

    That they are all the same by chance has probability (sum of squares of the block law)**64: below 1e-19 where
    the likeliest block has probability 1/2 at most.
    """

    id = "seeded"
    sentence = "the same seed gives the same tokens, another seed gives others"
    profile = "seeded"
    tier = DETERMINISTIC
    source = "the adapter protocol: randomness comes from the seed"

    def examine(self, scenario: Scenario, call: Callable[[Scenario, int, int], Ints], seed: int) -> Examined:
        once, again, other = (call(scenario, CALLS, number) for number in (seed, seed, seed + 1))
        failure = None
        if not np.array_equal(once, again):
            failure = f"seed {seed} twice: {int((once != again).any(axis=1).sum())} of {CALLS} calls differ"
        elif np.array_equal(once, other):
            failure = f"seeds {seed} and {seed + 1}: all {CALLS} calls are the same"
        return Examined(failure, "the seed decides the tokens", samples=3 * CALLS)
