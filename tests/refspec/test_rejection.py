"""One position: the theorem, the residual, and what rounding can do."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refspec.chance import ReplayedChance
from refspec.distribution import overlap
from refspec.law import exact_law
from refspec.rejection import Verdict, recovery, residual, verify_token

LAST = float(np.nextafter(1.0, 0.0))  # the largest uniform


def row(*weights):
    return np.array([Fraction(weight, sum(weights)) for weight in weights], dtype=object)


@st.composite
def two_rows(draw):
    """Two rational rows over one vocabulary of 1 to 5, zeros among them."""
    vocabulary = draw(st.integers(1, 5))
    weights = st.lists(st.integers(0, 9), min_size=vocabulary, max_size=vocabulary).filter(any)
    return row(*draw(weights)), row(*draw(weights))


def position(target_row, draft_row):
    """Draft one token and verify it."""

    def procedure(chance):
        token = chance.draw(draft_row)
        return verify_token(target_row=target_row, draft_row=draft_row, token=token, chance=chance)

    return procedure


def token_law(law):
    tokens = {}
    for verdict, mass in law.items():
        tokens[verdict.token] = tokens.get(verdict.token, 0) + mass
    return tokens


@given(two_rows())
@settings(deadline=None, max_examples=300, derandomize=True)
def test_the_token_follows_the_target_row_exactly(rows):
    target_row, draft_row = rows
    law = exact_law(position(target_row, draft_row))
    assert token_law(law) == {y: mass for y, mass in enumerate(target_row) if mass}
    assert not any(isinstance(mass, float) for mass in law.values())


@given(two_rows())
@settings(deadline=None, max_examples=100, derandomize=True)
def test_it_is_accepted_with_the_probability_of_the_overlap(rows):
    law = exact_law(position(*rows))
    assert sum(mass for verdict, mass in law.items() if verdict.accepted) == overlap(*rows)


@given(two_rows())
@settings(deadline=None, max_examples=100, derandomize=True)
def test_the_residual_has_the_mass_of_a_rejection_and_no_token_the_draft_overrates(rows):
    target_row, draft_row = rows
    weights = residual(target_row, draft_row)
    assert sum(weights) == 1 - overlap(target_row, draft_row)
    assert all(weight == max(target_row[y] - draft_row[y], 0) for y, weight in enumerate(weights))


def test_the_law_of_one_verdict_by_hand():
    target_row, draft_row = row(4, 3, 2, 1), row(1, 2, 3, 4)
    assert exact_law(position(target_row, draft_row)) == {
        Verdict(0, accepted=True): Fraction(1, 10),
        Verdict(1, accepted=True): Fraction(1, 5),
        Verdict(2, accepted=True): Fraction(1, 5),
        Verdict(3, accepted=True): Fraction(1, 10),
        Verdict(0, accepted=False): Fraction(3, 10),
        Verdict(1, accepted=False): Fraction(1, 10),
    }


def test_the_residual_is_not_normalised():
    assert residual(row(4, 3, 2, 1), row(1, 2, 3, 4)).tolist() == [Fraction(3, 10), Fraction(1, 10), 0, 0]


@given(two_rows())
@settings(deadline=None, max_examples=50, derandomize=True)
def test_float_rows_have_the_same_law_within_rounding(rows):
    target_row, draft_row = rows
    law = token_law(exact_law(position(target_row.astype(float), draft_row.astype(float))))
    assert all(abs(law.get(y, 0) - float(mass)) < 1e-15 for y, mass in enumerate(target_row))


def test_one_hot_rows_compare_two_tokens():
    assert exact_law(position(row(0, 1, 0), row(0, 1, 0))) == {Verdict(1, accepted=True): 1}
    assert exact_law(position(row(0, 1, 0), row(1, 0, 0))) == {Verdict(1, accepted=False): 1}


@pytest.mark.parametrize(
    ("token", "accept_u", "final_u", "verdict"),
    [
        (0, LAST, 0.0, Verdict(0, accepted=True)),  # the draft underrates it
        (1, float(np.nextafter(1 / 3, 0)), 0.0, Verdict(1, accepted=True)),
        (1, 1 / 2, 0.0, Verdict(0, accepted=False)),
        (2, 0.0, 0.0, Verdict(0, accepted=False)),  # no target mass
        (2, 0.0, LAST, Verdict(3, accepted=False)),
    ],
)
def test_verdicts_by_hand(token, accept_u, final_u, verdict):
    chance = ReplayedChance(accept_u=accept_u, final_u=final_u)
    target_row, draft_row = np.array([0.5, 0.125, 0.0, 0.375]), np.array([0.25, 0.375, 0.25, 0.125])
    assert verify_token(target_row=target_row, draft_row=draft_row, token=token, chance=chance) == verdict


def test_an_accepted_token_takes_one_uniform_and_a_replaced_one_two():
    chance = ReplayedChance(accept_u=[0.5, 0.5], final_u=0.5)
    rows = {"target_row": row(1, 3), "draft_row": row(3, 1)}
    verify_token(**rows, token=1, chance=chance)
    assert chance.used == {"accept_u": 1}
    verify_token(**rows, token=0, chance=chance)
    assert chance.used == {"accept_u": 2, "final_u": 1}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("final_u", "token"), [(0.0, 0), (0.5, 1), (LAST, 2)])
def test_a_rejection_without_a_residual_draws_from_the_target_row(dtype, final_u, token):
    """The draft exceeds the target by one step of its type at the drafted token, and nowhere falls below it."""
    third = dtype(1 / 3)
    target_row = np.full(3, third)
    draft_row = np.array([np.nextafter(third, dtype(1)), third, third])
    assert not residual(target_row, draft_row).any()
    verdict = verify_token(
        target_row=target_row, draft_row=draft_row, token=0, chance=ReplayedChance(accept_u=LAST, final_u=final_u)
    )
    assert verdict == Verdict(token, accepted=False)


def test_recovery_is_the_residual_where_it_has_mass():
    assert recovery(row(3, 1), row(1, 3)).tolist() == [Fraction(1, 2), 0]
    assert recovery(row(3, 1), row(3, 1)).tolist() == [Fraction(3, 4), Fraction(1, 4)]
    assert recovery(np.array([5e-324, 1.0]), np.array([0.0, 1.0])).tolist() == [5e-324, 0.0]


@given(two_rows())
@settings(deadline=None, max_examples=50, derandomize=True)
def test_equal_rows_are_never_rejected(rows):
    (target_row, _) = rows
    for same in (target_row, target_row.astype(float)):
        for token in np.flatnonzero(same):
            assert verify_token(
                target_row=same, draft_row=same, token=int(token), chance=ReplayedChance(accept_u=LAST)
            ) == Verdict(int(token), accepted=True)


@pytest.mark.parametrize("kind", [object, float])
def test_rows_are_not_written_to(kind):
    target_row, draft_row = row(4, 3, 2, 1).astype(kind), row(1, 2, 3, 4).astype(kind)
    before = target_row.tolist(), draft_row.tolist()
    target_row.flags.writeable = draft_row.flags.writeable = False
    exact_law(position(target_row, draft_row))
    recovery(target_row, target_row)
    assert (target_row.tolist(), draft_row.tolist()) == before
