"""The transform: uniform under the null, exactly; tilted under a wrong law."""

import numpy as np
import pytest

from verification.statistics.pit import BINS, bins_of, mass_before


def bin_masses(target_row, draft_row, law):
    """The law of the bin when tokens follow ``law``: the fresh uniform is integrated piece by piece, between edges."""
    (before,) = mass_before(target_row[None], draft_row[None])
    masses = np.zeros(BINS)
    for start, mass, probability in zip(before, target_row, law, strict=True):
        if probability:
            inner = (np.arange(1, BINS) / BINS - start) / mass
            edges = np.array([0, *inner[(inner > 0) & (inner < 1)], 1])
            middles = (edges[:-1] + edges[1:]) / 2
            np.add.at(masses, bins_of(start, mass, middles), probability * np.diff(edges))
    return masses


def random_rows(seed):
    generator = np.random.default_rng(seed)
    target_row, draft_row = generator.dirichlet(np.full(40, 0.3), size=2)
    zeros = generator.permutation(40)
    target_row[zeros[:5]] = 0
    draft_row[zeros[3:9]] = 0
    return target_row / target_row.sum(), draft_row / draft_row.sum()


@pytest.mark.parametrize("seed", range(10))
def test_under_the_null_every_bin_has_an_eighth(seed):
    target_row, draft_row = random_rows(seed)
    assert bin_masses(target_row, draft_row, target_row) == pytest.approx(np.full(BINS, 1 / 8), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_leaking_draft_tilts_the_bins(seed):
    """The order is by target/draft, so mass that comes from the draft collects in the first bins."""
    target_row, draft_row = random_rows(seed)
    possible = np.where(target_row > 0, draft_row, 0)
    leaky = 0.9 * target_row + 0.1 * possible / possible.sum()
    masses = bin_masses(target_row, draft_row, leaky)
    assert masses.sum() == pytest.approx(1)
    assert masses[0] > 1 / 8 + 0.01
    assert masses[-1] < 1 / 8


def test_the_order_is_by_the_ratio_and_ties_keep_the_order_of_ids():
    target_row = np.array([0.2, 0.4, 0.1, 0.3, 0.0])
    draft_row = np.array([0.4, 0.0, 0.2, 0.3, 0.1])  # ratios 1/2, infinite, 1/2, 1, 0
    (before,) = mass_before(target_row[None], draft_row[None])
    assert before == pytest.approx([0, 0.6, 0.2, 0.3, 0])


def test_a_token_in_neither_row_comes_first_and_disturbs_nothing():
    (before,) = mass_before(np.array([[0.5, 0.0, 0.5]]), np.array([[0.2, 0.0, 0.8]]))
    assert before == pytest.approx([0.5, 0, 0])


def test_each_context_has_its_own_order():
    rows = np.array([[0.25, 0.75], [0.75, 0.25]])
    assert mass_before(rows, rows[::-1]) == pytest.approx(np.array([[0, 0.25], [0.25, 0]]))


def test_the_last_edge_belongs_to_the_last_bin():
    assert bins_of(np.array([0.0, 0.5, 0.875]), np.array([0.125, 0.5, 0.125]), np.array([0.0, 1.0, 1.0])).tolist() == [
        0,
        7,
        7,
    ]


def test_an_exchange_of_tokens_of_equal_ratio_in_one_bin_is_not_seen():
    """What the transform is blind to, as its docstring says."""
    row = np.array([0.08, 0.02, 0.4, 0.5])
    swapped = row[[1, 0, 2, 3]]
    assert bin_masses(row, row, swapped) == pytest.approx(np.full(BINS, 1 / 8))
