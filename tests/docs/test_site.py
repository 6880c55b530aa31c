"""The site's lists are those of the code, and every public name has an entry. Nothing is built here."""

import importlib
import importlib.util
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest

import refspec
import refspec.law
import refspec.rejection
import toy_models
from toy_models import get_pair, pair_names, text_pairs
from verification.commands.group import command
from verification.properties import PROPERTIES
from verification.runner import BUDGETS

DOCS = Path(__file__).parents[2] / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
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


# What has a page of its own: the command, each property, each wrong sampler.
ELSEWHERE = re.compile(r"verification\.(cli|commands\.\w+|properties\.(?!base$)\w+|faults\.\w+)")


def test_every_module_is_on_an_api_page():
    modules = {
        ".".join(path.relative_to(DOCS.parent).with_suffix("").parts)
        for package in ("refspec", "toy_models", "verification")
        for path in (DOCS.parent / package).rglob("*.py")
        if path.stem != "__init__"
    }
    assert {module for module in modules if not ELSEWHERE.fullmatch(module)} == documented_modules()


def test_every_command_is_shown_with_its_help_or_an_example():
    page = (DOCS / "check.md").read_text(encoding="utf-8")
    for name in command.commands:
        assert f'console("refspec {name} ' in page, name


def test_every_wrong_sampler_is_in_the_table():
    assert "```{faults}\n" in (DOCS / "faults.md").read_text(encoding="utf-8")
    listed = [(name.strip("`").split(":"), told) for name, told in rows(lists.faults_table())]
    bases = {"Rule", "Engine", "Step", "Asked", "Place", "Dice"}
    kept = {
        (path.stem, name)
        for path in (DOCS.parent / "verification" / "faults").glob("*.py")
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if name not in bases
    }
    assert {(module, name) for (module, name), _ in listed} == kept
    assert all(told.endswith(".") for _, told in listed)


def test_the_budgets_are_those_of_the_command():
    assert "```{budgets}\n" in (DOCS / "check.md").read_text(encoding="utf-8")
    assert [row[:2] for row in rows(lists.budgets_table())] == [
        (f"`--budget {name}`", str(budget.total_variation)) for name, budget in BUDGETS.items()
    ]


def test_what_a_property_measures_is_explained():
    page = (DOCS / "properties.md").read_text(encoding="utf-8")
    for made in PROPERTIES.values():
        assert not made.measures or f"\n| {made.measures} | " in page, made.measures


def test_every_page_is_in_the_navigation():
    """Sphinx warns of a page that no list has; here the order is held: to learn, to check, to look up."""
    named = re.search(r"```\{toctree\}\n:hidden:\n:glob:\n\n(.*?)```", INDEX, re.DOTALL)[1].split()
    assert named[:2] == ["tutorial/one-loop-step-by-step", "notation"]
    assert named[-3:] == ["*", "api/index", "decisions/index"]
    assert {f"{name}.md" for name in named} - {"*.md"} <= {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


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
        (["A", "", "    ``x`` = 1"], ["A", "", ".. code-block:: text", "", "    x = 1", ""]),
        ([], []),
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


@dataclass(frozen=True)
class Base:
    first: int


@dataclass(frozen=True)
class Refined(Base):
    second: "list[int]" = ()
    third: int = field(init=False)


class Asked(Protocol):
    def asked(self, block: refspec.Block) -> None: ...


@pytest.mark.parametrize(
    ("found", "signature"),
    [
        (Example, ("(value: list[int]=())", None)),
        (Example.method, ("(*, count: int=1)", "Example")),
        (Base, ("(first: int)", None)),
        (Refined, ("(first: int, second: list[int] = ())", None)),
        (Asked, ("", None)),
        (refspec.overlap, ("(target_row: ArrayLike, draft_row: ArrayLike)", "Any")),
        (refspec.count, ("(blocks: Iterable[refspec.block.Block])", "refspec.block.Counters")),
        (refspec.Block, ("(tokens: tuple[int, ...], drafted: int, verified: int, accepted: int)", None)),
        (len, None),
    ],
)
def test_a_signature_is_that_of_the_source(found, signature):
    assert docstrings.as_written(found) == signature


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Base, []),
        (Asked, []),
        (refspec.rejection.Verdict, []),
        (refspec.law.TooManyLeavesError, ["Bases: ``ValueError``", ""]),
        (refspec.SampledChance, ["Bases: :py:class:`~refspec.chance.Chance`", ""]),
    ],
)
def test_what_a_class_refines_is_told_where_it_says_something(found, told):
    assert docstrings.bases(found) == told


def test_the_number_of_a_field_is_not_told():
    assert docstrings.is_field_of_a_tuple(refspec.rejection.Verdict.token)
    assert not docstrings.is_field_of_a_tuple(refspec.Counters.__add__)
