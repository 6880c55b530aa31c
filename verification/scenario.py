"""A cell of the matrix: a pair, knobs, a lookahead and a prompt; the rows that are in force there."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from refspec.knobs import PLAIN, SamplingKnobs
from refspec.table import Table, compile_table
from toy_models import Pair
from verification import derived_laws
from verification.derived_laws import Level

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
Tokens = tuple[int, ...]
NOTHING = -1
FULL_TREE = 1024  # the most leaves V**(K+1) of a prefix tree that is counted in full


@dataclass(frozen=True)
class Scenario:
    """What an implementation is run on.

    pair            float64 rows
    lookahead       K
    knobs           of both models
    prompt          the tokens before the first loop
    max_new_tokens  the cap of ``generate``
    stop            the sequences that end an output of ``generate``, returned with it; one of a single token is an
                    end token, which ``min_tokens`` bans
    """

    pair: Pair
    lookahead: int
    knobs: SamplingKnobs = PLAIN
    prompt: Tokens = ()
    max_new_tokens: int = 0
    stop: tuple[Tokens, ...] = ()

    @property
    def vocabulary(self) -> int:
        return self.pair.vocabulary

    @property
    def has_full_tree(self) -> bool:
        """Whether every prefix of a block is a node of its own; else prefixes in equal states are merged."""
        return bool(self.vocabulary ** (self.lookahead + 1) <= FULL_TREE)

    @property
    def target(self) -> Table:
        """The rows of the target after the knobs."""
        return self._table("target")

    @property
    def draft(self) -> Table:
        """The rows of the draft after the knobs."""
        return self._table("draft")

    @property
    def start(self) -> tuple[int, int]:
        """The states of target and draft after the prompt."""
        return self.target.starts[self.prompt], self.draft.starts[self.prompt]

    @property
    def end_tokens(self) -> Tokens:
        return tuple(sequence[0] for sequence in self.stop if len(sequence) == 1)

    @property
    def longest_output(self) -> int:
        """How many tokens after the prompt a state may lie: those of an output, and of a draft beyond its end."""
        return self.max_new_tokens + self.lookahead + 1

    def _table(self, model: str) -> Table:
        depth = self.longest_output if self.knobs.looks_back else None
        return _table(self.pair, model, self.prompt, self.knobs, self.end_tokens, depth)

    @cached_property
    def levels(self) -> list[Level]:
        """The situations of one loop: all prefixes, or merged by state where they are too many."""
        levels = derived_laws.accepted_levels if self.has_full_tree else derived_laws.merged_levels
        return levels(self.target, self.draft, self.start, self.lookahead)

    @cached_property
    def block_law(self) -> Floats:
        """The law of the block of the standard rule, by code; exists where there is a full tree."""
        return derived_laws.block_law(self.target, self.draft, self.levels)

    @cached_property
    def output_levels(self) -> list[Level]:
        """The situations of a whole output of ``generate``."""
        least = self.knobs.min_tokens
        return derived_laws.output_levels(self.target, self.start[0], self.max_new_tokens, self.stop, least)

    def nodes(self, tokens: Ints) -> list[Ints]:  # [B, K+1] -> K+1 of [B]
        """Return for each position the node a block is at, -1 where the block is over."""
        if self.has_full_tree:
            return list(prefix_codes(tokens, self.vocabulary))
        targets, drafts = (follow(table, state, tokens) for table, state in zip(self.tables, self.start, strict=True))
        found = []
        for i, level in enumerate(self.levels):
            codes = derived_laws.joint_codes(targets[:, i], drafts[:, i], self.draft)
            known = derived_laws.joint_codes(level.target_states, level.draft_states, self.draft)
            at = np.searchsorted(known, codes).clip(max=len(known) - 1)
            found.append(np.where((tokens[:, i] != NOTHING) & (known[at] == codes), at, NOTHING))
        return found

    @property
    def tables(self) -> tuple[Table, Table]:
        return self.target, self.draft

    def draw_drafts(self, count: int, generator: np.random.Generator) -> tuple[Ints, Floats, Floats]:
        """Return drafted tokens [B, K], with the target rows [B, K+1, V] and draft rows [B, K, V] of each."""
        tokens = np.empty((count, self.lookahead), dtype=np.intp)
        states = np.full(count, self.start[1])
        edges = np.cumsum(self.draft.rows, axis=1)
        for i in range(self.lookahead):
            threshold = generator.random((count, 1)) * edges[states, -1:]
            tokens[:, i] = (edges[states] > threshold).argmax(axis=1)
            states = self.draft.successors[states, tokens[:, i]]
        visited = follow(self.draft, self.start[1], tokens)[:, :-1]
        return tokens, self.target.rows[follow(self.target, self.start[0], tokens)], self.draft.rows[visited]


@lru_cache(maxsize=256)
def _table(
    pair: Pair, model: str, prompt: Tokens, knobs: SamplingKnobs, end_tokens: Tokens, depth: int | None
) -> Table:
    return compile_table(getattr(pair, model), prompts=[prompt], knobs=knobs, end_tokens=end_tokens, depth=depth)


def follow(table: Table, start: int, tokens: Ints) -> Ints:  # [B, n] -> [B, n+1]
    """Return the state before each token and after the last; the state stays where there is no token."""
    states = np.full((len(tokens), tokens.shape[1] + 1), start)
    for i, column in enumerate(tokens.T):
        after = table.successors.ravel().take(states[:, i] * table.vocabulary + np.maximum(column, 0))
        states[:, i + 1] = np.where(column == NOTHING, states[:, i], after)
    return states


def prefix_codes(tokens: Ints, vocabulary: int) -> list[Ints]:  # [B, n] -> n of [B]
    """Return for each position the code of the prefix before it, -1 where there is no token at the position."""
    codes = [np.zeros(len(tokens), dtype=np.intp)]
    for column in tokens.T[:-1]:
        codes.append(codes[-1] * vocabulary + column)
    return [np.where(column == NOTHING, NOTHING, code) for code, column in zip(codes, tokens.T, strict=True)]
