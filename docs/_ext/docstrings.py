"""Docstrings and signatures for autodoc, as the code lays them out.

The code puts a name and what it means on one line (``name  meaning``), and a formula in an indented block. Here they
become definition lists and literal blocks; a signature keeps the annotations that stand in the source.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

ENTRY = re.compile(r"(?P<name>[A-Za-z_][\w, ]*?)(?: : |  +)(?P<meaning>\S.*)")
TABLE = re.compile(r"[A-Za-z_]\w*(?:, \w+)*  +\S")  # a name, a gap, a meaning
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
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
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
        return ["::", "", *paragraph]
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


def as_written(found: Any) -> tuple[str, str | None] | None:
    """Return the arguments and the result of a function (of a class: its constructor) as its source has them."""
    function = found.__dict__.get("__init__") if inspect.isclass(found) else inspect.unwrap(found)
    if not inspect.isroutine(function) or not hasattr(function, "__code__") or function.__code__.co_filename[0] == "<":
        return None
    made = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(made, ast.FunctionDef):
        return None
    arguments = made.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        del arguments.args[0]
    result = None if made.returns is None or inspect.isclass(found) else ast.unparse(made.returns).strip("'")
    return f"({ast.unparse(arguments)})", result


def setup(app: Any) -> dict[str, bool]:
    """Convert what autodoc has read."""

    def docstring(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
        lines[:] = converted(lines)

    def signature(app: Any, what: str, name: str, found: Any, options: Any, *rest: Any) -> Any:
        return as_written(found) if what in ("function", "method", "class", "exception") else None

    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
