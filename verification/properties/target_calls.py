"""``target-calls``: one call of the target a loop."""

from collections.abc import Callable
from dataclasses import replace

from refspec.model import CountedModel
from verification.properties.base import DETERMINISTIC, Examined, Property
from verification.scenario import Ints, Scenario

CALLS = 32


class TargetCalls(Property):
    """Proved by a target that counts: what makes speculative sampling fast is that K+1 positions cost one call."""

    id = "target-calls"
    sentence = "a loop calls the target once"
    profile = "target-calls"
    tier = DETERMINISTIC
    source = "Chen et al. 2023, Algorithm 2: the K+1 distributions are computed in parallel"

    def examine(self, scenario: Scenario, call: Callable[[Scenario, int, int], Ints], seed: int) -> Examined:
        counted = CountedModel(scenario.pair.target)
        call(replace(scenario, pair=replace(scenario.pair, target=counted)), CALLS, seed)
        failure = None
        if counted.calls != CALLS:
            failure = f"{CALLS} loops called the target {counted.calls} times; expected {CALLS}"
        return Examined(failure, f"{CALLS} loops called the target {CALLS} times", samples=CALLS)
