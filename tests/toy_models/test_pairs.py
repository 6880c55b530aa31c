"""The named pairs: their names, their acceptance, and what each docstring promises of the rows."""

import re
from fractions import Fraction

import numpy as np
import pytest

from refspec import theory
from toy_models import get_pair, pair_names, text_pairs

TABLES = [name for name in pair_names() if get_pair(name).is_table]
ROTATED = ["disjoint", "near-ties", "exact-zeros", "rare-token", "one-hot-target", "one-hot-draft", "wide-residual"]


def rows(pair):
    """The target row and the draft row of every context that a sequence of tokens can lead to."""
    waiting, found = [()], {}
    while waiting:
        tokens = waiting.pop()
        key = pair.target.state_key(tokens), pair.draft.state_key(tokens)
        if key not in found:
            found[key] = pair.target.score(tokens, ())[0], pair.draft.score(tokens, ())[0]
            waiting += [(*tokens, token) for token in range(pair.vocabulary)]
    return list(found.values())


def overlaps(pair):
    return {sum(np.minimum(target_row, draft_row)) for target_row, draft_row in rows(pair)}


def test_there_are_at_least_fifteen_pairs_with_unique_kebab_case_names():
    names = [*pair_names(), *(pair.name for pair in text_pairs())]
    assert len(pair_names()) >= 15
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", name) for name in names)


@pytest.mark.parametrize("name", pair_names())
def test_a_pair_says_what_it_is_for_and_shares_one_vocabulary(name):
    pair = get_pair(name)
    assert pair.name == name
    assert len(pair.purpose.split()) >= 5
    assert pair.target.vocabulary == pair.draft.vocabulary == pair.vocabulary
    assert pair.floats.is_table == pair.is_table


def test_an_unknown_name_is_refused_with_the_names():
    with pytest.raises(ValueError, match=r"^no pair is called 'none'; the pairs are context, identical, "):
        get_pair("none")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_exact_and_its_floats_are_the_roundings(name):
    pair = get_pair(name)
    for exact, floats in zip(rows(pair), rows(pair.floats), strict=True):
        for exact_row, float_row in zip(exact, floats, strict=True):
            assert sum(exact_row) == 1
            assert float_row.dtype == np.float64
            assert float_row.tolist() == [float(fraction) for fraction in exact_row]


def test_fourteen_pairs_at_least_are_tables_and_the_others_are_logits():
    assert len(TABLES) >= 14
    for name in set(pair_names()) - set(TABLES):
        assert get_pair(name).target.kind == get_pair(name).draft.kind == "logits"


@pytest.mark.parametrize("name", TABLES)
def test_the_acceptance_is_stated_exactly_where_it_is_the_same_in_every_context(name):
    pair = get_pair(name)
    found = overlaps(pair)
    assert pair.acceptance == (found.pop() if len(found) == 1 else None)


@pytest.mark.parametrize("name", [name for name in TABLES if get_pair(name).acceptance is not None])
def test_the_acceptance_is_one_minus_the_total_variation_in_every_context(name):
    pair = get_pair(name)
    for target_row, draft_row in rows(pair):
        assert pair.acceptance == 1 - sum(abs(target_row - draft_row)) / 2


@pytest.mark.parametrize("rate", ["0", "0.1", "0.5", "0.8", "0.95", "1"])
def test_an_acceptance_pair_has_the_acceptance_in_its_name_though_its_rows_differ(rate):
    pair = get_pair(f"acceptance-{rate}")
    assert overlaps(pair) == {pair.acceptance} == {Fraction(rate)}
    assert rate in pair.purpose
    assert len({tuple(target_row) for target_row, _ in rows(pair)}) == pair.vocabulary


def test_context_rows_differ_in_everything():
    found = rows(get_pair("context"))
    assert len(found) == 5
    assert all(sum(target_row > draft_row) >= 2 for target_row, draft_row in found)
    assert any((target_row == draft_row).any() for target_row, draft_row in found)
    assert any((target_row < draft_row / 3).any() for target_row, draft_row in found)
    assert {int(np.argmax(target_row)) for target_row, _ in found} == {0, 1, 2, 3}
    assert len({tuple(row) for pair_of_rows in found for row in pair_of_rows}) == 8


def test_context_overrates_one_token_as_its_purpose_says():
    pair = get_pair("context")
    words = {"fivefold": 5, "sixfold": 6, "sevenfold": 7, "eightfold": 8, "ninefold": 9, "tenfold": 10}
    stated = [factor for word, factor in words.items() if word in pair.purpose]
    assert stated == [max(max(draft_row / target_row) for target_row, draft_row in rows(pair))]


@pytest.mark.parametrize("name", ROTATED)
def test_the_likeliest_token_of_the_target_differs_from_row_to_row(name):
    argmaxes = {int(np.argmax(target_row)) for target_row, _ in rows(get_pair(name))}
    assert len(argmaxes) == get_pair(name).vocabulary


def test_identical_is_one_model():
    pair = get_pair("identical")
    assert pair.target is pair.draft


def test_disjoint_rows_share_no_token():
    assert all(not (target_row * draft_row).any() for target_row, draft_row in rows(get_pair("disjoint")))


