"""Every property: a wrong sampler that it catches, beside the reference, which passes.

Random verdicts are those of the suite itself, on fixed seeds: each run of a right sampler alarms with probability at
most 1e-6, and every wrong one is far beyond the bias that its number of calls shows.
"""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from refspec import batched
from refspec.history import History
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.model import next_rows
from toy_models import Pair, TabularModel, get_pair
from verification.adapters.loopback import Reference
from verification.adapters.protocol import Implementation
from verification.faults import chain
from verification.faults.rule import Rule
from verification.finding import BROKEN, HOLDS, INCONCLUSIVE, NOT_CLAIMED
from verification.matrix import KNOBS
from verification.properties import PROPERTIES
from verification.properties.base import DETERMINISTIC, LOSSLESS, PROOF, STANDARD, STATISTICAL, StatisticalJudge
from verification.runner import BUDGETS, Budget, Selection, check
from verification.scenario import Scenario
from verification.statistics.evidence import log_evidence

SMOKE = BUDGETS["smoke"]
WHOLE_MATRIX = Budget("tests", total_variation=0.1, least=2000, most=20_000, smoke=False)
EVERYTHING = frozenset({"lossless", "standard", "seeded", "target-calls"})


class Altered:
    """The reference; ``ask`` changes what it is asked, ``reply`` what it says. A subclass picks the operations."""

    claims = EVERYTHING

    def __init__(self):
        self.reference = Reference()

    def ask(self, asked):
        return asked

    def reply(self, tokens, asked):
        return tokens

    def run(self, operation, asked):
        return self.reply(getattr(self.reference, operation)(**self.ask(asked)), asked)


class Verifying(Altered):
    def verify(self, **asked):
        return self.run("verify", asked)


class Drafting(Altered):
    def draft_and_verify(self, **asked):
        return self.run("draft_and_verify", asked)


class Generating(Altered):
    def generate(self, **asked):
        return self.run("generate", asked)


def replying(door, change):
    """An adapter that replies ``change(tokens, asked)``."""
    name = f"{door.__name__}-{change.__name__.replace('_', '-')}"
    return type(name, (door,), {"reply": lambda self, tokens, asked: change(tokens.copy(), asked)})


def asking(door, change):
    """An adapter that hands on ``change(asked)``."""
    return type(f"{door.__name__}-otherwise", (door,), {"ask": lambda self, asked: change(dict(asked))})


def changed(at, value):
    def change(tokens, asked):
        tokens[at] = value
        return tokens

    return change


def run_past_an_end_token(tokens, asked):
    return np.where(tokens == -1, 0, tokens)


def stop_one_token_short(tokens, asked):
    tokens[tokens[:, -1] != -1, -1] = -1
    return tokens


def widened(tokens, asked):
    return np.pad(tokens, ((0, 0), (0, 2)), constant_values=-1)


def the_first_for_all(tokens, asked):
    return np.repeat(tokens[:1], len(tokens), axis=0)


class OneUniformForTheBatch(Verifying):
    def verify(self, *, draft_tokens, seed, **rows):
        generator = np.random.default_rng(seed)
        return batched.verify_draft(
            draft_tokens=draft_tokens,
            accept_u=np.full(draft_tokens.shape, generator.random()),
            final_u=np.full(len(draft_tokens), generator.random()),
            **rows,
        )


class OtherEachTime(Drafting):
    calls = 0

    def ask(self, asked):
        self.calls += 1
        return {**asked, "seed": asked["seed"] + self.calls}


class ScoringTwice(Drafting):
    def ask(self, asked):
        for _ in range(asked["count"]):
            asked["pair"].target.score(asked["prefix"], ())
        return asked


class Choosing(Drafting):
    """Greedy decoding by a choice of its own."""

    def reply(self, tokens, asked):
        history, warm = History(asked["prefix"]), replace(asked["knobs"], temperature=1)
        for _ in range(asked["lookahead"] + 1):
            (row,) = next_rows(asked["pair"].target, history, knobs=warm)
            history = history.then((self.choice(row),))
        return np.tile(history.output, (asked["count"], 1))


