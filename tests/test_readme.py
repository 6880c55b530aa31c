"""The README does what it says: its example runs, and its set-up is two commands of one line."""

import re
from pathlib import Path

import pytest

import refspec

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("source", [body for language, body in FENCED if language == "python"])
def test_an_example_runs(source):
    exec(compile(source, "README.md", "exec"), {})  # noqa: S102


def test_the_library_example_says_what_it_says(capsys):
    (source,) = [body for language, body in FENCED if "exact_law" in body]
    exec(compile(source, "README.md", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out
    assert printed.count("Block(tokens=") == 2
    assert "(0, 0): Fraction(1, 25)" in printed
    assert len(source.splitlines()) <= 12


def test_there_are_two_commands_that_set_up_everything():
    commands = [body for _, body in FENCED if "python3 -m venv" in body]
    assert [command.count("\n") for command in commands] == [1, 1]
    assert commands[0].rstrip().endswith("refspec check")
    assert commands[1].rstrip().endswith("pytest")


def test_the_citation_and_the_changelog_name_the_version():
    root = Path(__file__).parent.parent
    for name in ("CITATION.cff", "CHANGELOG.md"):
        assert refspec.__version__ in (root / name).read_text(encoding="utf-8")
