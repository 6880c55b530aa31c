"""The lists that the site does not keep by hand, as Markdown: properties, pairs, wrong samplers, budgets, public names.

They are read from the registries of the code whenever the site is built. Nothing here needs Sphinx.
"""

import importlib
import inspect
from types import ModuleType
from typing import Any

from toy_models import Pair, get_pair, pair_names, text_pairs
from verification.faults import chain, history, knobs, stopping
from verification.faults.generation import Engine
from verification.faults.rule import Rule
from verification.properties import PROPERTIES
from verification.runner import BUDGETS


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


def all_faults() -> list[type]:
    """Return every wrong sampler, in the order of the source; a control that is right says so itself."""
    return [
        found
        for module in (chain, knobs, history, stopping)
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Rule | Engine) and found.__module__ == module.__name__
    ]


def faults_table() -> str:
    """Return a table with a row for each wrong sampler: how the command names it, and what it does."""
    rows = [
        (f"`{made.__module__.removeprefix('verification.faults.')}:{made.__name__}`", summary(made))
        for made in all_faults()
    ]
    return _table(("`verification.faults.`", "what it does"), rows)


def budgets_table() -> str:
    """Return a table with a row for each budget of ``refspec check``."""
    rows = [
        (
            f"`--budget {made.name}`",
            str(made.total_variation),
            f"{made.least:,} to {made.most:,}",
            "the smallest set" if made.smoke else "all",
        )
        for made in BUDGETS.values()
    ]
    return _table(("budget", "bias", "calls of a cell that estimates", "cells"), rows)


def summary(found: Any) -> str:
    """Return the first paragraph of a docstring on one line, its code in Markdown."""
    return " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split()).replace("``", "`")


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
    return summary(found).partition(". ")[0].removesuffix(".") + "."


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = [head, tuple("---" for _ in head), *(tuple(cell.replace("|", r"\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"
