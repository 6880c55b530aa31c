"""``refspec law``: the exact law of one loop, of several, or of a whole generation."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from refspec import autoregressive, speculative
from refspec.chance import Chance
from refspec.distribution import as_tokens
from refspec.history import History
from refspec.knobs import ON_LOGITS, PLAIN, SamplingKnobs
from refspec.law import exact_law
from refspec.model import LanguageModel, lifted
from refspec.stopping import Stopping, as_stopping
from refspec.table import TooManyStatesError
from toy_models import Pair
from verification.adapters.protocol import KNOBS, UsageError
from verification.commands.arguments import (
    as_knobs,
    columns,
    find_pair,
    guarded,
    is_table,
    json_option,
    knob_options,
    refuse_unwritable,
    refused,
    say,
    text_option,
    token_ids,
)
from verification.leaves import MOST, MOST_ROWS, Leaves, largest_that_fits
from verification.report.json_report import versions

SCHEMA = "refspec.law/1"
LONGEST = 64  # tokens of a draft; loops
LONGEST_OUTPUT = 1000
WIDE, WIDEST = 40, 100  # characters of a fraction that is told once in a line; that is told in the JSON alone
FRACTIONS, LIFTED = "fractions", "float64 rows after the knobs, as fractions"

Tokens = tuple[int, ...]
Blocks = tuple[Tokens, ...]


@click.command("law")
@click.argument("name", metavar="PAIR")
@click.option(
    "--lookahead",
    type=click.IntRange(0, LONGEST),
    default=2,
    show_default=True,
    metavar="K",
    help="Tokens drafted in a loop.",
)
@click.option("--loops", type=click.IntRange(1, LONGEST), metavar="N", help="The blocks of N loops.  [default: 1]")
@click.option(
    "--max-new-tokens", type=click.IntRange(1, LONGEST_OUTPUT), metavar="N", help="A whole generation of N tokens."
)
@click.option("--alone", is_flag=True, help="The generation of the target alone; it needs no lookahead.")
@click.option("--prompt", type=token_ids, default="", metavar="TOKENS", help="As in 1,2.  [default: none]")
@click.option("--stop", type=token_ids, multiple=True, metavar="TOKENS", help="Ends a generation; repeatable.")
@knob_options
@text_option
@json_option
def law_command(
    name: str,
    lookahead: int,
    loops: int | None,
    max_new_tokens: int | None,
    alone: bool,
    prompt: Tokens,
    stop: tuple[Tokens, ...],
    text: Path | None,
    json_file: Path | None,
    **values: Any,
) -> None:
    """Print the exact law of the reference on PAIR: every outcome with its probability, the likeliest first.

    PAIR is a named pair (see `refspec pairs`), or module:object that is a Pair or a callable that gives one. Without
    --max-new-tokens an outcome is the block of one loop.

    Tables are exact in fractions. Other models, and knobs that have no exact value, have float64 rows: the law is
    that of those rows, exact as every float is a fraction.
    """
    refuse_unwritable(json_file)
    _refuse_combination(loops, max_new_tokens, alone, stop, values["min_tokens"])
    knobs = as_knobs(**values)
    asked = Asked(find_pair(name, text), None if alone else lookahead, loops or 1, max_new_tokens, prompt, knobs, stop)
    asked.refuse_wrong_tokens()
    asked.refuse_too_large()
    with refused():
        found = asked.law()
    say(found.as_json(), found.as_lines(), json_file)


def _refuse_combination(
    loops: int | None,
    max_new_tokens: int | None,
    alone: bool,
    stop: tuple[Tokens, ...],
    min_tokens: int | None,
) -> None:
    """Refuse options that do not go together."""
    if loops is not None and max_new_tokens is not None:
        raise UsageError(f"--loops {loops} and --max-new-tokens {max_new_tokens}; expected one of them")
    if max_new_tokens is None:
        for option, given in (("--alone", alone), ("--stop", stop), ("--min-tokens", min_tokens)):
            if given:
                said = f"{option} {given}" if option == "--min-tokens" else option
                raise UsageError(f"{said} is of a whole generation; expected --max-new-tokens N beside it")


def has_exact_value(knobs: SamplingKnobs) -> bool:
    """Whether the knobs have an exact value on fractions: a temperature of 0 or 1/n, bans and truncations do."""
    on_logits = any(getattr(knobs, name) != off for name, off in ON_LOGITS.items())
    temperature = Fraction(knobs.temperature)
    return not on_logits and (temperature == 0 or (1 / temperature).denominator == 1)


@dataclass(frozen=True)
class Found:
    """A law, and the target's own beside it where there is one."""

    asked: "Asked"
    law: dict[Any, Any]
    of_the_target: dict[Any, Any] | None

    @property
    def total_variation(self) -> Fraction | None:
        if self.of_the_target is None:
            return None
        outcomes = self.law.keys() | self.of_the_target.keys()
        differences = (abs(self.law.get(key, 0) - self.of_the_target.get(key, 0)) for key in outcomes)
        return Fraction(sum(differences)) / 2

    @property
    def outcomes(self) -> list[Any]:
        """The outcomes, the likeliest first."""
        both = self.law.keys() | (self.of_the_target or {}).keys()
        return sorted(both, key=lambda outcome: (-self.law.get(outcome, 0), outcome))

    def as_json(self) -> dict[str, Any]:
        """Return the document: fractions are strings."""
        asked = self.asked
        return {
            "schema": SCHEMA,
            "pair": asked.pair.name,
            "law": asked.what,
            "lookahead": asked.lookahead,
            "loops": asked.loops if asked.max_new_tokens is None else None,
            "max_new_tokens": asked.max_new_tokens,
            "prompt": list(asked.prompt),
            "knobs": {name: _plain(getattr(asked.knobs, name)) for name in asked.turned},
            "stop": [list(sequence) for sequence in asked.stop],
            "rows": asked.rows,
            "versions": versions(),
            "outcomes": [self._as_json(outcome) for outcome in self.outcomes],
            "total": str(sum(self.law.values())),
            "total_variation": None if self.total_variation is None else str(self.total_variation),
        }

    def _as_json(self, outcome: Any) -> dict[str, Any]:
        mass = Fraction(self.law.get(outcome, 0))
        key = "tokens" if self.asked.max_new_tokens is not None else "blocks"
        entry: dict[str, Any] = {key: outcome, "probability": str(mass), "decimal": float(mass)}
        if self.of_the_target is not None:
            entry["target_probability"] = str(Fraction(self.of_the_target.get(outcome, 0)))
        return entry

    def as_lines(self) -> Iterator[str]:
        """Yield the table, a line each."""
        yield self.asked.title
        header = "outcome", "probability", "decimal"
        laws = [self.law] if self.of_the_target is None else [self.law, self.of_the_target]
        rows: list[tuple[str, ...]] = [header if len(laws) == 1 else (*header, "target alone")]
        for outcome in self.outcomes:
            mass, *alone = (Fraction(law.get(outcome, 0)) for law in laws)
            beside = ["the same" if own == mass and _is_long(mass) else _written(own) for own in alone]
            rows.append((self.asked.in_words(outcome), _written(mass), f"{float(mass):.8g}", *beside))
        total = Fraction(sum(self.law.values()))
        rows.append(("total", str(total), f"{float(total):.8g}", *(str(sum(law.values())) for law in laws[1:])))
        yield from columns(rows)
        if self.total_variation is not None:
            yield f"total variation from the target alone: {self.total_variation}, exact"


