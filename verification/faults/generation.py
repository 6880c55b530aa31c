"""Speculative generation in parts, one chain at a time. A fault replaces one part and leaves the others right."""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refspec.chance import ACCEPT, FINAL, Chance
from refspec.history import History
from refspec.knobs import SamplingKnobs
from toy_models import Pair

Ints = NDArray[np.intp]
Tokens = tuple[int, ...]
Weights = Sequence[Any]


class Dice(Chance):
    """The decisions of a chance in plain Python: for one small row faster than NumPy."""

    def __init__(self, seed: int) -> None:
        self.uniforms = np.random.default_rng(seed).random

    def accept(self, numerator: Any, denominator: Any, *, slot: str = ACCEPT) -> bool:
        return bool(self.uniforms() * denominator < numerator)

    def draw(self, weights: Any, *, slot: str = FINAL) -> int:
        edges = list(accumulate(weights))
        return bisect_right(edges, self.uniforms() * edges[-1], hi=len(edges) - 1)


@dataclass(frozen=True)
class Asked:
    """What an engine was asked for, and the rows that it has computed."""

    pair: Pair
    prompt: Tokens
    lookahead: int
    knobs: SamplingKnobs
    cap: int
    stop: tuple[Tokens, ...]
    rows: dict[Hashable, Weights]

    @property
    def end_tokens(self) -> Tokens:
        return tuple(sequence[0] for sequence in self.stop if len(sequence) == 1)


@dataclass(frozen=True)
class Place:
    """A position whose row is asked for.

    model      "target" or "draft"
    output     the tokens of the loops before
    refused    the drafted tokens of the loops before that were thrown away
    drafts     the drafted tokens before this position
    lookahead  how many this loop drafts
    """

    model: str
    output: Tokens
    refused: Tokens
    lookahead: int
    drafts: Tokens = ()

    @property
    def is_bonus(self) -> bool:
        return len(self.drafts) == self.lookahead


class Engine:
    """An adapter with the operations ``draft_and_verify`` and ``generate``: right, unless a part is overridden."""

    claims = frozenset({"lossless", "standard"})

    def draft_and_verify(
        self, *, pair: Pair, prefix: Tokens, lookahead: int, knobs: SamplingKnobs, count: int, seed: int
    ) -> Ints:
        asked, dice = Asked(pair, prefix, lookahead, knobs, lookahead + 1, (), {}), Dice(seed)
        blocks = [self.loop(asked, Place("target", (), (), lookahead), dice)[0] for _ in range(count)]
        return _padded(blocks, lookahead + 1)

    def generate(
        self,
        *,
        pair: Pair,
        prompt: Tokens,
        lookahead: int,
        knobs: SamplingKnobs,
        max_new_tokens: int,
        stop: tuple[Tokens, ...],
        count: int,
        seed: int,
    ) -> Ints:
        asked, dice = Asked(pair, prompt, lookahead, knobs, max_new_tokens, stop, {}), Dice(seed)
        return _padded([self.output(asked, dice) for _ in range(count)], max_new_tokens)

    def output(self, asked: Asked, chance: Chance) -> Tokens:
        """Return one whole output."""
        output: Tokens = ()
        refused: Tokens = ()
        over = False
        while not over:
            place = Place("target", output, refused, self.drafted(asked, output))
            block, thrown_away = self.loop(asked, place, chance)
            refused += thrown_away
            output, over = self.take(asked, output, block)
        return output

    def loop(self, asked: Asked, start: Place, chance: Chance) -> tuple[Tokens, Tokens]:
        """Return the block of one loop, and the drafted tokens that it throws away."""
        drafts: Tokens = ()
        draft_rows = []
        for _ in range(start.lookahead):
            draft_rows.append(self.row(asked, replace(start, model="draft", drafts=drafts)))
            drafts += (chance.draw(draft_rows[-1]),)
        for i, token in enumerate(drafts):
            target_row = self.row(asked, replace(start, drafts=drafts[:i]))
            if not chance.accept(target_row[token], draft_rows[i][token]):
                residual = [max(a - b, 0) for a, b in zip(target_row, draft_rows[i], strict=True)]
                return (*drafts[:i], chance.draw(residual if any(residual) else target_row)), drafts[i:]
        return (*drafts, chance.draw(self.row(asked, replace(start, drafts=drafts)))), ()

    def row(self, asked: Asked, place: Place) -> Weights:
        """Return the row of a place: the model reads the tokens that are there, the knobs what ``history`` says."""
        history = self.history(asked, place)
        key = place.model, place.output + place.drafts, place.is_bonus, history
        if key not in asked.rows:
            model = getattr(asked.pair, place.model)
            scores = model.score(asked.prompt + place.output, place.drafts)[-1]
            asked.rows[key] = self.knobs(asked, place).row(scores, kind=model.kind, history=history).tolist()
        return asked.rows[key]

    def knobs(self, asked: Asked, place: Place) -> SamplingKnobs:
        """Return the knobs that are turned at a place."""
        return asked.knobs

    def history(self, asked: Asked, place: Place) -> History:
        """Return what the knobs see at a place."""
        return History(asked.prompt, place.output + place.drafts, asked.end_tokens)

    def drafted(self, asked: Asked, output: Tokens) -> int:
        """Return how many tokens the next loop drafts."""
        return min(asked.lookahead, asked.cap - len(output) - 1)

    def take(self, asked: Asked, output: Tokens, block: Tokens) -> tuple[Tokens, bool]:
        """Return the output after a block, and whether it is over."""
        for token in block:
            output += (token,)
            if len(output) == asked.cap or self.stops(asked, output):
                return output, True
        return output, False

    def stops(self, asked: Asked, output: Tokens) -> bool:
        """Whether the last token of the output ends it."""
        return len(output) > asked.knobs.min_tokens and ends_with(output, asked.stop)


def ends_with(tokens: Tokens, stop: tuple[Tokens, ...]) -> bool:
    """Whether the tokens end with one of the sequences."""
    return any(tokens[-len(sequence) :] == sequence for sequence in stop)


def _padded(outputs: list[Tokens], width: int) -> Ints:
    width = max(width, *map(len, outputs))
    return np.array([tokens + (-1,) * (width - len(tokens)) for tokens in outputs], dtype=np.intp)
