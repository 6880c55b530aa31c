"""The site's lists are those of the code, and every public name has an entry. Nothing is built here."""

import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import refspec
import toy_models
from toy_models import get_pair, pair_names, text_pairs
from verification.properties import PROPERTIES

DOCS = Path(__file__).parents[2] / "docs"
API = {path.name: path.read_text(encoding="utf-8") for path in sorted((DOCS / "api").glob("*.md"))}


def extension(name):
    """A module of docs/_ext."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lists, docstrings = extension("lists"), extension("docstrings")


def rows(table):
    """The cells of a Markdown table, head and rule left out."""
    return [
        tuple(cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        for line in table.splitlines()[2:]
    ]


def documented_modules():
    """Every module whose public members an API page asks for."""
    return {name for text in API.values() for name in re.findall(r"^\.\. automodule:: (\S+)$", text, re.MULTILINE)}


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package in (refspec, toy_models) for name in package.__all__]
)
def test_a_public_name_is_on_an_api_page(package, name):
    found = getattr(package, name)
    home = lists.home(package.__name__, name)
    if isinstance(found, ModuleType):
        assert home in documented_modules()
    elif isinstance(found, int):
        assert any(f".. py:data:: {home}\n" in text for text in API.values())
    else:
        module = home.rpartition(".")[0]
        assert module in documented_modules()
        assert getattr(importlib.import_module(module), name) is found
        assert inspect.getdoc(found), "autodoc leaves out what has no docstring"


@pytest.mark.parametrize("package", [refspec, toy_models])
def test_the_list_of_names_is_all(package):
    assert f"```{{public-names}} {package.__name__}\n" in API["index.md"]
    linked = [re.fullmatch(r"\{py:obj\}`(\w+) <(\S+)>`", cell).groups() for cell, _ in rows(table_of(package))]
    assert linked == [(name, lists.home(package.__name__, name)) for name in package.__all__]


@pytest.mark.parametrize("package", [refspec, toy_models])
def test_every_name_has_a_sentence(package):
    for name, sentence in rows(table_of(package)):
        if "SPEC_VERSION" in name:
            assert sentence == f"the number {refspec.SPEC_VERSION}"
            continue
        assert re.search(r"\w+ \w+ .*\.$", sentence), sentence
        assert sentence.count("`") % 2 == 0, sentence


def table_of(package):
    return lists.names_table(package.__name__)


def test_every_module_on_an_api_page_is_there():
    for name in documented_modules():
        assert inspect.getdoc(importlib.import_module(name))


def test_every_module_of_the_specification_is_on_an_api_page():
    modules = {f"refspec.{path.stem}" for path in (DOCS.parent / "refspec").glob("*.py") if path.stem != "__init__"}
    assert modules <= documented_modules()


def test_the_properties_are_those_of_the_registry():
    assert "```{properties}\n" in (DOCS / "properties.md").read_text(encoding="utf-8")
    assert rows(lists.properties_table()) == [
        (f"`{permanent}`", made.sentence, made.profile, made.tier, made.source, made.measures or "-")
        for permanent, made in PROPERTIES.items()
    ]


def test_the_pairs_are_those_of_the_registry():
    assert "```{pairs}\n" in (DOCS / "pairs.md").read_text(encoding="utf-8")
    pairs = [*map(get_pair, pair_names()), *text_pairs()]
    assert rows(lists.pairs_table()) == [(f"`{pair.name}`", pair.purpose, str(pair.vocabulary)) for pair in pairs]


def test_every_decision_is_in_the_table_of_decisions():
    folder = DOCS / "decisions"
    listed = re.findall(
        r"^\| \[([\w-]+)\]\(\1\.md\) \|", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    pages = {path.stem for path in folder.glob("*.md")} - {"README", "index"}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        (["One line."], ["One line.", ""]),
        (["A", "", "    x = 1"], ["A", "", "::", "", "    x = 1", ""]),
        (["name   what", "       it is"], ["``name``", "    what it is", ""]),
        (["of  two gaps", "is prose"], ["of  two gaps", "is prose", ""]),
        (["Parameters", "----------", "rows : [K, V]  row", "    by row"], ["", ":param rows: [K, V]: row by row", ""]),
        (["Raises", "------", "ValueError  no row"], ["", ":raises ValueError: no row", ""]),
        (["Returns", "-------", "[B]  tokens"], ["", ":returns: [B]: tokens", ""]),
        (["Returns", "-------", "int", "", "Law: kept."], ["", ":returns: int", "", "Law: kept.", ""]),
    ],
)
def test_a_docstring_becomes_restructured_text(written, becomes):
    assert [line for line in docstrings.converted(written) if line] == [line for line in becomes if line]


def test_a_line_that_is_no_entry_is_refused():
    with pytest.raises(ValueError, match="neither an entry"):
        docstrings.converted(["Raises", "------", "nothing"])


class Example:
    def __init__(self, value: "list[int]" = ()) -> None: ...

    def method(self, *, count: int = 1) -> "Example": ...


@pytest.mark.parametrize(
    ("found", "signature"),
    [
        (Example, ("(value: 'list[int]'=())", None)),
        (Example.method, ("(*, count: int=1)", "Example")),
        (refspec.overlap, ("(target_row: ArrayLike, draft_row: ArrayLike)", "Any")),
        (refspec.Block, None),
        (len, None),
    ],
)
def test_a_signature_is_that_of_the_source(found, signature):
    assert docstrings.as_written(found) == signature
