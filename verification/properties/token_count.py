"""``token-count``: how many tokens a call emits, against the law of that number."""

import numpy as np
from numpy.typing import NDArray

from refspec import theory
from refspec.knobs import PLAIN
from verification import derived_laws
from verification.properties.base import STANDARD, STATISTICAL, Property, StatisticalJudge
from verification.scenario import NOTHING, Ints, Scenario
from verification.statistics.evidence import Law


class TokenCount(Property):
    """The whole law of the number: the capped geometric one where acceptance is constant, else the exact one."""

    id = "token-count"
    sentence = "the number of tokens of a call has the exact law of the standard rule"
    profile = STANDARD
    tier = STATISTICAL
    source = "Leviathan et al. 2022, Equation 1, for a constant acceptance rate; the law in verification.derived_laws"
    measures = "count"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        def read(tokens: Ints) -> tuple[Ints, Ints]:
            lengths = (tokens != NOTHING).sum(axis=1)
            return np.zeros_like(lengths), lengths - 1

        numbers = np.arange(1, scenario.lookahead + 2)
        law = Law(number_law(scenario)[None], np.ones(1))

        def note(counts: NDArray[np.int64]) -> str:
            mean = (counts[0] * numbers).sum() / max(counts.sum(), 1)
            return f"mean {mean:.4f} tokens a call, exact {(law.rows[0] * numbers).sum():.4f}"

        return StatisticalJudge(law, read, lambda node, symbol: f"{symbol + 1} tokens", note=note)


def number_law(scenario: Scenario) -> NDArray[np.float64]:  # -> [K+1]
    """Return P(m tokens), by the formula where it holds."""
    if scenario.knobs == PLAIN and scenario.pair.acceptance is not None:
        return np.array(theory.count_law(scenario.pair.acceptance, scenario.lookahead), dtype=np.float64)
    return np.maximum(derived_laws.count_law(scenario.levels).astype(np.float64), 0)
