"""The run as a table by property, the broken findings in full, and one closing sentence."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from verification.finding import BROKEN, HOLDS, INCONCLUSIVE, NOT_CLAIMED, NOTHING_RAN, Finding, Result
from verification.properties import PROPERTIES
from verification.properties.base import DETERMINISTIC, PROOF, STATISTICAL
from verification.properties.state_certificate import PART
from verification.report.json_report import versions
from verification.watch import STOPPED

HOW = {PROOF: "proved", DETERMINISTIC: "decided", STATISTICAL: "estimated"}
STYLES = {HOLDS: "green", BROKEN: "bold red", INCONCLUSIVE: "yellow", NOT_CLAIMED: "dim"}


def show(result: Result, console: Console, rerun: str) -> None:
    """Print a run; ``rerun`` is the command line up to the options that select a finding."""
    header = ", ".join(f"{name} {version}" for name, version in versions().items())
    console.print(f"[bold]{result.implementation}[/], budget {result.budget}, seed {result.seed} ({header})")
    for name, digest in result.texts.items():
        console.print(f"text {name}, SHA-256 {digest}", style="dim", soft_wrap=True)
    if any(finding.pair for finding in result.findings):
        console.print(_table(result))
    if not_asked := [f"{f.property} ({f.message})" for f in result.findings if not f.pair]:
        console.print(f"not asked: {', '.join(not_asked)}", style="dim", soft_wrap=True, markup=False)
    for finding in _worth_showing(result.findings):
        console.print(_in_full(finding, result, rerun), soft_wrap=True, markup=False)
    console.print(closing(result), soft_wrap=True, style=STYLES.get(result.verdict, "yellow"), markup=False)


def _table(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("property", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("cells", justify="right")
    table.add_column("result", no_wrap=True)
    table.add_column("from")
    table.add_column("would have shown")
    for name, made in PROPERTIES.items():
        found = [finding for finding in result.findings if finding.property == name and finding.pair]
        if found:
            status = _status(found)
            styled = f"[{STYLES[status]}]{_in_words(found, status)}[/]"
            bias = _bias(found) if status == HOLDS else ""
            table.add_row(name, HOW[made.tier], str(len(found)), styled, _basis(found), bias)
    return table


def _status(found: Sequence[Finding]) -> str:
    """Return the gravest status among findings of one property."""
    statuses = {finding.status for finding in found}
    return next(status for status in (BROKEN, INCONCLUSIVE, HOLDS, NOT_CLAIMED) if status in statuses)


def _in_words(found: Sequence[Finding], status: str) -> str:
    """Return the status as a person reads it; what is not claimed is measured all the same."""
    if status == NOT_CLAIMED:
        return "differs (unclaimed)" if any(f.message.startswith("differs") for f in found) else "agrees (unclaimed)"
    if status == INCONCLUSIVE and all(f.message.startswith(STOPPED) for f in found if f.status == INCONCLUSIVE):
        return "stopped early"
    return status


def _basis(found: Sequence[Finding]) -> str:
    """Say what a result rests on."""
    if found[0].tier == PROOF:
        return f"{sum(finding.identities for finding in found):,} identities"
    return f"{sum(finding.samples for finding in found):,} calls"


def _bias(found: Sequence[Finding]) -> str:
    """Say how small a bias would have been seen, in the worst cell."""
    if found[0].tier == PROOF:
        return "any" if not any(f.message.startswith(PART) for f in found) else "any, in part of the states"
    biases = [finding.smallest_detectable_tv for finding in found if finding.smallest_detectable_tv is not None]
    if not biases:
        return "one wrong reply"
    measured = PROPERTIES[found[0].property].measures
    if measured == "joint" and not all(f.joint for f in found if f.smallest_detectable_tv is not None):
        measured = "joint, or by state"
    return f"TV {max(biases):.3f} ({measured})"


def _worth_showing(findings: Sequence[Finding]) -> list[Finding]:
    """Return one broken finding of each property, what was decided first; else one for each way the adapter failed."""
    broken = [finding for finding in findings if finding.status == BROKEN]
    chosen: dict[str, Finding] = {}
    for finding in sorted(broken, key=lambda f: (f.tier == STATISTICAL, f.samples, f.lookahead)):
        chosen.setdefault(finding.property, finding)
    if not chosen:
        for finding in findings:
            if finding.status == INCONCLUSIVE:
                chosen.setdefault(finding.message, finding)
    return list(chosen.values())


def _in_full(finding: Finding, result: Result, rerun: str) -> str:
    made = PROPERTIES[finding.property]
    held = [name for name in PROPERTIES if _holds_everywhere(name, result)]
    lines = [
        f"\n{finding.status.upper()}  {finding.property} ({made.profile})",
        f"  says    {made.sentence}",
        f"  where   pair {finding.pair}, {finding.knobs}, K = {finding.lookahead}, {finding.operation}, "
        f"{finding.samples} calls",
        f"  seen    {finding.message}",
        f"  log E   {finding.log_e:.1f}" if finding.log_e is not None else "",
        f"  holds   {', '.join(held) or 'nothing else that was asked'}",
        f"  rerun   {rerun} --property {finding.property} --pair {finding.pair} --lookahead {finding.lookahead} "
        f"--seed {result.seed}",
    ]
    return "\n".join(line for line in lines if line)


def _holds_everywhere(name: str, result: Result) -> bool:
    return {finding.status for finding in result.findings if finding.property == name} == {HOLDS}


def _broken_properties(result: Result) -> set[str]:
    return {finding.property for finding in result.findings if finding.status == BROKEN}


def closing(result: Result) -> str:
    """Return the one sentence that a run comes down to."""
    alarm = f"the false-alarm rate of the whole run is {result.alpha:g}"
    if result.verdict == NOTHING_RAN:
        return "Nothing was judged: the selection, the budget and the claims have no cell of the matrix in common."
    if result.verdict == BROKEN:
        broken = ", ".join(sorted(_broken_properties(result))) or "the evidence of all findings together"
        return f"Broken: {broken}; {alarm}."
    identities = sum(f.identities for f in result.findings)
    proved = f"{identities:,} exact identities proved, " if identities else ""
    if result.verdict == INCONCLUSIVE and result.interrupted:
        known = f"Interrupted after {result.calls:,} calls, nothing broken so far"
        return f"{known}; {alarm}. What is missing is inconclusive."
    if result.verdict == INCONCLUSIVE:
        why = next(
            (finding.message for finding in result.findings if finding.status == INCONCLUSIVE), "no reason given"
        )
        return f"Inconclusive after {result.calls:,} calls, nothing broken so far; {alarm}. The adapter failed: {why}"
    bias = result.smallest_detectable_tv
    seen = (
        f"a joint total variation of {bias:.4f} or more on any prefix tree counted in full would have been found with "
        "probability 0.99"
        if bias is not None
        else "no prefix tree was counted in full, so no joint total variation is claimed"
    )
    return f"Holds: {proved}{result.calls:,} calls judged; {alarm}, and {seen}."
