"""The runner: verdicts, claims, the planned number of calls, and what a seed decides.

Random verdicts are those of the suite, at a false-alarm rate of 1e-6 a run; there are about 20 runs of right samplers.
"""

from concurrent.futures import ThreadPoolExecutor
from math import inf

import numpy as np
import pytest

from refspec.knobs import SamplingKnobs
from toy_models import get_pair
from verification.adapters.loopback import Reference
from verification.adapters.protocol import AdapterError, Implementation, UsageError
from verification.faults import chain
from verification.faults.rule import Rule
from verification.finding import BROKEN, HOLDS, INCONCLUSIVE, NOT_CLAIMED, NOTHING_RAN
from verification.matrix import KNOBS
from verification.runner import BUDGETS, Budget, Selection, check
from verification.scenario import Scenario
from verification.statistics.planning import plan_samples, smallest_detectable

SMOKE = BUDGETS["smoke"]
SMALL = Selection(properties=("next-token-identity", "block-length", "support"), pairs=("context",), lookaheads=(3,))
TREE = Selection(properties=("next-token-identity",), pairs=("context",), lookaheads=(3,))


def run(adapter, selection=SMALL, **more):
    return check(Implementation(adapter, "tested"), budget=SMOKE, selection=selection, **more)


def statuses(result):
    return {finding.property: finding.status for finding in result.findings if finding.pair}


# Verdicts.


def test_a_right_sampler_holds_and_every_finding_says_so():
    result = run(Reference())
    assert result.verdict == HOLDS
    assert set(statuses(result).values()) == {HOLDS}
    assert (result.implementation, result.budget, result.alpha, result.seed) == ("tested", "smoke", 1e-6, 0)


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_the_reference_holds_at_other_seeds(seed):
    """Each at a false-alarm rate of 1e-6."""
    assert run(Reference(), Selection(pairs=("context", "g3"), lookaheads=(1, 2, 3)), seed=seed).verdict == HOLDS


def test_a_wrong_sampler_is_broken():
    result = run(chain.ResidualByAbsoluteValue())
    assert result.verdict == BROKEN
    assert statuses(result)["next-token-identity"] == BROKEN


@pytest.mark.parametrize("selection", [Selection(pairs=("eight",), lookaheads=(8,)), Selection(("seeded",), ("g1",))])
def test_nothing_in_common_is_a_verdict_of_its_own(selection):
    result = run(Reference(), selection)
    assert (result.verdict, result.calls, result.log_e) == (NOTHING_RAN, 0, -inf)
    said = {finding.property: finding.message for finding in result.findings}
    assert said == dict.fromkeys(selection.properties, "has no cell in this selection")


def test_an_operation_that_is_not_offered_is_named_and_nothing_ran():
    result = run(Rule(), Selection(properties=("complete-output",)))
    assert result.verdict != HOLDS
    (finding,) = result.findings
    assert (finding.status, finding.message) == (NOT_CLAIMED, "needs generate")


def test_a_run_in_which_nothing_that_is_claimed_was_judged_does_not_hold():
    class Lossless(Rule):
        claims = frozenset({"lossless"})

    result = run(Lossless(), Selection(("block-law",), ("context",), (3,)))
    assert {finding.status for finding in result.findings} == {NOT_CLAIMED}
    assert result.verdict == NOTHING_RAN


class Failing:
    """``verify`` of a right sampler; what it returns is spoiled after a number of calls."""

    def __init__(self, spoil, after=0):
        self.spoil, self.left, self.right = spoil, after, Rule()

    def verify(self, **asked):
        self.left -= 1
        tokens = self.right.verify(**asked)
        return self.spoil(tokens) if self.left < 0 else tokens


def failed(tokens):
    raise RuntimeError("out of memory")


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (failed, "verify raised RuntimeError: out of memory"),
        (lambda tokens: tokens[:, :-1], "expected integers of shape"),
        (lambda tokens: tokens[1:], "expected integers of shape"),
        (lambda tokens: tokens[None], "expected integers of shape"),
        (lambda tokens: tokens.astype(float), "verify returned float64"),
        (lambda tokens: tokens >= 0, "verify returned bool"),
        (lambda tokens: None, "verify returned object ()"),
        (lambda tokens: [[1], [1, 2]], "verify returned a list that is no array"),
    ],
)
def test_an_adapter_that_fails_is_inconclusive(spoil, message, after):
    result = run(Failing(spoil, after))
    assert result.verdict == INCONCLUSIVE
    assert set(statuses(result).values()) == {INCONCLUSIVE}
    assert all(message in finding.message for finding in result.findings if finding.pair)


