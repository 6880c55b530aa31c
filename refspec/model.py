"""What the algorithm asks of a language model, and three things made of one: rows, a counted and a lifted model."""

from collections.abc import Hashable
from fractions import Fraction
from typing import Protocol

import numpy as np

from refspec.distribution import Row, Rows
from refspec.knobs import PLAIN, SamplingKnobs, normalised

Tokens = tuple[int, ...]


class LanguageModel(Protocol):
    """A model of the next token.

    vocabulary   V, the number of token ids
    kind         "logits" or "weights": what ``score`` returns
    """

    @property
    def vocabulary(self) -> int: ...

    @property
    def kind(self) -> str: ...

    def score(self, prefix: Tokens, continuation: Tokens) -> Rows:
        """Return scores [len(continuation) + 1, V] in one call: row i is of the token after ``continuation[:i]``."""
        ...

    def state_key(self, tokens: Tokens) -> Hashable:
        """Return what the next token depends on: prefixes with equal keys have equal scores, now and later."""
        ...


def next_rows(
    model: LanguageModel, prefix: Tokens, continuation: Tokens = (), *, knobs: SamplingKnobs = PLAIN
) -> Rows:  # -> [len(continuation) + 1, V]
    """Return the rows after each prefix of the continuation, by one call of the model."""
    if not isinstance(knobs, SamplingKnobs):
        raise TypeError(f"knobs: {knobs!r}; expected SamplingKnobs")
    scores = np.asarray(model.score(prefix, continuation))
    expected = (len(continuation) + 1, model.vocabulary)
    if scores.shape != expected:
        raise ValueError(f"scores: shape {scores.shape}; expected {expected}")
    return np.array([knobs.row(row, kind=model.kind) for row in scores])


def common_vocabulary(target: LanguageModel, draft: LanguageModel) -> int:
    """Return the vocabulary of both models. Different ones are refused: a token id would mean two things."""
    if target.vocabulary != draft.vocabulary:
        raise ValueError(f"vocabularies differ: target {target.vocabulary}, draft {draft.vocabulary}")
    return target.vocabulary


class CountedModel:
    """A model that counts its calls: ``calls`` is how often ``score`` ran."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.vocabulary = model.vocabulary
        self.kind = model.kind
        self.calls = 0

    def score(self, prefix: Tokens, continuation: Tokens) -> Rows:
        self.calls += 1
        return self.model.score(prefix, continuation)

    def state_key(self, tokens: Tokens) -> Hashable:
        return self.model.state_key(tokens)


class LiftedModel:
    """The rows of a model after all knobs, as fractions: every float is a rational."""

    kind = "weights"

    def __init__(self, model: LanguageModel, knobs: SamplingKnobs) -> None:
        self.model = model
        self.knobs = knobs
        self.vocabulary = model.vocabulary
        self.lifted_rows: dict[Hashable, Row] = {}

    def score(self, prefix: Tokens, continuation: Tokens) -> Rows:
        return np.stack([self._row(prefix + continuation[:i]) for i in range(len(continuation) + 1)])

    def state_key(self, tokens: Tokens) -> Hashable:
        return self.model.state_key(tokens)

    def _row(self, tokens: Tokens) -> Row:
        key = self.model.state_key(tokens)
        if key not in self.lifted_rows:
            scores = np.asarray(self.model.score(tokens, ()), dtype=np.float64)  # [1, V]
            self.lifted_rows[key] = as_fractions(self.knobs.row(scores[0], kind=self.model.kind))
        return self.lifted_rows[key]


def as_fractions(row: Row) -> Row:  # [V] -> [V]
    """Return a row of floats as the fractions they are, divided by their exact sum."""
    return normalised(np.array([Fraction(float(mass)) for mass in row], dtype=object))


def lifted(model: LanguageModel, knobs: SamplingKnobs = PLAIN) -> LiftedModel:
    """Return a model whose rows are the float64 rows of ``model`` under ``knobs``, as fractions that sum to one.

    So losslessness is provable under every knob, a temperature of 0.7 included.
    """
    return LiftedModel(model, knobs)
