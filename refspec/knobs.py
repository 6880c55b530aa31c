"""The knobs of sampling: from the scores of one position and its history to the row its token is drawn from.

Order: bans and bias; repetition penalty; presence and frequency penalties; minimum tokens; temperature; then top-k,
top-p and min-p, each on the renormalised survivors of the one before. Both models apply their knobs before the rule
sees a row, as Chen et al. 2023 do.

On fractions bans, all truncations, and temperature 0 and 1/n (a power) are exact; any other knob needs
``refspec.model.lifted``.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from refspec import penalties
from refspec.distribution import Row, as_count, as_logits, as_weights, is_exact
from refspec.history import NO_HISTORY, History
from refspec.temperature import tempered
from refspec.truncation import min_p, normalised, top_k, top_p

Value = int | float | Fraction | str
ON_LOGITS = {"logit_bias": (), "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0}  # and when off


@dataclass(frozen=True)
class SamplingKnobs:
    """How a row is made from scores and a history. The defaults leave the model's own distribution.

    temperature         at least 0; 0 is greedy, the one-hot row at the first maximum
    top_k               how many tokens survive: exactly k, the lowest index wins a tie
    top_p               the smallest set of likeliest tokens whose mass reaches it survives, the crossing token included
    min_p               a token survives if it has at least this part of the largest probability
    logit_bias          {token: what is added to its logit}
    banned_tokens       tokens that are never drawn
    repetition_penalty  above 0: the logit of each token in prompt or output is divided by it if positive, else
                        multiplied by it
    presence_penalty    taken from the logit of each token in the output
    frequency_penalty   taken from the logit of a token once for each time it is in the output
    min_tokens          before the output has so many, no end token is drawn and no stop sequence ends it

    None switches a truncation off. A value may be a string or a fraction where exactness matters:
    ``"0.9"`` is nine tenths, ``0.9`` is the float next to it. A model of weights has the logits
    ``log(weight / total)``.
    """

    temperature: Value = 1
    top_k: int | None = None
    top_p: Value | None = None
    min_p: Value | None = None
    logit_bias: Mapping[int, Value] | tuple[tuple[int, Value], ...] = ()
    banned_tokens: Collection[int] = ()
    repetition_penalty: Value = 1
    presence_penalty: Value = 0
    frequency_penalty: Value = 0
    min_tokens: int = 0

    def __post_init__(self) -> None:
        self._set_values()
        self._set_tokens()
        _refuse_unless(0 <= self.temperature < np.inf, "temperature", self.temperature, "0 or more")  # type: ignore[operator]
        if self.top_k is not None:
            whole = isinstance(self.top_k, int | np.integer) and not isinstance(self.top_k, bool)
            _refuse_unless(whole and self.top_k >= 1, "top_k", self.top_k, "an integer of 1 or more, or None")
        if self.top_p is not None:
            _refuse_unless(0 < self.top_p <= 1, "top_p", self.top_p, "above 0 and at most 1, or None")  # type: ignore[operator]
        if self.min_p is not None:
            _refuse_unless(0 <= self.min_p <= 1, "min_p", self.min_p, "0 to 1, or None")  # type: ignore[operator]
        penalty: Any = self.repetition_penalty
        _refuse_unless(0 < penalty < np.inf, "repetition_penalty", penalty, "a number above 0")

    def _set_values(self) -> None:
        for name in ("temperature", "repetition_penalty"):
            object.__setattr__(self, name, _as_value(getattr(self, name), name))
        for name in ("presence_penalty", "frequency_penalty"):
            object.__setattr__(self, name, _as_finite(getattr(self, name), name))
        for name in ("top_p", "min_p"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _as_value(getattr(self, name), name))

    def _set_tokens(self) -> None:
        """Keep collections as sorted tuples, so that equal knobs are equal and can be the key of a table."""
        bias = _as_pairs(self.logit_bias)
        tokens = _as_token_ids(bias, "logit_bias")
        values = tuple((token, _as_finite(bias[token], f"logit_bias of token {token}")) for token in tokens)
        object.__setattr__(self, "logit_bias", values)
        object.__setattr__(self, "banned_tokens", _as_token_ids(self.banned_tokens, "banned_tokens"))
        object.__setattr__(self, "min_tokens", as_count(self.min_tokens, name="min_tokens"))

    @property
    def looks_back(self) -> bool:
        """Whether the row of a position depends on its history, beyond its scores."""
        return bool(self.repetition_penalty != 1 or self.presence_penalty or self.frequency_penalty or self.min_tokens)

    def reads(self, history: History) -> Hashable:
        """Return what the knobs read of a history: where it is equal, equal scores give equal rows."""
        return (
            frozenset(history.tokens) if self.repetition_penalty != 1 else None,
            frozenset(history.output) if self.presence_penalty else None,
            frozenset(Counter(history.output).items()) if self.frequency_penalty else None,
            self._bans_the_end(history),
            min(len(history.output), self.min_tokens),
        )

    def row(self, scores: ArrayLike, *, kind: str, history: History = NO_HISTORY) -> Row:  # [V] -> [V]
        """Return the row of one position.

        Parameters
        ----------
        scores : [V]  logits (-inf bans a token) or weights (at least 0, any total)
        kind : "logits" or "weights"
        history : what came before the position, its drafts included

        Raises
        ------
        ValueError  a NaN, +inf, a negative weight, a token out of range, nothing left to draw: names the index and
                    the value
        TypeError   a knob that has no exact value on fractions, or logits that are fractions
        """
        if not isinstance(history, History):
            raise TypeError(f"history: {history!r}; expected a History")
        numbers, kind = self._penalised(_checked(scores, kind), kind, history)
        weights = tempered(numbers, self.temperature, kind=kind)
        if self.top_k is not None:
            weights = top_k(weights, self.top_k)
        if self.top_p is not None:
            weights = top_p(weights, self.top_p)
        if self.min_p is not None:
            weights = min_p(weights, self.min_p)
        return normalised(weights)

    def _penalised(self, scores: Row, kind: str, history: History) -> tuple[Row, str]:
        """Return the scores after bans, bias, penalties and minimum tokens, and of which kind they now are."""
        if turned := [name for name, off in ON_LOGITS.items() if getattr(self, name) != off]:
            _refuse_fractions(scores, turned[0], getattr(self, turned[0]))
            scores, kind = (scores if kind == "logits" else penalties.log_weights(scores)), "logits"
        if self.banned_tokens:
            scores = penalties.ban(scores, self.banned_tokens, kind=kind)  # type: ignore[arg-type]
        if self.logit_bias:
            scores = penalties.biased(scores, self.logit_bias)  # type: ignore[arg-type]
        if self.repetition_penalty != 1:
            scores = penalties.repetition(scores, history.tokens, self.repetition_penalty)
        if self.presence_penalty or self.frequency_penalty:
            amounts = self.presence_penalty, self.frequency_penalty
            scores = penalties.presence_and_frequency(scores, history.output, *amounts)
        if self._bans_the_end(history):
            scores = penalties.ban(scores, history.end_tokens, kind=kind)
        return scores, kind

    def _bans_the_end(self, history: History) -> bool:
        return bool(history.end_tokens) and len(history.output) < self.min_tokens


def _checked(scores: ArrayLike, kind: str) -> Row:
    if kind not in ("logits", "weights"):
        raise ValueError(f"kind: {kind!r}; expected 'logits' or 'weights'")
    return as_logits(scores, name=kind) if kind == "logits" else as_weights(scores, name=kind)


def _refuse_fractions(scores: Row, name: str, value: Any) -> None:
    if is_exact(scores):
        raise TypeError(f"{name} {value} has no exact value on fractions; use refspec.model.lifted")


def _as_value(value: Any, name: str) -> Any:
    """Return a knob's value as a number that is also a float; a string becomes a fraction."""
    try:
        number = Fraction(value) if isinstance(value, str) else value
        rounds_to_zero = float(number) == 0 != number
    except (ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"{name}: {value!r} is not a number") from error
    if rounds_to_zero or isinstance(number, bool) or not isinstance(number, Rational | float | np.floating):
        raise ValueError(f"{name}: {value!r} is not a number of a float's range")
    return number