def test_what_was_broken_before_the_adapter_failed_stays_broken():
    class Empty(Failing):
        def verify(self, **asked):
            tokens = super().verify(**asked)
            tokens[:, 1] = tokens[:, 0]
            return tokens

    result = run(Empty(failed, after=1))
    assert result.verdict == BROKEN
    assert statuses(result)["next-token-identity"] == BROKEN


@pytest.mark.parametrize("made", [Reference, Rule])
def test_an_adapter_that_fails_an_examination_is_inconclusive(made):
    class Raising(made):
        claims = frozenset({"seeded"})

        def verify(self, **asked):
            raise KeyError("no such kernel")

    result = run(Raising(), Selection(properties=("seeded",)))
    assert result.verdict == INCONCLUSIVE
    assert INCONCLUSIVE in {finding.status for finding in result.findings}


# Tokens that are none, in every cell and whatever is selected.


def spoiled(value):
    """The reference; the first token of the fourth reply of a batch is ``value``, or so far past the vocabulary."""

    class Spoiled(Reference):
        claims = frozenset({"lossless", "standard"})

    def wrap(operation):
        def spoil(self, **asked):
            tokens = getattr(Reference, operation)(self, **asked).copy()
            vocabulary = asked["pair"].vocabulary if "pair" in asked else asked["target_rows"].shape[-1]
            tokens[3, 0] = value if value < 0 else vocabulary + value
            return tokens

        return spoil

    for operation in ("verify", "draft_and_verify", "generate"):
        setattr(Spoiled, operation, wrap(operation))
    return Spoiled()


@pytest.mark.parametrize("value", [-1, -2, -300, 0, 1000])
@pytest.mark.parametrize(
    "name",
    [
        "next-token-identity",
        "support",
        "greedy",
        "block-law",
        "token-count",
        "acceptance",
        "independence",
        "complete-output",
        "knobs-before-rule",
        "rows-pit",
        "rows-classes",
    ],
)
def test_a_reply_that_is_no_block_never_holds_and_never_ends_in_a_traceback(name, value):
    pairs = () if name.startswith(("rows", "knobs")) else ("context", "near-ties")
    selection = Selection(properties=(name,), pairs=pairs)
    assert run(spoiled(value), selection).verdict in (BROKEN, INCONCLUSIVE)


def test_a_token_outside_the_vocabulary_breaks_every_operation():
    result = run(spoiled(0), Selection(pairs=("context",)))
    assert result.verdict == BROKEN
    broken = {(f.operation, f.property) for f in result.findings if f.status == BROKEN}
    assert broken >= {
        ("verify", "block-length"),
        ("draft_and_verify", "block-length"),
        ("generate", "complete-output"),
    }


# The planned number of calls.


def test_holds_needs_the_planned_number_of_calls():
    result = run(Reference(), TREE)
    planned = plan_samples(255, 0.05, 1e-6 / 2)
    assert [finding.samples for finding in result.findings] == [planned] * 2
    assert result.calls == 2 * planned
    assert {finding.operation for finding in result.findings} == {"verify", "draft_and_verify"}
    for finding in result.findings:
        assert finding.smallest_detectable_tv == smallest_detectable(255, planned, 1e-6 / 2) <= 0.05
    assert result.smallest_detectable_tv == max(f.smallest_detectable_tv for f in result.findings)


def test_a_cell_is_sized_by_its_first_statistical_property():
    result = run(Reference(), Selection(pairs=("context",), lookaheads=(3,), properties=("token-count", "acceptance")))
    planned = max(plan_samples(3, 0.05, 1e-6 / 4), SMOKE.least)
    assert {finding.samples for finding in result.findings} == {planned}