class FirstMaximum(Choosing):
    def choice(self, row):
        return int(np.argmax(row))


class LastMaximum(Choosing):
    def choice(self, row):
        return len(row) - 1 - int(np.argmax(row[::-1]))


class SecondBest(Choosing):
    def choice(self, row):
        return int(np.argsort(-row)[1])


class ResidualFromTargetWide(Drafting):
    """Over a large vocabulary: a rejected token is drawn from the target row again."""

    def run(self, operation, asked):
        kept = batched.recovery
        batched.recovery = lambda target_rows, draft_rows: target_rows
        try:
            return super().run(operation, asked)
        finally:
            batched.recovery = kept


class OneHotDraft(Rule):
    """Lossless, but not the standard rule: the drafted token is taken for certain, whatever its row said."""

    claims = frozenset({"lossless"})

    def accepts(self, step):
        return step.accept_u < step.mass(step.target_rows)

    def recovery(self, step, at):
        chains = np.arange(len(at))
        weights = step.target_rows[chains, at].copy()
        weights[chains, step.draft_tokens[chains, at]] = 0
        return weights


class OneHotDraftThatClaimsMore(OneHotDraft):
    claims = frozenset({"lossless", "standard"})


def on(pair, lookahead, budget=SMOKE):
    return pair, lookahead, budget


FAULTS = [getattr(chain, name) for name in sorted(vars(chain)) if isinstance(getattr(chain, name), type)]
CHAIN = [fault for fault in FAULTS if issubclass(fault, Rule) and fault is not Rule]
WRONG = [
    *[("next-token-identity", fault, on("context", 3)) for fault in CHAIN],
    *[("block-law", fault, on("context", 3)) for fault in CHAIN],
    ("block-law", OneHotDraftThatClaimsMore, on("context", 3)),
    ("support", chain.AlwaysAccept, on("exact-zeros", 3)),
    ("acceptance", chain.AlwaysAccept, on("context", 3)),
    ("acceptance", OneHotDraftThatClaimsMore, on("context", 3)),
    ("token-count", chain.AlwaysAccept, on("context", 3)),
    ("token-count", OneHotDraftThatClaimsMore, on("g3", 7)),
    ("block-length", replying(Verifying, changed(0, -1)), on("context", 3)),
    ("block-length", replying(Drafting, changed((5, 0), -1)), on("context", 8)),
    ("block-length", replying(Drafting, changed((slice(None), 0), 4)), on("context", 3)),
    ("block-length", replying(Verifying, changed((7, 0), -2)), on("context", 3)),
    ("greedy", chain.AlwaysAccept, on("near-ties", 3)),
    ("greedy", SecondBest, on("random-logits", 2)),
    ("knobs-before-rule", asking(Drafting, lambda asked: asked | {"knobs": PLAIN}), on("random-logits", 2)),
    ("complete-output", replying(Generating, run_past_an_end_token), on("context", 2)),
    ("complete-output", replying(Generating, stop_one_token_short), on("context", 2)),
    ("complete-output", asking(Generating, lambda asked: asked | {"prompt": (1,)}), on("context", 2)),
    ("complete-output", asking(Generating, lambda asked: asked | {"stop": ()}), on("context", 2)),
    ("independence", replying(Drafting, the_first_for_all), on("context", 3)),
    ("independence", asking(Drafting, lambda asked: asked | {"seed": 0}), on("context", 3)),
    ("independence", OneUniformForTheBatch, on("context", 3)),
    ("seeded", asking(Drafting, lambda asked: asked | {"seed": 0}), on("context", 3)),
    ("seeded", asking(Verifying, lambda asked: asked | {"seed": 0}), on("context", 3)),
    ("seeded", asking(Generating, lambda asked: asked | {"seed": 0}), on("context", 3)),
    ("seeded", OtherEachTime, on("context", 3)),
    ("target-calls", ScoringTwice, on("context", 3)),
    ("rows-pit", ResidualFromTargetWide, on("random-logits-wide", 4, WHOLE_MATRIX)),
    ("rows-pit", ResidualFromTargetWide, on("ngram-characters", 4)),
    (
        "rows-classes",
        replying(Drafting, lambda tokens, asked: np.where(tokens < 0, -1, (tokens + 1) % asked["pair"].vocabulary)),
        on("ngram-characters", 4),
    ),
]
PROVED_AND_DIRECT = {"exact-equality", "state-certificate", "twin-equality"}
SETTINGS = sorted({(name, *place[:2], place[2].name) for name, _, place in WRONG})


