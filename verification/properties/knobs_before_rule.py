"""``knobs-before-rule``: the rule sees the rows that the knobs have made."""

from verification.properties.base import LOSSLESS, STATISTICAL, Property, StatisticalJudge, next_token_judge
from verification.scenario import Scenario


class KnobsBeforeRule(Property):
    """The next-token identity where the implementation itself turns the knobs."""

    id = "knobs-before-rule"
    sentence = (
        "knobs change the rows of both models before the rule sees them, penalties by the history of each position"
    )
    profile = LOSSLESS
    tier = STATISTICAL
    source = "Chen et al. 2023: the probabilities are modified first, then the rule is applied"
    measures = "joint"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        return next_token_judge(scenario)
