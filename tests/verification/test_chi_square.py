"""Pearson's chi-square beside a finding: scipy's, node by node."""

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from verification.statistics.chi_square import chi_square_p_value
from verification.statistics.evidence import Law

ROW = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("counts", [[10, 20, 30, 40], [12, 22, 25, 41], [30, 10, 30, 30], [1, 0, 0, 0]])
def test_on_one_node_it_is_that_of_scipy(counts):
    expected = chisquare(counts, ROW * sum(counts)).pvalue
    assert chi_square_p_value(Law(ROW[None], np.ones(1)), np.array([counts])) == pytest.approx(expected, abs=1e-12)


def test_statistics_and_degrees_of_nodes_add_up():
    counts = np.array([[12, 22, 25, 41], [9, 12, 28, 1]])
    rows = np.stack([ROW, ROW[::-1]])
    statistic = sum(chisquare(seen, row * seen.sum()).statistic for seen, row in zip(counts, rows, strict=True))
    assert chi_square_p_value(Law(rows, np.ones(2)), counts) == pytest.approx(chi2.sf(statistic, 6), rel=1e-9)


def test_a_node_that_was_never_visited_and_an_impossible_cell_have_no_degrees():
    counts = np.array([[12, 22, 0, 41], [0, 0, 0, 0]])
    row = np.array([0.2, 0.3, 0.0, 0.5])
    expected = chisquare([12, 22, 41], np.array([0.2, 0.3, 0.5]) * 75).pvalue
    assert chi_square_p_value(Law(np.stack([row, ROW]), np.ones(2)), counts) == pytest.approx(expected)


def test_an_impossible_token_has_a_p_value_of_zero():
    row = np.array([0.5, 0.5, 0.0, 0.0])
    assert chi_square_p_value(Law(row[None], np.ones(1)), np.array([[500, 500, 1, 0]])) == 0.0


def test_nothing_to_test_has_a_p_value_of_one():
    assert chi_square_p_value(Law(np.array([[1.0, 0.0]]), np.ones(1)), np.array([[7, 0]])) == 1.0
    assert chi_square_p_value(Law(ROW[None], np.ones(1)), np.zeros((1, 4), dtype=np.int64)) == 1.0
