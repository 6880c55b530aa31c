"""An object by its name, ``module:object``; a module next to the working directory included."""

import importlib
import os
import sys
from typing import Any

from verification.adapters.protocol import AdapterError, UsageError, foreign_code


def named_object(name: str) -> Any:
    """Return what ``module:object`` names.

    Raises
    ------
    UsageError    the name is malformed, or there is no such module or object
    AdapterError  the module raised
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path or module_name.startswith("."):
        raise UsageError(f"{name!r}; expected module:object")
    if "/" in module_name or module_name.endswith(".py"):
        raise UsageError(f"{name!r} names a file; expected module:object, as in package.module:name")
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
