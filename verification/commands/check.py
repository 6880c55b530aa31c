"""``refspec check``: the verdict on an implementation."""

import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from verification.adapters.protocol import UsageError
from verification.adapters.python import load
from verification.commands.exit_codes import EXIT_CODES, EXIT_INTERRUPTED
from verification.report.json_report import as_json
from verification.report.terminal import show
from verification.runner import BUDGETS, Selection, check


@click.command("check")
@click.argument("target", required=False)
@click.option("--budget", type=click.Choice(list(BUDGETS)), default="ci", show_default=True, help="How much to do.")
@click.option("--property", "properties", multiple=True, metavar="ID", help="Only this property; repeatable.")
@click.option("--pair", "pairs", multiple=True, metavar="NAME", help="Only this pair of models; repeatable.")
@click.option("--lookahead", "lookaheads", multiple=True, type=int, metavar="K", help="Only this K; repeatable.")
@click.option("--text", type=click.Path(path_type=Path), help="Fit the n-gram models on this UTF-8 text file.")
@click.option("--alpha", type=float, default=1e-6, show_default=True, help="False-alarm rate of the whole run.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the run.")
@click.option("--vary-seed", is_flag=True, help="Draw a seed, and print it.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Worker processes; the findings do not depend on it.  [default: 1 for TARGET and for smoke, else the cores]",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the findings to this file.")
def check_command(
    target: str | None,
    budget: str,
    properties: tuple[str, ...],
    pairs: tuple[str, ...],
    lookaheads: tuple[int, ...],
    text: Path | None,
    alpha: float,
    seed: int,
    vary_seed: bool,
    jobs: int | None,
    json_file: Path | None,
) -> None:
    """Check TARGET, module:object, against the exact laws; without TARGET the reference itself.

    TARGET is an adapter with any of verify, draft_and_verify and generate, or a verify function.

    Exit codes: 0 holds, 1 broken, 2 interrupted, 3 inconclusive (the adapter failed), 4 usage, 5 nothing ran.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha}; expected between 0 and 1")
    if json_file is not None and (json_file.is_dir() or not json_file.absolute().parent.is_dir()):
        raise UsageError(f"{json_file}: no file can be written there")
    adapter = load(target) if target else load()
    with _progress() as bar, _workers(jobs or _default_jobs(target, budget)) as executor:
        task = bar.add_task("", total=1.0)
        result = check(
            adapter,
            executor=executor,
            budget=BUDGETS[budget],
            selection=Selection(properties, pairs, lookaheads),
            text=text,
            alpha=alpha,
            seed=secrets.randbits(32) if vary_seed else seed,
            progress=lambda done, what: bar.update(task, completed=done, description=what),
        )
        if result.interrupted:
            signal(SIGINT, SIG_IGN)  # what is known is told, however often the key is pressed
            _stop_workers()
    show(result, Console(), _rerun(target, budget, text, alpha))
    if json_file is not None:
        json_file.write_text(as_json(result) + "\n", encoding="utf-8")
    sys.exit(EXIT_INTERRUPTED if result.interrupted else EXIT_CODES[result.verdict])


@contextmanager
def _workers(jobs: int) -> Iterator[Executor | None]:
    """Give an executor of so many processes, or None where one is enough."""
    if jobs == 1:
        yield None
        return
    spawn = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=signal, initargs=(SIGINT, SIG_IGN)) as executor:
        before = signal(SIGINT, SIG_IGN)  # most systems pass it on to the workers, each started by a first task
        for _ in range(jobs):
            executor.submit(int)
        signal(SIGINT, before)
        yield executor


def _stop_workers() -> None:
    """End at once the workers that are still busy: they ignore an interrupt, and nobody waits for what they do."""
    for worker in active_children():
        worker.terminate()


def _default_jobs(target: str | None, budget: str) -> int:
    """Return one for an adapter, which may not like company, and where the work is small; else the cores."""
    if target or BUDGETS[budget].smoke:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _progress() -> Progress:
    """Return a progress bar on the error stream, gone when the work is done."""
    columns = (
        TextColumn("{task.percentage:>3.0f}%"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _rerun(target: str | None, budget: str, text: Path | None, alpha: float) -> str:
    words = ["refspec", "check", *([target] if target else []), "--budget", budget, "--alpha", repr(alpha)]
    return shlex.join(words + (["--text", str(text)] if text else []))
