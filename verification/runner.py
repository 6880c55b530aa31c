"""Claims select properties, properties give findings, findings give a verdict.

Evidence is looked at after each shard, in order. Only a rejection stops a cell early; "holds" needs the planned
number of calls. So the result depends on the code under test, the seed and the budget, and on nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from dataclasses import dataclass, replace
from hashlib import sha256
from math import log
from pathlib import Path
from time import perf_counter
from typing import Any

from verification.adapters.protocol import GENERATE, VERIFY, AdapterError, Implementation, UsageError
from verification.finding import BROKEN, HOLDS, INCONCLUSIVE, NOT_CLAIMED, NOTHING_RAN, Finding, Result
from verification.matrix import PROVE, Cell, cells
from verification.properties import PROPERTIES
from verification.properties.base import LOSSLESS, REFERENCE, STANDARD, STATISTICAL, Examined, StatisticalJudge
from verification.properties.block_length import sound_reply
from verification.scenario import Ints, Scenario
from verification.statistics.ledger import Ledger
from verification.statistics.planning import plan_samples
from verification.watch import Watch

FIRST_SHARD, LARGEST_SHARD = 1024, 32768
LARGEST_ROWS = 2**24  # entries of the target rows of a shard, where the suite hands rows over
INTERRUPTED = "interrupted before it was done"
WORKER_DIED = "a worker process died before it was done"
CERTAIN = 2048  # calls where nothing is estimated: one wrong reply decides


@dataclass(frozen=True)
class Budget:
    """How much is done.

    total_variation  what the first statistical property of a cell must show with probability 0.99
    least, most      bounds on the calls of a cell
    smoke            whether only the cells of the smallest budget run
    """

    name: str
    total_variation: float
    least: int
    most: int
    smoke: bool


BUDGETS = {
    "smoke": Budget("smoke", 0.05, least=4_605, most=40_000, smoke=True),
    "ci": Budget("ci", 0.02, least=46_050, most=300_000, smoke=False),
    "nightly": Budget("nightly", 0.005, least=230_000, most=5_000_000, smoke=False),
}


@dataclass(frozen=True)
class Selection:
    """What of the matrix to run; empty means everything."""

    properties: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    lookaheads: tuple[int, ...] = ()

    def of(self, cell: Cell) -> Cell:
        """Return the cell with the selected properties only, possibly none."""
        wanted = (not self.pairs or cell.scenario.pair.name in self.pairs) and (
            not self.lookaheads or cell.scenario.lookahead in self.lookaheads
        )
        kept = [name for name in cell.properties if wanted and (not self.properties or name in self.properties)]
        return replace(cell, properties=tuple(kept))


def check(
    implementation: Implementation,
    *,
    budget: Budget = BUDGETS["ci"],
    selection: Selection = Selection(),
    text: str | Path | None = None,
    alpha: float = 1e-6,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Callable[[float, str], None] = lambda done, what: None,
) -> Result:
    """Run the matrix on an implementation and return what was found.

    With an ``executor`` the cells are spread over its workers, and the findings are the same; for one of processes the
    implementation must be one that can be loaded by its name. ``progress`` is called with the part that is done, 0 to
    1, and with what was done last. After an interrupt (Ctrl-C) what is not yet known is inconclusive; cells that have
    not begun stay with the executor, which ``executor.shutdown(cancel_futures=True)`` ends.

    Raises
    ------
    UsageError  a property, pair or lookahead that the matrix does not have
    """
    started = perf_counter()
    try:
        matrix = cells(text)
    except ValueError as error:  # a text that no model can be fitted on
        raise UsageError(str(error)) from error
    _refuse_unknown(selection, matrix)
    chosen = [selection.of(cell) if cell.smoke or not budget.smoke else replace(cell, properties=()) for cell in matrix]
    jobs = {number: job for number, cell in enumerate(chosen) if (job := _claimed(cell, implementation)).properties}
    judged = [name for job in jobs.values() for name in job.properties if _is_evidence(name, implementation)]
    run = _Run(implementation, budget, Ledger(alpha=alpha, findings=len(judged)), seed, text)
    known: dict[int, list[Finding]] = {}
    missing = ""
    try:
        for number in run.find(jobs, known, executor):
            job = jobs[number]
            progress(len(known) / len(jobs), f"{job.scenario.pair.name}, {job.label}, K = {job.scenario.lookahead}")
    except KeyboardInterrupt:  # what is known so far is worth something
        missing = INTERRUPTED
    except BrokenExecutor:
        missing = WORKER_DIED
    for number in jobs.keys() - known.keys():
        known[number] = [run.finding(jobs[number], name, INCONCLUSIVE, missing) for name in jobs[number].properties]
    findings = [finding for number in jobs for finding in known[number]]
    log_e = run.ledger.log_evidence(
        [f.log_e for f in findings if f.log_e is not None and _is_evidence(f.property, implementation)]
    )
    return Result(
        implementation=implementation.name,
        budget=budget.name,
        verdict=_verdict(findings, run.ledger, log_e),
        findings=(*findings, *_not_offered(selection, chosen, jobs.values(), implementation)),
        calls=sum(map(_calls, known.values())),
        log_e=log_e,
        alpha=alpha,
        seed=seed,
        seconds=perf_counter() - started,
        interrupted=missing == INTERRUPTED,
        texts={
            cell.scenario.pair.target.text.name: cell.scenario.pair.target.text.sha256
            for cell in jobs.values()
            if hasattr(cell.scenario.pair.target, "text")
        },
    )


def _refuse_unknown(selection: Selection, matrix: Sequence[Cell]) -> None:
    known: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
        "property": (selection.properties, list(PROPERTIES)),
        "pair": (selection.pairs, sorted({cell.scenario.pair.name for cell in matrix})),
        "lookahead": (selection.lookaheads, sorted({cell.scenario.lookahead for cell in matrix})),
    }
    for what, (asked, available) in known.items():
        for name in asked:
            if name not in available:
                raise UsageError(f"no {what} {name!r}; expected one of {', '.join(map(str, available))}")


def _claimed(cell: Cell, implementation: Implementation) -> Cell:
    """Return the cell with the properties that the implementation can be asked for."""
    if cell.operation != PROVE and cell.operation not in implementation.operations:
        return replace(cell, properties=())
    if cell.operation not in (PROVE, VERIFY) and not implementation.claims_knobs(cell.scenario):
        return replace(cell, properties=())
    always = {STANDARD}  # measured on the same calls, claimed or not
    able = [name for name in cell.properties if PROPERTIES[name].profile in always | implementation.profiles]
    return replace(cell, properties=tuple(able))


def _is_evidence(name: str, implementation: Implementation) -> bool:
    """Whether a finding of this property counts towards the verdict by its e-value."""
    return PROPERTIES[name].tier == STATISTICAL and PROPERTIES[name].profile in implementation.profiles


def _not_offered(
    selection: Selection, chosen: Iterable[Cell], jobs: Iterable[Cell], implementation: Implementation
) -> Iterator[Finding]:
    """Yield one finding for each property of which nothing could be asked, and say what it needs."""
    asked = {name for job in jobs for name in job.properties}
    needed = dict.fromkeys(selection.properties, "has no cell in this selection")
    for cell in chosen:
        for name in cell.properties:
            made = PROPERTIES[name]
            of_the_reference = made.profile == REFERENCE and REFERENCE not in implementation.profiles
            if name in selection.properties or not of_the_reference:
                lossless = made.profile in (LOSSLESS, *implementation.profiles)
                needed[name] = f"needs {cell.operation}" if lossless else f"needs the claim {made.profile!r}"
    for name, message in needed.items():
        if name not in asked:
            yield Finding(name, "", "", "", 0, PROPERTIES[name].tier, NOT_CLAIMED, message)


def _verdict(findings: Sequence[Finding], ledger: Ledger, log_e: float) -> str:
    if any(f.status == BROKEN for f in findings) or log_e >= -log(ledger.alpha):
        return BROKEN
    if any(f.status == INCONCLUSIVE for f in findings):
        return INCONCLUSIVE
    return HOLDS if any(f.status == HOLDS for f in findings) else NOTHING_RAN


def _calls(found: Sequence[Finding]) -> int:
    """Return the calls behind the findings of one cell: each examination makes its own, the judges share theirs."""
    watched = [finding.samples for finding in found if _is_watched(finding.property)]
    return max(watched, default=0) + sum(f.samples for f in found if not _is_watched(f.property))


def _is_watched(name: str) -> bool:
    """Whether a property is judged on the calls of its cell; the others make their own, or prove."""
    return hasattr(PROPERTIES[name], "judge")


@dataclass
class _Run:
    implementation: Implementation
    budget: Budget
    ledger: Ledger
    seed: int
    text: str | Path | None

    def find(self, jobs: dict[int, Cell], known: dict[int, list[Finding]], executor: Executor | None) -> Iterator[int]:
        """Fill in what is known, by the number of a cell; yield the number: in order, or whichever is done first."""
        if executor is None:
            for number, job in jobs.items():
                known[number] = self.findings(job)
                yield number
            return
        futures = {executor.submit(self.findings_at, number, job.properties): number for number, job in jobs.items()}
        try:
            for future in as_completed(futures):
                known[futures[future]] = future.result()
                yield futures[future]
        finally:  # after an interrupt more may be done than was told of
            done = [future for future in futures if future.done() and not future.cancelled()]
            known |= {futures[future]: future.result() for future in done if future.exception() is None}

    def findings_at(self, number: int, properties: tuple[str, ...]) -> list[Finding]:
        """Return the findings of one cell of the matrix, which each worker makes for itself."""
        return self.findings(replace(cells(self.text)[number], properties=properties))

    def findings(self, job: Cell) -> list[Finding]:
        """Return the findings of one cell."""
        examined = [name for name in job.properties if not _is_watched(name)]
        watched = [name for name in job.properties if _is_watched(name)]
        found = [self._examined(job, name) for name in examined]
        return found + (self._watched(job, watched) if watched else [])

    def finding(self, job: Cell, name: str, status: str, message: str, **rest: Any) -> Finding:
        """Return the finding about a property in a cell."""
        scenario, tier = job.scenario, PROPERTIES[name].tier
        return Finding(
            name, scenario.pair.name, job.operation, job.label, scenario.lookahead, tier, status, message, **rest
        )

    def _examined(self, job: Cell, name: str) -> Finding:
        made: Any = PROPERTIES[name]
        first = self._seed(job, 0)

        def call(scenario: Scenario, count: int, seed: int) -> Ints:
            return self.implementation.run(job.operation, scenario, count, seed, drafts_seed=first)

        try:
            found: Examined = (
                made.prove(job.scenario) if job.operation == PROVE else made.examine(job.scenario, call, first)
            )
        except AdapterError as error:
            return self.finding(job, name, INCONCLUSIVE, str(error))
        status = BROKEN if found.failure else HOLDS
        message = found.failure or found.note
        return self.finding(job, name, status, message, samples=found.samples, identities=found.identities)

    def _watched(self, job: Cell, names: Sequence[str]) -> list[Finding]:
        judges: dict[str, Any] = {name: PROPERTIES[name].judge(job.scenario) for name in names}  # type: ignore[attr-defined]
        outputs = job.operation == GENERATE
        most = job.scenario.max_new_tokens if outputs else job.scenario.lookahead + 1
        gate = sound_reply(job.scenario, least=0 if outputs else 1, most=most)
        claimed = self.implementation.profiles
        planned = min(self._planned(judges), job.most or self.budget.most)
        watch = Watch(judges, gate, planned=planned, ledger=self.ledger, claimed=claimed)
        failed = ""
        rows = (job.scenario.lookahead + 1) * job.scenario.vocabulary
        for number, size in enumerate(_shards(watch.planned, most=max(LARGEST_ROWS // rows, 1))):
            try:
                watch.see(self.implementation.run(job.operation, job.scenario, size, self._seed(job, number)))
            except AdapterError as error:
                failed = str(error)
            if failed or watch.decided:
                break
        return [self.finding(job, name, *watch.status(name, failed), **watch.numbers(name)) for name in names]

    def _planned(self, judges: dict[str, Any]) -> int:
        """Return the calls of a cell: what its first statistical property needs, within the budget's bounds."""
        laws = [judge.law for judge in judges.values() if isinstance(judge, StatisticalJudge) and judge.law.degrees]
        if not laws:
            return min(CERTAIN, self.budget.least)
        alpha = self.ledger.alpha_of_a_finding
        needed = plan_samples(laws[0].degrees, self.budget.total_variation, alpha)
        return min(max(needed, self.budget.least), self.budget.most)

    def _seed(self, job: Cell, number: int) -> int:
        scenario = job.scenario
        name = (
            f"{self.seed}|{job.operation}|{scenario.pair.name}|{job.label}|{scenario.lookahead}|"
            f"{scenario.max_new_tokens}|{number}"
        )
        return int.from_bytes(sha256(name.encode()).digest()[:6], "big")


def _shards(planned: int, most: int) -> Iterator[int]:
    """Yield the sizes of the shards: small at first, so that a gross fault costs little."""
    size, left = FIRST_SHARD, planned
    while left:
        size = min(size, most, left)
        yield size
        left -= size
        size = min(2 * size, LARGEST_SHARD)
