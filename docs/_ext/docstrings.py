"""Docstrings and signatures for autodoc, as the code lays them out.

The code puts a name and what it means on one line (``name  meaning``), and a formula in an indented block. Here they
become definition lists and literal blocks. A signature keeps the annotations that stand in the source; a class of ours
is there by its full name, so that it links to the right one of two. What Python says of every class
(``Bases: object``, ``Alias for field number 0``, the arguments of a protocol) is left out.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

ENTRY = re.compile(r"(?P<name>[A-Za-z_][\w, ]*?)(?: : |  +)(?P<meaning>\S.*)")
TABLE = re.compile(r"[A-Za-z_]\w*(?:, \w+)*  +\S")  # a name, a gap, a meaning
PACKAGES = ("refspec", "toy_models", "verification")
FIELDS = {"Parameters": "param", "Raises": "raises"}


def converted(lines: list[str]) -> list[str]:
    """Return a docstring in reStructuredText."""
    out: list[str] = []
    for title, body in _sections(lines):
        if title in FIELDS:
            out += [f":{FIELDS[title]} {name}: {_told(meaning)}" for name, meaning in _entries(body)] + [""]
        elif title == "Returns":
            out += [f":returns: {_told(' '.join(line.strip() for line in body).strip())}", ""]
        else:
            for paragraph in _paragraphs(body):
                out += [*_as_rst(paragraph), ""]
    return out


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Split at the titles that a line of hyphens underlines; text that follows a section's entries has no title."""
    title, body = "", list[str]()
    for line, following in pairwise([*lines, ""]):
        if following and set(following.strip()) == {"-"}:
            yield title, body
            title, body = line.strip(), []
        elif title and body and not body[-1] and line and not ENTRY.match(line) and not line.startswith(" "):
            yield title, body
            title, body = "", [line]
        elif set(line.strip()) != {"-"}:
            body.append(line)
    yield title, body


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _as_rst(paragraph: list[str]) -> list[str]:
    if all(line.startswith("    ") for line in paragraph):
        return [".. code-block:: text", "", *(line.replace("``", "") for line in paragraph)]
    if TABLE.match(paragraph[0]) and all(TABLE.match(line) or line.startswith("  ") for line in paragraph):
        return [line for name, meaning in _entries(paragraph) for line in (f"``{name}``", f"    {meaning}")]
    return paragraph


def _told(meaning: str) -> str:
    """Return ``shape  meaning`` with a colon in place of the gap."""
    return re.sub(r"(?<=\S)  +", ": ", meaning, count=1)


def _entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield names with their meanings; a line that is indented goes on with the meaning above it."""
    entries: list[tuple[str, str]] = []
    for line in lines:
        if not line.strip():
            continue
        found = ENTRY.fullmatch(line)
        if found:
            entries.append((found["name"], found["meaning"]))
        elif line.startswith(" ") and entries:
            entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}")
        else:
            raise ValueError(f"docstring: {line!r} is neither an entry nor the rest of one")
    yield from entries


def bases(found: type) -> list[str]:
    """Return a line on what a class is, besides an object: an error by which it can be caught, the class it refines."""
    told = [base for base in found.__bases__ if base is not object and base.__name__ not in ("Protocol", "tuple")]
    return ["Bases: " + ", ".join(map(_linked, told)), ""] if told else []


def _linked(base: type) -> str:
    ours = base.__module__.partition(".")[0] in PACKAGES
    return f":py:class:`~{base.__module__}.{base.__qualname__}`" if ours else f"``{base.__name__}``"


def is_field_of_a_tuple(found: Any) -> bool:
    """Whether it is a field of a named tuple, of which Python says only its number."""
    return (inspect.getdoc(found) or "").startswith("Alias for field number")


def as_written(found: Any) -> tuple[str, str | None] | None:
    """Return the arguments and the result of a function (of a class: its constructor) as its source has them."""
    if getattr(found, "_is_protocol", False):
        return "", None
    if is_dataclass(found):
        return f"({', '.join(_fields(found))})", None
    function = found.__dict__.get("__init__") if inspect.isclass(found) else inspect.unwrap(found)
    if not inspect.isroutine(function) or not hasattr(function, "__code__") or function.__code__.co_filename[0] == "<":
        return None
    made = _parsed(function)
    if not isinstance(made, ast.FunctionDef):
        return None
    arguments = made.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        del arguments.args[0]
    names = function.__globals__
    for argument in filter(None, (*arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)):
        argument.annotation = _full(argument.annotation, names)
    result = None if made.returns is None or inspect.isclass(found) else ast.unparse(_full(made.returns, names))
    return f"({ast.unparse(arguments)})", result


def _fields(found: type) -> Iterator[str]:
    """Yield the fields of a dataclass that its constructor takes, those of the class it refines first."""
    taken = {field.name for field in fields(found) if field.init}  # type: ignore[arg-type]
    written: dict[str, str] = {}
    for cls in filter(is_dataclass, reversed(found.__mro__)):
        names = vars(sys.modules[cls.__module__])
        for line in _parsed(cls).body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.target.id in taken:
                default = "" if line.value is None else f" = {ast.unparse(line.value)}"
                written[line.target.id] = f"{line.target.id}: {ast.unparse(_full(line.annotation, names))}{default}"
    yield from written.values()


def _parsed(found: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]


def _full(annotation: Any, names: Mapping[str, Any]) -> Any:
    """Return an annotation without quotes, and each class of ours by its full name."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    return annotation and _FullNames(names).visit(annotation)


class _FullNames(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> Any:
        found = self.names.get(node.id)
        if inspect.isclass(found) and found.__module__.partition(".")[0] in PACKAGES:
            return ast.parse(f"{found.__module__}.{found.__qualname__}", mode="eval").body
        return node


def setup(app: Any) -> dict[str, bool]:
    """Convert what autodoc has read."""

    def docstring(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
        lines[:] = (bases(found) if inspect.isclass(found) else []) + converted(lines)

    def signature(app: Any, what: str, name: str, found: Any, options: Any, *rest: Any) -> Any:
        return as_written(found) if what in ("function", "method", "class", "exception") else None

    def skip(app: Any, what: str, name: str, found: Any, skipped: bool, options: Any) -> bool | None:
        return True if is_field_of_a_tuple(found) else None

    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
