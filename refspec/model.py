"""What the algorithm asks of a language model, and three things made of one: rows, a counted and a lifted model."""

from collections.abc import Hashable
from fractions import Fraction
from typing import Protocol

import numpy as np

from refspec.distribution import Row, Rows
from refspec.history import History, Tokens
from refspec.knobs import PLAIN, SamplingKnobs, as_knobs
from refspec.truncation import normalised


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
    model: LanguageModel, prefix: Tokens | History, continuation: Tokens = (), *, knobs: SamplingKnobs = PLAIN
) -> Rows:  # -> [len(continuation) + 1, V]
    """Return the rows after each prefix of the continuation, by one call of the model.

    The knobs see at each position the history that it really has: what was there, and the continuation before it.
    A bare ``prefix`` is all prompt.
    """
    knobs = as_knobs(knobs)
    history = prefix if isinstance(prefix, History) else History(prompt=prefix)
    scores = np.asarray(model.score(history.tokens, continuation))
    expected = (len(continuation) + 1, model.vocabulary)
    if scores.shape != expected:
        raise ValueError(f"scores: shape {scores.shape}; expected {expected}")
    return np.array(
        [knobs.row(row, kind=model.kind, history=history.then(continuation[:i])) for i, row in enumerate(scores)]
    )


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

    def __init__(self, model: LanguageModel, knobs: SamplingKnobs, prompt_length: int, end_tokens: Tokens) -> None:
        self.model = model
        self.knobs = knobs
        self.prompt_length = prompt_length
        self.end_tokens = end_tokens
        self.vocabulary = model.vocabulary
        self.lifted_rows: dict[Hashable, Row] = {}

    def score(self, prefix: Tokens, continuation: Tokens) -> Rows:
        return np.stack([self._row(prefix + continuation[:i]) for i in range(len(continuation) + 1)])

    def state_key(self, tokens: Tokens) -> Hashable:
        return self.model.state_key(tokens), self.knobs.reads(self._history(tokens))

    def _history(self, tokens: Tokens) -> History:
        return History(tokens[: self.prompt_length], tokens[self.prompt_length :], self.end_tokens)

    def _row(self, tokens: Tokens) -> Row:
        key = self.state_key(tokens)
        if key not in self.lifted_rows:
            scores = np.asarray(self.model.score(tokens, ()), dtype=np.float64)  # [1, V]
            row = self.knobs.row(scores[0], kind=self.model.kind, history=self._history(tokens))
            self.lifted_rows[key] = as_fractions(row)
        return self.lifted_rows[key]


def as_fractions(row: Row) -> Row:  # [V] -> [V]
    """Return a row of floats as the fractions they are, divided by their exact sum."""
    return normalised(np.array([Fraction(float(mass)) for mass in row], dtype=object))


def lifted(
    model: LanguageModel, knobs: SamplingKnobs = PLAIN, *, prompt_length: int = 0, end_tokens: Tokens = ()
) -> LiftedModel:
    """Return a model whose rows are the float64 rows of ``model`` under ``knobs``, as fractions that sum to one.

    So losslessness is provable under every knob, a temperature of 0.7 or a penalty included. What comes after
    ``prompt_length`` tokens is output; ``end_tokens`` are those that ``min_tokens`` bans.
    """
    return LiftedModel(model, knobs, prompt_length, end_tokens)
