"""What changes logits before temperature: a bias, and penalties on the tokens of a history."""

from collections import Counter
from typing import Any

import numpy as np

from refspec.distribution import Row, as_logits, as_weights, total
from refspec.history import Tokens


def log_weights(weights: Row) -> Row:  # [V] -> [V]
    """Return the logits of a model of weights: the logarithms of its probabilities, -inf for zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights / total(weights)))


def ban(scores: Row, tokens: Tokens, *, kind: str) -> Row:  # [V] -> [V]
    """Return the scores with the tokens out of reach: a logit of -inf, a weight of 0. Refuses to ban all."""
    banned = scores.copy()
    for token in tokens:
        banned[_within(token, scores)] = -np.inf if kind == "logits" else scores[0] * 0  # of the sort of the scores
    check = as_logits if kind == "logits" else as_weights
    return check(banned, name=f"{kind} without the banned tokens {tokens}")


def biased(logits: Row, bias: tuple[tuple[int, float], ...]) -> Row:  # [V] -> [V]
    """Return the logits plus the bias of each token named."""
    changed = logits.copy()
    for token, amount in bias:
        changed[_within(token, logits)] += float(amount)
    return changed


def repetition(logits: Row, seen: Tokens, penalty: Any) -> Row:  # [V] -> [V]
    """Return the logits with that of each token seen divided by the penalty if positive, else multiplied.

    Keskar et al. 2019 (CTRL), section 4.1; the case of a negative logit as in transformers and vLLM.
    """
    changed = logits.copy()
    for token in set(seen):
        logit = logits[_within(token, logits)]
        changed[token] = logit / float(penalty) if logit > 0 else logit * float(penalty)
    return changed


def presence_and_frequency(logits: Row, output: Tokens, presence: Any, frequency: Any) -> Row:  # [V] -> [V]
    """Return the logits minus ``presence`` for each token in the output, and ``frequency`` each time it is there."""
    changed = logits.copy()
    for token, count in Counter(output).items():
        changed[_within(token, logits)] -= float(presence) + float(frequency) * count
    return changed


def _within(token: int, scores: Row) -> int:
    """Return a token id that the vocabulary has; an id of -1 would be its last token, and a silent fault."""
    if not 0 <= token < len(scores):
        raise ValueError(f"token {token} is out of range; expected 0 to {len(scores) - 1}")
    return token