def test_near_ties_are_a_third_of_a_percent_apart_and_greedy_decoding_differs():
    for target_row, draft_row in rows(get_pair("near-ties")):
        assert np.diff(sorted(target_row)).tolist() == [Fraction(1, 300)] * 2
        assert np.argmax(target_row) != np.argmax(draft_row)


def test_exact_zeros_stand_on_either_side():
    for target_row, draft_row in rows(get_pair("exact-zeros")):
        assert ((target_row == 0) & (draft_row > 0)).any()
        assert ((target_row > 0) & (draft_row == 0)).any()


def test_the_rare_token_is_drafted_a_quarter_of_the_time():
    for target_row, draft_row in rows(get_pair("rare-token")):
        assert min(target_row) == Fraction(1, 1000)
        assert draft_row[np.argmin(target_row)] == Fraction(1, 4)


@pytest.mark.parametrize(("name", "side"), [("one-hot-target", 0), ("one-hot-draft", 1)])
def test_one_hot_rows_hold_one_token(name, side):
    for both in rows(get_pair(name)):
        assert sorted(both[side]) == [0, 0, 0, 1]
        assert min(both[1 - side]) > 0


@pytest.mark.parametrize(("name", "tokens"), [("wide-residual", 3), ("single-residual", 1)])
def test_the_residual_has_its_width(name, tokens):
    for target_row, draft_row in rows(get_pair(name)):
        assert sum(target_row > draft_row) == tokens


def test_two_tokens_is_the_smallest_pair():
    pair = get_pair("two-tokens")
    assert pair.vocabulary == 2
    assert [[row.tolist() for row in both] for both in rows(pair)[-1:]] == [
        [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 2), Fraction(1, 2)]]
    ]


@pytest.mark.parametrize("role", ["target", "draft"])
def test_second_order_rows_depend_on_both_tokens(role):
    model = getattr(get_pair("second-order"), role)
    by_context = {(a, b): tuple(model.score((a, b), ())[0]) for a in range(2) for b in range(2)}
    assert any(by_context[a, 0] != by_context[a, 1] for a in range(2))
    assert any(by_context[0, b] != by_context[1, b] for b in range(2))


def test_eight_has_eight_tokens():
    assert get_pair("eight").vocabulary == 8


def test_g1_by_hand():
    pair = get_pair("g1")
    for target_row, draft_row in rows(pair):
        assert target_row.tolist() == [Fraction(1, 3), Fraction(2, 3)]
        assert draft_row.tolist() == [Fraction(2, 3), Fraction(1, 3)]
    assert pair.acceptance == Fraction(2, 3)


def test_g2_by_hand():
    pair = get_pair("g2")
    for target_row, draft_row in rows(pair):
        assert target_row.tolist() == [Fraction(weight, 10) for weight in (4, 3, 2, 1)]
        assert draft_row.tolist() == [Fraction(weight, 10) for weight in (1, 2, 3, 4)]
        residual = np.maximum(target_row - draft_row, 0)
        assert (residual / sum(residual)).tolist() == [Fraction(3, 4), Fraction(1, 4), 0, 0]
    assert pair.acceptance == Fraction(3, 5)


def test_g3_by_hand():
    """Overlaps 3/4 at the start, 1 after token 0, 3/5 after token 1; for K = 4 a loop emits 77/25 on average."""
    pair = get_pair("g3")
    shared = {
        context: sum(np.minimum(pair.target.score(context, ())[0], pair.draft.score(context, ())[0]))
        for context in [(), (0,), (1,)]
    }
    assert shared == {(): Fraction(3, 4), (0,): 1, (1,): Fraction(3, 5)}
    assert pair.acceptance is None
    emitted = theory.expected_tokens_in_context(target=pair.target, draft=pair.draft, lookahead=4)
    assert emitted == Fraction(77, 25)
    assert emitted != theory.expected_tokens(shared[()], 4)


@pytest.mark.parametrize(("name", "distance"), [("random-logits", 0.3), ("random-logits-wide", 0.4)])
def test_random_logits_are_at_the_stated_total_variation(name, distance):
    pair = get_pair(name)
    for context in [(), *((token,) for token in range(5))]:
        weights = [np.exp(model.score(context, ())[0]) for model in (pair.target, pair.draft)]
        target_row, draft_row = (weight / weight.sum() for weight in weights)
        assert abs(target_row - draft_row).sum() / 2 == pytest.approx(distance, rel=0, abs=1e-12)


def test_text_pairs_say_what_they_were_fitted_on(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat and the dog, the mouse and the cat.\n" * 3, encoding="utf-8")
    pairs = text_pairs(path)
    assert [pair.name for pair in pairs] == ["ngram-folded", "ngram-characters", "ngram-words"]
    for pair in pairs:
        assert str(path) in pair.purpose
        assert pair.target.text == pair.draft.text
        assert pair.target.order > pair.draft.order
        assert pair.acceptance is None
        assert not pair.is_table
        assert pair.floats is pair
    assert pairs[0].vocabulary == 4


def test_text_pairs_are_fitted_on_the_help_inside_python_by_default():
    assert [pair.target.text.name for pair in text_pairs()] == ["pydoc_data.topics"] * 3