@dataclass(frozen=True)
class Asked:
    """Which law is asked for. Without a lookahead it is that of the target alone."""

    pair: Pair
    lookahead: int | None
    loops: int
    max_new_tokens: int | None
    prompt: Tokens
    knobs: SamplingKnobs
    stop: tuple[Tokens, ...]

    @property
    def what(self) -> str:
        if self.max_new_tokens is None:
            return "loops"
        return "target alone" if self.lookahead is None else "generation"

    @property
    def turned(self) -> list[str]:
        return [name for name in KNOBS if getattr(self.knobs, name) != getattr(PLAIN, name)]

    @property
    def exact_as_it_is(self) -> bool:
        return is_table(self.pair) and has_exact_value(self.knobs)

    @property
    def rows(self) -> str:
        return FRACTIONS if self.exact_as_it_is else LIFTED

    @property
    def title(self) -> str:
        parts = [f"pair {self.pair.name}", f"law of the {self.what}" if self.max_new_tokens else self._of_loops()]
        if self.lookahead is not None:
            parts.append(f"K = {self.lookahead}")
        if self.max_new_tokens is not None:
            parts.append(f"at most {self.max_new_tokens} tokens")
        parts += [f"after {_spaced(self.prompt)}"] if self.prompt else []
        parts += [f"{name} {_plain(getattr(self.knobs, name))}" for name in self.turned]
        parts += [f"stop at {', '.join(map(_spaced, self.stop))}"] if self.stop else []
        return ", ".join([*parts, f"rows: {self.rows}"])

    def _of_loops(self) -> str:
        return "law of the block of one loop" if self.loops == 1 else f"law of the blocks of {self.loops} loops"

    def in_words(self, outcome: Any) -> str:
        return _spaced(outcome) if self.max_new_tokens is not None else " | ".join(map(_spaced, outcome))

    @property
    def start(self) -> History:
        return History(self.prompt, end_tokens=tuple(stop[0] for stop in self.stop if len(stop) == 1))

    @cached_property
    def stopping(self) -> Stopping:
        return as_stopping(
            end_tokens=(),
            stop_sequences=self.stop,
            min_tokens=self.knobs.min_tokens,
            max_new_tokens=self.max_new_tokens or 0,
            vocabulary=self.pair.vocabulary,
        )

    @cached_property
    def models(self) -> tuple[LanguageModel, LanguageModel, SamplingKnobs]:
        """Target and draft with exact rows, and the knobs that are left to turn."""
        if self.exact_as_it_is:
            target, draft = self.pair.target.fractions, self.pair.draft.fractions
            tables = guarded(replace(self.pair, target=target, draft=draft))
            return tables.target, tables.draft, self.knobs
        pair, start = guarded(self.pair), self.start
        target, draft = (
            lifted(model, self.knobs, prompt_length=len(self.prompt), end_tokens=start.end_tokens)
            for model in (pair.target, pair.draft)
        )
        return target, draft, SamplingKnobs(min_tokens=self.knobs.min_tokens)

    def refuse_wrong_tokens(self) -> None:
        """Refuse token ids that the vocabulary does not have, and an empty stop sequence."""
        size = self.pair.vocabulary
        biased = [token for token, _ in self.knobs.logit_bias]  # type: ignore[misc]
        with refused():
            as_tokens(self.prompt, vocabulary=size, name="--prompt")
            as_tokens(self.knobs.banned_tokens, vocabulary=size, name="--ban")
            as_tokens(biased, vocabulary=size, name="--logit-bias")
            for sequence in self.stop:
                as_tokens(sequence, vocabulary=size, name="--stop")
            if () in self.stop:
                raise UsageError("--stop '': empty; expected one token id or more")

    def refuse_too_large(self) -> None:
        """Refuse a law of too many leaves before any is walked, and say what would fit."""
        with refused():
            if self._leaves(self.lookahead, self.loops, self.max_new_tokens) <= MOST:
                return
            fits = self._what_fits()
        options = [f"--lookahead {self.lookahead}"] if self.lookahead is not None else []
        options += [f"--max-new-tokens {self.max_new_tokens}"] if self.max_new_tokens is not None else []
        options += [f"--loops {self.loops}"] if self.loops > 1 else []
        raise UsageError(
            f"{self.pair.name}, {' '.join(options)}: more than {MOST:,} leaves or {MOST_ROWS:,} rows, too many for an "
            f"exact law; {' or '.join(fits) or 'nothing smaller'} would fit"
        )

    def _what_fits(self) -> list[str]:
        """Return the largest value of each option, the others as they are, whose law has few enough leaves."""
        counts: dict[str, tuple[int | None, int, Callable[[int], int]]] = {
            "--lookahead": (self.lookahead, 0, lambda n: self._leaves(n, self.loops, self.max_new_tokens)),
            "--max-new-tokens": (self.max_new_tokens, 1, lambda n: self._leaves(self.lookahead, self.loops, n)),
            "--loops": (self.loops, 1, lambda n: self._leaves(self.lookahead, n, self.max_new_tokens)),
        }
        found = []
        for option, (asked, least, count) in counts.items():
            largest = None if asked is None else largest_that_fits(count, least, asked)
            found += [f"{option} {largest}"] if largest is not None else []
        return found

    def _leaves(self, lookahead: int | None, loops: int, max_new_tokens: int | None) -> int:
        """Return how many leaves a law has, or any number above ``MOST``."""
        target, draft, knobs = self.models
        leaves = Leaves(target=target, draft=draft, knobs=knobs)
        try:
            if max_new_tokens is None:
                return leaves.loops(self.start, lookahead or 0, loops)
            stopping = Stopping(self.stopping.sequences, self.stopping.min_tokens, max_new_tokens)
            return leaves.generation(self.start, stopping, lookahead)
        except TooManyStatesError:
            return MOST + 1

    def law(self) -> Found:
        """Return the law, and beside that of a generation the target's own."""
        if self.max_new_tokens is None:
            return Found(self, exact_law(self._loops, MOST), None)
        alone = exact_law(self._alone, MOST)
        return (
            Found(self, alone, None)
            if self.lookahead is None
            else Found(self, exact_law(self._generation, MOST), alone)
        )

    def _loops(self, chance: Chance) -> Blocks:
        target, draft, knobs = self.models

        def history(blocks: Blocks) -> History:
            return self.start.then(token for block in blocks for token in block)

        def step(chance: Chance, blocks: Blocks) -> Blocks:
            block = speculative.speculative_step(
                target=target,
                draft=draft,
                prefix=history(blocks),
                lookahead=self.lookahead or 0,
                knobs=knobs,
                chance=chance,
            )
            return (block.tokens,)

        def alike(blocks: Blocks) -> Hashable:
            tokens = history(blocks).tokens
            return target.state_key(tokens), draft.state_key(tokens), knobs.reads(history(blocks))

        return chance.repeat(step, (), done=lambda blocks: len(blocks) == self.loops, alike=alike)

    def _generation(self, chance: Chance) -> Tokens:
        target, draft, knobs = self.models
        return speculative.generate(
            target=target,
            draft=draft,
            prompt=self.prompt,
            lookahead=self.lookahead or 0,
            max_new_tokens=self.max_new_tokens or 0,
            knobs=knobs,
            stop_sequences=self.stop,
            chance=chance,
        )

    def _alone(self, chance: Chance) -> Tokens:
        target, _, knobs = self.models
        return autoregressive.generate(
            target=target,
            prompt=self.prompt,
            max_new_tokens=self.max_new_tokens or 0,
            knobs=knobs,
            stop_sequences=self.stop,
            chance=chance,
        )


def _spaced(tokens: Tokens) -> str:
    return " ".join(map(str, tokens))


def _plain(value: Any) -> Any:
    """Return the value of a knob for JSON: fractions are strings, pairs and collections lists."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Fraction) else value


def _is_long(mass: Fraction) -> bool:
    return len(str(mass)) > WIDE


def _written(mass: Fraction) -> str:
    """Return a fraction, or how long it is where it is too long to be read."""
    written = str(mass)
    return written if len(written) <= WIDEST else f"({len(written)} characters; --json has them)"
