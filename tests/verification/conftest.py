"""The command in this process, and a working directory of its own."""

import sys
from textwrap import dedent

import pytest

from verification import cli


@pytest.fixture
def refspec(monkeypatch, capsys):
    """Run the command in this process: (exit code, what it printed, what it complained of)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["refspec", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory that is not yet on the path of modules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def module(here):
    """Write a module into the working directory: ``module(name, code)``."""

    def write(name, code):
        (here / f"{name}.py").write_text(dedent(code), encoding="utf-8")

    return write
