"""The ledger: one false-alarm rate for a whole run."""

from math import inf, log

import pytest

from verification.statistics.ledger import Ledger


def test_alpha_is_shared_equally():
    assert Ledger(alpha=1e-6, findings=8).alpha_of_a_finding == pytest.approx(1.25e-7)
    assert Ledger(alpha=1e-6, findings=0).alpha_of_a_finding == 1e-6


def test_one_finding_alone_breaks_a_run_at_its_share():
    ledger = Ledger(alpha=1e-6, findings=4)
    limit = log(4e6)
    assert ledger.broken(limit + 1e-9)
    assert not ledger.broken(limit - 1e-9)
    assert ledger.run_is_broken([limit + 1e-9, -50, -50, -50])
    assert not ledger.run_is_broken([limit - 1e-9, -50, -50, -50])


def test_the_run_is_the_average_of_its_e_values():
    ledger = Ledger(alpha=0.01, findings=4)
    assert ledger.log_evidence([log(2), log(4), log(6), log(8)]) == pytest.approx(log(5))


def test_a_finding_not_yet_judged_counts_as_nothing():
    assert Ledger(alpha=0.01, findings=4).log_evidence([log(8)]) == pytest.approx(log(2))
    assert Ledger(alpha=0.01, findings=4).log_evidence([]) == -inf
    assert not Ledger(alpha=0.01, findings=4).run_is_broken([])


def test_findings_that_are_not_enough_alone_are_enough_together():
    ledger = Ledger(alpha=1e-6, findings=2)
    assert not ledger.broken(log(1.5e6))
    assert ledger.run_is_broken([log(1.5e6), log(1.5e6)])


def test_infinite_evidence_breaks_whatever_else_was_found():
    ledger = Ledger(alpha=1e-6, findings=3)
    assert ledger.broken(inf)
    assert ledger.log_evidence([inf, -1000, -1000]) == inf
    assert ledger.run_is_broken([inf, -1000, -1000])


def test_more_findings_than_were_opened_for_are_refused():
    with pytest.raises(ValueError, match="3 findings; the ledger was opened for 2"):
        Ledger(alpha=1e-6, findings=2).log_evidence([0, 0, 0])


@pytest.mark.parametrize("alpha", [0, 1, -1e-6, 2, float("nan")])
def test_an_alpha_that_is_none_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha: .*; expected between 0 and 1"):
        Ledger(alpha=alpha, findings=1)
