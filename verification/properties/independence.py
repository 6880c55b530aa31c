"""``independence``: successive calls do not know of each other."""

from dataclasses import dataclass, field

import numpy as np

from verification.properties.base import LOSSLESS, STATISTICAL, Property, StatisticalJudge
from verification.scenario import Ints, Scenario
from verification.statistics.evidence import Law


class Independence(Property):
    """The first token of a call, given the first token of the call before it: in a batch, and from seed to seed."""

    id = "independence"
    sentence = "successive calls, in one batch and with successive seeds, are independent"
    profile = LOSSLESS
    tier = STATISTICAL
    source = "Chen et al. 2023, Algorithm 2: each call has uniforms of its own"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        row = scenario.target.rows[scenario.start[0]]
        vocabulary = len(row)
        law = Law(np.tile(row, (2 * vocabulary, 1)), np.tile(row / 2, 2))

        def label(node: int, symbol: int) -> str:
            neighbour = "the neighbour in the batch" if node < vocabulary else "the same place of the batch before"
            return f"first token {symbol} beside {node % vocabulary} in {neighbour}"

        return StatisticalJudge(law, _Neighbours(vocabulary).read, label)


@dataclass
class _Neighbours:
    """Pairs of first tokens. Odd places look at their neighbour, even ones at their own place a batch earlier:
    each token is predicted once, from tokens that came before it.
    """

    vocabulary: int
    before: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def read(self, tokens: Ints) -> tuple[Ints, Ints]:
        even, odd = tokens[::2, 0], tokens[1::2, 0]
        again = min(len(self.before), len(even))
        nodes = np.concatenate([even[: len(odd)], self.vocabulary + self.before[:again]])
        symbols = np.concatenate([odd, even[:again]])
        self.before = even
        return nodes, symbols
