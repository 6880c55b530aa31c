"""``state-certificate``: in each state, what is accepted plus what is replaced is the target row."""

from fractions import Fraction

import numpy as np

from refspec.distribution import Row, total
from refspec.law import exact_law
from refspec.model import as_fractions
from refspec.rejection import residual, verify_token
from refspec.truncation import normalised
from verification import derived_laws
from verification.properties.base import PROOF, REFERENCE, Examined, Property
from verification.scenario import Scenario

BY_ENUMERATION = 8  # up to this vocabulary the code of one position is enumerated, above it its residual is added up
PART = "only"  # begins the note of a certificate that does not cover every state
MOST_CELLS = 50_000


class StateCertificate(Property):
    """If it holds in every pair of states, every loop keeps the joint law, at any length, by induction.

    In fractions, O(V) to O(V**2) a state. The states are those that one loop from the prompt can meet; where they
    have more than 50 000 cells, the likeliest of them, and the note says so.
    """

    id = "state-certificate"
    sentence = "in each pair of states, accepted mass plus replaced mass is the target row"
    profile = REFERENCE
    tier = PROOF
    source = "Chen et al. 2023, Theorem 1"

    def prove(self, scenario: Scenario) -> Examined:
        states, every = _states(scenario)
        for target_state, draft_state in states:
            target_row = as_fractions(scenario.target.rows[target_state])
            draft_row = as_fractions(scenario.draft.rows[draft_state])
            emitted = _emitted_row(target_row, draft_row)
            for token in np.flatnonzero(emitted != target_row):
                failure = (
                    f"token {token} in states {target_state}, {draft_state}: probability {emitted[token]}, expected "
                    f"{target_row[token]}"
                )
                return Examined(failure, "")
        note = f"{PART} {len(states)} of {every} states" if len(states) < every else f"all {every} states"
        if scenario.vocabulary > BY_ENUMERATION:
            note += ", the accepted mass by its formula"
        return Examined(None, note, identities=len(states) * scenario.vocabulary)


def _states(scenario: Scenario) -> tuple[list[tuple[int, int]], int]:
    """Return the pairs of states of one loop, the likeliest first where there are too many; and how many there are."""
    levels = derived_laws.merged_levels(scenario.target, scenario.draft, scenario.start, scenario.lookahead)
    weights: dict[tuple[int, int], float] = {}
    for level in levels:
        for target_state, draft_state, weight in zip(*level, strict=True):
            weights[target_state, draft_state] = weights.get((target_state, draft_state), 0.0) + weight
    most = max(MOST_CELLS // scenario.vocabulary, 1)
    return sorted(weights, key=lambda states: -weights[states])[:most], len(weights)


def _emitted_row(target_row: Row, draft_row: Row) -> Row:
    """Return the exact law of the token that one position emits, a draft drawn from the draft row."""
    if len(target_row) > BY_ENUMERATION:
        accepted = np.minimum(target_row, draft_row)
        weights = residual(target_row, draft_row)
        return np.asarray(accepted + (1 - total(accepted)) * (normalised(weights) if weights.any() else weights))
    law = exact_law(
        lambda chance: (
            verify_token(target_row=target_row, draft_row=draft_row, token=chance.draw(draft_row), chance=chance).token
        )
    )
    return np.array([law.get(token, Fraction(0)) for token in range(len(target_row))], dtype=object)
