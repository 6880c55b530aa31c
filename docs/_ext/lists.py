"""The lists that the site does not keep by hand, as Markdown: properties, pairs, public names.

They are read from the registries of the code whenever the site is built. Nothing here needs Sphinx.
"""

import importlib
import inspect
from types import ModuleType
from typing import Any

from toy_models import Pair, get_pair, pair_names, text_pairs
from verification.properties import PROPERTIES


def all_pairs() -> list[Pair]:
    """Return every named pair, those of the text that CPython carries included."""
    return [*map(get_pair, pair_names()), *text_pairs()]


def properties_table() -> str:
    """Return a table with a row for each property of the registry, in its order."""
    rows = [
        (f"`{made.id}`", made.sentence, made.profile, made.tier, made.source, made.measures or "-")
        for made in PROPERTIES.values()
    ]
    return _table(("id", "what must hold", "profile", "tier", "source", "measures"), rows)


def pairs_table() -> str:
    """Return a table with a row for each pair, in the order of the registry."""
    rows = [(f"`{pair.name}`", pair.purpose, str(pair.vocabulary)) for pair in all_pairs()]
    return _table(("name", "what it is for", "vocabulary"), rows)


def names_table(package: str) -> str:
    """Return a table of the names in ``__all__`` of a package: each with its home and the first sentence on it."""
    module = importlib.import_module(package)
    rows = [
        (f"{{py:obj}}`{name} <{home(package, name)}>`", first_sentence(getattr(module, name)))
        for name in module.__all__
    ]
    return _table(("name", "what it is"), rows)


def home(package: str, name: str) -> str:
    """Return the full name under which a public name is documented: the module that defines it."""
    found = getattr(importlib.import_module(package), name)
    if isinstance(found, ModuleType):
        return found.__name__
    return f"{getattr(found, '__module__', package)}.{name}"


def first_sentence(found: Any) -> str:
    """Return the first sentence of a docstring; a number has none, and is shown."""
    if isinstance(found, int):
        return f"the number {found}"
    paragraph = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".").replace("``", "`") + "."


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = [head, tuple("---" for _ in head), *(tuple(cell.replace("|", r"\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"
