"""Uniforms that are numbers: strict comparison, the inverse of the cumulative weights, sampling and replay."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec import verify_draft
from refspec.chance import Chance, Number, ReplayedChance, SampledChance
from refspec.law import BranchingChance

LAST = float(np.nextafter(1.0, 0.0))  # the largest uniform
TINY = 5e-324  # the smallest float above 0
NAN = float("nan")
INF = float("inf")


def fractions(*numbers):
    return np.array([Fraction(number) for number in numbers], dtype=object)


@pytest.mark.parametrize(
    ("u", "numerator", "denominator", "below"),
    [
        (0.0, 0.0, 0.5, False),  # a token without target mass, even at u = 0
        (0.0, Fraction(0), Fraction(1, 2), False),
        (0.0, TINY, 1.0, True),
        (0.5, 0.25, 0.5, False),  # u exactly at the ratio
        (0.5, Fraction(1, 6), Fraction(1, 3), False),
        (Fraction(1, 3), Fraction(1, 6), Fraction(1, 2), False),
        (float(np.nextafter(0.5, 0)), 0.25, 0.5, True),
        (LAST, 0.5, 0.5, True),
        (LAST, 0.75, 0.5, True),
        (LAST, TINY, TINY, True),  # u * denominator rounds up to the denominator
        (0.5, TINY, 2 * TINY, False),
        (0.25, TINY, 4 * TINY, False),
        (0.0, 0.0, TINY, False),
        (LAST, 0.0, TINY, False),
    ],
)
def test_below_is_strict(u, numerator, denominator, below):
    assert Number(u).below(numerator, denominator) is below


def test_below_has_a_denominator_of_one_by_default():
    assert Number(0.25).below(0.5)
    assert not Number(0.5).below(0.5)


def test_a_float_uniform_is_exact_beside_fractions():
    """1/3 as a float is below one third; its float product with 3/7 is not below 1/7 as a float."""
    u = 1 / 3
    assert Number(u).below(Fraction(1, 7), Fraction(3, 7))
    assert not Number(u).below(float(Fraction(1, 7)), float(Fraction(3, 7)))
    assert Number(u).index(fractions("1/7", "2/7")) == 0
    assert Number(np.nextafter(u, 1)).index(fractions("1/7", "2/7")) == 1


@given(st.fractions(0, 1), st.fractions(Fraction(1, 10**9), 1), st.floats(0, LAST))
@settings(deadline=None, max_examples=200, derandomize=True)
def test_below_on_fractions_is_the_exact_comparison(numerator, denominator, u):
    assert Number(u).below(numerator, denominator) == (Fraction(u) < numerator / denominator)


@pytest.mark.parametrize(
    ("u", "weights", "index"),
    [
        (0.0, [0.5, 0.5], 0),
        (float(np.nextafter(0.5, 0)), [0.5, 0.5], 0),
        (0.5, [0.5, 0.5], 1),
        (LAST, [0.5, 0.5], 1),
        (0.0, [0.0, 0.0, 1.0, 1.0], 2),  # a zero weight is unreachable at both ends, and in the middle
        (LAST, [1.0, 1.0, 0.0, 0.0], 1),
        (0.5, [1.0, 0.0, 1.0], 2),
        (0.0, [0.0, TINY, 0.0], 1),
        (LAST, [0.0, TINY, 0.0], 1),
        (LAST, [TINY, TINY, 0.0], 1),
        (0.5, [TINY, TINY], 1),
        (0.74, [3, 1], 0),
        (0.75, [3, 1], 1),
    ],
)
def test_index_selects_by_the_cumulative_weights(u, weights, index):
    assert Number(u).index(np.array(weights)) == index


@given(
    st.lists(st.sampled_from([0.0, TINY, 1e-310, 1e-17, 0.1, 1 / 3, 1.0, 7.0]), min_size=1, max_size=6).filter(any),
    st.sampled_from([0.0, TINY, 0.5, 1 - 2**-52, LAST]),
)
@settings(deadline=None, max_examples=300, derandomize=True)
def test_no_uniform_selects_a_zero_weight(weights, u):
    assert weights[Number(u).index(np.array(weights))] > 0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), st.floats(0, LAST))
@settings(deadline=None, max_examples=200, derandomize=True)
def test_index_on_fractions_is_the_exact_inverse(weights, u):
    total = sum(weights)
    index = Number(u).index(fractions(*(Fraction(weight, total) for weight in weights)))
    before, after = (Fraction(sum(weights[:end]), total) for end in (index, index + 1))
    assert before <= Fraction(u) < after


def test_large_integer_weights_do_not_overflow():
    assert ReplayedChance(final_u=0.25).draw([2**62, 2**62]) == 0
    assert ReplayedChance(final_u=0.75).draw([2**62, 2**62]) == 1


def test_index_writes_to_nothing():
    weights = np.array([1.0, 2.0, 1.0])
    weights.flags.writeable = False
    Number(0.5).index(weights)
    SampledChance(np.random.default_rng(0)).draw(weights)
    assert weights.tolist() == [1.0, 2.0, 1.0]


@pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [0, 0, 0], fractions(0, 0, 0)])
@pytest.mark.parametrize("read", [lambda: SampledChance(np.random.default_rng(0)), lambda: ReplayedChance(final_u=0.5)])
def test_weights_without_mass_are_refused(read, weights):
    chance = read()
    with pytest.raises(ValueError, match="draw: 3 weights, none above 0"):
        chance.draw(weights)


def test_no_weights_are_refused():
    with pytest.raises(ValueError, match="draw: 0 weights"):
        ReplayedChance(final_u=0.5).draw([])


def test_a_chance_of_no_reading_has_no_uniform():
    with pytest.raises(NotImplementedError):
        Chance().uniform("accept_u")


@pytest.mark.parametrize("generator", [7, None, np.random.RandomState(7)])
def test_only_a_generator_is_sampled(generator):
    with pytest.raises(TypeError, match=r"expected a numpy\.random\.Generator"):
        SampledChance(generator)


def test_sampling_takes_one_number_of_the_generator_for_each_decision():
    chance, numbers = SampledChance(np.random.default_rng(3)), np.random.default_rng(3).random(4)
    decided = [chance.uniform("any").value, chance.accept(1, 2), chance.draw([1, 1, 2]), chance.uniform("any").value]
    assert decided == [numbers[0], numbers[1] < 0.5, np.searchsorted([0.25, 0.5, 1], numbers[2], "right"), numbers[3]]


def test_sampled_repeat_adds_steps_until_done():
    tokens = SampledChance(np.random.default_rng(0)).repeat(
        lambda chance, state: (chance.draw([0, 1]), len(state)), (9,), done=lambda state: len(state) >= 4, alike=len
    )
    assert tokens == (9, 1, 1, 1, 3)


def test_replay_serves_each_slot_in_order():
    chance = ReplayedChance(accept_u=[0.1, 0.9], final_u=0.5)
    assert chance.accept(1, 2)
    assert chance.draw([1, 1]) == 1
    assert not chance.accept(1, 2)
    assert chance.used == {"accept_u": 2, "final_u": 1}


def test_replay_takes_other_slots_by_name():
    chance = ReplayedChance(token_u=0.5, coin=Fraction(1, 3))
    assert chance.draw([1, 1, 1, 1], slot="token_u") == 2
    assert not chance.accept(Fraction(1), Fraction(3), slot="coin")


def test_replay_keeps_fractions():
    assert ReplayedChance(final_u=Fraction(1, 3)).uniform("final_u").value == Fraction(1, 3)
    assert ReplayedChance(final_u=[Fraction(1, 3)]).uniform("final_u").value == Fraction(1, 3)


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ({"final_u": 1.0}, "final_u[0]: 1.0 is not a uniform; expected 0 <= u < 1"),
        ({"final_u": Fraction(1)}, "final_u[0]: 1 is not a uniform"),
        ({"accept_u": [0.5, -0.25]}, "accept_u[1]: -0.25 is not a uniform"),
        ({"accept_u": [0.5, NAN]}, "accept_u[1]: nan is not a uniform"),
        ({"draft_u": np.float32([0, 0.99999999])}, "draft_u[1]: 1.0 is not a uniform"),
        ({"draft_u": [0, 1]}, "draft_u[1]: 1 is not a uniform"),
    ],
)
def test_numbers_outside_the_unit_interval_are_refused(slots, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ReplayedChance(**slots)
    with pytest.raises(ValueError, match=re.escape(message)):
        ReplayedChance.over([{}, slots])


def test_running_out_names_the_slot():
    chance = ReplayedChance(accept_u=0.5)
    with pytest.raises(ValueError, match=re.escape("loop 0 asks for final_u[0]; 0 were given")):
        chance.draw([1, 1])
    chance.accept(1, 2)
    with pytest.raises(ValueError, match=re.escape("loop 0 asks for accept_u[1]; 1 were given")):
        chance.accept(1, 2)


def test_running_out_of_loops_names_the_slot():
    chance = ReplayedChance.over([{"token_u": 0.5}])
    with pytest.raises(ValueError, match="loop 1 asks for token_u; uniforms were given for 1 loops"):
        chance.repeat(
            lambda chance, _: (chance.draw([1, 1], slot="token_u"),), (), done=lambda state: len(state) == 2, alike=len
        )


def test_what_a_loop_leaves_over_is_discarded():
    chance = ReplayedChance.over([{"token_u": [0.9, 0.1]}, {"token_u": 0.4}, {"token_u": 0.6}])
    tokens = chance.repeat(
        lambda chance, _: (chance.draw([1, 1], slot="token_u"),), (), done=lambda state: len(state) == 3, alike=len
    )
    assert tokens == (1, 0, 1)


@pytest.mark.parametrize("numerator", [0, 1, 3, 7])
def test_accept_has_the_probability_of_the_ratio_on_a_grid(numerator):
    grid = [Fraction(i, 7) for i in range(7)]
    chance = ReplayedChance(accept_u=grid)
    assert sum(chance.accept(Fraction(numerator), Fraction(7)) for _ in grid) == numerator


@pytest.mark.parametrize(
    "weights", [[NAN, 1.0], [-1.0, 2.0], [1.0, -2.0], [INF, 1.0], 3.0, [[1.0, 2.0]], ["a", "b"], [-1, 2]]
)
@pytest.mark.parametrize("read", [lambda: SampledChance(np.random.default_rng(0)), lambda: BranchingChance(10)])
def test_weights_that_are_none_are_refused_by_every_reading(read, weights):
    with pytest.raises(ValueError, match=r"^draw"):
        read().draw(weights)


@pytest.mark.parametrize("ratio", [(NAN, 1.0), (1.0, NAN), (-1.0, 1.0), (1.0, -1.0)])
@pytest.mark.parametrize("read", [lambda: SampledChance(np.random.default_rng(0)), lambda: BranchingChance(10)])
def test_ratios_that_are_none_are_refused_by_every_reading(read, ratio):
    with pytest.raises(ValueError, match=r"^accept"):
        read().accept(*ratio)


@pytest.mark.parametrize("chance", [np.random.default_rng(0), None, 0.5])
def test_what_is_no_chance_is_refused(chance):
    with pytest.raises(TypeError, match="expected a Chance"):
        verify_draft(target_rows=[[0.5, 0.5]], draft_rows=[], draft_tokens=[], chance=chance)


@pytest.mark.parametrize("read", [lambda: SampledChance(np.random.default_rng(0)), lambda: BranchingChance(10)])
def test_a_total_that_overflows_is_refused_by_every_reading(read):
    with pytest.raises(ValueError, match="draw: 3 weights sum to inf"):
        read().draw([1e308, 1e308, 1e308])


def test_an_exact_uniform_may_be_next_to_one():
    near = Fraction(10**30 - 1, 10**30)
    assert ReplayedChance(accept_u=near).accept(1, 1)
    assert not ReplayedChance(accept_u=near).accept(near, 1)
