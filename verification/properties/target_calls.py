"""``target-calls``: one call of the target a loop."""

from collections.abc import Callable
from dataclasses import replace

from refspec.model import CountedModel
from verification.properties.base import DETERMINISTIC, Examined, Property
from verification.scenario import Ints, Scenario

CALLS = 32


class TargetCalls(Property):
    """Shown by a target that counts its calls: that K+1 positions cost one call is what makes it fast."""

    id = "target-calls"
    sentence = "a loop calls the target once"
    profile = "target-calls"
    tier = DETERMINISTIC
    source = "Chen et al. 2023, Algorithm 2: the K+1 distributions are computed in parallel"

    def examine(self, scenario: Scenario, call: Callable[[Scenario, int, int], Ints], seed: int) -> Examined:
        counted = CountedModel(scenario.pair.target)
        call(replace(scenario, pair=replace(scenario.pair, target=counted)), CALLS, seed)
        loops = CALLS * self._loops(scenario)
        failure = None
        if counted.calls != loops:
            failure = f"{loops} loops called the target {counted.calls} times; expected {loops}"
        return Examined(failure, f"{loops} loops called the target {loops} times", samples=CALLS)

    @staticmethod
    def _loops(scenario: Scenario) -> int:
        """Return how many loops one call runs: one, or for an output what an acceptance of 0 or 1 makes of it."""
        if not scenario.max_new_tokens:
            return 1
        a_loop = scenario.lookahead + 1 if scenario.pair.acceptance == 1 else 1
        return -(-scenario.max_new_tokens // a_loop)
