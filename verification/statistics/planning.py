"""How many samples a bias needs, and how small a bias a number of samples shows.

The worst law at total variation d from the null has chi-square divergence 4 d**2 at least (Cauchy-Schwarz, tight
where half the mass is raised). The e-value rejects where a chi-square statistic of non-centrality 4 n d**2 passes
``bound_on_chi_square``.
"""

from functools import cache
from math import ceil, exp, log, sqrt
from typing import NamedTuple

from scipy.optimize import brentq, minimize_scalar
from scipy.stats import ncx2, norm

POWER = 0.99
WHOLE = 1 / 2  # the share of the evidence that is a bet on the whole law


class Bound(NamedTuple):
    """The value a chi-square statistic has to pass, and the prior ratio r at which it is least."""

    value: float
    ratio: float


@cache
def bound_on_chi_square(degrees: int, alpha: float, share: float = WHOLE) -> Bound:
    """Return the least over r of (1 + 1/r) (2 ln(1 / (share alpha)) + df ln(1 + r)), and that r."""
    threshold = 2 * log(1 / (share * alpha))

    def value(log_ratio: float) -> float:
        ratio = exp(log_ratio)
        return (1 + 1 / ratio) * (threshold + degrees * log(1 + ratio))

    best = minimize_scalar(value, bounds=(-15, 20), method="bounded", options={"xatol": 1e-10})
    return Bound(float(best.fun), exp(best.x))


@cache
def noncentrality(degrees: int, alpha: float, *, power: float = POWER) -> float:
    """Return the non-centrality at which the whole-law bet passes with that probability.

    The closed form  A + 2 z**2 + z sqrt(2 df + 4 A + 4 z**2),  A = bound - df: at the error rates used here 1 to 10 %
    above the root of the non-central chi-square tail, so that the power is at least what is said.
    """
    excess = bound_on_chi_square(degrees, alpha).value - degrees
    z = float(norm.ppf(power))
    return excess + 2 * z**2 + z * sqrt(2 * degrees + 4 * excess + 4 * z**2)


@cache
def noncentrality_root(degrees: int, alpha: float, *, power: float = POWER) -> float:
    """Return the root in lambda of P(ncx2(df, lambda) >= bound) = power: the approximation itself."""
    bound = bound_on_chi_square(degrees, alpha).value
    upper = 2 * noncentrality(degrees, alpha, power=power)
    return float(brentq(lambda value: ncx2.sf(bound, degrees, value) - power, 1e-6, upper))


def plan_samples(degrees: int, total_variation: float, alpha: float, *, power: float = POWER) -> int:
    """Return how many calls find every law at that total variation with probability ``power``.

    >>> plan_samples(255, 0.02, 1e-6)
    143529
    """
    if not 0 < total_variation <= 1:
        raise ValueError(f"total_variation: {total_variation}; expected above 0 and at most 1")
    return ceil(noncentrality(degrees, alpha, power=power) / (4 * total_variation**2))


def smallest_detectable(degrees: int, samples: int, alpha: float, *, power: float = POWER) -> float:
    """Return the smallest total variation that so many calls find with probability ``power``; at most 1."""
    if samples < 1:
        return 1.0
    return min(1.0, sqrt(noncentrality(degrees, alpha, power=power) / (4 * samples)))


def rarest_detectable(samples: int, *, power: float = POWER) -> float:
    """Return the smallest probability of an impossible token that so many calls show with probability ``power``."""
    return 1 - (1 - power) ** (1 / samples) if samples else 1.0
