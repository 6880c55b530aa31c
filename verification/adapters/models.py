"""Models of foreign code, which may raise."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verification.adapters.protocol import AdapterError, foreign_code

Tokens = tuple[int, ...]


class GuardedModel:
    """A language model of foreign code: whatever it raises, or a reply of the wrong shape, is an ``AdapterError``."""

    def __init__(self, model: Any, name: str) -> None:
        self.model = model
        self.name = name
        self.vocabulary = int(model.vocabulary)
        self.kind = model.kind

    def score(self, prefix: Tokens, continuation: Tokens) -> NDArray[Any]:
        with foreign_code(f"{self.name}.score"):
            scores = np.asarray(self.model.score(prefix, continuation))
        expected = (len(continuation) + 1, self.vocabulary)
        if scores.shape != expected:
            raise AdapterError(f"{self.name}.score returned an array of shape {scores.shape}; expected {expected}")
        return scores

    def state_key(self, tokens: Tokens) -> Hashable:
        with foreign_code(f"{self.name}.state_key"):
            key: Hashable = self.model.state_key(tokens)
            hash(key)
        return key
