"""How many branches an exact law has, counted state by state before any of them is walked."""

from collections.abc import Callable, Hashable

import numpy as np

from refspec.distribution import Row
from refspec.history import History
from refspec.knobs import SamplingKnobs
from refspec.model import LanguageModel, next_rows
from refspec.stopping import Stopping
from refspec.table import TooManyStatesError

MOST = 10**6  # the leaves that ``refspec.law.exact_law`` allows
MOST_ROWS = 20_000  # of both models: where each text is a state of its own, counting must not cost what walking does
States = dict[Hashable, tuple[History, int]]  # by what is read of it: one such history, and how many there are


class Leaves:
    """Counts of branches for a pair of models with exact rows.

    A count that passes ``most`` is not finished: it is then any number above ``most``. One object makes one count.

    Raises
    ------
    TooManyStatesError  (from a count) more than ``MOST_ROWS`` rows were needed
    """

    def __init__(self, *, target: LanguageModel, draft: LanguageModel, knobs: SamplingKnobs, most: int = MOST) -> None:
        self.target = target
        self.draft = draft
        self.knobs = knobs
        self.most = most
        self._rows: dict[Hashable, Row] = {}
        self._known: dict[Hashable, int] = {}

    def loop(self, history: History, lookahead: int) -> int:
        """Return the leaves of one loop: all tokens are drafted first, then tested one after the other."""
        key = "loop", self._state(history), lookahead
        if key not in self._known:
            self._known[key] = self._loop(history, lookahead)
        return self._known[key]

    def _loop(self, history: History, lookahead: int) -> int:
        target_row = self._target_row(history)
        if lookahead == 0:
            return int(np.count_nonzero(target_row))
        draft_row = self._draft_row(history)
        residual = int(np.count_nonzero(target_row > draft_row))
        leaves = 0
        for token in np.flatnonzero(target_row < draft_row):  # rejected, whatever was drafted after it
            leaves += residual * self.drafts(history.then((int(token),)), lookahead - 1)
            if leaves > self.most:
                return leaves
        for token in np.flatnonzero(np.minimum(target_row, draft_row)):  # accepted
            leaves += self.loop(history.then((int(token),)), lookahead - 1)
            if leaves > self.most:
                return leaves
        return leaves

    def drafts(self, history: History, length: int) -> int:
        """Return how many drafts of a length there are."""
        if length == 0:
            return 1
        key = "drafts", self.draft.state_key(history.tokens), self.knobs.reads(history), length
        if key not in self._known:
            tokens = np.flatnonzero(self._draft_row(history))
            count = len(tokens) if length == 1 else 0
            for token in tokens if length > 1 else ():
                count += self.drafts(history.then((int(token),)), length - 1)
                if count > self.most:
                    break
            self._known[key] = count
        return self._known[key]

    def loops(self, start: History, lookahead: int, loops: int) -> int:
        """Return the leaves of the loops met on the way, or the sequences of blocks held if those are more."""
        states: States = {self._state(start): (start, 1)}
        leaves, held, met = 0, 1, set[Hashable]()
        for _ in range(loops):
            following: States = {}
            for state, (history, count) in states.items():
                if state not in met:
                    met.add(state)
                    leaves += self.loop(history, lookahead)
                if leaves > self.most:
                    return leaves
                for after, ways in self._blocks(history, lookahead).values():
                    _add(following, self._state(after), after, count * ways)
            states = following
            held = sum(count for _, count in states.values())
            if held > self.most:
                return held
        return max(leaves, held)

    def _blocks(self, history: History, lookahead: int) -> States:
        """Return how many blocks lead from one state to each state."""
        ends: States = {}
        accepted: States = {self._state(history): (history, 1)}
        for position in range(lookahead + 1):
            following: States = {}
            for before, count in accepted.values():
                target_row = self._target_row(before)
                last = position == lookahead
                draft_row = target_row * 0 if last else self._draft_row(before)
                for token in np.flatnonzero(target_row > draft_row):
                    after = before.then((int(token),))
                    _add(ends, self._state(after), after, count)
                for token in np.flatnonzero(np.minimum(target_row, draft_row)):
                    after = before.then((int(token),))
                    _add(following, self._state(after), after, count)
            accepted = following
        return ends

    def generation(self, start: History, stopping: Stopping, lookahead: int | None) -> int:
        """Return the leaves of the loops met on the way, or the outputs, whole and begun, if those are more.

        Without a lookahead it is the target alone.
        """
        states: States = {None: (start, 1)}
        leaves, held, met = 0, 0, set[Hashable]()
        for length in range(stopping.max_new_tokens):
            drafted = min(lookahead or 0, stopping.max_new_tokens - length - 1)
            following: States = {}
            for history, count in states.values():
                met_as = self._state(history), stopping.reads(history.output), drafted
                if met_as not in met:
                    met.add(met_as)
                    leaves += self.loop(history, drafted)
                for token in np.flatnonzero(self._target_row(history)):
                    after = history.then((int(token),))
                    held += count
                    if not stopping.stops(after.output):
                        _add(following, (self._state(after), stopping.reads(after.output)), after, count)
                if max(leaves, held) > self.most:
                    return max(leaves, held)
            states = following
        return max(leaves, held)

    def _state(self, history: History) -> Hashable:
        models = self.target.state_key(history.tokens), self.draft.state_key(history.tokens)
        return models, self.knobs.reads(history)

    def _target_row(self, history: History) -> Row:
        return self._row("target", self.target, history)

    def _draft_row(self, history: History) -> Row:
        return self._row("draft", self.draft, history)

    def _row(self, role: str, model: LanguageModel, history: History) -> Row:
        key = role, model.state_key(history.tokens), self.knobs.reads(history)
        if key not in self._rows:
            if len(self._rows) == MOST_ROWS:
                raise TooManyStatesError(f"more than {MOST_ROWS:,} rows")
            (self._rows[key],) = next_rows(model, history, knobs=self.knobs)
        return self._rows[key]


def _add(states: States, key: Hashable, history: History, count: int) -> None:
    states[key] = history, states.get(key, (history, 0))[1] + count


def largest_that_fits(count: Callable[[int], int], least: int, asked: int, most: int = MOST) -> int | None:
    """Return the largest number below ``asked`` up to which every count is at most ``most``; None if there is none."""
    fits = None
    for number in range(least, asked):
        if count(number) > most:
            break
        fits = number
    return fits
