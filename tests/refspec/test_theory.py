"""Closed forms, against golden values and against the enumeration of the loop."""

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec.knobs import SamplingKnobs
from refspec.law import exact_law
from refspec.speculative import speculative_step
from refspec.theory import (
    count_law,
    count_law_in_context,
    expected_tokens,
    expected_tokens_in_context,
    survival,
    variance_of_tokens,
)
from toy_models.pairs import get_pair, pair_names
from toy_models.tabular import TabularModel

RATES = st.fractions(0, 1, max_denominator=20)


@st.composite
def two_tables(draw):
    vocabulary = draw(st.integers(1, 3))
    weights = st.lists(st.integers(0, 5), min_size=vocabulary, max_size=vocabulary).filter(any)
    contexts = [(), *((token,) for token in range(vocabulary))]
    return tuple(TabularModel({context: draw(weights) for context in contexts}) for _ in range(2))


def enumerated(lookahead, **step):
    """The law of the number of accepted tokens, by enumeration."""
    law = exact_law(lambda chance: speculative_step(lookahead=lookahead, chance=chance, **step))
    counts = [Fraction(0)] * (lookahead + 1)
    for block, mass in law.items():
        counts[block.accepted] += mass
    return counts


@pytest.mark.parametrize(
    ("rate", "lookahead", "pmf", "mean", "variance"),
    [
        ("2/3", 2, ("1/3", "2/9", "4/9"), "19/9", "62/81"),
        ("3/5", 2, ("2/5", "6/25", "9/25"), "49/25", "474/625"),
        ("3/5", 3, ("2/5", "6/25", "18/125", "27/125"), "272/125", "21516/15625"),
        ("0", 2, ("1", "0", "0"), "1", "0"),
        ("1", 2, ("0", "0", "1"), "3", "0"),
        ("4/5", 0, ("1",), "1", "0"),
    ],
)
def test_constant_acceptance_by_hand(rate, lookahead, pmf, mean, variance):
    rate = Fraction(rate)
    assert count_law(rate, lookahead) == tuple(map(Fraction, pmf))
    assert expected_tokens(rate, lookahead) == Fraction(mean)
    assert variance_of_tokens(rate, lookahead) == Fraction(variance)


@pytest.mark.parametrize(
    ("rate", "lookahead", "mean"),
    [("4/5", 4, "2101/625"), ("2/3", 3, "65/27"), ("2/3", 4, "211/81"), ("3/4", 4, "781/256"), ("1", 7, "8")],
)
def test_expected_tokens_by_hand(rate, lookahead, mean):
    assert expected_tokens(Fraction(rate), lookahead) == Fraction(mean)


@given(RATES.filter(lambda rate: rate < 1), st.integers(0, 6))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_the_printed_closed_forms(rate, lookahead):
    power = rate ** (lookahead + 1)
    assert expected_tokens(rate, lookahead) == (1 - power) / (1 - rate)
    numerator = rate - (2 * lookahead + 1) * (1 - rate) * power - power**2
    assert variance_of_tokens(rate, lookahead) == numerator / (1 - rate) ** 2
    assert sum(count_law(rate, lookahead)) == 1


@pytest.mark.parametrize("function", [count_law, expected_tokens, variance_of_tokens])
@pytest.mark.parametrize(
    ("rate", "lookahead", "message"),
    [
        (Fraction(6, 5), 2, "acceptance_rate: 6/5; expected 0 to 1"),
        (-0.1, 2, "acceptance_rate: -0.1; expected 0 to 1"),
        (float("nan"), 2, "acceptance_rate: nan; expected 0 to 1"),
        (0.5, -1, "lookahead: -1 is negative; expected 0 or more"),
    ],
)
def test_what_is_no_rate_or_lookahead_is_refused(function, rate, lookahead, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(rate, lookahead)


@given(two_tables(), st.integers(0, 3), st.booleans())
@settings(deadline=None, max_examples=60, derandomize=True)
def test_survival_is_what_the_enumeration_gives(tables, lookahead, after_a_token):
    step = {"target": tables[0], "draft": tables[1], "prefix": (0,) if after_a_token else (), "lookahead": lookahead}
    counts = enumerated(**step)
    assert count_law_in_context(**step) == tuple(counts)
    assert survival(**step) == tuple(sum(counts[k:]) for k in range(lookahead + 1))
    assert expected_tokens_in_context(**step) == sum((k + 1) * mass for k, mass in enumerate(counts))


def test_survival_keeps_apart_what_either_model_keeps_apart():
    coarse, fine = get_pair("two-tokens").draft, get_pair("second-order").target
    for target, draft in [(coarse, fine), (fine, coarse)]:
        step = {"target": target, "draft": draft, "prefix": (), "lookahead": 3}
        assert count_law_in_context(**step) == tuple(enumerated(**step))


@pytest.mark.parametrize("name", ["context", "exact-zeros", "second-order"])
@pytest.mark.parametrize(
    ("knobs", "draft_knobs"),
    [
        (SamplingKnobs(temperature="1/2"), None),
        (SamplingKnobs(top_k=2), SamplingKnobs()),
        (SamplingKnobs(), SamplingKnobs(temperature=0)),
    ],
)
def test_survival_under_knobs(name, knobs, draft_knobs):
    pair = get_pair(name)
    step = {"target": pair.target, "draft": pair.draft, "prefix": (1,), "knobs": knobs, "draft_knobs": draft_knobs}
    assert count_law_in_context(**step, lookahead=2) == tuple(enumerated(**step, lookahead=2))


@pytest.mark.parametrize(
    ("name", "lookahead", "mean"),
    [
        ("g1", 4, "211/81"),
        ("g2", 3, "272/125"),
        ("g3", 1, "7/4"),
        ("g3", 2, "23/10"),
        ("g3", 3, "273/100"),
        ("g3", 4, "77/25"),
        ("context", 2, "99/50"),
        ("context", 3, "278/125"),
    ],
)
def test_expected_tokens_in_context_by_hand(name, lookahead, mean):
    pair = get_pair(name)
    assert expected_tokens_in_context(target=pair.target, draft=pair.draft, lookahead=lookahead) == Fraction(mean)


def test_the_count_law_in_context_by_hand():
    pair = get_pair("g3")
    law = count_law_in_context(target=pair.target, draft=pair.draft, lookahead=4)
    assert law == tuple(map(Fraction, ("1/4", "1/5", "3/25", "2/25", "7/20")))


@pytest.mark.parametrize("name", [name for name in pair_names() if get_pair(name).acceptance is not None])
def test_a_constant_acceptance_gives_the_capped_geometric_law(name):
    pair = get_pair(name)
    law = count_law_in_context(target=pair.target, draft=pair.draft, lookahead=4)
    assert law == count_law(pair.acceptance, 4)


def test_survival_of_floats_is_close_to_exact():
    exact, floats = get_pair("context"), get_pair("context").floats
    rounded = survival(target=floats.target, draft=floats.draft, lookahead=4)
    assert rounded == pytest.approx(
        [float(mass) for mass in survival(target=exact.target, draft=exact.draft, lookahead=4)], rel=1e-14
    )


def test_a_long_lookahead_merges_equal_states():
    pair = get_pair("two-tokens")
    assert len(survival(target=pair.target, draft=pair.draft, lookahead=40)) == 41
