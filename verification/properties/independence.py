"""``independence``: successive calls do not know of each other."""

from dataclasses import dataclass, field

import numpy as np

from verification.properties.base import LOSSLESS, STATISTICAL, Property, StatisticalJudge
from verification.scenario import Ints, Scenario
from verification.statistics.evidence import Law

WHERE = ("one place before", "two places before", "four places before", "half a batch before", "in the batch before")
SHARES = (1 / 4, 1 / 4, 1 / 4, 1 / 16, 1 / 8)  # of the calls, by where they look; a first half has no half before it


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
        vocabulary = len(row)
        reach = np.concatenate([share * row for share in SHARES])
        law = Law(np.tile(row, (len(SHARES) * vocabulary, 1)), reach)

        def label(node: int, symbol: int) -> str:
            kind, other = divmod(node, vocabulary)
            return f"first token {symbol} where it is {other} {WHERE[kind]}"

        return StatisticalJudge(law, _Neighbours(vocabulary).read, label)


@dataclass
class _Neighbours:
    """Pairs of first tokens. Each token is predicted once, from one that came before it: of eight places, two look one
    back, two look two back, two look four back, one half a batch back, and one at its place in the batch before.
    """

    vocabulary: int
    before: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def read(self, tokens: Ints) -> tuple[Ints, Ints]:
        first = tokens[:, 0]
        place = np.arange(len(first))
        kind = np.array([4, 0, 0, 1, 1, 2, 2, 3])[place % 8]
        lag = np.array([1, 2, 4, max(len(first) // 2, 1), 0])[kind]
        there = np.where(kind < 4, place >= lag, len(self.before) > 0)
        other = first[np.maximum(place - lag, 0)]
        if len(self.before):
            other = np.where(kind < 4, other, self.before[place % len(self.before)])
        self.before = first
        return (kind * self.vocabulary + other)[there], first[there]
