"""The Python door: ``module:object``, a module next to the working directory included."""

import importlib
import os
import sys
from functools import cache
from typing import Any

from verification.adapters.loopback import Reference
from verification.adapters.protocol import AdapterError, Implementation, UsageError, foreign_code

REFERENCE = "refspec"


@cache
def load(name: str = REFERENCE) -> Implementation:
    """Return the implementation that ``module:object`` names; a class is called without arguments.

    Without a name it is the reference itself, through the same door.

    Raises
    ------
    UsageError    the name is malformed, there is no such module or object, or it has no operation
    AdapterError  the module or the class raised
    """
    if name == REFERENCE:
        return Implementation(Reference(), name, is_reference=True, load=load)
    module_name, _, path = name.partition(":")
    if not module_name or not path or module_name.startswith("."):
        raise UsageError(f"{name!r}; expected module:object")
    if "/" in module_name or module_name.endswith(".py"):
        raise UsageError(f"{name!r} names a file; expected module:object, as in package.module:Adapter")
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
    with foreign_code(f"making {path}"):
        adapter = found() if isinstance(found, type) else found
    return Implementation(adapter, name, load=load)
