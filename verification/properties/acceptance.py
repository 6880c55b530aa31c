"""``acceptance``: in each state a drafted token is kept with probability sum min(target, draft)."""

import numpy as np

from verification import derived_laws
from verification.properties.base import STANDARD, STATISTICAL, Property, StatisticalJudge, stacked
from verification.scenario import NOTHING, Ints, Scenario, follow


class Acceptance(Property):
    """Position by position and state by state: whether the block went on."""

    id = "acceptance"
    sentence = "in each state of the models a drafted token is accepted with probability sum min(target, draft)"
    profile = STANDARD
    tier = STATISTICAL
    source = "Leviathan et al. 2022, Lemma 3.3 and Theorem 3.5 (their beta)"
    measures = "acceptance"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        target, draft = scenario.tables
        levels = derived_laws.merged_levels(target, draft, scenario.start, scenario.lookahead)[:-1]
        offsets = np.cumsum([0, *(len(level.weight) for level in levels)])
        known = [derived_laws.joint_codes(level.target_states, level.draft_states, draft) for level in levels]

        def read(tokens: Ints) -> tuple[Ints, Ints]:
            states = [
                follow(table, start, tokens) for table, start in zip(scenario.tables, scenario.start, strict=True)
            ]
            codes = derived_laws.joint_codes(states[0], states[1], draft)
            there = [tokens[:, i] != NOTHING for i in range(len(levels))]
            nodes = [offsets[i] + np.searchsorted(known[i], codes[at, i]) for i, at in enumerate(there)]
            went_on = [(tokens[at, i + 1] != NOTHING).astype(np.intp) for i, at in enumerate(there)]
            return np.concatenate(nodes), np.concatenate(went_on)

        def label(node: int, symbol: int) -> str:
            position = int(np.searchsorted(offsets, node, side="right")) - 1
            state = levels[position].target_states[node - offsets[position]]
            return f"{'accepted' if symbol else 'rejected'} at position {position}, target state {state}"

        shared = [
            np.minimum(target.rows[level.target_states], draft.rows[level.draft_states]).sum(axis=1).clip(max=1)
            for level in levels
        ]
        return StatisticalJudge(stacked([np.stack([1 - kept, kept], axis=1) for kept in shared], levels), read, label)
