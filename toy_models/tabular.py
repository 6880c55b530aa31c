"""Models that are tables: integer weights for each context, exact as fractions or rounded to float64."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

Context = tuple[int, ...]


class TabularModel:
    """The next token depends on the last ``order`` tokens, by a table of integer weights.

    Parameters
    ----------
    weights : {context: [V] integers >= 0}  a context is a tuple of at most ``order`` tokens. Shorter ones are for
        the beginning of a text; () is for the empty prompt. ``order`` is the longest context.
    exact : rows of ``Fraction`` if True, of float64 if False

    Raises
    ------
    ValueError  weights of different lengths, a negative or fractional weight, a context without mass
    KeyError    (from ``score``) a context that the table does not have

    >>> model = TabularModel({(): [1, 1], (0,): [3, 1], (1,): [1, 2]})
    >>> model.score((0,), (1,)).tolist()
    [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 3), Fraction(2, 3)]]
    """

    kind = "weights"

    def __init__(self, weights: Mapping[Context, Sequence[int]], *, exact: bool = True) -> None:
        if not weights:
            raise ValueError("weights: an empty table; expected a row for each context")
        self.weights = {tuple(context): tuple(row) for context, row in weights.items()}
        self.exact = exact
        self.order = max(map(len, self.weights), default=0)
        self.vocabulary = len(next(iter(self.weights.values()), ()))
        self._rows = {context: self._row(context) for context in self.weights}

    def _row(self, context: Context) -> NDArray[Any]:
        weights = self.weights[context]
        if len(weights) != self.vocabulary:
            raise ValueError(f"context {context}: {len(weights)} weights; expected {self.vocabulary}")
        for y, weight in enumerate(weights):
            if not isinstance(weight, Integral) or weight < 0:
                raise ValueError(f"context {context}, index {y}: {weight!r}; expected an integer >= 0")
        total = sum(int(weight) for weight in weights)
        if total == 0:
            raise ValueError(f"context {context}: all weights are 0; expected a total above 0")
        row = np.array([Fraction(int(weight), total) for weight in weights], dtype=object)
        return row if self.exact else row.astype(np.float64)

    @property
    def floats(self) -> "TabularModel":
        """The same table, its rows rounded to float64."""
        return TabularModel(self.weights, exact=False)

    @property
    def fractions(self) -> "TabularModel":
        """The same table, its rows exact."""
        return TabularModel(self.weights, exact=True)

    def state_key(self, tokens: Context) -> Context:
        """Return the last ``order`` tokens."""
        return tuple(tokens[max(len(tokens) - self.order, 0) :])

    def score(self, prefix: Context, continuation: Context) -> NDArray[Any]:  # -> [len(continuation) + 1, V]
        """Return the rows after each prefix of the continuation."""
        contexts = [self.state_key(prefix + continuation[:i]) for i in range(len(continuation) + 1)]
        for context in contexts:
            if context not in self._rows:
                raise KeyError(f"context {context} is not in the table")
        return np.stack([self._rows[context] for context in contexts])
