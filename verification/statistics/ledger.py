"""The error ledger: one false-alarm rate for a whole run, shared by all its findings.

The evidence of the run is the weighted average of its e-values. An average of e-values is an e-value, however the
findings depend on each other, so the run alarms with probability at most alpha.
"""

from collections.abc import Sequence
from math import inf, log

import numpy as np


class Ledger:
    """Equal weights for a number of findings that is fixed before the first sample.

    >>> ledger = Ledger(alpha=1e-6, findings=4)
    >>> ledger.alpha_of_a_finding
    2.5e-07
    """

    def __init__(self, *, alpha: float, findings: int) -> None:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha: {alpha}; expected between 0 and 1")
        self.alpha = alpha
        self.findings = findings

    @property
    def alpha_of_a_finding(self) -> float:
        return self.alpha / max(self.findings, 1)

    def broken(self, log_evidence: float) -> bool:
        """Whether one finding alone carries the run past its limit: its weighted evidence is 1/alpha or more."""
        return log_evidence >= -log(self.alpha_of_a_finding)

    def log_evidence(self, log_evidences: Sequence[float]) -> float:
        """Return the log of the weighted average of the e-values; a finding not yet judged counts as 0."""
        if len(log_evidences) > self.findings:
            raise ValueError(f"{len(log_evidences)} findings; the ledger was opened for {self.findings}")
        if not log_evidences:
            return -inf
        return float(np.logaddexp.reduce(log_evidences) - log(self.findings))

    def run_is_broken(self, log_evidences: Sequence[float]) -> bool:
        """Whether the evidence of the run reaches 1/alpha."""
        return self.log_evidence(log_evidences) >= -log(self.alpha)
