"""The judges of one cell while its calls come in: what they have seen, and when it is certain."""

from collections.abc import Collection
from math import inf
from typing import Any

from verification.finding import BROKEN, HOLDS, INCONCLUSIVE, NOT_CLAIMED
from verification.properties import PROPERTIES
from verification.properties.base import LOSSLESS, STATISTICAL, DeterministicJudge, StatisticalJudge
from verification.scenario import Ints
from verification.statistics.chi_square import chi_square_p_value
from verification.statistics.evidence import log_evidence
from verification.statistics.ledger import Ledger
from verification.statistics.planning import rarest_detectable, smallest_detectable

STOPPED = "stopped after"  # begins the message of what another finding made pointless
FOR_SHAPE = ("block-length", "complete-output")  # the properties that a malformed reply breaks


class Watch:
    """Judges by the name of their property, with the evidence so far.

    gate     what a reply must be before anything is counted, whatever was selected
    planned  calls that "holds" needs
    claimed  profiles that count; the others are measured all the same
    """

    def __init__(
        self,
        judges: dict[str, Any],
        gate: DeterministicJudge,
        *,
        planned: int,
        ledger: Ledger,
        claimed: Collection[str],
    ) -> None:
        self.judges = judges
        self.gate = gate
        self.planned = planned
        self.ledger = ledger
        self.claimed = claimed
        self.samples = dict.fromkeys(judges, 0)
        self.log_e: dict[str, float] = {}
        self.broken: dict[str, str] = {}

    def see(self, tokens: Ints) -> None:
        """Take one shard into account; a malformed reply ends it."""
        self.gate.see(tokens)
        if self.gate.failure:
            for name in [name for name in FOR_SHAPE if name in self.judges] or self.judges:
                self.samples[name] += len(tokens)
                self.broken.setdefault(name, self.gate.failure)
            return
        for name, judge in self.judges.items():
            if name not in self.broken and not self.broken.keys() & set(PROPERTIES[name].after):
                judge.see(tokens)
                self.samples[name] += len(tokens)
                self._weigh(name, judge)

    def _weigh(self, name: str, judge: Any) -> None:
        if judge.failure:
            self.broken[name] = judge.failure
        elif isinstance(judge, StatisticalJudge):
            alpha = self.ledger.alpha_of_a_finding
            self.log_e[name] = log_evidence(judge.law, judge.counts, planned=self.planned, alpha=alpha)
            if self.ledger.broken(self.log_e[name]):
                self.broken[name] = judge.worst()

    @property
    def decided(self) -> str | None:
        """The broken property after which more calls can change nothing that the verdict needs, or None."""
        if self.gate.failure:
            return next(iter(self.broken))
        lossless = [name for name in self.judges if PROPERTIES[name].profile == LOSSLESS]
        decisive = [name for name in lossless if PROPERTIES[name].tier == STATISTICAL] or lossless
        return decisive[0] if decisive and decisive[0] in self.broken else None

    def status(self, name: str, failed: str) -> tuple[str, str]:
        """Return the status of a property and what to say; ``failed`` is what the adapter raised, if it did."""
        claimed = PROPERTIES[name].profile in self.claimed
        if name in self.broken:
            return (BROKEN, self.broken[name]) if claimed else (NOT_CLAIMED, f"differs: {self.broken[name]}")
        if self.samples[name] == self.planned:
            return (HOLDS if claimed else NOT_CLAIMED), self._note(name)
        message = failed or f"{STOPPED} {self.samples[name]} calls: {self.decided} is broken"
        return (INCONCLUSIVE if claimed else NOT_CLAIMED), message

    def _note(self, name: str) -> str:
        judge = self.judges[name]
        if isinstance(judge, DeterministicJudge):
            return f"would have shown a rate of {rarest_detectable(self.samples[name]):.2g}"
        return str(judge.note(judge.counts))

    def numbers(self, name: str) -> dict[str, Any]:
        """Return the numbers of a finding."""
        judge, samples = self.judges[name], self.samples[name]
        if not isinstance(judge, StatisticalJudge):
            return {"samples": samples}
        malformed = judge.failure or (self.gate.failure and name in self.broken)
        found: dict[str, Any] = {"samples": samples, "log_e": inf if malformed else self.log_e.get(name)}
        if judge.law.degrees:
            alpha = self.ledger.alpha_of_a_finding
            found["joint"] = judge.joint
            found["chi_square_p"] = chi_square_p_value(judge.law, judge.counts)
            found["smallest_detectable_tv"] = smallest_detectable(judge.law.degrees, samples, alpha)
        return found
