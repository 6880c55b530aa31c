"""``complete-output``: what ``generate`` returns, from the first token to the stop."""

import numpy as np
from numpy.typing import NDArray

from verification.properties.base import (
    LOSSLESS,
    STATISTICAL,
    DeterministicJudge,
    Property,
    StatisticalJudge,
    digits,
    stacked,
)
from verification.properties.block_length import malformed_tokens
from verification.scenario import NOTHING, Ints, Scenario, prefix_codes


class CompleteOutput(Property):
    """Its length is the one its tokens imply (stop or cap); then its law is the target's, jointly."""

    id = "complete-output"
    sentence = "an output ends where its tokens say it must, and has the joint law of the target's own output"
    profile = LOSSLESS
    tier = STATISTICAL
    source = "Chen et al. 2023, Theorem 1, over loops; a run cut at a stop keeps its law"
    measures = "joint"

    def judge(self, scenario: Scenario) -> StatisticalJudge:
        vocabulary, levels = scenario.vocabulary, scenario.output_levels
        offsets = np.cumsum([0, *(len(level.weight) for level in levels)])

        def read(tokens: Ints) -> tuple[Ints, Ints]:
            codes = prefix_codes(tokens, vocabulary)
            there = [code != NOTHING for code in codes]
            return (
                np.concatenate([offset + code[at] for offset, code, at in zip(offsets, codes, there, strict=False)]),
                np.concatenate([tokens[at, i] for i, at in enumerate(there)]),
            )

        def label(node: int, symbol: int) -> str:
            length = int(np.searchsorted(offsets, node, side="right")) - 1
            return f"token {symbol} after {digits(node - offsets[length], length, vocabulary)}"

        rows = [scenario.target.rows[level.target_states] for level in levels]
        return StatisticalJudge(stacked(rows, levels), read, label, joint=True, first=ends_where_it_must(scenario))


def ends_where_it_must(scenario: Scenario) -> DeterministicJudge:
    """Judge the length: up to and with the first stop, else exactly the cap."""

    def wrong(tokens: Ints) -> NDArray[np.bool_]:
        stops = stops_at(tokens, scenario)
        past_a_stop = (np.cumsum(stops, axis=1) - stops > 0) & (tokens != NOTHING)
        short = (tokens[:, scenario.max_new_tokens - 1] == NOTHING) & ~stops.any(axis=1)
        return np.asarray(malformed_tokens(tokens, scenario.vocabulary) | past_a_stop.any(axis=1) | short)

    unless = f", not among the first {scenario.knobs.min_tokens} tokens," if scenario.knobs.min_tokens else ""
    return DeterministicJudge(
        wrong,
        lambda reply: (
            f"{reply} does not end with the first of {scenario.stop}{unless} or else at the cap of "
            f"{scenario.max_new_tokens} tokens"
        ),
    )


def stops_at(tokens: Ints, scenario: Scenario) -> NDArray[np.bool_]:  # [B, n] -> [B, n]
    """Return where a stop sequence is complete. What came before the output does not count."""
    stops = np.zeros(tokens.shape, dtype=bool)
    for sequence in scenario.stop:
        length = len(sequence)
        if length <= tokens.shape[1]:
            windows = np.lib.stride_tricks.sliding_window_view(tokens, length, axis=1)
            stops[:, length - 1 :] |= (windows == sequence).all(axis=2)
    stops[:, : scenario.knobs.min_tokens] = False
    return stops