def run(adapter, name, place, **more):
    pair, lookahead, budget = place
    selection = Selection(properties=(name,), pairs=(pair,), lookaheads=(lookahead,))
    return check(Implementation(adapter, "tested"), budget=budget, selection=selection, **more)


@pytest.mark.parametrize(("name", "wrong", "place"), WRONG, ids=[f"{w[0]}-{w[1].__name__}" for w in WRONG])
def test_a_wrong_sampler_is_broken(name, wrong, place):
    result = run(wrong(), name, place)
    assert result.verdict == BROKEN
    broken = [finding for finding in result.findings if finding.status == BROKEN]
    assert {finding.property for finding in broken} == {name}
    assert all(finding.message for finding in broken)


@pytest.mark.parametrize(
    ("name", "pair", "lookahead", "budget"), SETTINGS, ids=[" ".join(map(str, s)) for s in SETTINGS]
)
def test_the_reference_holds_in_the_same_place(name, pair, lookahead, budget):
    result = run(Reference(), name, (pair, lookahead, {"smoke": SMOKE, "tests": WHOLE_MATRIX}[budget]))
    assert result.verdict == HOLDS
    assert {finding.status for finding in result.findings} == {HOLDS}
    assert {finding.property for finding in result.findings} == {name}


def test_every_property_has_a_wrong_sampler_here():
    assert {name for name, _, _ in WRONG} | PROVED_AND_DIRECT == set(PROPERTIES)


def test_a_lossless_rule_that_is_not_standard_holds_and_the_difference_is_told():
    selection = Selection(pairs=("context",), lookaheads=(3,))
    result = check(Implementation(OneHotDraft(), "tested"), budget=SMOKE, selection=selection)
    assert result.verdict == HOLDS
    found = {finding.property: finding for finding in result.findings if finding.knobs == "plain"}
    assert found["next-token-identity"].status == HOLDS
    for name in ("block-law", "token-count", "acceptance"):
        assert found[name].status == NOT_CLAIMED
        assert found[name].message.startswith("differs: ")


def test_a_standard_rule_that_does_not_say_so_is_measured_and_not_judged():
    class Modest(Rule):
        claims = frozenset()

    result = check(
        Implementation(Modest(), "tested"), budget=SMOKE, selection=Selection(pairs=("context",), lookaheads=(3,))
    )
    block_law = next(finding for finding in result.findings if finding.property == "block-law")
    assert (result.verdict, block_law.status) == (HOLDS, NOT_CLAIMED)
    assert "differs" not in block_law.message


@pytest.mark.parametrize("door", [Verifying, Drafting, Generating])
def test_a_reply_may_be_wider_than_it_must(door):
    """Its last tokens stand where they would; the columns beyond are -1."""
    wider = replying(door, widened)()
    selection = Selection(("complete-output", "next-token-identity"), ("context",))
    assert check(Implementation(wider, "tested"), budget=SMOKE, selection=selection).verdict == HOLDS


def test_a_minimum_that_alone_is_claimed_is_asked_for():
    """Whoever claims no sequence of several tokens is still asked to hold back end tokens."""

    def without_a_minimum(asked):
        return asked | {"knobs": replace(asked["knobs"], min_tokens=0)}

    made = asking(Generating, without_a_minimum)()
    made.claims = frozenset({"lossless", "min_tokens"})
    selection = Selection(("complete-output", "support"), ("context",))
    assert check(Implementation(made, "tested"), budget=SMOKE, selection=selection).verdict == BROKEN


# Judges, directly.


