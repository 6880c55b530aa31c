"""The matrix: what it covers, how small a bias it is planned to show, and that no knob in it cuts on an edge."""

from collections import Counter

import numpy as np
import pytest

from refspec.history import History
from refspec.knobs import SamplingKnobs
from toy_models import get_pair, pair_names, text_pairs
from verification.adapters.loopback import Reference
from verification.adapters.protocol import OPERATIONS, Implementation
from verification.matrix import KNOBS, PROVE, cells
from verification.properties import PROPERTIES
from verification.properties.base import STATISTICAL
from verification.runner import BUDGETS
from verification.statistics.planning import plan_samples, smallest_detectable

MATRIX = list(cells())
MARGIN = 1e-3
TABLES = [name for name in pair_names() if get_pair(name).vocabulary <= 8]
ALPHA = 1e-6 / sum(PROPERTIES[name].tier == STATISTICAL for cell in MATRIX for name in cell.properties)


def test_every_named_pair_is_met():
    met = {cell.scenario.pair.name for cell in MATRIX}
    assert met == {*pair_names(), *(pair.name for pair in text_pairs())}


def test_every_small_pair_is_met_by_every_operation():
    for operation in (PROVE, *OPERATIONS):
        assert {cell.scenario.pair.name for cell in MATRIX if cell.operation == operation} >= set(TABLES)


def test_every_knob_is_met_by_what_drafts_and_by_what_generates():
    assert {cell.operation for cell in MATRIX} == {PROVE, *OPERATIONS}
    for operation in (PROVE, "draft_and_verify", "generate"):
        without = {name for name, knobs in KNOBS.items() if knobs.min_tokens and operation == "draft_and_verify"}
        assert {cell.name for cell in MATRIX if cell.operation == operation} == set(KNOBS) - without


def test_the_name_of_a_cell_is_that_of_its_knobs():
    assert all(KNOBS[cell.name] == cell.scenario.knobs for cell in MATRIX)
    assert len(set(KNOBS.values())) == len(KNOBS)


@pytest.mark.parametrize("operation", ["verify", "draft_and_verify"])
def test_every_lookahead_from_one_to_eight_is_met(operation):
    assert {cell.scenario.lookahead for cell in MATRIX if cell.operation == operation} == set(range(1, 9))


def test_every_property_is_met_and_none_that_does_not_exist():
    assert {name for cell in MATRIX for name in cell.properties} == set(PROPERTIES)


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_property_is_met_in_the_smallest_budget(name):
    assert any(name in cell.properties for cell in MATRIX if cell.smoke)


def test_a_proof_is_asked_of_the_reference_alone_and_nothing_else_of_it():
    for cell in MATRIX:
        assert {hasattr(PROPERTIES[name], "prove") for name in cell.properties} == {cell.operation == PROVE}


def test_cells_are_unique():
    def key(cell):
        s = cell.scenario
        asked = (s.knobs, s.lookahead, s.prompt, s.max_new_tokens, s.stop)
        return cell.operation, s.pair.name, *asked, frozenset(cell.properties)

    assert [found for found, times in Counter(map(key, MATRIX)).items() if times > 1] == []


def planned(degrees, budget):
    return min(max(plan_samples(degrees, budget.total_variation, ALPHA), budget.least), budget.most)


def tree_cells(name):
    return [
        cell
        for cell in MATRIX
        if cell.scenario.pair.name == name and cell.name == "plain" and "next-token-identity" in cell.properties
    ]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("budget", "shows"), [("ci", 0.02), ("nightly", 0.005)])
def test_every_small_pair_has_a_full_tree_that_shows_what_its_budget_promises(name, budget, shows):
    for operation in ("verify", "draft_and_verify"):
        shown = []
        for cell in tree_cells(name):
            judge = PROPERTIES["next-token-identity"].judge(cell.scenario)
            if cell.operation == operation and judge.joint:
                samples = planned(judge.law.degrees, BUDGETS[budget])
                shown.append((cell.scenario, smallest_detectable(judge.law.degrees, samples, ALPHA)))
        assert shown
        for scenario, bias in shown:
            if scenario.vocabulary ** (scenario.lookahead + 1) <= 256:
                assert bias <= shows


@pytest.mark.parametrize("name", ["context", "exact-zeros", "wide-residual"])
def test_the_longest_trees_have_256_leaves(name):
    assert max(c.scenario.vocabulary ** (c.scenario.lookahead + 1) for c in tree_cells(name)) >= 256


def test_whole_outputs_are_counted_jointly():
    for cell in MATRIX:
        if "complete-output" in cell.properties:
            judge = PROPERTIES["complete-output"].judge(cell.scenario)
            degrees = judge.law.degrees
            assert judge.joint
            for budget, shows in (("ci", 0.02), ("nightly", 0.005)):
                assert not degrees or smallest_detectable(degrees, planned(degrees, BUDGETS[budget]), ALPHA) <= shows


def test_a_null_row_sums_to_one_in_every_cell():
    for cell in MATRIX:
        for name in cell.properties:
            if hasattr(PROPERTIES[name], "judge") and hasattr(judge := PROPERTIES[name].judge(cell.scenario), "law"):
                assert (judge.law.rows >= 0).all(), (name, cell)
                assert judge.law.rows.sum(axis=1) == pytest.approx(1, abs=1e-9)
                assert ((judge.law.reach >= 0) & (judge.law.reach <= cell.scenario.lookahead + 1 + 1e-9)).all()


