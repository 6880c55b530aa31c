"""The Python door: an implementation by its name, ``module:object``."""

from functools import cache

from verification.adapters.loopback import Reference
from verification.adapters.objects import named_object
from verification.adapters.protocol import Implementation, foreign_code

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
    found = named_object(name)
    with foreign_code(f"making {name.partition(':')[2]}"):
        adapter = found() if isinstance(found, type) else found
    return Implementation(adapter, name, load=load)
