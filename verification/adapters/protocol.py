"""What an implementation offers, and how it is called.

An adapter is any object with a set ``claims`` and some of these methods, keyword-only, batched:

    verify(*, target_rows, draft_rows, draft_tokens, seed) -> tokens
        [B, K+1, V], [B, K, V], [B, K] -> int [B, K+1], -1 after the last emitted token; own randomness from seed
    draft_and_verify(*, pair, prefix, lookahead, knobs, count, seed) -> tokens
        int [count, K+1]: ``count`` independent loops after the prefix; the implementation also drafts
    generate(*, pair, prompt, lookahead, knobs, max_new_tokens, stop, count, seed) -> tokens
        int [count, max_new_tokens], -1 after the last token

``pair.target`` and ``pair.draft`` are language models. A bare function is taken as ``verify``. For penalties the prefix
of ``draft_and_verify`` is all prompt. ``stop`` is a tuple of token sequences: an output ends with the first that it
contains, which is returned; those of a single token are the end tokens, which ``knobs.min_tokens`` bans. A stop is not
looked for in the prompt.

``claims`` holds the profile "lossless" (assumed where there is no ``claims``) and may hold "standard" (the exact law of
the standard rule, its acceptance and its tokens per call), "seeded" and "target-calls" (one call of
``pair.target.score`` a loop). Naming knobs ("greedy", "temperature" or a field of ``SamplingKnobs``) or
"stop_sequences" (of several tokens) limits the checks to those, and "plain" alone to none of them at all; naming none
of these claims them all.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from refspec.knobs import PLAIN, SamplingKnobs
from verification.scenario import Ints, Scenario

VERIFY, DRAFT_AND_VERIFY, GENERATE = "verify", "draft_and_verify", "generate"
OPERATIONS = (VERIFY, DRAFT_AND_VERIFY, GENERATE)
KNOBS = tuple(field.name for field in fields(SamplingKnobs))
KNOB_CLAIMS = ("plain", "greedy", *KNOBS, "stop_sequences")
CLAIMS = ("lossless", "standard", "seeded", "target-calls", *KNOB_CLAIMS)


class AdapterError(Exception):
    """The adapter failed: it raised, or replied with something that is not an array of tokens."""


class UsageError(ValueError):
    """What was asked for does not exist, or is not what it must be."""


@contextmanager
def foreign_code(what: str) -> Iterator[None]:
    """Turn whatever foreign code raises into an ``AdapterError`` that says so."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise AdapterError(f"{what} raised {type(error).__name__}: {error}") from error


class Implementation:
    """An adapter, its claims and its operations.

    is_reference  adds the proofs of the reference's own code
    load          makes the same implementation in another process
    """

    def __init__(
        self,
        adapter: Any,
        name: str,
        *,
        is_reference: bool = False,
        load: "Callable[[str], Implementation] | None" = None,
    ) -> None:
        self.name = name
        self.load = load
        self.operations: dict[str, Callable[..., Any]] = {
            operation: getattr(adapter, operation)
            for operation in OPERATIONS
            if callable(getattr(adapter, operation, None))
        }
        if not self.operations and callable(adapter) and not isinstance(adapter, type):
            self.operations = {VERIFY: adapter}
        if not self.operations:
            raise UsageError(f"{name}: {adapter!r} has none of the operations {', '.join(OPERATIONS)}")
        self.claims = _claims(getattr(adapter, "claims", ("lossless",)), name)
        self.profiles = self.claims | ({"lossless", "reference"} if is_reference else {"lossless"})

    def __reduce__(self) -> Any:
        """Travel to another process by name, not by value: an adapter may hold what cannot be copied."""
        if self.load is None:
            raise UsageError(f"{self.name} was not loaded by its name; other processes cannot load it")
        return self.load, (self.name,)

    def claims_knobs(self, scenario: Scenario) -> bool:
        """Whether the knobs that are turned here are among those claimed, and long stop sequences if there are any."""
        named = self.claims.intersection(KNOB_CLAIMS)
        turned = {name for name in KNOBS if getattr(scenario.knobs, name) != getattr(PLAIN, name)}
        if scenario.knobs.temperature == 0:
            turned = turned - {"temperature"} | {"greedy"}
        if any(len(sequence) > 1 for sequence in scenario.stop):
            turned.add("stop_sequences")
        return not named or turned <= named

    def run(self, operation: str, scenario: Scenario, count: int, seed: int, *, drafts_seed: int | None = None) -> Ints:
        """Return the reply to ``count`` calls as int [count, n]. Raises ``AdapterError``.

        The drafts that the suite makes for ``verify`` come from ``drafts_seed``, or else from ``seed``.
        """
        width = scenario.max_new_tokens if operation == GENERATE else scenario.lookahead + 1
        arguments = _arguments(operation, scenario, count, seed)
        if operation == VERIFY:
            arguments |= _drafts(scenario, count, seed if drafts_seed is None else drafts_seed)
        with foreign_code(operation):
            reply = self.operations[operation](**arguments)
        try:
            tokens = np.asarray(reply)
        except ValueError as error:
            raise AdapterError(f"{operation} returned a {type(reply).__name__} that is no array ({error})") from error
        rows, columns = tokens.shape if tokens.ndim == 2 else (-1, -1)
        if tokens.dtype.kind not in "iu" or rows != count or columns < width:
            raise AdapterError(
                f"{operation} returned {tokens.dtype} {tokens.shape}; expected integers of shape {(count, width)}"
            )
        return tokens.astype(np.intp)  # more columns than there may be tokens are for the judge of the reply


def _arguments(operation: str, scenario: Scenario, count: int, seed: int) -> dict[str, Any]:
    if operation == VERIFY:
        return {"seed": seed}
    asked = {"pair": scenario.pair, "lookahead": scenario.lookahead, "knobs": scenario.knobs}
    if operation == DRAFT_AND_VERIFY:
        return {**asked, "prefix": scenario.prompt, "count": count, "seed": seed}
    cap, stop = scenario.max_new_tokens, scenario.stop
    return {**asked, "prompt": scenario.prompt, "max_new_tokens": cap, "stop": stop, "count": count, "seed": seed}


def _drafts(scenario: Scenario, count: int, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng([seed, 1])  # the suite's own
    tokens, target_rows, draft_rows = scenario.draw_drafts(count, generator)
    return {"target_rows": target_rows, "draft_rows": draft_rows, "draft_tokens": tokens}


def _claims(claims: Any, name: str) -> frozenset[str]:
    if isinstance(claims, str) or not isinstance(claims, Iterable):
        raise UsageError(f"{name}: claims is {claims!r}; expected a set of {', '.join(CLAIMS)}")
    for claim in (claimed := list(claims)):
        if claim not in CLAIMS:
            raise UsageError(f"{name}: {claim!r} is no claim; the claims are {', '.join(CLAIMS)}")
    return frozenset(claimed)
