"""``next-token-identity``: necessary and sufficient for a lossless call on a full tree; merged by state, necessary."""

from verification.properties.base import LOSSLESS, STATISTICAL, Property, StatisticalJudge, next_token_judge
from verification.scenario import Scenario


class NextTokenIdentity(Property):
    """Whatever the prefix, and whatever decided that the block goes on, the next token follows the target's row."""

    id = "next-token-identity"
    sentence = "after each prefix of a block, the next token follows the target's row"
    profile = LOSSLESS
    tier = STATISTICAL
    source = "Chen et al. 2023, Theorem 1, applied to each position of a block"
    measures = "joint"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        return next_token_judge(scenario)
