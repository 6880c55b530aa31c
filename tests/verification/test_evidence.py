"""The e-value: its mean is one under every null and every stopping law, and its power is what the planning says.

Two tests are random, on fixed seeds. The null one fails a right e-value with probability at most 400e-6 (Ville); the
power one with probability below 1e-6 if the power is 0.99, which it computes.
"""

from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations, pairwise
from math import exp, fsum, lgamma, log

import numpy as np
import pytest
from scipy.stats import betabinom, binom, dirichlet_multinomial, multinomial

from verification.statistics.evidence import SHARES, Law, log_evidence, prior_ratio
from verification.statistics.planning import plan_samples

ALPHA = 1e-6


@dataclass
class Tree:
    """A call draws a token at the root and goes on after token y with probability ``goes_on[y]``, to node y + 1."""

    rows: np.ndarray
    goes_on: np.ndarray

    def outcomes(self):
        """Pairs (cells that one call counts, probability); the possible ones."""
        for first, mass in enumerate(self.rows[0]):
            yield [(0, first)], mass * (1 - self.goes_on[first])
            if self.goes_on[first]:
                for second, then in enumerate(self.rows[first + 1]):
                    yield [(0, first), (first + 1, second)], mass * self.goes_on[first] * then

    def reach(self):
        return np.array([1.0, *(self.rows[0] * self.goes_on)])[: len(self.rows)]


def compositions(total, parts):
    """Every way to write ``total`` as an ordered sum of ``parts`` counts."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *bars, total + parts - 1)
        yield [after - before - 1 for before, after in pairwise(edges)]


def mean_evidence(tree, law, calls, planned):
    """E[E] over every table of counts that so many calls can give."""
    outcomes = [(cells, mass) for cells, mass in tree.outcomes() if mass > 0]
    terms = []
    for numbers in compositions(calls, len(outcomes)):
        counts = np.zeros(law.rows.shape, dtype=np.int64)
        log_mass = lgamma(calls + 1)
        for number, (cells, mass) in zip(numbers, outcomes, strict=True):
            log_mass += number * log(mass) - lgamma(number + 1)
            for cell in cells:
                counts[cell] += number
        terms.append(exp(log_mass + log_evidence(law, counts, planned=planned, alpha=ALPHA)))
    return fsum(terms)


ONE = Tree(np.array([[0.5, 0.3, 0.2]]), np.zeros(3))
FOUR = Tree(np.array([[0.4, 0.3, 0.2, 0.1]]), np.zeros(4))
ZERO = Tree(np.array([[0.7, 0.0, 0.3]]), np.zeros(3))
TWO_LEVELS = Tree(np.array([[0.75, 0.25], [0.1, 0.9], [0.5, 0.5]]), np.array([1.0, 0.0]))
COIN_STOPS = Tree(np.array([[0.6, 0.4], [0.2, 0.8], [0.7, 0.3]]), np.array([0.25, 0.8]))
ZERO_BELOW = Tree(np.array([[0.6, 0.4], [1.0, 0.0], [0.3, 0.7]]), np.array([0.5, 1.0]))
TREES = [ONE, FOUR, ZERO, TWO_LEVELS, COIN_STOPS, ZERO_BELOW]
NAMES = ["one", "four", "zero", "two-levels", "coin-stops", "zero-below"]


@pytest.mark.parametrize("planned", [1, 5, 40])
@pytest.mark.parametrize("calls", [1, 2, 5])
@pytest.mark.parametrize("tree", TREES, ids=NAMES)
def test_the_mean_is_one(tree, calls, planned):
    law = Law(tree.rows, tree.reach())
    assert mean_evidence(tree, law, calls, planned) == pytest.approx(1, abs=2e-14)


@pytest.mark.parametrize("reach", [[1, 0, 0], [1, 1, 0.01], [0.001, 0.5, 0]])
def test_the_mean_is_one_whatever_reach_was_planned(reach):
    assert mean_evidence(COIN_STOPS, Law(COIN_STOPS.rows, np.array(reach)), 4, 20) == pytest.approx(1, abs=2e-14)


@pytest.mark.parametrize("goes_on", [(0, 0), (1, 1), (0.5, 0), (0.01, 0.99)])
def test_the_mean_is_one_under_every_stopping_law(goes_on):
    """The law is planned for one rule; a lossless rule that stops elsewhere leaves the mean as it is."""
    law = Law(COIN_STOPS.rows, COIN_STOPS.reach())
    other = Tree(COIN_STOPS.rows, np.array(goes_on, dtype=float))
    assert mean_evidence(other, law, 4, 20) == pytest.approx(1, abs=2e-14)


def test_the_mean_is_above_one_under_a_wrong_law():
    """The enumeration can tell: the tokens after the first follow another row."""
    law = Law(TWO_LEVELS.rows, TWO_LEVELS.reach())
    wrong = Tree(np.array([[0.75, 0.25], [0.9, 0.1], [0.5, 0.5]]), TWO_LEVELS.goes_on)
    assert mean_evidence(wrong, law, 5, 5) > 1.5


def independent_evidence(law, counts, planned):
    """The definition, on rows without zeros, from scipy's own distributions."""
    visits = np.maximum(planned * law.reach, 1)
    nodes = range(len(law.rows))
    size = law.rows.shape[1]

    def node(v, ratio):
        prior = dirichlet_multinomial.logpmf(counts[v], visits[v] / ratio * law.rows[v], counts[v].sum())
        return prior - multinomial.logpmf(counts[v], counts[v].sum(), law.rows[v])

    def cell(v, y, ratio):
        null, total, weight = law.rows[v, y], counts[v].sum(), visits[v] / ratio
        bet = betabinom.logpmf(counts[v, y], total, weight * null, weight * (1 - null))
        return bet - binom.logpmf(counts[v, y], total, null)

    one = prior_ratio(size - 1, ALPHA, SHARES[1] / len(law.rows))
    single = prior_ratio(1, ALPHA, SHARES[2] / law.rows.size)
    whole = exp(sum(node(v, prior_ratio(law.degrees, ALPHA, SHARES[0])) for v in nodes))
    by_node = np.mean([exp(node(v, one)) for v in nodes])
    by_cell = np.mean([exp(cell(v, y, single)) for v in nodes for y in range(size)])
    return log(whole / 2 + by_node / 4 + by_cell / 4), log(whole)


