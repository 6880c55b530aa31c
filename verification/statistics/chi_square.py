"""Pearson's chi-square, shown beside every statistical finding. It decides nothing here: its far tail is not exact."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from verification.statistics.evidence import Law


def chi_square_p_value(law: Law, counts: NDArray[np.int64]) -> float:
    """Return the p-value of the counts given the visits of each node, all cells kept; 0 if an impossible one came."""
    if counts[law.rows == 0].any():
        return 0.0
    visits = counts.sum(axis=1, keepdims=True)
    expected = visits * law.rows
    counted = expected > 0
    statistic = float(((counts - expected)[counted] ** 2 / expected[counted]).sum())
    degrees = int((counted.sum(axis=1) - 1).clip(min=0).sum())
    return float(chi2.sf(statistic, degrees)) if degrees else 1.0
