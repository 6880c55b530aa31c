"""The command ``refspec``."""

import secrets
import sys
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from verification.adapters.loopback import Reference
from verification.adapters.protocol import AdapterError, Implementation, UsageError
from verification.adapters.python import load
from verification.finding import BROKEN, HOLDS, INCONCLUSIVE, NOTHING_RAN
from verification.report.json_report import as_json
from verification.report.terminal import show
from verification.runner import BUDGETS, Selection, check

EXIT_HOLDS, EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_INCONCLUSIVE, EXIT_USAGE, EXIT_NOTHING_RAN = range(6)
EXIT_CODES = {
    HOLDS: EXIT_HOLDS,
    BROKEN: EXIT_BROKEN,
    INCONCLUSIVE: EXIT_INCONCLUSIVE,
    NOTHING_RAN: EXIT_NOTHING_RAN,
}

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def refspec() -> None:
    """Say whether an implementation of speculative sampling follows the target's law."""


@app.command("check")
def check_command(
    target: Annotated[
        str | None,
        typer.Argument(help="module:object, an adapter or a verify function; without it the reference itself."),
    ] = None,
    budget: Annotated[str, typer.Option(help=f"How much to do: {' or '.join(BUDGETS)}.")] = "ci",
    property_: Annotated[list[str] | None, typer.Option("--property", help="Only this property; repeatable.")] = None,
    pair: Annotated[list[str] | None, typer.Option(help="Only this pair of models; repeatable.")] = None,
    lookahead: Annotated[list[int] | None, typer.Option(help="Only this lookahead K; repeatable.")] = None,
    text: Annotated[Path | None, typer.Option(help="Fit the n-gram models on this UTF-8 text file.")] = None,
    alpha: Annotated[float, typer.Option(help="False-alarm rate of the whole run.")] = 1e-6,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    vary_seed: Annotated[bool, typer.Option("--vary-seed", help="Draw a seed, and print it.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the findings to this file.")] = None,
) -> None:
    """Check an implementation against the exact laws of the standard rule.

    Exit codes: 0 holds, 1 broken, 2 interrupted, 3 inconclusive (the adapter failed), 4 usage, 5 nothing ran.
    """
    if budget not in BUDGETS:
        raise UsageError(f"no budget {budget!r}; expected one of {', '.join(BUDGETS)}")
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha}; expected between 0 and 1")
    if json is not None and not json.absolute().parent.is_dir():
        raise UsageError(f"{json}: no such folder")
    implementation = load(target) if target else Implementation(Reference(), "refspec")
    with _progress() as bar:
        task = bar.add_task("", total=1.0)
        result = check(
            implementation,
            budget=BUDGETS[budget],
            selection=Selection(tuple(property_ or ()), tuple(pair or ()), tuple(lookahead or ())),
            text=text,
            alpha=alpha,
            seed=secrets.randbits(32) if vary_seed else seed,
            progress=lambda done, what: bar.update(task, completed=done, description=what),
        )
    show(result, Console(), _rerun(target, budget, text, alpha))
    if json is not None:
        json.write_text(as_json(result) + "\n", encoding="utf-8")
    raise typer.Exit(EXIT_CODES[result.verdict])


def _progress() -> Progress:
    """Return a progress bar on the error stream, gone when the work is done."""
    columns = (
        TextColumn("{task.percentage:>3.0f}%"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _rerun(target: str | None, budget: str, text: Path | None, alpha: float) -> str:
    options = [target or "", f"--budget {budget}", f"--text {text}" if text else "", f"--alpha {alpha:g}"]
    return " ".join(["refspec check", *(option for option in options if option)])


def main() -> None:
    """Run the command; turn what a person did wrong into one line and exit code 4."""
    try:
        sys.exit(app(standalone_mode=False))
    except (click.exceptions.Abort, KeyboardInterrupt):
        _say("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as error:
        _say(error.format_message())
        sys.exit(EXIT_USAGE)
    except AdapterError as error:
        _say(str(error))
        sys.exit(EXIT_INCONCLUSIVE)
    except (UsageError, OSError) as error:
        _say(str(error))
        sys.exit(EXIT_USAGE)


def _say(message: str) -> None:
    print(f"refspec: {message}", file=sys.stderr)
