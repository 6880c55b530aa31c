"""``twin-equality``: the fast code that is sampled is the clear code that is proved."""

import numpy as np

from refspec import batched
from refspec.chance import ReplayedChance
from refspec.history import History
from refspec.speculative import speculative_step
from verification.properties.base import DETERMINISTIC, REFERENCE, Examined, Property
from verification.scenario import NOTHING, Scenario

LOOPS = 100


class TwinEquality(Property):
    """Token for token on equal uniforms, half of them coarse, so that ties and edges are met."""

    id = "twin-equality"
    sentence = "the vectorised twin emits the tokens of the clear code, on equal uniforms"
    profile = REFERENCE
    tier = DETERMINISTIC
    source = "refspec.batched"

    def prove(self, scenario: Scenario) -> Examined:
        lookahead = scenario.lookahead
        uniforms = np.random.default_rng(0).random((LOOPS, 2 * lookahead + 1))
        uniforms[::2] = np.floor(uniforms[::2] * 20) / 20
        emitted = batched.speculative_step(
            target=scenario.target,
            draft=scenario.draft,
            target_states=np.full(LOOPS, scenario.start[0]),
            draft_states=np.full(LOOPS, scenario.start[1]),
            uniforms=uniforms,
            drafted=np.full(LOOPS, lookahead),
        )
        for row, tokens in zip(uniforms, emitted, strict=True):
            block = speculative_step(
                target=scenario.pair.target,
                draft=scenario.pair.draft,
                prefix=History(scenario.prompt, end_tokens=scenario.end_tokens),
                lookahead=lookahead,
                knobs=scenario.knobs,
                chance=ReplayedChance(draft_u=row[:lookahead], accept_u=row[lookahead:-1], final_u=row[-1]),
            )
            if block.tokens != tuple(tokens[tokens != NOTHING]):
                return Examined(f"uniforms {row.tolist()}: clear code {block.tokens}, twin {tokens.tolist()}", "")
        return Examined(None, f"{LOOPS} loops", samples=LOOPS)
