"""An object by its name, ``module:object``, and models of foreign code that may raise."""

import importlib
import os
import sys
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verification.adapters.protocol import AdapterError, UsageError, foreign_code

Tokens = tuple[int, ...]


def named_object(name: str) -> Any:
    """Return what ``module:object`` names; the module may lie next to the working directory.

    Raises
    ------
    UsageError    the name is malformed, or there is no such module or object
    AdapterError  the module raised
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path or module_name.startswith("."):
        raise UsageError(f"{name!r}; expected module:object")
    if "/" in module_name or module_name.endswith(".py"):
        raise UsageError(f"{name!r} names a file; expected module:object, as in package.module:made")
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        with foreign_code(f"importing {module_name}"):
            found: Any = importlib.import_module(module_name)
    except AdapterError as error:
        if not isinstance(error.__cause__, ImportError):
            raise
        raise UsageError(f"{name!r}: cannot import {module_name!r} ({error.__cause__})") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{name!r}: {module_name!r} has no {part!r}")
        found = getattr(found, part)
    return found


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