def _as_finite(value: Any, name: str) -> Any:
    number = _as_value(value, name)
    _refuse_unless(abs(number) < np.inf, name, number, "a finite number")
    return number


def _as_pairs(bias: Any) -> dict[int, Value]:
    """Return a bias as a dictionary, also one that was given as pairs; a token named twice is refused."""
    expected = "{token: what is added to its logit}"
    try:
        pairs = dict(bias)
    except (TypeError, ValueError) as error:
        raise ValueError(f"logit_bias: {bias!r}; expected {expected}") from error
    _refuse_unless(len(pairs) == len(bias), "logit_bias", bias, f"{expected}, each token once")
    return pairs


def _as_token_ids(tokens: Collection[int], name: str) -> tuple[int, ...]:
    """Return token ids in ascending order; whether the vocabulary has them is seen with the scores."""
    _refuse_unless(isinstance(tokens, Iterable), name, tokens, "token ids")
    return tuple(sorted({as_count(token, name=name) for token in tokens}))


def _refuse_unless(holds: bool, name: str, value: Any, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name}: {value!r}; expected {expected}")


def as_knobs(knobs: Any, *, name: str = "knobs") -> SamplingKnobs:
    """Return the knobs, or refuse what is none."""
    if not isinstance(knobs, SamplingKnobs):
        raise TypeError(f"{name}: {knobs!r}; expected SamplingKnobs")
    return knobs


PLAIN = SamplingKnobs()