def test_end_tokens_and_caps_inside_a_loop_are_met():
    outputs = [cell.scenario for cell in MATRIX if cell.operation == "generate"]
    assert any(scenario.end_tokens for scenario in outputs)
    assert any(scenario.max_new_tokens % (scenario.lookahead + 1) for scenario in outputs)
    assert any(scenario.max_new_tokens > scenario.lookahead + 1 for scenario in outputs)


def test_the_knobs_of_every_cell_can_be_claimed():
    named = Implementation(Reference(), "named")
    assert all(named.claims_knobs(cell.scenario) for cell in MATRIX)


# Margins: where an honest implementation in float32 might cut, rank or choose otherwise, a verdict is not fair.


def weights_at(model, history, knobs, temperature, dtype=np.float64):
    """The normalised weights after a history at a temperature, descending; the definition, written again."""
    scores = np.asarray(model.score(history.tokens, ())[0], dtype=dtype)
    with np.errstate(divide="ignore"):
        logits = scores if model.kind == "logits" else np.log(scores / scores.sum())
    for token, amount in knobs.logit_bias:
        logits[token] += dtype(amount)
    logits[list(knobs.banned_tokens)] = -np.inf
    for token, count in Counter(history.output).items():
        repeated(logits, token, dtype(knobs.repetition_penalty))
        logits[token] -= dtype(knobs.presence_penalty) + dtype(knobs.frequency_penalty) * count
    for token in set(history.prompt) - set(history.output):
        repeated(logits, token, dtype(knobs.repetition_penalty))
    if len(history.output) < knobs.min_tokens:
        logits[list(history.end_tokens)] = -np.inf
    logits = logits[logits > -np.inf]
    weights = np.exp((logits - logits.max()) / dtype(temperature))
    return np.sort(weights / weights.sum())[::-1]


def repeated(logits, token, penalty):
    logits[token] = logits[token] / penalty if logits[token] > 0 else logits[token] * penalty


def margins(weights, knobs):
    """How far the nearest token is from the cut of each knob, each on the survivors of the one before."""
    if knobs.top_k is not None and knobs.top_k < len(weights):
        yield "top-k", weights[knobs.top_k - 1] - weights[knobs.top_k]
        weights = weights[: knobs.top_k] / weights[: knobs.top_k].sum()
    if knobs.top_p is not None:
        reached, mass = np.cumsum(weights), float(knobs.top_p)
        yield "top-p", abs(reached - mass).min()
        weights = weights[: int(np.argmax(reached >= mass)) + 1]
        weights = weights / weights.sum()
    if knobs.min_p is not None:
        yield "min-p", abs(weights - float(knobs.min_p) * weights[0]).min()


def states_of(scenario):
    """Both models with each state of model and knobs that can follow the prompt, by a history that leads to it."""
    depth = scenario.longest_output if scenario.knobs.looks_back else None
    for model in (scenario.pair.target, scenario.pair.draft):
        found, seen = [History(scenario.prompt, end_tokens=scenario.end_tokens)], set()
        for history in found:  # grows
            key = model.state_key(history.tokens), scenario.knobs.reads(history)
            if key not in seen and (depth is None or len(history.output) <= depth):
                seen.add(key)
                yield model, history
                found += [history.then((token,)) for token in range(scenario.vocabulary)]


def deepest(chosen):
    """The scenarios whose knobs are chosen, by pair, knobs, prompt and stop; of alike ones the longest."""
    found = {}
    for scenario, label in ((cell.scenario, cell.label) for cell in MATRIX if chosen(cell.scenario.knobs)):
        key = scenario.pair.name, label
        found[key] = max(found.get(key, scenario), scenario, key=lambda it: it.longest_output)
    return found


TRUNCATED = deepest(lambda knobs: (knobs.top_k, knobs.top_p, knobs.min_p) != (None, None, None))
GREEDY = deepest(lambda knobs: knobs.temperature == 0)


@pytest.mark.parametrize("name", TRUNCATED, ids=" ".join)
def test_no_token_lies_at_the_edge_of_a_truncation(name):
    scenario = TRUNCATED[name]
    found = [
        (margin, what, history.tokens)
        for model, history in states_of(scenario)
        for what, margin in margins(
            weights_at(model, history, scenario.knobs, scenario.knobs.temperature), scenario.knobs
        )
    ]
    assert found
    assert min(found)[0] >= MARGIN


def test_the_margin_of_a_knob_on_an_edge_is_seen():
    weights = np.array([0.5, 0.3, 0.2])
    edges = dict(margins(np.array([0.4, 0.3, 0.3]), SamplingKnobs(top_k=2)))
    edges |= dict(margins(weights, SamplingKnobs(top_p="0.8")))
    edges |= dict(margins(weights, SamplingKnobs(min_p="0.4")))
    assert edges == pytest.approx({"top-k": 0, "top-p": 0, "min-p": 0}, abs=1e-12)


@pytest.mark.parametrize("name", GREEDY, ids=" ".join)
def test_a_greedy_choice_is_clear_or_a_tie_in_every_precision(name):
    scenario = GREEDY[name]
    for model, history in states_of(scenario):
        both = (weights_at(model, history, scenario.knobs, 1, dtype) for dtype in (np.float32, np.float64))
        gaps = [float(top[0] - top[1]) for top in both]
        assert gaps == [0, 0] or min(gaps) >= MARGIN


def test_all_knobs_of_the_matrix_are_tested_for_margins():
    cutting = {name for name, knobs in KNOBS.items() if (knobs.top_k, knobs.top_p, knobs.min_p) != (None, None, None)}
    assert {scenario.knobs for scenario in TRUNCATED.values()} == {KNOBS[name] for name in cutting}
    assert {scenario.knobs for scenario in GREEDY.values()} == {k for k in KNOBS.values() if k.temperature == 0}
