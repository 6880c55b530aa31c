"""What was found about one property in one cell of the matrix, and about the run."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

SCHEMA = "refspec.check/1"
HOLDS, BROKEN, INCONCLUSIVE, NOT_CLAIMED = "holds", "broken", "inconclusive", "not claimed"
NOTHING_RAN = "nothing_ran"


@dataclass(frozen=True)
class Finding:
    """One property in one cell.

    status                  "holds", "broken", "inconclusive" or "not claimed"
    samples                 calls made
    identities              equalities proved
    log_e                   log of the e-value, None where nothing is estimated
    chi_square_p            shown beside it
    smallest_detectable_tv  what so many calls show with probability 0.99, None where nothing is estimated
    joint                   whether that is the total variation of the joint law, and not a bound
    """

    property: str
    pair: str
    operation: str
    knobs: str
    lookahead: int
    tier: str
    status: str
    message: str
    samples: int = 0
    identities: int = 0
    log_e: float | None = None
    chi_square_p: float | None = None
    smallest_detectable_tv: float | None = None
    joint: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the finding for a JSON report; an infinite log_e is the string "inf"."""
        found = dict(vars(self))
        if self.log_e is not None and not isfinite(self.log_e):
            found["log_e"] = "inf"
        return found


@dataclass(frozen=True)
class Result:
    """A whole run.

    verdict      "holds", "broken", "inconclusive" or "nothing_ran"
    calls        calls of the implementation that were judged
    log_e        log of the weighted average of all e-values
    alpha        false-alarm rate of the run
    interrupted  whether it was stopped by hand; what was not yet known is inconclusive
    """

    implementation: str
    budget: str
    verdict: str
    findings: tuple[Finding, ...]
    calls: int
    log_e: float
    alpha: float
    seed: int
    seconds: float
    interrupted: bool = False
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def smallest_detectable_tv(self) -> float | None:
        """The joint total variation that every full-tree finding that holds would have shown; None if none did."""
        held = [finding for finding in self.findings if finding.joint and finding.status == HOLDS]
        seen = [finding.smallest_detectable_tv for finding in held if finding.smallest_detectable_tv is not None]
        return max(seen, default=None)