def random_counts(generator, law, calls):
    return np.stack([generator.multinomial(calls // (v + 1), row) for v, row in enumerate(law.rows)])


def seeded(name):
    return np.random.default_rng(int.from_bytes(sha256(name.encode()).digest(), "big"))


def test_it_is_the_mixture_of_its_definition(request):
    generator = seeded(request.node.name)
    for calls in (3, 40, 700):
        law = Law(generator.dirichlet(np.ones(4), size=3), np.array([1, 0.5, 0.2]))
        counts = random_counts(generator, law, calls)
        expected, _ = independent_evidence(law, counts, planned=300)
        assert log_evidence(law, counts, planned=300, alpha=ALPHA) == pytest.approx(expected, abs=1e-8)


def test_it_never_loses_more_than_ln_2_against_the_bet_on_the_whole_law(request):
    generator = seeded(request.node.name)
    for _ in range(20):
        law = Law(generator.dirichlet(np.ones(3), size=2), np.array([1, 0.5]))
        counts = random_counts(generator, Law(generator.dirichlet(np.ones(3), size=2), law.reach), 100)
        _, whole = independent_evidence(law, counts, planned=100)
        assert log_evidence(law, counts, planned=100, alpha=ALPHA) >= whole - log(2) - 1e-8


def test_an_impossible_cell_is_infinite_evidence():
    law = Law(np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]), np.array([1, 0.0]))
    counts = np.array([[500, 500, 0], [0, 0, 1]])
    assert log_evidence(law, counts, planned=1000, alpha=ALPHA) == np.inf


def test_a_law_without_freedom_is_no_evidence():
    law = Law(np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2))
    assert law.degrees == 0
    assert log_evidence(law, np.array([[9, 0], [0, 4]]), planned=10, alpha=ALPHA) == 0.0
    assert log_evidence(law, np.array([[9, 1], [0, 4]]), planned=10, alpha=ALPHA) == np.inf


