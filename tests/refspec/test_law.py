"""``exact_law``: every branch of a procedure with its exact weight."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec.law import TooManyLeavesError, _assert_sums_to_one, exact_law
from refspec.rejection import residual

TARGET = np.array([Fraction(weight, 10) for weight in (4, 3, 2, 1)], dtype=object)
DRAFT = TARGET[::-1]
WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any)


def runs_of(procedure):
    """How many times the procedure is run: its leaves."""
    runs = []

    def counted(chance):
        runs.append(1)
        return procedure(chance)

    exact_law(counted)
    return len(runs)


def test_a_procedure_that_decides_nothing_is_certain():
    assert exact_law(lambda chance: "always") == {"always": 1}


@given(WEIGHTS)
@settings(deadline=None, max_examples=50, derandomize=True)
def test_a_draw_has_the_law_of_its_weights(weights):
    expected = {y: Fraction(weight, sum(weights)) for y, weight in enumerate(weights) if weight}
    for given_as in (weights, [Fraction(weight, 7) for weight in weights]):
        law = exact_law(lambda chance, given_as=given_as: chance.draw(given_as))
        assert law == expected
        assert not any(isinstance(mass, float) for mass in law.values())


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(3, 7), (Fraction(3), 7), (Fraction(3, 7), Fraction(1)), (np.int64(3), np.int64(7))]
)
def test_accept_has_the_probability_of_the_ratio(numerator, denominator):
    law = exact_law(lambda chance: chance.accept(numerator, denominator))
    assert law == {True: Fraction(3, 7), False: Fraction(4, 7)}
    assert {type(mass) for mass in law.values()} == {Fraction}


def test_floats_give_floats():
    law = exact_law(lambda chance: (chance.accept(0.25, 0.5), chance.draw(np.array([0.25, 0.75]))))
    assert law == {(True, 0): 0.125, (True, 1): 0.375, (False, 0): 0.125, (False, 1): 0.375}


def test_integer_weights_stay_exact_beyond_64_bits():
    def first_zero(chance):
        return next((i for i in range(60) if chance.draw([1, 2]) == 0), 60)

    law = exact_law(first_zero)
    assert law[59] == Fraction(2**59, 3**60)
    assert law[60] == Fraction(2**60, 3**60)


def test_equal_outcomes_are_one():
    law = exact_law(lambda chance: chance.draw([1, 2, 3]) % 2)
    assert law == {0: Fraction(2, 3), 1: Fraction(1, 3)}


@pytest.mark.parametrize(
    "certain",
    [
        lambda chance: chance.accept(1, 1),
        lambda chance: chance.accept(Fraction(3), Fraction(2)),
        lambda chance: chance.accept(0, 1),
        lambda chance: chance.accept(0.5, 0.5),
        lambda chance: chance.draw([0, 3, 0]),
        lambda chance: chance.draw([0.0, 0.5]),
        lambda chance: chance.draw([Fraction(1, 2), Fraction(0)]),
    ],
)
def test_a_certain_branch_is_no_leaf(certain):
    assert runs_of(lambda chance: [certain(chance) for _ in range(30)] and None) == 1
    assert set(exact_law(certain, max_leaves=1).values()) == {1}


def test_leaves_are_the_branches_with_mass():
    assert runs_of(lambda chance: chance.draw([1, 0, 2, 0, 3])) == 3
    assert runs_of(lambda chance: (chance.accept(1, 2), chance.draw([1, 0, 2]))) == 4


def test_settled_questions_about_one_uniform_create_no_leaf():
    def asks_again(chance):
        u = chance.uniform("accept_u")
        return u.below(1, 2), u.below(3, 4), u.below(1, 4), u.below(1, 2)

    assert exact_law(asks_again) == {
        (True, True, True, True): Fraction(1, 4),
        (True, True, False, True): Fraction(1, 4),
        (False, True, False, False): Fraction(1, 4),
        (False, False, False, False): Fraction(1, 4),
    }
    assert runs_of(asks_again) == 4


def test_one_uniform_used_for_the_test_and_for_the_residual():
    """A wrong sampler, with its exact law: a rejection leaves only large uniforms for the residual."""

    def reuses(chance):
        token = chance.draw(DRAFT)
        u = chance.uniform("accept_u")
        if u.below(TARGET[token], DRAFT[token]):
            return token
        return u.index(residual(TARGET, DRAFT))

    assert exact_law(reuses) == {0: Fraction(13, 40), 1: Fraction(3, 8), 2: Fraction(1, 5), 3: Fraction(1, 10)}


@given(WEIGHTS, st.integers(1, 8), st.integers(1, 8))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_one_uniform_asked_twice_has_its_joint_law(weights, numerator, denominator):
    def both(chance):
        u = chance.uniform("accept_u")
        return u.below(numerator, denominator), u.index(np.array(weights))

    cut, edges = min(Fraction(1), Fraction(numerator, denominator)), np.cumsum([0, *weights])
    expected = {}
    for y in range(len(weights)):
        low, high = (Fraction(int(edge), sum(weights)) for edge in edges[y : y + 2])
        expected[True, y] = max(min(high, cut) - low, 0)
        expected[False, y] = max(high - max(low, cut), 0)
    assert exact_law(both) == {outcome: mass for outcome, mass in expected.items() if mass}


@given(st.lists(WEIGHTS, min_size=1, max_size=3))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_a_law_sums_to_one(rows):
    law = exact_law(lambda chance: tuple(chance.draw(row) for row in rows))
    assert sum(law.values()) == 1
    assert all(mass > 0 for mass in law.values())


@pytest.mark.parametrize("law", [{0: Fraction(999, 1000)}, {0: 0.5, 1: 0.5 + 1e-8}, {0: float("nan")}, {}])
def test_a_law_that_does_not_sum_to_one_is_refused(law):
    with pytest.raises(ArithmeticError, match="the law sums to"):
        _assert_sums_to_one(law)


def test_too_many_leaves_name_the_leaves_and_the_weight():
    with pytest.raises(
        TooManyLeavesError, match=r"^4 leaves, and weight 0\.4 not yet explored; max_leaves is 3$"
    ) as caught:
        exact_law(lambda chance: chance.draw([1, 1, 4, 4]), max_leaves=3)
    assert isinstance(caught.value, ValueError)
    assert len(exact_law(lambda chance: chance.draw([1, 1, 4, 4]), max_leaves=4)) == 4


def test_too_many_states_of_a_repeat_are_refused():
    def repeated(chance):
        return chance.repeat(
            lambda chance, _: (chance.draw([1, 1]),), (), done=lambda state: len(state) == 4, alike=lambda _: None
        )

    with pytest.raises(TooManyLeavesError, match=r"16 leaves, and weight 1 not yet explored; max_leaves is 15"):
        exact_law(repeated, max_leaves=15)
    assert len(exact_law(repeated, max_leaves=16)) == 16


def chain(alike, runs=None):
    """Three letters of a Markov chain, the third cut short by a 2."""
    rows = {None: [1, 2, 1], 0: [3, 1, 1], 1: [0, 1, 1], 2: [1, 1, 1]}

    def step(chance, state):
        if runs is not None:
            runs.append(state)
        return (chance.draw(rows[state[-1] if state else None]),)

    def procedure(chance):
        return chance.repeat(
            step, (), done=lambda state: len(state) == 3 or (bool(state) and state[-1] == 2), alike=alike
        )

    return procedure


def test_repeat_has_one_law_with_and_without_sharing():
    shared_runs, single_runs = [], []
    shared = exact_law(chain(lambda state: state[-1] if state else None, shared_runs))
    single = exact_law(chain(lambda state: state, single_runs))
    assert shared == single
    assert shared[0, 0, 1] == Fraction(1, 4) * Fraction(3, 5) * Fraction(1, 5)
    assert shared[1, 2] == Fraction(1, 4)
    assert len(shared_runs) < len(single_runs)


def test_repeat_is_one_decision_among_others():
    def procedure(chance):
        before = chance.accept(1, 3)
        return before, chain(lambda state: state)(chance), chance.accept(1, 2)

    letters = exact_law(chain(lambda state: state))
    expected = {
        (before, state, after): mass * (Fraction(1, 3) if before else Fraction(2, 3)) / 2
        for state, mass in letters.items()
        for before in (True, False)
        for after in (True, False)
    }
    assert exact_law(procedure) == expected


def test_a_repeat_inside_a_step():
    def pair_of_bits(chance, _):
        return chance.repeat(
            lambda chance, _: (chance.draw([1, 2]),), (), done=lambda bits: len(bits) == 2, alike=lambda _: None
        )

    law = exact_law(
        lambda chance: chance.repeat(pair_of_bits, (), done=lambda bits: len(bits) == 4, alike=lambda _: None)
    )
    assert len(law) == 16
    assert all(mass == Fraction(2 ** sum(bits), 81) for bits, mass in law.items())


def test_equal_states_of_a_repeat_are_merged():
    law = exact_law(
        lambda chance: chance.repeat(
            lambda chance, _: 1 + chance.draw([1, 1]), 0, done=lambda height: height >= 3, alike=lambda _: None
        ),
        max_leaves=4,
    )
    assert law == {3: Fraction(5, 8), 4: Fraction(3, 8)}


def test_a_repeat_that_is_done_at_once_changes_nothing():
    law = exact_law(lambda chance: chance.repeat(lambda *_: (1,), (7,), done=lambda _: True, alike=lambda _: None))
    assert law == {(7,): 1}


@pytest.mark.parametrize("use", [lambda u: u.below(1, 2), lambda u: u.index(np.array([1, 1]))])
def test_a_uniform_from_outside_a_repeated_step_is_an_error(use):
    def procedure(chance):
        u = chance.uniform("accept_u")
        return chance.repeat(lambda *_: (use(u),), (), done=lambda state: len(state) == 1, alike=lambda _: None)

    with pytest.raises(RuntimeError, match="not made by its own chance"):
        exact_law(procedure)


def test_a_uniform_carried_out_of_the_procedure_is_an_error():
    carried = []
    exact_law(lambda chance: carried.append(chance.uniform("accept_u")))
    with pytest.raises(RuntimeError, match="used after the run that made it"):
        carried[0].below(1, 2)


def test_a_uniform_carried_from_run_to_run_is_an_error():
    carried = []

    def procedure(chance):
        carried.append(chance.uniform("accept_u"))
        return chance.accept(1, 2), carried[0].below(1, 2)

    with pytest.raises(RuntimeError, match="used after the run that made it"):
        exact_law(procedure)


def test_a_uniform_carried_out_of_a_repeated_step_is_an_error():
    def procedure(chance):
        (u,) = chance.repeat(
            lambda chance, _: (chance.uniform("accept_u"),), (), done=lambda state: len(state) == 1, alike=len
        )
        return u.below(1, 2)

    with pytest.raises(RuntimeError, match="used after the run that made it"):
        exact_law(procedure)


def test_weights_without_mass_are_refused():
    with pytest.raises(ValueError, match="draw: 2 weights, none above 0"):
        exact_law(lambda chance: chance.draw([0, 0]))


def test_weights_are_not_written_to():
    weights = np.array([1.0, 2.0])
    weights.flags.writeable = False
    assert exact_law(lambda chance: chance.draw(weights)) == {0: 1 / 3, 1: 1 - 1 / 3}
    assert weights.tolist() == [1.0, 2.0]
