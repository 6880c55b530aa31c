"""Models of random logits, for any vocabulary: the logits of a context are made when it is scored, and not stored."""

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class RandomLogitModel:
    """Independent normal logits for each context of the last ``order`` tokens.

    Parameters
    ----------
    vocabulary : V, 1 to 200 000
    seed : names the model; equal seeds give equal logits on every machine with the same NumPy
    scale : the standard deviation of the logits
    order : how many of the last tokens the next one depends on

    >>> RandomLogitModel(5, seed=1).score((), (3, 2)).shape
    (3, 5)
    """

    kind = "logits"

    def __init__(self, vocabulary: int, *, seed: int, scale: float = 1.0, order: int = 1) -> None:
        if not 1 <= vocabulary <= 200_000:
            raise ValueError(f"vocabulary: {vocabulary}; expected 1 to 200000")
        if not 0 <= scale < float("inf"):
            raise ValueError(f"scale: {scale}; expected 0 or more")
        if not isinstance(order, int) or order < 0:
            raise ValueError(f"order: {order}; expected 0 or more")
        self.vocabulary = vocabulary
        self.seed = seed
        self.scale = scale
        self.order = order

    def state_key(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Return the last ``order`` tokens."""
        return tuple(tokens[max(len(tokens) - self.order, 0) :])

    def score(self, prefix: tuple[int, ...], continuation: tuple[int, ...]) -> Floats:
        """Return the logits [len(continuation) + 1, V] after each prefix of the continuation."""
        return np.stack([self.logits(self.state_key(prefix + continuation[:i])) for i in range(len(continuation) + 1)])

    def logits(self, context: tuple[int, ...]) -> Floats:  # -> [V]
        """Return the logits of one context."""
        name = f"{self.seed} {' '.join(map(str, context))}".encode()
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(sha256(name).digest()[:16], "big")))
        return self.scale * generator.standard_normal(self.vocabulary)


class NearbyModel(RandomLogitModel):
    """A draft at a chosen total variation from a random-logit target, in every context.

    Each row is a mixture of the target's row and of the row of a third model, independent of the target; the weight
    is chosen context by context, so that the total variation is ``distance`` (where the third row is closer than
    that, the draft is the third row).

    >>> target = RandomLogitModel(50, seed=1)
    >>> rows = [np.exp(model.logits((7,))) for model in (target, NearbyModel(target, distance=0.2, seed=2))]
    >>> round(float(sum(abs(rows[0] / rows[0].sum() - rows[1] / rows[1].sum())) / 2), 12)
    0.2
    """

    def __init__(self, target: RandomLogitModel, *, distance: float, seed: int) -> None:
        if not 0 <= distance <= 1:
            raise ValueError(f"distance: {distance}; expected a total variation, 0 to 1")
        super().__init__(target.vocabulary, seed=seed, scale=max(3.0, target.scale), order=target.order)
        self.target = target
        self.distance = distance

    def logits(self, context: tuple[int, ...]) -> Floats:  # -> [V]
        target_row = _softmax(self.target.logits(context))
        other_row = _softmax(super().logits(context))
        apart = abs(target_row - other_row).sum() / 2
        share = min(1.0, self.distance / apart) if apart else 0.0
        with np.errstate(divide="ignore"):  # a row too sharp for a float has zeros: -inf is their logit
            return np.asarray(np.log((1 - share) * target_row + share * other_row))


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())
