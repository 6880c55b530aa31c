"""``refspec pairs``: what each pair of models is for, and what it cannot show."""

from collections.abc import Iterator
from pathlib import Path

import click

from toy_models import Pair, get_pair, pair_names, text_pairs
from verification.commands.arguments import (
    find_pair,
    guarded,
    json_option,
    refuse_unwritable,
    refused,
    say,
    text_option,
)
from verification.pair_facts import PairFacts, as_json, as_lines, pair_facts
from verification.report.json_report import versions

SCHEMA = "refspec.pairs/1"


@click.command("pairs")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@text_option
@json_option
def pairs_command(names: tuple[str, ...], text: Path | None, json_file: Path | None) -> None:
    """Print the facts of each pair NAME: what it is for, how much its rows overlap, and what it cannot show.

    NAME is a named pair, or module:object that is a Pair or a callable that gives one; without a NAME all named pairs
    and those of a text.
    """
    refuse_unwritable(json_file)
    with refused():
        facts = [_facts(pair) for pair in (_named(names, text) if names else _all(text))]
    document = {"schema": SCHEMA, "versions": versions(), "pairs": [as_json(found) for found in facts]}
    say(document, _lines(facts), json_file)


def _named(names: tuple[str, ...], text: Path | None) -> list[Pair]:
    of_a_text = [name for name in names if ":" not in name and name not in pair_names()]
    return [find_pair(name, text if name in of_a_text or not of_a_text else None) for name in names]


def _all(text: Path | None) -> list[Pair]:
    return [*map(get_pair, pair_names()), *text_pairs(text)]


def _facts(pair: Pair) -> PairFacts:
    return pair_facts(guarded(pair))


def _lines(facts: list[PairFacts]) -> Iterator[str]:
    for number, found in enumerate(facts):
        if number:
            yield ""
        yield from as_lines(found)
