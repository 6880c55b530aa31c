"""``block-law``: the block is that of the standard rule, its length included."""

import numpy as np

from verification.properties.base import STANDARD, STATISTICAL, Property, StatisticalJudge, digits
from verification.scenario import NOTHING, Ints, Scenario
from verification.statistics.evidence import Law


class BlockLaw(Property):
    """The exact law of the whole block: what a lossless but different rule does not have."""

    id = "block-law"
    sentence = "the block has the exact law of the standard rule"
    profile = STANDARD
    tier = STATISTICAL
    source = "Chen et al. 2023, Algorithm 2; the law in verification.derived_laws"
    measures = "block"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        vocabulary = scenario.vocabulary
        offsets = np.cumsum([0, *(vocabulary**length for length in range(1, scenario.lookahead + 2))])

        def read(tokens: Ints) -> tuple[Ints, Ints]:
            code = np.zeros(len(tokens), dtype=np.intp)
            for column in tokens.T:
                code = np.where(column == NOTHING, code, code * vocabulary + column)
            lengths = (tokens != NOTHING).sum(axis=1)
            return np.zeros_like(code), offsets[lengths - 1] + code

        def label(node: int, symbol: int) -> str:
            length = int(np.searchsorted(offsets, symbol, side="right"))
            return f"block {digits(symbol - offsets[length - 1], length, vocabulary)}"

        law = Law(scenario.block_law.astype(np.float64)[None], np.ones(1))
        return StatisticalJudge(law, read, label)