def seen(name, scenario, *batches):
    """The judge of a property after these replies."""
    judge = PROPERTIES[name].judge(scenario)
    for tokens in batches:
        judge.see(np.asarray(tokens))
    return judge


def log_e(judge):
    return log_evidence(judge.law, judge.counts, planned=int(judge.counts.sum()), alpha=1e-6)


def context(lookahead, **rest):
    return Scenario(get_pair("context").floats, lookahead, **rest)


def test_greedy_ties_go_to_the_first_maximum():
    model = TabularModel({(): (1, 2, 2), (0,): (2, 2, 1), (1,): (1, 1, 1), (2,): (1, 2, 1)}, exact=False)
    scenario = Scenario(Pair("ties", "", model, model), 2, SamplingKnobs(temperature=0))
    assert seen("greedy", scenario, [[1, 0, 0]]).failure is None
    assert "(2, 1, 2) where greedy decoding gives (1, 1, 0)" in seen("greedy", scenario, [[2, 1, 2]]).failure


def test_greedy_decoding_by_the_last_maximum_is_broken_somewhere_in_the_matrix():
    selection = Selection(properties=("greedy",))
    for adapter, verdict in ((FirstMaximum(), HOLDS), (LastMaximum(), BROKEN)):
        assert check(Implementation(adapter, "tested"), budget=WHOLE_MATRIX, selection=selection).verdict == verdict


def test_a_greedy_reply_may_stop_early():
    scenario = context(2, knobs=KNOBS["temperature 0"])
    assert seen("greedy", scenario, [[0, 0, -1], [0, -1, -1]]).failure is None
    assert seen("greedy", scenario, [[0, 1, -1]]).failure


@pytest.mark.parametrize("reply", [[-1, -1, -1], [-1, 1, -1], [1, -1, 2], [4, -1, -1], [1, 9, 0], [-2, 1, 1]])
def test_a_reply_that_is_no_block(reply):
    judge = seen("block-length", context(2), [[0, 1, 2], reply])
    assert judge.failure.startswith(f"{tuple(reply)} is not 1 to 3 tokens in 0..3, then -1 (1 of 2 calls)")


@pytest.mark.parametrize("reply", [[0, -1, -1], [3, 3, -1], [0, 1, 2]])
def test_a_reply_that_is_a_block(reply):
    assert seen("block-length", context(2), [reply]).failure is None


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ([1, -1, -1], True),
        ([0, 1, -1], True),
        ([0, 0, 1], True),
        ([0, 0, 2], True),
        ([0, 0, -1], False),
        ([1, 0, -1], False),
        ([1, 1, -1], False),
        ([0, -1, 1], False),
        ([-1, -1, -1], False),
        ([0, 0, 4], False),
        ([0, -3, 1], False),
    ],
)
def test_where_an_output_must_end(reply, right):
    judge = seen("complete-output", context(2, max_new_tokens=3, stop=((1,),)), [reply])
    assert (judge.failure is None) == right


def test_one_impossible_token_breaks_support_and_says_where():
    scenario = Scenario(get_pair("exact-zeros").floats, 2)
    assert seen("support", scenario, [[0, 0, 0]] * 100).failure is None
    judge = seen("support", scenario, [[0, 0, 0], [0, 3, -1]])
    assert judge.failure == "token 3 after (0,) has target mass 0 (1 of 2 calls)"


def test_classes_see_the_exchange_that_the_transform_cannot():
    """Two tokens of equal ratio, in one eighth of the order."""
    row = (2, 8, *[10] * 9)
    model = TabularModel({(): row}, exact=False)
    scenario = Scenario(Pair("flat", "", model, model), 1)
    generator = np.random.default_rng(20230202)
    tokens = generator.choice(11, size=(20_000, 2), p=np.array(row) / sum(row))
    swapped = np.where(tokens < 2, 1 - tokens, tokens)
    assert log_e(seen("rows-pit", scenario, swapped)) < log(1e6)
    assert log_e(seen("rows-classes", scenario, tokens)) < log(1e6)
    assert log_e(seen("rows-classes", scenario, swapped)) > 100


