"""A model under knobs with finitely many states, as two arrays: each state's row, and the state after each token."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refspec.distribution import Rows, as_count, as_tokens
from refspec.history import History, Tokens
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.model import LanguageModel, next_rows

UNKNOWN = -1  # the state after the last token that the table was asked to follow


class TooManyStatesError(ValueError):
    """The model has more states than were allowed."""


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a model after all knobs, state by state.

    rows        [S, V]  the row of each state, as the clear code computes it
    successors  [S, V]  the state after a token; ``UNKNOWN`` beyond the depth of the table
    starts      {prompt: state}
    end_tokens  those that ``min_tokens`` bans in these rows
    min_tokens  of the knobs
    """

    rows: Rows
    successors: NDArray[np.intp]
    starts: dict[Tokens, int]
    end_tokens: Tokens
    min_tokens: int

    @property
    def vocabulary(self) -> int:
        return int(self.rows.shape[1])


def compile_table(
    model: LanguageModel,
    *,
    prompts: Sequence[Sequence[int]] = ((),),
    knobs: SamplingKnobs = PLAIN,
    end_tokens: Sequence[int] = (),
    depth: int | None = None,
    max_states: int = 20_000,
) -> Table:
    """Return the table of every state that can follow one of the prompts, breadth first.

    A state is what the model reads of a text, and what the knobs read of its history. With penalties there may be
    no end of states: ``depth`` is how many tokens of output are followed, None for as many as there are.

    Raises
    ------
    TooManyStatesError  more than ``max_states`` states were found
    """
    if not prompts:
        raise ValueError("prompts: none; expected one or more, () for the beginning of a text")
    ends = as_tokens(end_tokens, vocabulary=model.vocabulary, name="end_tokens")
    depth = None if depth is None else as_count(depth, name="depth")
    found: list[History] = []
    states: dict[Hashable, int] = {}

    def state(history: History) -> int:
        if depth is not None and len(history.output) > depth:
            return UNKNOWN
        key = model.state_key(history.tokens), knobs.reads(history)
        if key not in states:
            if len(found) == max_states:
                raise TooManyStatesError(f"more than {max_states} states follow the prompts")
            states[key] = len(found)
            found.append(history)
        return states[key]

    checked = [as_tokens(prompt, vocabulary=model.vocabulary, name="prompt") for prompt in prompts]
    starts = {prompt: state(History(prompt, end_tokens=ends)) for prompt in checked}
    successors = [[state(history.then((token,))) for token in range(model.vocabulary)] for history in found]  # grows
    rows = np.concatenate([next_rows(model, history, knobs=knobs) for history in found])
    return Table(rows, np.array(successors, dtype=np.intp), starts, ends, knobs.min_tokens)
