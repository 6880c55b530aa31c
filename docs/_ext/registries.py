"""Sphinx directives for the lists of ``lists.py``.

``properties``, ``pairs``, ``faults``, ``budgets`` and ``public-names PACKAGE``.
"""

from typing import Any, ClassVar

from docutils import nodes
from lists import budgets_table, faults_table, names_table, pairs_table, properties_table
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

PACKAGES = ("refspec.", "toy_models.", "verification.")
logger = logging.getLogger(__name__)


class Table(SphinxDirective):
    """A table that is made when the page is read; the page holds the directive alone."""

    make: ClassVar[Any]

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the lists may change where the page does not
        found = nodes.container(classes=[self.name])
        self.state.nested_parse(type(self).make(*self.arguments).splitlines(), self.lineno, found)
        return [found]


class Properties(Table):
    """Every property of the registry."""

    make = staticmethod(properties_table)


class Pairs(Table):
    """Every named pair of models."""

    make = staticmethod(pairs_table)


class Faults(Table):
    """Every wrong sampler."""

    make = staticmethod(faults_table)


class Budgets(Table):
    """Every budget of ``refspec check``."""

    make = staticmethod(budgets_table)


class PublicNames(Table):
    """Every name in ``__all__`` of a package, with a link to its entry."""

    required_arguments = 1
    make = staticmethod(names_table)


def say_what_has_no_entry(app: Sphinx, env: Any, node: Any, content: Any) -> None:
    """Warn of a public name that no API page documents; with ``-W`` the build fails."""
    if node["reftype"] == "obj" and node["reftarget"].startswith(PACKAGES):
        logger.warning("%s has no entry on an API page", node["reftarget"], location=node)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("properties", Properties)
    app.add_directive("pairs", Pairs)
    app.add_directive("faults", Faults)
    app.add_directive("budgets", Budgets)
    app.add_directive("public-names", PublicNames)
    app.connect("missing-reference", say_what_has_no_entry)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