def test_a_judge_names_the_worst_cell():
    judge = seen("next-token-identity", context(1), [[0, -1]] * 50 + [[1, 3]] * 50)
    assert judge.worst() == "token 3 after (1,): expected 15.0, observed 50 of 50"
    judge = seen("token-count", context(1), [[0, 1]] * 100)
    assert judge.worst() == "1 tokens: expected 40.0, observed 0 of 100"


def test_neighbours_are_one_two_and_four_places_back_and_in_the_batch_before():
    """Places 1 and 2 look one back, 3 and 4 two, 5 and 6 four, 7 half a batch, 0 at the batch before."""
    judge = seen("independence", context(1), [[token, -1] for token in (0, 1, 2, 3, 0, 1, 2, 3)])
    counted = {(int(node), int(symbol)): int(judge.counts[node, symbol]) for node, symbol in np.argwhere(judge.counts)}
    nodes = {(0, 1): 1, (1, 2): 1, (4 + 1, 3): 1, (4 + 2, 0): 1, (8 + 1, 1): 1, (8 + 2, 2): 1, (12 + 3, 3): 1}
    assert counted == nodes
    judge.see(np.array([[3, -1]]))
    assert judge.counts.sum() == 8
    assert judge.counts[16 + 0, 3] == 1


def sharing(groups):
    """An adapter of the right rule whose calls of one group share all their randomness."""

    class Sharing(Rule):
        def verify(self, *, target_rows, draft_rows, draft_tokens, seed):
            leader = groups(np.arange(len(draft_tokens)))
            return super().verify(
                target_rows=target_rows[leader],
                draft_rows=draft_rows[leader],
                draft_tokens=draft_tokens[leader],
                seed=seed,
            )[leader]

    return Sharing()


