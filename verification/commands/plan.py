"""``refspec plan``: the samples a bias needs, or the bias a number of samples shows, and the seconds they take."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from refspec.distribution import as_tokens
from toy_models import Pair
from verification.adapters.protocol import GENERATE, OPERATIONS, VERIFY, Implementation, UsageError
from verification.adapters.python import load
from verification.commands.arguments import (
    find_pair,
    guarded,
    is_table,
    json_option,
    refuse_unwritable,
    refused,
    say,
    text_option,
    token_ids,
)
from verification.properties.complete_output import CompleteOutput
from verification.properties.next_token_identity import NextTokenIdentity
from verification.report.json_report import versions
from verification.scenario import FULL_TREE, Scenario
from verification.statistics.ledger import Ledger
from verification.statistics.planning import POWER, plan_samples, rarest_detectable, smallest_detectable

SCHEMA = "refspec.plan/1"
BIAS = 0.02
DEFAULT_LOOKAHEAD, LONGEST = 4, 64
PILOT_SECONDS = 0.5
LARGEST_BATCH = 32_768
LARGEST_ROWS = 2**24  # entries of the target rows of one batch


@click.command("plan")
@click.argument("name", metavar="PAIR")
@click.option("--operation", type=click.Choice(OPERATIONS), default=VERIFY, show_default=True, help="What is called.")
@click.option(
    "--lookahead",
    type=click.IntRange(1, LONGEST),
    metavar="K",
    help="Tokens drafted in a loop.  [default: 4, or the longest whose prefix tree is counted in full]",
)
@click.option("--max-new-tokens", type=click.IntRange(1, LONGEST), metavar="N", help="Of generate.  [default: K + 1]")
@click.option("--prompt", type=token_ids, default="", metavar="TOKENS", help="As in 1,2.  [default: none]")
@click.option("--bias", type=float, metavar="TV", help=f"The total variation to be found.  [default: {BIAS}]")
@click.option("--samples", type=click.IntRange(min=1), metavar="N", help="Calls; the bias that they show is printed.")
@click.option("--alpha", type=float, default=1e-6, show_default=True, help="False-alarm rate of the whole run.")
@click.option("--findings", type=click.IntRange(min=1), default=1, show_default=True, help="That share the alpha.")
@click.option("--adapter", metavar="MODULE:OBJECT", help="What the pilot times.  [default: the reference]")
@text_option
@json_option
def plan_command(
    name: str,
    operation: str,
    lookahead: int | None,
    max_new_tokens: int | None,
    prompt: tuple[int, ...],
    bias: float | None,
    samples: int | None,
    alpha: float,
    findings: int,
    adapter: str | None,
    text: Path | None,
    json_file: Path | None,
) -> None:
    """Print how many calls find a bias on PAIR with probability 0.99, or how small a bias a number of calls shows.

    The bias is the total variation of the joint law of a block (verify, draft_and_verify: after each prefix the next
    token) or of an output (generate). A pilot of half a second tells how long the calls take on this machine.

    PAIR is a named pair (see `refspec pairs`), or module:object that is a Pair or a callable that gives one.
    """
    refuse_unwritable(json_file)
    _refuse_numbers(bias, samples, alpha)
    if max_new_tokens is not None and operation != GENERATE:
        raise UsageError(f"--max-new-tokens {max_new_tokens} is of --operation {GENERATE}, not of {operation}")
    pair = _with_floats(find_pair(name, text))
    lookahead = lookahead or _default_lookahead(pair.vocabulary)
    with refused():
        prompt = as_tokens(prompt, vocabulary=pair.vocabulary, name="--prompt")
        length = (max_new_tokens or lookahead + 1) if operation == GENERATE else 0
        scenario = Scenario(pair, lookahead, prompt=prompt, max_new_tokens=length)
        _refuse_wide_outputs(scenario)
        implementation = load(adapter) if adapter else load()
        found = _plan(scenario, operation, implementation, bias, samples, Ledger(alpha=alpha, findings=findings))
    say(found.as_json(), found.as_lines(), json_file)


def _refuse_numbers(bias: float | None, samples: int | None, alpha: float) -> None:
    if bias is not None and samples is not None:
        raise UsageError(f"--bias {bias:g} and --samples {samples}; expected one of them")
    if bias is not None and not 0 < bias <= 1:
        raise UsageError(f"--bias is {bias}; expected above 0 and at most 1")
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha is {alpha}; expected between 0 and 1")


def _with_floats(pair: Pair) -> Pair:
    """Return the pair as implementations are given it: rows of float64."""
    return guarded(pair.floats if is_table(pair) else pair)


def _default_lookahead(vocabulary: int) -> int:
    full = [k for k in range(1, DEFAULT_LOOKAHEAD + 1) if vocabulary ** (k + 1) <= FULL_TREE]
    return max(full, default=DEFAULT_LOOKAHEAD)


def _refuse_wide_outputs(scenario: Scenario) -> None:
    """Refuse outputs that are too many to be counted: they are never merged."""
    vocabulary, length = scenario.vocabulary, scenario.max_new_tokens
    if vocabulary**length > FULL_TREE:
        longest = max((n for n in range(1, length) if vocabulary**n <= FULL_TREE), default=0)
        fits = f"--max-new-tokens {longest}" if longest else "no output of this pair"
        raise UsageError(
            f"{scenario.pair.name}, --max-new-tokens {length}: {vocabulary}**{length} outputs, more than the "
            f"{FULL_TREE:,} that are counted; {fits} would fit"
        )


@dataclass(frozen=True)
class Plan:
    """What is planned, and what the pilot measured."""

    scenario: Scenario
    operation: str
    implementation: str
    law: str
    joint: bool
    degrees: int
    ledger: Ledger
    bias: float
    samples: int
    seconds_per_call: float

    @property
    def seconds(self) -> float:
        return self.samples * self.seconds_per_call

    def as_json(self) -> dict[str, Any]:
        """Return the document."""
        return {
            "schema": SCHEMA,
            "pair": self.scenario.pair.name,
            "operation": self.operation,
            "implementation": self.implementation,
            "lookahead": self.scenario.lookahead,
            "max_new_tokens": self.scenario.max_new_tokens or None,
            "prompt": list(self.scenario.prompt),
            "law": self.law,
            "joint": self.joint,
            "degrees": self.degrees,
            "alpha": self.ledger.alpha,
            "findings": self.ledger.findings,
            "alpha_of_a_finding": self.ledger.alpha_of_a_finding,
            "power": POWER,
            "bias": self.bias,
            "samples": self.samples,
            "seconds_per_call": self.seconds_per_call,
            "seconds": self.seconds,
            "versions": versions(),
        }

    def as_lines(self) -> Iterator[str]:
        """Yield the plan, a line each."""
        scenario, ledger = self.scenario, self.ledger
        length = f", at most {scenario.max_new_tokens} tokens" if scenario.max_new_tokens else ""
        kind = "joint" if self.joint else "by state, not joint"
        yield f"pair {scenario.pair.name}, {self.operation}, K = {scenario.lookahead}{length}"
        yield f"law      {self.law}, {self.degrees:,} degrees of freedom"
        if not self.degrees:
            yield "         the target is certain: one wrong reply decides, and no false alarm is possible"
        yield f"alpha    {ledger.alpha:g} for the run, {ledger.alpha_of_a_finding:g} for one of {ledger.findings}"
        yield f"bias     total variation {self.bias:.4g} ({kind}), found with probability {POWER}"
        yield f"samples  {self.samples:,} calls"
        per_call = f"{1e6 * self.seconds_per_call:.3g} microseconds a call"
        yield f"time     {self.seconds:.3g} s of {self.implementation} on this machine ({per_call}, by a pilot)"


def _plan(
    scenario: Scenario,
    operation: str,
    implementation: Implementation,
    bias: float | None,
    samples: int | None,
    ledger: Ledger,
) -> Plan:
    if operation not in implementation.operations:
        offered = ", ".join(implementation.operations)
        raise UsageError(f"{implementation.name} has no operation {operation!r}; it offers {offered}")
    made = CompleteOutput() if operation == GENERATE else NextTokenIdentity()
    judge = made.judge(scenario)
    degrees, alpha = judge.law.degrees, ledger.alpha_of_a_finding
    if samples is None:
        bias = BIAS if bias is None else bias
        samples = plan_samples(degrees, bias, alpha) if degrees else _until_one_is_wrong(bias)
    else:
        bias = smallest_detectable(degrees, samples, alpha) if degrees else rarest_detectable(samples)
    seconds = pilot(implementation, operation, scenario)
    return Plan(scenario, operation, implementation.name, made.id, judge.joint, degrees, ledger, bias, samples, seconds)


def _until_one_is_wrong(bias: float) -> int:
    """Return how many calls show a wrong reply of that probability: the inverse of ``rarest_detectable``."""
    return 1 if bias == 1 else ceil(log(1 - POWER) / log(1 - bias))


def pilot(implementation: Implementation, operation: str, scenario: Scenario) -> float:
    """Return the seconds of one call, in the largest batch of a run of half a second; the first is a warm-up.

    Raises ``AdapterError`` where the implementation does.
    """
    most = max(1, min(LARGEST_BATCH, LARGEST_ROWS // (scenario.vocabulary * (scenario.lookahead + 1))))
    started, count = perf_counter(), 1
    while True:
        before = perf_counter()
        implementation.run(operation, scenario, count, seed=count)
        after = perf_counter()
        if count == most or after - started >= PILOT_SECONDS:
            return (after - before) / count
        count = min(4 * count, most)
