"""``refspec pairs``: facts that are computed, and the blind spots of pairs made to have them."""

import json
from fractions import Fraction

import pytest

from toy_models import Pair, RandomLogitModel, TabularModel, get_pair, pair_names, text_pairs
from verification.pair_facts import pair_facts

BLIND = {
    "g2": {"equal-rows", "constant-overlap", "no-zero-mass"},
    "identical": {"last-token-only", "no-rejection", "constant-overlap", "no-zero-mass", "equal-maxima"},
    "disjoint": {"last-token-only", "no-acceptance", "constant-overlap"},
    "single-residual": {"last-token-only", "single-residual", "no-zero-mass"},
    "one-hot-target": {"last-token-only", "constant-overlap", "single-residual", "certain-target"},
    "one-hot-draft": {"last-token-only", "constant-overlap", "certain-draft", "no-zero-mass"},
    "second-order": {"single-residual", "no-zero-mass"},
    "context": {"last-token-only", "no-zero-mass"},
}


@pytest.mark.parametrize("name", BLIND)
def test_the_blind_spots_of_a_pair(name):
    assert set(pair_facts(get_pair(name)).blind_spots) == BLIND[name]


@pytest.mark.parametrize("name", pair_names())
def test_a_constant_overlap_is_that_of_the_pair(name):
    facts, pair = pair_facts(get_pair(name)), get_pair(name)
    if pair.is_table:
        assert facts.is_constant == (pair.acceptance is not None)
        assert pair.acceptance is None or facts.mean_overlap == pair.acceptance


def test_the_overlap_by_context():
    facts = pair_facts(get_pair("g3"))
    found = {at.context: at.overlap for at in facts.situations}
    assert found == {(): Fraction(3, 4), (0,): 1, (1,): Fraction(3, 5)}
    assert facts.mean_overlap == Fraction(47, 60)


def test_a_wide_pair_is_a_sample_that_begins_at_the_start():
    facts = pair_facts(get_pair("random-logits-wide"))
    assert (facts.contexts, facts.is_sample, len(facts.situations)) == (201, True, 16)
    assert facts.situations[0].context == ()
    assert facts.mean_overlap == pytest.approx(0.6)


def test_contexts_without_end_are_not_all_followed():
    class Long(RandomLogitModel):
        def state_key(self, tokens):
            return tokens

    model = Long(9, seed=1)
    facts = pair_facts(Pair("long", "", model, model))
    assert (facts.every, facts.is_sample) == (False, True)


def test_a_difference_below_rounding_is_one_in_fractions():
    near = TabularModel({(): (10**12, 10**12 + 1)})
    far = TabularModel({(): (10**12 + 1, 10**12)})
    assert "no-rejection" not in pair_facts(Pair("near", "", near, far)).blind_spots
    assert "no-rejection" in pair_facts(Pair("near", "", near.floats, far.floats)).blind_spots


def test_all_pairs_are_listed(refspec):
    code, printed, complained = refspec("pairs", "--json", "-")
    assert (code, complained) == (0, "")
    document = json.loads(printed)
    assert document["schema"] == "refspec.pairs/1"
    assert [found["name"] for found in document["pairs"]] == [*pair_names(), *(pair.name for pair in text_pairs())]
    assert all(found["purpose"] for found in document["pairs"])


def test_the_pairs_of_a_text(refspec, here):
    (here / "fable.txt").write_text("The fox saw the grapes. The grapes hung high.\n" * 5, encoding="utf-8")
    code, printed, _ = refspec("pairs", "ngram-folded", "g1", "--text", "fable.txt")
    assert code == 0
    assert "characters of a real text (fable.txt, " in printed
    assert "\ng1: Two tokens" in printed


def test_the_lines_of_a_pair(refspec):
    code, printed, complained = refspec("pairs", "g2", "two-tokens")
    assert (code, complained) == (0, "")
    assert "  alpha       3/5 in every context\n" in printed
    assert "  alpha       2/3, the mean over contexts; 1/2 to 3/4\n" in printed
    assert "  overlap     () 3/4, (0) 3/4, (1) 1/2\n" in printed
    assert (
        "blind spot  equal-rows: all rows of a model are equal: a row or a position shifted by one is not seen"
        in printed
    )
