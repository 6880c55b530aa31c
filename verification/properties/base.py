"""What a property is, and how the statistical ones are judged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from verification.derived_laws import Level
from verification.scenario import NOTHING, Ints, Scenario
from verification.statistics.evidence import Law

LOSSLESS, STANDARD, REFERENCE = "lossless", "standard", "reference"
PROOF, DETERMINISTIC, STATISTICAL = "proof", "deterministic", "statistical"


class Property:
    """One thing that must hold.

    id        permanent
    sentence  what holds
    profile   "lossless", "standard", or the claim that an implementation has to make
    tier      "proof", "deterministic" or "statistical"
    source    where it is written
    measures  for a statistical one, what total variation its smallest detectable bias is of
    after     properties without which this one says nothing: it is not judged once one of them is broken

    Each has one of: ``prove(scenario)`` (the proofs, and the twin), ``examine(scenario, call, seed)`` (seeds, calls of
    the target), ``judge(scenario)`` (all others).
    """

    id: ClassVar[str]
    sentence: ClassVar[str]
    profile: ClassVar[str]
    tier: ClassVar[str]
    source: ClassVar[str]
    measures: ClassVar[str] = ""
    after: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Examined:
    """What a proof or a deterministic examination found.

    identities  how many equalities were proved
    samples     how many calls were made
    failure     what is wrong, or None
    note        what to say if nothing is
    """

    failure: str | None
    note: str
    identities: int = 0
    samples: int = 0


@dataclass
class StatisticalJudge:
    """Counts symbols at the nodes of a null law.

    law      the null
    read     tokens [B, n] -> for some of the calls: the node and the symbol
    label    (node, symbol) -> what that is in words
    joint    whether the nodes are the full prefix tree, so that the distance is that of the joint law
    first    what each reply must be before it is counted at all
    note     counts -> a diagnostic for the report
    """

    law: Law
    read: Callable[[Ints], tuple[Ints, Ints]]
    label: Callable[[int, int], str]
    joint: bool = False
    first: "DeterministicJudge | None" = None
    note: Callable[[NDArray[np.int64]], str] = lambda counts: ""
    counts: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.law.rows.shape, dtype=np.int64)

    @property
    def failure(self) -> str | None:
        return self.first.failure if self.first else None

    def see(self, tokens: Ints) -> None:
        if self.first:
            self.first.see(tokens)
        if self.failure:
            return
        node, symbol = self.read(tokens)
        codes = node * self.law.rows.shape[1] + symbol
        self.counts += np.bincount(codes, minlength=self.counts.size).reshape(self.counts.shape)

    def worst(self) -> str:
        """Say where the counts are furthest from the null: expected and observed."""
        visits = self.counts.sum(axis=1, keepdims=True)
        expected = visits * self.law.rows
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.nan_to_num((self.counts - expected) ** 2 / expected, nan=0.0, posinf=np.inf)
        node, symbol = (int(i) for i in np.unravel_index(np.argmax(distance), distance.shape))
        return (
            f"{self.label(node, symbol)}: expected {expected[node, symbol]:.1f}, observed {self.counts[node, symbol]}"
            f" of {visits[node, 0]}"
        )


@dataclass
class DeterministicJudge:
    """Looks for a reply that must not be.

    wrong     tokens [B, n] -> a mask [B] of the replies that must not be
    describe  the tokens of one such reply -> what is wrong with it
    """

    wrong: Callable[[Ints], NDArray[np.bool_]]
    describe: Callable[[tuple[int, ...]], str]
    failure: str | None = None

    def see(self, tokens: Ints) -> None:
        wrong = self.wrong(tokens)
        if self.failure is None and wrong.any():
            reply = tuple(int(token) for token in tokens[np.argmax(wrong)])
            self.failure = f"{self.describe(reply)} ({int(wrong.sum())} of {len(tokens)} calls)"


def stacked(rows: list[NDArray[np.float64]], levels: list[Level]) -> Law:
    """Return a law whose nodes are the situations of all levels, one after the other."""
    return Law(np.concatenate(rows), np.concatenate([level.weight for level in levels]).astype(np.float64))


def next_token_judge(scenario: Scenario) -> StatisticalJudge:
    """Judge the tokens of a block against the target's rows, at every node of the prefix tree."""
    levels = scenario.levels
    offsets = np.cumsum([0, *(len(level.weight) for level in levels)])

    def read(tokens: Ints) -> tuple[Ints, Ints]:
        nodes = scenario.nodes(tokens)
        there = [node != NOTHING for node in nodes]
        return (
            np.concatenate([offset + node[at] for offset, node, at in zip(offsets, nodes, there, strict=False)]),
            np.concatenate([tokens[at, i] for i, at in enumerate(there)]),
        )

    def label(node: int, symbol: int) -> str:
        position = int(np.searchsorted(offsets, node, side="right")) - 1
        if scenario.has_full_tree:
            return f"token {symbol} after {digits(node - offsets[position], position, scenario.vocabulary)}"
        state = levels[position].target_states[node - offsets[position]]
        return f"token {symbol} at position {position}, target state {state}"

    rows = [scenario.target.rows[level.target_states] for level in levels]
    return StatisticalJudge(stacked(rows, levels), read, label, joint=scenario.has_full_tree)


def digits(code: int, length: int, vocabulary: int) -> tuple[int, ...]:
    """Return the tokens of a prefix from its code."""
    return tuple(int(code) // vocabulary**i % vocabulary for i in reversed(range(length)))
