"""What several commands are given: a pair, knobs, token ids, a file for JSON."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from refspec.knobs import SamplingKnobs
from toy_models import Pair, TabularModel, get_pair, pair_names, text_pairs
from verification.adapters.models import GuardedModel
from verification.adapters.objects import named_object
from verification.adapters.protocol import UsageError, foreign_code

Tokens = tuple[int, ...]
Command = TypeVar("Command", bound=Callable[..., Any])
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?|[-+]?\d+/\d+")
MODEL = ("vocabulary", "kind", "score", "state_key")
STANDARD_OUTPUT = Path("-")


def token_ids(value: str | Tokens) -> Tokens:
    """Read token ids with commas between them."""
    if isinstance(value, tuple):
        return value
    words = [word.strip() for word in value.split(",")] if value.strip() else []
    if not all(word.isascii() and word.isdigit() for word in words):
        raise click.BadParameter(f"{value!r}; expected token ids with commas between them, as in 1,2")
    return tuple(map(int, words))


def number(value: str) -> str:
    """Read a number and leave it as it was written: "0.9" is nine tenths."""
    if not NUMBER.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a number; expected one as in 0.9 or 9/10")
    return value


def bias(value: str | tuple[int, str]) -> tuple[int, str]:
    """Read a token id and what is added to its logit."""
    if isinstance(value, tuple):
        return value
    token, _, amount = value.partition("=")
    if not (token.isascii() and token.isdigit() and NUMBER.fullmatch(amount)):
        raise click.BadParameter(f"{value!r}; expected token=number, as in 3=-1.5")
    return int(token), amount


_KNOB_OPTIONS = (
    click.option("--temperature", type=number, metavar="NUMBER", help="0 is greedy."),
    click.option("--top-k", type=int, metavar="COUNT", help="How many tokens survive."),
    click.option("--top-p", type=number, metavar="NUMBER", help="The mass that survives."),
    click.option("--min-p", type=number, metavar="NUMBER", help="The least part of the largest that does."),
    click.option("--logit-bias", type=bias, multiple=True, metavar="TOKEN=NUMBER", help="Repeatable."),
    click.option("--ban", type=token_ids, multiple=True, metavar="TOKENS", help="Never drawn; repeatable."),
    click.option("--repetition-penalty", type=number, metavar="NUMBER", help="On prompt and output."),
    click.option("--presence-penalty", type=number, metavar="NUMBER", help="On the output, once a token."),
    click.option("--frequency-penalty", type=number, metavar="NUMBER", help="On the output, each time."),
    click.option("--min-tokens", type=click.IntRange(min=0), metavar="N", help="No stop before so many."),
)
text_option = click.option(
    "--text", type=click.Path(path_type=Path), help="Fit the n-gram pairs on this UTF-8 text file."
)
json_option = click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write JSON to this file; - prints it in place of the table.",
)


def knob_options(command: Command) -> Command:
    """Give a command an option for each knob; ``as_knobs`` takes what it then receives."""
    for option in reversed(_KNOB_OPTIONS):
        command = option(command)
    return command


def as_knobs(*, logit_bias: Iterable[tuple[int, str]], ban: Iterable[Tokens], **values: Any) -> SamplingKnobs:
    """Return the knobs of the options; numbers are exact, as they were written."""
    biased: dict[int, str] = {}
    for token, amount in logit_bias:
        if token in biased:
            raise UsageError(f"--logit-bias names token {token} twice: {biased[token]} and {amount}")
        biased[token] = amount
    banned = {token for tokens in ban for token in tokens}
    turned = {name: value for name, value in values.items() if value is not None}
    with refused():
        return SamplingKnobs(logit_bias=biased, banned_tokens=banned, **turned)


@contextmanager
def refused() -> Iterator[None]:
    """Turn what the specification refuses, a wrong value, into a ``UsageError``."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def find_pair(name: str, text: Path | None = None) -> Pair:
    """Return a named pair, a pair of the text, or what ``module:object`` names: a pair, or a callable that gives one.

    Raises
    ------
    UsageError    there is no such pair, the object is no pair, or the text is too short to fit
    AdapterError  foreign code raised
    """
    if ":" in name:
        return _foreign_pair(name)
    if name in pair_names():
        if text is not None:
            raise UsageError(f"--text {text}: the pair {name!r} is of no text; the n-gram pairs are")
        return get_pair(name)
    with refused():
        of_text = {pair.name: pair for pair in text_pairs(text)}
    if name not in of_text:
        known = ", ".join((*pair_names(), *of_text))
        raise UsageError(f"no pair {name!r}; expected module:object or one of {known}")
    return of_text[name]


def _foreign_pair(name: str) -> Pair:
    found = named_object(name)
    if not isinstance(found, Pair):
        if not callable(found):
            raise UsageError(f"{name}: {found!r} is no pair; expected a toy_models.Pair, or a callable that gives one")
        with foreign_code(f"calling {name}"):
            found = found()
    if not isinstance(found, Pair):
        raise UsageError(f"{name} gave {found!r}; expected a toy_models.Pair")
    for role, model in (("target", found.target), ("draft", found.draft)):
        if lacking := [part for part in MODEL if not hasattr(model, part)]:
            raise UsageError(f"{name}: the {role} {model!r} has no {lacking[0]!r}; expected a language model")
        if not isinstance(model.vocabulary, int) or model.vocabulary < 1:
            raise UsageError(f"{name}: the {role} has the vocabulary {model.vocabulary!r}; expected 1 or more")
        if model.kind not in ("logits", "weights"):
            raise UsageError(f"{name}: the {role} has the kind {model.kind!r}; expected 'logits' or 'weights'")
    if found.target.vocabulary != found.draft.vocabulary:
        sizes = f"target {found.target.vocabulary}, draft {found.draft.vocabulary}"
        raise UsageError(f"{name}: vocabularies differ: {sizes}")
    return replace(found, name=name)


def is_table(pair: Pair) -> bool:
    """Whether both models are tables, so that their rows are exact as they are."""
    return isinstance(pair.target, TabularModel) and isinstance(pair.draft, TabularModel)


def guarded(pair: Pair) -> Pair:
    """Return the pair with models whose errors are told in one line, if they are foreign code or tables of it."""
    if ":" not in pair.name:
        return pair
    target, draft = (GuardedModel(getattr(pair, role), f"{pair.name}.{role}") for role in ("target", "draft"))
    return replace(pair, target=target, draft=draft)


def refuse_unwritable(json_file: Path | None) -> None:
    """Refuse a file that cannot be written before any work is done."""
    if json_file is None or json_file == STANDARD_OUTPUT:
        return
    if json_file.is_dir() or not json_file.absolute().parent.is_dir():
        raise UsageError(f"{json_file}: no file can be written there")


def say(document: dict[str, Any], lines: Iterable[str], json_file: Path | None) -> None:
    """Print the lines and write the document; with ``-`` print the document alone."""
    if json_file != STANDARD_OUTPUT:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    if json_file is not None:
        encoded = json.dumps(document, indent=1, allow_nan=False) + "\n"
        if json_file == STANDARD_OUTPUT:
            sys.stdout.write(encoded)
        else:
            json_file.write_text(encoded, encoding="utf-8")
    sys.stdout.flush()  # here a reader that has left is noticed, and click ends quietly


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield rows of words as lines, each column as wide as its widest word."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
