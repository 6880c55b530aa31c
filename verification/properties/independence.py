"""``independence``: successive calls do not know of each other."""

from dataclasses import dataclass, field

import numpy as np

from verification.properties.base import LOSSLESS, STATISTICAL, Property, StatisticalJudge
from verification.scenario import Ints, Scenario
from verification.statistics.evidence import Law

LAGS = (1, 2, 4)


class Independence(Property):
    """The first token of a call, given that of another: near it in the batch, or at its place in the batch before."""

    id = "independence"
    sentence = "calls are independent: those of one batch, and those of batches with different seeds"
    profile = LOSSLESS
    tier = STATISTICAL
    source = "Chen et al. 2023, Algorithm 2: each call has uniforms of its own"
    measures = "two tokens"
    after = ("next-token-identity", "knobs-before-rule", "complete-output")

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        row = scenario.target.rows[scenario.start[0]]
        vocabulary, kinds = len(row), len(LAGS) + 1
        law = Law(np.tile(row, (kinds * vocabulary, 1)), np.tile(row / kinds, kinds))

        def label(node: int, symbol: int) -> str:
            kind, other = divmod(node, vocabulary)
            where = f"{LAGS[kind]} places before" if kind < len(LAGS) else "at the same place of the batch before"
            return f"first token {symbol} where it is {other} {where}"

        return StatisticalJudge(law, _Neighbours(vocabulary).read, label)


@dataclass
class _Neighbours:
    """Pairs of first tokens. Each token is predicted once, from a token that came before it: by its place in the
    batch, two of eight look 1, 2 or 4 places back, and two at the batch before.
    """

    vocabulary: int
    before: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def read(self, tokens: Ints) -> tuple[Ints, Ints]:
        first = tokens[:, 0]
        place = np.arange(len(first))
        kind = (place - 1) % 8 // 2  # 0, 1, 2: a lag; 3: the batch before
        nodes, symbols = [], []
        for k, lag in enumerate(LAGS):
            at = place[(kind == k) & (place >= lag)]
            nodes.append(k * self.vocabulary + first[at - lag])
            symbols.append(first[at])
        if len(self.before):
            at = place[kind == len(LAGS)]
            nodes.append(len(LAGS) * self.vocabulary + self.before[at % len(self.before)])
            symbols.append(first[at])
        self.before = first
        return np.concatenate(nodes), np.concatenate(symbols)
