"""``rows-pit`` and ``rows-classes``: what a large vocabulary still allows to decide."""

import numpy as np
from numpy.typing import NDArray

from verification import derived_laws
from verification.properties.base import LOSSLESS, STATISTICAL, Property, StatisticalJudge
from verification.scenario import NOTHING, Ints, Scenario, follow
from verification.statistics import pit
from verification.statistics.evidence import Law

CONTEXTS, CLASSES = 64, 16
FRESH = 0x517CC1B727220A95  # seeds the fresh uniforms of the transform, and nothing else


class RowsPit(Property):
    """The ratio-ordered transform of each token, position by position. Its distance is a lower bound of the token's."""

    id = "rows-pit"
    sentence = "with tokens ordered by target/draft, the transform of each token is uniform given the history"
    profile = LOSSLESS
    tier = STATISTICAL
    source = "verification.statistics.pit; blind to an exchange of tokens of equal ratio, see rows-classes"
    measures = "token, a bound"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        target, draft = scenario.tables
        levels = derived_laws.merged_levels(target, draft, scenario.start, scenario.lookahead)
        joint = np.unique(np.concatenate([derived_laws.joint_codes(*level[:2], draft) for level in levels]))
        target_states, draft_states = joint // len(draft.rows), joint % len(draft.rows)
        generator = np.random.default_rng(FRESH)
        before = pit.mass_before(target.rows[target_states], draft.rows[draft_states])

        def read(tokens: Ints) -> tuple[Ints, Ints]:
            states = [
                follow(table, start, tokens)[:, :-1]
                for table, start in zip(scenario.tables, scenario.start, strict=True)
            ]
            there = tokens != NOTHING
            context = np.searchsorted(joint, derived_laws.joint_codes(states[0][there], states[1][there], draft))
            token = tokens[there]
            fresh = generator.random(len(token))
            mass = target.rows[states[0][there], token]
            return np.nonzero(there)[1], pit.bins_of(before[context, token], mass, fresh)

        law = Law(
            np.full((len(levels), pit.BINS), 1 / pit.BINS), np.array([float(level.weight.sum()) for level in levels])
        )
        return StatisticalJudge(
            law, read, lambda node, symbol: f"eighth {symbol} of the ratio order at position {node}"
        )


class RowsClasses(Property):
    """The companion of ``rows-pit``: the 64 likeliest contexts, tokens in 16 classes that know nothing of ratios."""

    id = "rows-classes"
    sentence = "in the likeliest contexts the class of the token (its id modulo 16) follows the target's row"
    profile = LOSSLESS
    tier = STATISTICAL
    source = "Chen et al. 2023, Theorem 1, on classes of tokens"
    measures = "token class"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        target, draft = scenario.tables
        levels = derived_laws.merged_levels(target, draft, scenario.start, scenario.lookahead)
        visits = np.zeros(len(target.rows))
        for level in levels:
            np.add.at(visits, level.target_states, level.weight)
        contexts = np.argsort(-visits, kind="stable")[:CONTEXTS]
        node_of = np.full(len(visits), NOTHING)
        node_of[contexts] = np.arange(len(contexts))

        def read(tokens: Ints) -> tuple[Ints, Ints]:
            nodes = node_of[follow(target, scenario.start[0], tokens)[:, :-1]]
            there = (tokens != NOTHING) & (nodes != NOTHING)
            return nodes[there], tokens[there] % CLASSES

        law = Law(_class_masses(target.rows[contexts]), visits[contexts])
        return StatisticalJudge(law, read, lambda node, symbol: f"class {symbol} in target state {contexts[node]}")


def _class_masses(rows: NDArray[np.float64]) -> NDArray[np.float64]:  # [N, V] -> [N, 16]
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % CLASSES)))
    return np.asarray(padded.reshape(len(rows), -1, CLASSES).sum(axis=1))
