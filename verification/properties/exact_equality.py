"""``exact-equality``: the law of the running code, as fractions, equals the target's and the second derivation."""

from dataclasses import replace

from refspec import autoregressive, speculative
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.law import exact_law
from refspec.model import lifted
from refspec.speculative import speculative_step
from refspec.table import compile_table
from toy_models import Pair
from verification import derived_laws
from verification.properties.base import PROOF, REFERENCE, Examined, Property, digits
from verification.scenario import Scenario


class ExactEquality(Property):
    """Joint over several loops, for outputs cut at a length, and for the block of one loop. Defect 0."""

    id = "exact-equality"
    sentence = "the exact law of speculative generation is the target's, and that of a block the derived one"
    profile = REFERENCE
    tier = PROOF
    source = "Chen et al. 2023, Theorem 1; two derivations that do not import each other"

    def prove(self, scenario: Scenario) -> Examined:
        pair, knobs = exact_pair(scenario), SamplingKnobs(min_tokens=scenario.knobs.min_tokens)
        spoken = exact_law(
            lambda chance: speculative.generate(
                target=pair.target,
                draft=pair.draft,
                prompt=scenario.prompt,
                lookahead=scenario.lookahead,
                max_new_tokens=scenario.max_new_tokens,
                knobs=knobs,
                stop_sequences=scenario.stop,
                chance=chance,
            )
        )
        plain = exact_law(
            lambda chance: autoregressive.generate(
                target=pair.target,
                prompt=scenario.prompt,
                max_new_tokens=scenario.max_new_tokens,
                knobs=knobs,
                stop_sequences=scenario.stop,
                chance=chance,
            )
        )
        block = exact_law(
            lambda chance: (
                speculative_step(
                    target=pair.target,
                    draft=pair.draft,
                    prefix=scenario.prompt,
                    lookahead=scenario.lookahead,
                    chance=chance,
                ).tokens
            )
        )
        derived = derived_block_law(pair, scenario)
        failure = _difference("output", spoken, plain) or _difference("block", block, derived)
        return Examined(failure, f"{len(plain)} outputs and {len(derived)} blocks", len(plain) + len(derived))


def exact_pair(scenario: Scenario) -> Pair:
    """Return the pair of a scenario with exact rows after the knobs: of fractions, or lifted from floats."""
    pair = scenario.pair
    if pair.is_table and scenario.knobs == PLAIN:
        return replace(pair, target=pair.target.fractions, draft=pair.draft.fractions)
    target, draft = (
        lifted(model, scenario.knobs, prompt_length=len(scenario.prompt), end_tokens=scenario.end_tokens)
        for model in (pair.target, pair.draft)
    )
    return replace(pair, target=target, draft=draft)


def derived_block_law(pair: Pair, scenario: Scenario) -> dict[tuple[int, ...], object]:
    """Return the law of the block by ``verification.derived_laws``, impossible blocks left out."""
    depth = scenario.lookahead + 1
    target, draft = (
        compile_table(model, prompts=[scenario.prompt], depth=depth) for model in (pair.target, pair.draft)
    )
    start = target.starts[scenario.prompt], draft.starts[scenario.prompt]
    levels = derived_laws.accepted_levels(target, draft, start, scenario.lookahead)
    masses = iter(derived_laws.block_law(target, draft, levels))
    blocks = (
        digits(code, length, pair.vocabulary)
        for length in range(1, scenario.lookahead + 2)
        for code in range(pair.vocabulary**length)
    )
    return {block: mass for block, mass in zip(blocks, masses, strict=True) if mass}


def _difference(what: str, law: dict[tuple[int, ...], object], expected: dict[tuple[int, ...], object]) -> str | None:
    for outcome in sorted(law.keys() | expected.keys()):
        if law.get(outcome, 0) != expected.get(outcome, 0):
            return f"{what} {outcome}: probability {law.get(outcome, 0)}, expected {expected.get(outcome, 0)}"
    return None