@pytest.mark.parametrize(("least", "most"), [(9000, 20_000), (1, 3000)])
def test_the_budget_bounds_the_calls(least, most):
    budget = Budget("tests", total_variation=0.3, least=least, most=most, smoke=True)
    fine = Budget("tests", total_variation=0.01, least=least, most=most, smoke=True)
    for chosen, samples in ((budget, max(least, plan_samples(255, 0.3, 1e-6))), (fine, most)):
        result = check(Implementation(Rule(), "tested"), budget=chosen, selection=TREE)
        assert [finding.samples for finding in result.findings] == [min(samples, most)]


def test_a_broken_sampler_stops_early():
    result = run(chain.AlwaysAccept(), TREE)
    (finding,) = result.findings
    assert finding.status == BROKEN
    assert finding.samples == result.calls == 1024
    assert finding.log_e > 100
    assert finding.chi_square_p < 1e-6


def test_what_had_not_seen_enough_when_a_cell_stopped_is_inconclusive():
    result = run(chain.ResampleFromTarget(), Selection(pairs=("context",), lookaheads=(3,)))
    found = {f.property: f for f in result.findings if f.knobs == "plain"}
    assert found["next-token-identity"].status == BROKEN
    assert found["acceptance"].status == INCONCLUSIVE
    assert "next-token-identity is broken" in found["acceptance"].message


@pytest.mark.parametrize("fault", [chain.ResampleFromTarget, chain.OneRowLate, chain.AcceptUniformReused])
def test_what_is_not_claimed_is_no_evidence_where_a_cell_stops(fault):
    class LosslessOnly(fault):
        claims = frozenset({"lossless"})

    properties = ("next-token-identity", "block-law", "token-count", "acceptance")
    result = run(LosslessOnly(), Selection(properties, ("context",), (3,)))
    assert result.verdict == BROKEN
    evidence = next(f.log_e for f in result.findings if f.property == "next-token-identity")
    assert result.log_e == pytest.approx(evidence)


def test_calls_are_those_that_were_made():
    made = []

    class Counting(Reference):
        def verify(self, **asked):
            made.append(len(asked["draft_tokens"]))
            return super().verify(**asked)

        def draft_and_verify(self, **asked):
            made.append(asked["count"])
            return super().draft_and_verify(**asked)

    class CountingWrong(chain.AlwaysAccept):
        def verify(self, **asked):
            made.append(len(asked["draft_tokens"]))
            return super().verify(**asked)

    for adapter, selection in (
        (Counting(), SMALL),
        (CountingWrong(), SMALL),
        (Counting(), Selection(("seeded",), ("context",))),
        (Counting(), Selection(("seeded", "target-calls"), ("context",))),
    ):
        made.clear()
        generated = 3 * 64 if "seeded" in selection.properties else 0
        assert run(adapter, selection).calls == sum(made) + generated


# Workers and seeds.


def test_the_findings_do_not_depend_on_the_workers():
    with ThreadPoolExecutor(3) as executor:
        for adapter in (Reference, chain.OneRowLate):
            alone = run(adapter(), Selection(pairs=("context",), lookaheads=(1, 3)))
            shared = run(adapter(), Selection(pairs=("context",), lookaheads=(1, 3)), executor=executor)
            assert decided(alone) == decided(shared)


def decided(result):
    return result.findings, result.verdict, result.calls, result.log_e


def test_the_same_seed_gives_the_same_findings():
    assert decided(run(Reference(), seed=7)) == decided(run(Reference(), seed=7))
    assert decided(run(chain.OneRowLate(), seed=7)) == decided(run(chain.OneRowLate(), seed=7))


def test_another_seed_gives_other_evidence():
    assert run(Reference(), TREE, seed=7).log_e != run(Reference(), TREE, seed=8).log_e


def test_what_else_is_selected_does_not_change_the_calls_of_a_cell():
    seeds = []

    class Noting(Rule):
        def verify(self, *, seed, **asked):
            seeds.append(seed)
            return super().verify(seed=seed, **asked)

    run(Noting(), TREE)
    alone, seeds = seeds, []
    run(Noting(), Selection(pairs=("context", "g3"), lookaheads=(3,)))
    assert len(alone) == len(set(alone)) >= 3
    assert set(seeds) >= set(alone)


def test_progress_goes_up_to_all_and_says_at_what():
    told = []
    run(Reference(), progress=lambda part, what: told.append((part, what)))
    parts = [part for part, _ in told]
    assert len(parts) > 1
    assert parts == sorted(parts)
    assert parts[-1] == 1
    assert all(what.startswith("context, ") for _, what in told)


