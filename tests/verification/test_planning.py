"""Planning: how many samples a bias needs. The tables of the plan, and the refusals."""

from math import exp, log

import pytest
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from verification.statistics.planning import (
    bound_on_chi_square,
    noncentrality,
    noncentrality_root,
    plan_samples,
    rarest_detectable,
    smallest_detectable,
)

DEGREES = [1, 3, 15, 63, 255, 1023]
ROOTS = {3: (72.2, 85.5), 15: (93.7, 108.7), 63: (137.4, 156.5), 255: (225.2, 253.0), 1023: (400.3, 446.0)}


@pytest.mark.parametrize(
    ("degrees", "alpha", "samples"),
    [
        (15, 1e-6, 62140),
        (15, 5e-9, 72789),
        (63, 1e-6, 89099),
        (63, 5e-9, 102682),
        (255, 1e-6, 143529),
        (255, 5e-9, 163404),
        (1023, 5e-9, 285280),
    ],
)
def test_samples_for_a_total_variation_of_two_percent(degrees, alpha, samples):
    assert plan_samples(degrees, 0.02, alpha) == samples


@pytest.mark.parametrize("degrees", ROOTS)
def test_the_roots_of_the_table(degrees):
    roots = noncentrality_root(degrees, 1e-6), noncentrality_root(degrees, 1e-8)
    assert roots == pytest.approx(ROOTS[degrees], abs=0.051)


@pytest.mark.parametrize("alpha", [1e-6, 1e-8])
@pytest.mark.parametrize("degrees", ROOTS)
def test_the_closed_form_is_one_to_nine_percent_above_the_root(degrees, alpha):
    above = noncentrality(degrees, alpha) / noncentrality_root(degrees, alpha) - 1
    assert 1 <= round(100 * above) <= 9


@pytest.mark.parametrize("degrees", DEGREES)
def test_at_the_closed_form_the_statistic_passes_its_bound_with_the_power_stated(degrees):
    bound = bound_on_chi_square(degrees, 1e-6).value
    assert ncx2.sf(bound, degrees, noncentrality(degrees, 1e-6)) >= 0.99
    assert ncx2.sf(bound, degrees, noncentrality_root(degrees, 1e-6)) == pytest.approx(0.99, abs=1e-9)


@pytest.mark.parametrize("share", [1 / 2, 1 / 4, 1 / 40])
@pytest.mark.parametrize("degrees", DEGREES)
def test_the_bound_is_the_least_over_all_ratios(degrees, share):
    bound = bound_on_chi_square(degrees, 1e-6, share)
    threshold = 2 * log(1 / (share * 1e-6))

    def slope(log_ratio):
        ratio = exp(log_ratio)
        return degrees - (threshold + degrees * log(1 + ratio)) / ratio

    best = exp(brentq(slope, -15, 20))
    assert bound.ratio == pytest.approx(best, rel=1e-4)
    assert bound.value == pytest.approx((1 + 1 / best) * (threshold + degrees * log(1 + best)), rel=1e-9)


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_bound_is_beyond_the_tail_it_stands_for(degrees):
    """The bound is Chernoff's on the tail at alpha/2."""
    assert chi2.sf(bound_on_chi_square(degrees, 1e-6).value, degrees) <= 0.5e-6


@pytest.mark.parametrize("total_variation", [0.005, 0.02, 0.3])
@pytest.mark.parametrize("degrees", DEGREES)
def test_the_smallest_bias_inverts_the_plan(degrees, total_variation):
    samples = plan_samples(degrees, total_variation, 1e-6)
    assert smallest_detectable(degrees, samples, 1e-6) <= total_variation
    assert smallest_detectable(degrees, samples - 1, 1e-6) > total_variation


def test_more_power_smaller_alpha_and_more_degrees_cost_more():
    assert plan_samples(15, 0.02, 1e-6, power=0.999) > plan_samples(15, 0.02, 1e-6)
    assert plan_samples(15, 0.02, 1e-7) > plan_samples(15, 0.02, 1e-6)
    assert plan_samples(16, 0.02, 1e-6) > plan_samples(15, 0.02, 1e-6)


@pytest.mark.parametrize("samples", [0, -1, 1])
def test_no_bias_is_larger_than_one(samples):
    assert smallest_detectable(15, samples, 1e-6) == 1.0


def test_the_rarest_impossible_token():
    assert rarest_detectable(0) == 1.0
    assert rarest_detectable(1) == pytest.approx(0.99)
    assert rarest_detectable(46_050) == pytest.approx(1e-4, rel=1e-4)
    assert 1 - (1 - rarest_detectable(100)) ** 100 == pytest.approx(0.99)


@pytest.mark.parametrize("total_variation", [0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_total_variation_that_is_none_is_refused(total_variation):
    with pytest.raises(ValueError, match=r"total_variation: .*; expected above 0 and at most 1"):
        plan_samples(15, total_variation, 1e-6)
