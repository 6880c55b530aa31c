"""The e-value of a law: how strongly counts speak against it, valid at every sample size.

A *node* is a situation with a null row: given the history, and that a next symbol comes, the symbol follows the row.
``counts[v, y]`` is how often symbol y came at node v. Under the null the e-value has mean one, whatever stopped the
sampling and however often each node was visited, so it reaches 1/alpha with probability at most alpha (Ville).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from verification.statistics.planning import bound_on_chi_square

Floats = NDArray[np.float64]
SHARES = (1 / 2, 1 / 4, 1 / 4)  # of the whole law, of single nodes, of single cells


@dataclass(frozen=True, eq=False)
class Law:
    """A null law, as nodes.

    rows   [N, V]  null probabilities; each row sums to one. A cell of probability 0 is impossible.
    reach  [N]     planned probability of a visit in one call. Power depends on it, validity does not.
    """

    rows: Floats
    reach: Floats

    @property
    def degrees(self) -> int:
        """Degrees of freedom: the sum over nodes of the possible symbols less one."""
        return int(((self.rows > 0).sum(axis=1) - 1).clip(min=0).sum())


def log_evidence(law: Law, counts: NDArray[np.int64], *, planned: int, alpha: float) -> float:
    """Return the logarithm of the e-value.

        E = 1/2 prod_v DM(v)  +  1/4 mean_v DM(v)  +  1/4 mean_{v,y} BB(v, y)

    DM and BB are the Dirichlet-multinomial and beta-binomial marginal likelihoods over the null likelihood: bets on
    the whole law, on one node, on one cell. Their prior weight is the planned number of visits over r, where r
    minimises ``bound_on_chi_square`` for the part.

    Parameters
    ----------
    counts : [N, V] integers
    planned : number of calls the prior is set for; fixed before sampling
    alpha : false-alarm rate the prior is set for

    Returns
    -------
    float  infinity if an impossible cell was counted
    """
    if counts[law.rows == 0].any():
        return float(np.inf)
    if law.degrees == 0:
        return 0.0
    visits = np.maximum(planned * law.reach, 1.0)[:, None]  # [N, 1]
    whole = _dirichlet(law.rows, counts, visits / prior_ratio(law.degrees, alpha, SHARES[0])).sum()
    planned_for = law.reach > 0
    rows, seen, visits = law.rows[planned_for], counts[planned_for], visits[planned_for]
    inside = (rows > 0) & (rows < 1)
    nodes = _dirichlet(rows, seen, visits / prior_ratio(rows.shape[1] - 1, alpha, SHARES[1] / len(rows)))
    cells = _beta(rows, seen, visits / prior_ratio(1, alpha, SHARES[2] / max(inside.sum(), 1)))[inside]
    parts = np.array([whole, _log_mean(nodes), _log_mean(cells)])
    return float(np.logaddexp.reduce(parts + np.log(SHARES)))


def _log_mean(logarithms: Floats) -> float:
    """Return the log of the mean; of nothing, the bet that was not made, it is 0."""
    return float(np.logaddexp.reduce(logarithms) - np.log(len(logarithms))) if len(logarithms) else 0.0


def prior_ratio(degrees: int, alpha: float, share: float) -> float:
    """Return r, the planned visits over the prior weight, that a bet with this share of the evidence should use."""
    return bound_on_chi_square(degrees, alpha, share).ratio


def _dirichlet(rows: Floats, counts: NDArray[np.int64], weight: Floats) -> Floats:  # -> [N]
    """Log of the Dirichlet-multinomial likelihood over the null likelihood, node by node."""
    prior = weight * rows
    possible = rows > 0
    terms = np.zeros_like(rows)
    terms[possible] = (
        gammaln(prior[possible] + counts[possible])
        - gammaln(prior[possible])
        - counts[possible] * np.log(rows[possible])
    )
    visits = counts.sum(axis=1)
    weight = weight[:, 0]
    return np.asarray(gammaln(weight) - gammaln(weight + visits) + terms.sum(axis=1))


def _beta(rows: Floats, counts: NDArray[np.int64], weight: Floats) -> Floats:  # -> [N, V]
    """Log of the beta-binomial likelihood over the null likelihood, cell by cell; nan where the null is 0 or 1."""
    others = counts.sum(axis=1, keepdims=True) - counts
    inside = (rows > 0) & (rows < 1)
    null = np.where(inside, rows, 0.5)
    yes, no = weight * null, weight * (1 - null)
    ratio = betaln(yes + counts, no + others) - betaln(yes, no) - counts * np.log(null) - others * np.log1p(-null)
    return np.where(inside, ratio, np.nan)
