"""What a pair of models is good for: the overlap of its rows, context by context, and the faults it cannot show.

Everything is computed from the rows. A small pair is looked at in every context; of a wide one there is a sample.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isclose
from numbers import Rational
from typing import Any

import numpy as np

from refspec.distribution import Row, overlap
from refspec.model import next_rows
from toy_models import Pair

NARROW = 8  # up to this vocabulary every context is looked at
MOST_CONTEXTS = 20_000
SAMPLE = 16  # contexts of a wide pair
ROUNDING = 1e-9  # float rows nearer than this are equal

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Situation:
    """The rows of both models after a context, the shortest that leads to its states."""

    context: Tokens
    target_row: Row
    draft_row: Row

    @cached_property
    def overlap(self) -> Any:
        return overlap(self.target_row, self.draft_row)


@dataclass(frozen=True)
class PairFacts:
    """The facts of a pair.

    contexts    how many contexts there are, as far as they were followed: pairs of states of the two models
    longest     how many tokens of a text tell them apart
    every       whether all of them were followed
    situations  those that were looked at, the beginning of a text first
    """

    pair: Pair
    contexts: int
    longest: int
    every: bool
    situations: tuple[Situation, ...]

    @property
    def is_sample(self) -> bool:
        """Whether there are contexts that were not looked at."""
        return not self.every or len(self.situations) < self.contexts

    @property
    def overlaps(self) -> list[Any]:
        return [situation.overlap for situation in self.situations]

    @property
    def mean_overlap(self) -> Any:
        """The mean over the contexts looked at, each counted once."""
        return sum(self.overlaps) / len(self.overlaps)

    @property
    def is_constant(self) -> bool:
        """Whether the overlap is the same in all contexts looked at."""
        return all(_near(found, self.overlaps[0]) for found in self.overlaps)

    @property
    def blind_spots(self) -> dict[str, str]:
        """What the pair cannot show: {a permanent name: a sentence}."""
        found = {name: sentence for name, (holds, sentence) in BLIND_SPOTS.items() if holds(self.situations)}
        if self.longest == 1 and "equal-rows" not in found:
            found["last-token-only"] = ONLY_THE_LAST
        return found


def pair_facts(pair: Pair) -> PairFacts:
    """Return the facts of a pair whose rows are exact, or floats."""
    contexts, every = _contexts(pair)
    chosen = contexts
    if pair.vocabulary > NARROW and len(contexts) > SAMPLE:  # the beginning of a text, and others evenly spaced
        chosen = [contexts[i * len(contexts) // SAMPLE] for i in range(SAMPLE)]
    longest = max(map(len, contexts))
    return PairFacts(pair, len(contexts), longest, every, tuple(_situation(pair, context) for context in chosen))


def _contexts(pair: Pair) -> tuple[list[Tokens], bool]:
    """Return the shortest context of each pair of states, the empty one first; and whether these are all."""
    most = MOST_CONTEXTS if pair.vocabulary <= NARROW else MOST_CONTEXTS // SAMPLE
    found: dict[Hashable, Tokens] = {_states(pair, ()): ()}
    waiting: deque[Tokens] = deque([()])
    while waiting:
        before = waiting.popleft()
        for token in range(pair.vocabulary):
            context = (*before, token)
            if (states := _states(pair, context)) not in found:
                if len(found) == most:
                    return list(found.values()), False
                found[states] = context
                waiting.append(context)
    return list(found.values()), True


def _states(pair: Pair, context: Tokens) -> Hashable:
    return pair.target.state_key(context), pair.draft.state_key(context)


def _situation(pair: Pair, context: Tokens) -> Situation:
    (target_row,), (draft_row,) = (next_rows(model, context) for model in (pair.target, pair.draft))
    return Situation(context, target_row, draft_row)


Situations = tuple[Situation, ...]


def _near(one: Any, other: Any) -> bool:
    if isinstance(one, Rational) and isinstance(other, Rational):
        return one == other
    return isclose(one, other, rel_tol=0, abs_tol=ROUNDING)


def _rows_near(one: Row, other: Row) -> bool:
    return all(_near(mass, beside) for mass, beside in zip(one, other, strict=True))


def _rows_are_equal(situations: Situations) -> bool:
    first = situations[0]
    return all(
        _rows_near(first.target_row, at.target_row) and _rows_near(first.draft_row, at.draft_row) for at in situations
    )


def _nothing_is_rejected(situations: Situations) -> bool:
    return all(_near(at.overlap, 1) for at in situations)


def _nothing_is_accepted(situations: Situations) -> bool:
    return not any(at.overlap for at in situations)


def _overlap_is_constant(situations: Situations) -> bool:
    return all(_near(at.overlap, situations[0].overlap) for at in situations)


def _residuals_are_single(situations: Situations) -> bool:
    """Whether at most one token is left in each residual, and one in some."""
    left = [int(np.count_nonzero(at.target_row - at.draft_row > ROUNDING)) for at in situations]
    return max(left) == 1


def _target_is_certain(situations: Situations) -> bool:
    return all(np.count_nonzero(at.target_row) == 1 for at in situations)


def _draft_is_certain(situations: Situations) -> bool:
    return all(np.count_nonzero(at.draft_row) == 1 for at in situations)


def _nothing_is_impossible(situations: Situations) -> bool:
    return all(bool(at.target_row.all()) for at in situations)


def _maxima_agree(situations: Situations) -> bool:
    return all(np.argmax(at.target_row) == np.argmax(at.draft_row) for at in situations)


BLIND_SPOTS: dict[str, tuple[Callable[[Situations], bool], str]] = {
    "equal-rows": (_rows_are_equal, "all rows of a model are equal: a row or a position shifted by one is not seen"),
    "no-rejection": (_nothing_is_rejected, "identical models, no rejection ever: the residual is not seen"),
    "no-acceptance": (_nothing_is_accepted, "disjoint models, no acceptance ever: the bonus token is never seen"),
    "constant-overlap": (
        _overlap_is_constant,
        "constant overlap: the rate of acceptance is right with the rows of a wrong context too",
    ),
    "single-residual": (
        _residuals_are_single,
        "no residual has more than one token: how it spreads its mass is not seen",
    ),
    "certain-target": (_target_is_certain, "deterministic target: a wrong probability is seen as a wrong token only"),
    "certain-draft": (
        _draft_is_certain,
        "deterministic draft: a test that leaves out the draft's own mass is not seen",
    ),
    "no-zero-mass": (_nothing_is_impossible, "no token of zero mass in the target: support is not tested"),
    "equal-maxima": (
        _maxima_agree,
        "both models have the same likeliest token: greedy decoding that follows the draft is not seen",
    ),
}


ONLY_THE_LAST = "rows depend on the last token alone: a context that lost the tokens before it is not seen"


def as_lines(facts: PairFacts) -> Iterator[str]:
    """Yield the facts of a pair, a line each."""
    yield f"{facts.pair.name}: {facts.pair.purpose}"
    yield f"  vocabulary  {facts.pair.vocabulary}"
    several = f"{'' if facts.every else 'more than '}{facts.contexts}"
    yield f"  contexts    {several}" + (f", {len(facts.situations)} of them looked at" if facts.is_sample else "")
    if facts.is_constant:
        yield f"  alpha       {_in_words(facts.overlaps[0])} in every context" + (" looked at" * facts.is_sample)
    else:
        least, most = (_in_words(end(facts.overlaps)) for end in (min, max))
        yield f"  alpha       {_in_words(facts.mean_overlap)}, the mean over contexts; {least} to {most}"
        by_context = (f"{_after(at.context)} {_in_words(at.overlap)}" for at in facts.situations)
        yield f"  overlap     {', '.join(by_context)}"
    for name, sentence in facts.blind_spots.items():
        yield f"  blind spot  {name}: {sentence}"


def as_json(facts: PairFacts) -> dict[str, Any]:
    """Return the facts for a JSON document: fractions are strings, floats are numbers."""
    return {
        "name": facts.pair.name,
        "purpose": facts.pair.purpose,
        "vocabulary": facts.pair.vocabulary,
        "contexts": facts.contexts,
        "every_context": facts.every,
        "sample": facts.is_sample,
        "alpha": _plain(facts.mean_overlap),
        "constant": facts.is_constant,
        "overlaps": [{"context": list(at.context), "overlap": _plain(at.overlap)} for at in facts.situations],
        "blind_spots": facts.blind_spots,
    }


def _after(context: Tokens) -> str:
    return f"({' '.join(map(str, context))})"


def _plain(number: Any) -> Any:
    return str(number) if isinstance(number, Fraction) else float(number)


def _in_words(number: Any) -> str:
    return str(number) if isinstance(number, Fraction) else f"{number:.4g}"
