"""What one loop emits, and the five counters, each with its one definition."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Counters:
    """What engines report about speculative sampling, summed over loops.

    drafted       tokens proposed by the draft model
    verified      accept tests run: the accepted prefix, and the token that ended it
    accepted      length of the accepted prefix, before any trimming
    emitted       tokens returned, after trimming at an end token or stop sequence
    target_calls  calls of the target model, one a loop

    Tokens per call is ``emitted / target_calls``. ``accepted / verified`` estimates the alpha of Leviathan et al. 2022;
    what Figure 1 of Chen et al. 2023 calls the acceptance rate is ``emitted / (K + 1)`` per loop.
    """

    drafted: int = 0
    verified: int = 0
    accepted: int = 0
    emitted: int = 0
    target_calls: int = 0

    def __add__(self, other: Self) -> "Counters":
        return Counters(
            drafted=self.drafted + other.drafted,
            verified=self.verified + other.verified,
            accepted=self.accepted + other.accepted,
            emitted=self.emitted + other.emitted,
            target_calls=self.target_calls + other.target_calls,
        )


@dataclass(frozen=True)
class Block:
    """The tokens of one loop, 1 to K+1 of them: the accepted prefix of the draft, and one token more.

    Trimmed where the output ends, it may have fewer tokens than were accepted.
    """

    tokens: tuple[int, ...]
    drafted: int
    verified: int
    accepted: int

    @property
    def counters(self) -> Counters:
        return Counters(self.drafted, self.verified, self.accepted, emitted=len(self.tokens), target_calls=1)


def count(blocks: Iterable[Block]) -> Counters:
    """Return the counters summed over the loops of a generation."""
    return sum((block.counters for block in blocks), Counters())
