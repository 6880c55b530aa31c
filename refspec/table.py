"""A model with finitely many states, as two arrays: the row of each state, and the state each token leads to."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refspec.distribution import Rows
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.model import LanguageModel, Tokens, next_rows


class TooManyStatesError(ValueError):
    """The model has more states than were allowed."""


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a model after all knobs, state by state.

    rows        [S, V]  the row of each state, as the clear code computes it
    successors  [S, V]  the state after a token
    states      {state_key: s}
    """

    rows: Rows
    successors: NDArray[np.intp]
    states: dict[Hashable, int]

    @property
    def vocabulary(self) -> int:
        return int(self.rows.shape[1])


def compile_table(
    model: LanguageModel,
    *,
    prompts: Sequence[Tokens] = ((),),
    knobs: SamplingKnobs = PLAIN,
    max_states: int = 20_000,
) -> Table:
    """Return the table of every state that can follow one of the prompts, breadth first.

    Raises
    ------
    TooManyStatesError  more than ``max_states`` states were found
    """
    if not prompts:
        raise ValueError("prompts: none; expected one or more, () for the beginning of a text")
    found: list[Tokens] = []
    states: dict[Hashable, int] = {}

    def state(prefix: Tokens) -> int:
        key = model.state_key(prefix)
        if key not in states:
            if len(found) == max_states:
                raise TooManyStatesError(f"more than {max_states} states follow the prompts")
            states[key] = len(found)
            found.append(prefix)
        return states[key]

    for prompt in prompts:
        state(tuple(prompt))
    successors = [[state((*prefix, token)) for token in range(model.vocabulary)] for prefix in found]  # found grows
    rows = np.concatenate([next_rows(model, prefix, knobs=knobs) for prefix in found])
    return Table(rows, np.array(successors, dtype=np.intp), states)