# Claims.


def claiming(*claims, base=Reference):
    return type("Claiming", (base,), {"claims": frozenset(claims)})()


def test_what_is_not_claimed_is_said():
    selection = Selection(("seeded", "target-calls", "exact-equality", "greedy"), ("context",), (3,))
    result = run(claiming("lossless"), selection)
    told = {f.property: f.message for f in result.findings if f.status == NOT_CLAIMED}
    assert told == {
        "seeded": "needs the claim 'seeded'",
        "target-calls": "needs the claim 'target-calls'",
        "exact-equality": "has no cell in this selection",
    }
    assert statuses(result) == {"greedy": HOLDS}


def test_proofs_are_of_the_reference_alone():
    proofs = Selection(("exact-equality", "state-certificate", "twin-equality"), ("g3",))
    assert {f.message for f in run(Reference(), proofs).findings} == {"needs the claim 'reference'"}
    result = check(Implementation(Reference(), "refspec", is_reference=True), budget=SMOKE, selection=proofs)
    assert (result.verdict, set(statuses(result).values())) == (HOLDS, {HOLDS})
    assert sum(finding.identities for finding in result.findings) > 0


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"lossles"}, "'lossles' is no claim; the claims are lossless, standard"),
        ({"reference"}, "'reference' is no claim"),
        ("standard", "claims is 'standard'; expected a set of"),
        (None, "claims is None; expected a set of"),
        (3, "claims is 3; expected a set of"),
        ([["lossless"]], "no claim|expected a set of"),
    ],
)
def test_claims_that_are_none_are_refused(claims, message):
    adapter = type("Adapter", (Rule,), {"claims": claims})()
    with pytest.raises(UsageError, match=f"^tested: .*({message})"):
        Implementation(adapter, "tested")


def test_without_claims_lossless_is_assumed_and_a_function_is_verify():
    implementation = Implementation(Rule().verify, "function")
    assert implementation.claims == implementation.profiles == {"lossless"}
    assert list(implementation.operations) == ["verify"]


@pytest.mark.parametrize("adapter", [object(), 3, None, Rule, "verify"])
def test_an_object_without_operations_is_refused(adapter):
    """A class has operations only once it is called."""
    if adapter is Rule:
        adapter = type("Nothing", (), {})
    with pytest.raises(UsageError, match="has none of the operations verify, draft_and_verify, generate"):
        Implementation(adapter, "tested")


BEYOND_ROWS = {name for name, knobs in KNOBS.items() if knobs.looks_back or knobs.logit_bias or knobs.banned_tokens}


@pytest.mark.parametrize(
    ("claims", "claimed"),
    [
        ((), set(KNOBS)),
        (("lossless", "seeded"), set(KNOBS)),
        (("plain",), {"plain"}),
        (("greedy",), {"plain", "temperature 0"}),
        (("greedy", "presence_penalty"), {"plain", "temperature 0", "presence 1.5", "temperature 0, presence 1.5"}),
        (("temperature",), {"plain", "temperature 0.3", "temperature 0.7", "temperature 1.5"}),
        (("top_k",), {"plain", "top-k 3"}),
        (("top_p", "min_p"), {"plain", "top-p 0.78", "min-p 0.32"}),
        (("repetition_penalty", "frequency_penalty"), {"plain", "repetition 1.5", "frequency 1.2"}),
        (("logit_bias", "min_tokens"), {"plain", "logit bias", "minimum 2"}),
        (
            ("temperature", "top_k", "min_p"),
            set(KNOBS) - BEYOND_ROWS - {"temperature 0", "top-p 0.78", "temperature 0.9, top-k 3, top-p 0.9"},
        ),
    ],
)
def test_a_claimed_knob_limits_the_knobs_to_those_claimed(claims, claimed):
    implementation, pair = Implementation(claiming(*claims), "tested"), get_pair("context").floats
    asked = {name for name, knobs in KNOBS.items() if implementation.claims_knobs(Scenario(pair, 1, knobs))}
    assert asked == claimed