def test_degrees_count_the_possible_symbols_less_one():
    assert Law(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]), np.ones(3)).degrees == 3


def test_no_counts_are_no_evidence():
    law = Law(COIN_STOPS.rows, COIN_STOPS.reach())
    empty = np.zeros((3, 2), dtype=np.int64)
    assert log_evidence(law, empty, planned=100, alpha=ALPHA) == pytest.approx(0, abs=1e-12)


def test_the_order_of_nodes_and_of_symbols_does_not_matter(request):
    generator = seeded(request.node.name)
    law = Law(generator.dirichlet(np.ones(4), size=5), generator.random(5))
    counts = generator.integers(0, 50, size=(5, 4))
    expected = log_evidence(law, counts, planned=200, alpha=ALPHA)
    nodes, symbols = generator.permutation(5), generator.permutation(4)
    shuffled = Law(law.rows[nodes][:, symbols], law.reach[nodes])
    found = log_evidence(shuffled, counts[nodes][:, symbols], planned=200, alpha=ALPHA)
    assert found == pytest.approx(expected, abs=1e-10)


# A tree of two levels over four tokens, 15 degrees of freedom, and the hardest law at a total variation of 0.02: half
# of the joint mass is raised, all by the same factor.
JOINT = np.full((4, 4), 1 / 16)
BIASED = JOINT * np.where(np.arange(16).reshape(4, 4) % 2 == 0, 1.04, 0.96)
UNEVEN = np.outer([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])
RAISED = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0]], dtype=bool)
PLANNED = plan_samples(15, 0.02, ALPHA)


def evidences(joint, truth, repeats, name):
    """log E of samples of joint outcomes, of the size that was planned."""
    law = Law(np.concatenate([joint.sum(axis=1)[None], joint / joint.sum(axis=1, keepdims=True)]), np.ones(5))
    law = Law(law.rows, np.array([1, *law.rows[0]]))
    assert law.degrees == 15
    for pairs in seeded(name).multinomial(PLANNED, truth.ravel(), size=repeats).reshape(-1, 4, 4):
        counts = np.concatenate([pairs.sum(axis=1)[None], pairs])
        yield log_evidence(law, counts, planned=PLANNED, alpha=ALPHA)


def uneven_bias():
    """UNEVEN at a total variation of 0.02: the set RAISED gains, in proportion."""
    mass = UNEVEN[RAISED].sum()
    return UNEVEN * np.where(RAISED, 1 + 0.02 / mass, 1 - 0.02 / (1 - mass))


@pytest.mark.parametrize(("joint", "truth"), [(JOINT, BIASED), (UNEVEN, uneven_bias())], ids=["flat", "uneven"])
def test_the_planned_number_of_calls_finds_the_planned_bias(joint, truth, request):
    """At least 97.5 % of 2000 repeats; a power of 0.99 misses that with probability below 1e-6."""
    assert abs(truth - joint).sum() / 2 == pytest.approx(0.02)
    assert binom.sf(50, 2000, 0.01) < 1e-6
    found = [log_e >= log(1 / ALPHA) for log_e in evidences(joint, truth, 2000, request.node.name)]
    assert np.mean(found) >= 0.975


@pytest.mark.parametrize("joint", [JOINT, UNEVEN], ids=["flat", "uneven"])
def test_the_null_is_left_alone(joint, request):
    """400 repeats at 1e-6 each: a right e-value fails with probability at most 400e-6."""
    assert max(evidences(joint, joint, 400, request.node.name)) < log(1 / ALPHA)