@pytest.mark.parametrize(
    "groups",
    [
        lambda i: i - i % 2,
        lambda i: np.maximum(i - (i + 1) % 2, 0),
        lambda i: i - i % 4 // 2 * 2,
        lambda i: i % 8,
        lambda i: i % max(len(i) // 2, 1),
    ],
    ids=["0-1", "1-2", "two apart", "eight streams", "half a batch"],
)
def test_shared_randomness_is_seen_whatever_the_groups(groups):
    selection = Selection(("independence",), ("context",))
    result = check(Implementation(sharing(groups), "tested"), budget=SMOKE, selection=selection)
    assert [finding.status for finding in result.findings if finding.pair] == [BROKEN]


def test_a_biased_marginal_is_not_called_a_dependence():
    selection = Selection(("next-token-identity", "independence"), ("context",), (3,))
    result = check(Implementation(chain.ResampleFromTarget(), "tested"), budget=SMOKE, selection=selection)
    statuses = {finding.property: finding.status for finding in result.findings if finding.pair}
    assert statuses == {"next-token-identity": BROKEN, "independence": INCONCLUSIVE}


# Proofs of the reference's own code: broken copies.


def proofs(name, **wanted):
    return PROPERTIES[name].prove(context(1, max_new_tokens=2, **wanted))


BROKEN_RESIDUALS = {
    "the target row": lambda target_row, draft_row: target_row,
    "the absolute value": lambda target_row, draft_row: abs(target_row - draft_row),
    "the other sign": lambda target_row, draft_row: np.maximum(draft_row - target_row, 0),
}


@pytest.mark.parametrize("residual", BROKEN_RESIDUALS)
@pytest.mark.parametrize("name", ["exact-equality", "state-certificate"])
def test_a_wrong_residual_has_no_proof(name, residual, monkeypatch):
    assert proofs(name).failure is None
    monkeypatch.setattr("refspec.rejection._positive_part", BROKEN_RESIDUALS[residual])
    assert ": probability " in proofs(name).failure


@pytest.mark.parametrize("residual", BROKEN_RESIDUALS)
def test_a_wrong_residual_has_no_certificate_over_a_large_vocabulary(residual, monkeypatch):
    scenario = Scenario(get_pair("random-logits-wide"), 1)
    certificate = PROPERTIES["state-certificate"]
    assert certificate.prove(scenario).failure is None
    monkeypatch.setattr("verification.properties.state_certificate.residual", BROKEN_RESIDUALS[residual])
    assert ": probability " in certificate.prove(scenario).failure


def test_a_wrong_bonus_token_has_no_proof(monkeypatch):
    def from_the_first_row(target_rows, draft_rows, draft_tokens, chance):
        return apply_rule(np.concatenate([target_rows[:-1], target_rows[:1]]), draft_rows, draft_tokens, chance)

    from refspec.speculative import apply_rule

    monkeypatch.setattr("refspec.speculative.apply_rule", from_the_first_row)
    assert proofs("exact-equality").failure.startswith("output ")


def test_a_proof_counts_what_it_proved():
    proved = proofs("exact-equality")
    assert (proved.identities, proved.note) == (16 + 2 + 16, "16 outputs and 18 blocks")
    assert proofs("state-certificate").identities == 5 * 4
    assert proofs("exact-equality", stop=((1,),)).note.startswith(f"{3 * 4 + 1} outputs")


@pytest.mark.parametrize("knobs", KNOBS)
def test_every_knob_is_proved_on_lifted_rows(knobs):
    for name in ("exact-equality", "state-certificate"):
        assert proofs(name, knobs=KNOBS[knobs]).failure is None


BROKEN_TWINS = {
    "recovery": lambda target_rows, draft_rows: target_rows,
    "index_at": lambda edges, u: np.argmax(edges >= u[:, None] * edges[:, -1:], axis=-1),
    "accepted_prefix": lambda target_mass, draft_mass, tokens, accept_u: (
        (kept := np.cumprod(accept_u < target_mass, axis=1).sum(axis=1)),
        kept < tokens.shape[1],
    ),
}


@pytest.mark.parametrize("part", BROKEN_TWINS)
def test_a_twin_that_differs_is_seen(part, monkeypatch):
    assert proofs("twin-equality").failure is None
    monkeypatch.setattr(batched, part, BROKEN_TWINS[part])
    assert "clear code" in proofs("twin-equality").failure


# The table of properties.


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_says_what_it_is(name):
    made = PROPERTIES[name]
    assert made.id == name
    assert made.tier in (PROOF, DETERMINISTIC, STATISTICAL)
    assert made.profile in (LOSSLESS, STANDARD, "reference", "seeded", "target-calls")
    assert made.sentence
    assert made.source
    assert sum(hasattr(made, way) for way in ("prove", "examine", "judge")) == 1


def test_only_statistical_judges_count():
    scenarios = {"greedy": context(1, knobs=KNOBS["temperature 0"]), "complete-output": context(1, max_new_tokens=2)}
    for name, made in PROPERTIES.items():
        if hasattr(made, "judge"):
            judge = made.judge(scenarios.get(name, context(1)))
            assert isinstance(judge, StatisticalJudge) == (made.tier == STATISTICAL)


def test_a_scenario_past_the_full_tree_is_merged_and_not_called_joint():
    for lookahead, joint in ((4, True), (5, False)):
        judge = PROPERTIES["next-token-identity"].judge(context(lookahead))
        assert judge.joint == joint
        tokens = Reference().draft_and_verify(
            pair=context(lookahead).pair, prefix=(), lookahead=lookahead, knobs=PLAIN, count=200, seed=1
        )
        judge.see(tokens)
        assert judge.counts.sum() == (tokens != -1).sum()


def test_rows_are_those_of_the_model_after_the_knobs():
    scenario = context(2, knobs=KNOBS["temperature 0.9, top-k 3, top-p 0.9"], prompt=(2,))
    expected = next_rows(scenario.pair.target, (2,), knobs=scenario.knobs)[0]
    assert scenario.target.rows[scenario.start[0]] == pytest.approx(expected, abs=0)
    assert replace(scenario, knobs=PLAIN).target.rows[0] == pytest.approx(np.array([25, 5, 50, 20]) / 100)
