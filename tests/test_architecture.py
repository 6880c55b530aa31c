"""The shape of the code: names, lengths, annotations, docstrings, and who imports whom."""

import ast
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["refspec", "toy_models", "verification"]
BANNED = {"p", "q", "probs"}
LONGEST_BODY = 25
MEDIAN_BODY = 8
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(package):
    """Every module of a package, parsed: {path from the root: tree}."""
    found = {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    assert found, f"{package} has no module"
    return found


def functions(tree):
    """Every function and method, nested ones included, with whether it is a method."""
    methods = {member for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for member in node.body}
    return [(node, node in methods) for node in ast.walk(tree) if isinstance(node, Function)]


def names(tree):
    """Every name that is bound or used as such, with its line. Attributes and keywords of a call are not names."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name, node.lineno
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((alias.asname or alias.name, node.lineno) for alias in aliases)


def body_lines(function):
    """The physical lines of a body after its docstring."""
    rest = function.body[ast.get_docstring(function, clean=False) is not None :]
    return rest[-1].end_lineno - rest[0].lineno + 1 if rest else 0


def not_annotated(function, is_method):
    """The arguments without an annotation, and "return"; ``self`` and ``cls`` need none."""
    signature = function.args
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in function.decorator_list)
    positional = [*signature.posonlyargs, *signature.args][is_method and not static :]
    others = [arg for arg in (signature.vararg, signature.kwarg) if arg]
    bare = [arg.arg for arg in [*positional, *signature.kwonlyargs, *others] if arg.annotation is None]
    return bare + ["return"] * (function.returns is None)


def imports(tree):
    """The top-level packages that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_a_bare_letter_of_the_papers(package):
    assert [
        f"{path}:{line} {name}"
        for path, tree in modules(package).items()
        for name, line in names(tree)
        if name in BANNED
    ] == []


@pytest.mark.parametrize(
    "code",
    [
        "p = 1",
        "print(q)",
        "def f(probs): ...",
        "def f(*, p=1): ...",
        "def q(): ...",
        "class probs: ...",
        "lambda q: 1",
        "[1 for p in x]",
        "import numpy as p",
        "from x import probs",
        "try: ...\nexcept E as p: ...",
        "match x:\n case {'a': q}: ...",
        "match x:\n case [*p]: ...",
        "for q, _ in x: ...",
        "(p := 1)",
    ],
)
def test_a_bare_letter_is_found(code):
    assert BANNED & {name for name, _ in names(ast.parse(code))}


@pytest.mark.parametrize("code", ["x.p = y.probs", "f(p=1)", "top_p = 1", "'p'"])
def test_an_owned_letter_is_no_name(code):
    assert not BANNED & {name for name, _ in names(ast.parse(code))}


def test_every_function_of_refspec_fits_its_budget():
    lengths = {
        f"{path}:{function.lineno} {function.name}": body_lines(function)
        for path, tree in modules("refspec").items()
        for function, _ in functions(tree)
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_BODY} == {}
    assert median(lengths.values()) <= MEDIAN_BODY


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("def f():\n 'd'", 0),
        ("def f():\n 'd\\n'\n return (\n  1\n )", 3),
        ("def f():\n x = 1\n\n # why\n return x", 4),
    ],
)
def test_body_lines_are_counted_after_the_docstring(code, lines):
    assert body_lines(ast.parse(code).body[0]) == lines


@pytest.mark.parametrize("package", PACKAGES)
def test_every_function_is_annotated(package):
    assert {
        f"{path}:{function.lineno} {function.name}": bare
        for path, tree in modules(package).items()
        for function, is_method in functions(tree)
        if (bare := not_annotated(function, is_method))
    } == {}


def test_a_missing_annotation_is_found():
    (function, is_method), *_ = functions(ast.parse("class C:\n def f(self, a, /, b, *c, d, **e): ..."))
    assert not_annotated(function, is_method) == ["a", "b", "d", "c", "e", "return"]


def test_everything_public_in_refspec_has_a_docstring():
    lacking = []
    for path, tree in modules("refspec").items():
        public = [
            node for node in tree.body if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_")
        ]
        lacking += [path] * (not ast.get_docstring(tree))
        lacking += [f"{path}:{node.lineno} {node.name}" for node in public if not ast.get_docstring(node)]
    assert lacking == []


@pytest.mark.parametrize("package", ["refspec", "toy_models"])
def test_a_package_imports_numpy_the_standard_library_and_itself(package):
    allowed = sys.stdlib_module_names | {"numpy", package}
    foreign = {path: set(imports(tree)) - allowed for path, tree in modules(package).items()}
    assert {path: found for path, found in foreign.items() if found} == {}


def test_importing_refspec_and_toy_models_loads_nothing_of_the_command():
    code = "import sys, refspec, toy_models; print(*{name.partition('.')[0] for name in sys.modules})"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    loaded = set(run.stdout.split())
    assert {"refspec", "toy_models", "numpy"} <= loaded
    assert loaded & {"scipy", "matplotlib", "typer", "rich", "hypothesis", "pytest", "verification"} == set()