@pytest.mark.parametrize(("claims", "asked"), [((), True), (("plain",), False), (("stop_sequences",), True)])
def test_a_stop_sequence_of_several_tokens_is_asked_of_those_who_claim_it(claims, asked):
    pair = get_pair("context").floats
    implementation = Implementation(claiming(*claims), "tested")
    assert implementation.claims_knobs(Scenario(pair, 1, max_new_tokens=3, stop=((1,), (0, 3)))) == asked
    assert implementation.claims_knobs(Scenario(pair, 1, max_new_tokens=3, stop=((1,), (0,))))


def test_a_claimed_knob_limits_the_cells():
    result = run(claiming("lossless", "top_k"), Selection(("knobs-before-rule", "greedy"), ("random-logits",)))
    assert {f.knobs for f in result.findings if f.pair} == {"top-k 3"}
    assert [f.property for f in result.findings if f.status == NOT_CLAIMED] == ["greedy"]


def test_a_selection_that_does_not_exist_is_refused():
    for selection, message in (
        (Selection(properties=("losslessness",)), "no property 'losslessness'; expected one of exact-equality"),
        (Selection(pairs=("contexts",)), "no pair 'contexts'; expected one of acceptance-0"),
        (Selection(lookaheads=(9,)), "no lookahead 9; expected one of 1, 2, 3, 4, 5, 6, 7, 8"),
    ):
        with pytest.raises(UsageError, match=message):
            run(Reference(), selection)


# What an adapter is asked.


def test_drafts_are_drawn_from_the_rows_that_are_handed_over():
    """Chi-square free: each drafted token has mass in its row, and the rows are those of the states it leads to."""
    asked = {}

    def verify(**given):
        asked.update(given)
        return np.zeros((len(given["draft_tokens"]), 4), dtype=int)

    scenario = Scenario(get_pair("exact-zeros").floats, 3)
    Implementation(verify, "tested").run("verify", scenario, 500, 11)
    tokens, target_rows, draft_rows = asked["draft_tokens"], asked["target_rows"], asked["draft_rows"]
    assert (tokens.shape, target_rows.shape, draft_rows.shape) == ((500, 3), (500, 4, 4), (500, 3, 4))
    assert (np.take_along_axis(draft_rows, tokens[:, :, None], axis=2) > 0).all()
    for chain_tokens, targets, drafts in zip(tokens[:20], target_rows, draft_rows, strict=False):
        drafted = tuple(int(token) for token in chain_tokens)
        assert targets == pytest.approx(scenario.pair.target.score((), drafted), abs=0)
        assert drafts == pytest.approx(scenario.pair.draft.score((), drafted)[:-1], abs=0)
    assert asked["seed"] == 11


def test_the_arguments_of_each_operation():
    asked = {}

    class Noting:
        def draft_and_verify(self, *, pair, prefix, lookahead, knobs, count, seed):
            asked["draft"] = (pair, prefix, lookahead, knobs, seed)
            return np.zeros((count, lookahead + 1), dtype=np.int32)

        def generate(self, *, pair, prompt, lookahead, knobs, max_new_tokens, stop, count, seed):
            asked["generate"] = (pair, prompt, lookahead, knobs, max_new_tokens, stop, seed)
            return np.zeros((count, max_new_tokens), dtype=np.uint8).tolist()

    pair, knobs = get_pair("context").floats, SamplingKnobs(top_k=2)
    scenario = Scenario(pair, 2, knobs, prompt=(3,), max_new_tokens=5, stop=((1,), (2,)))
    implementation = Implementation(Noting(), "tested")
    assert implementation.run("draft_and_verify", scenario, 2, 8).tolist() == [[0] * 3] * 2
    assert implementation.run("generate", scenario, 2, 9).tolist() == [[0] * 5] * 2
    assert asked == {
        "draft": (pair, (3,), 2, knobs, 8),
        "generate": (pair, (3,), 2, knobs, 5, ((1,), (2,)), 9),
    }


def test_a_failing_adapter_keeps_its_cause():
    def verify(**asked):
        raise MemoryError

    with pytest.raises(AdapterError, match="verify raised MemoryError") as failure:
        Implementation(verify, "tested").run("verify", Scenario(get_pair("g1").floats, 1), 1, 0)
    assert isinstance(failure.value.__cause__, MemoryError)
