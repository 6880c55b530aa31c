"""The command ``refspec`` on an executed page: what a terminal would show."""

import os
import re
import shlex
import subprocess
import sys

WIDTH = 96  # a table of the command fits, and a page on a wide screen nearly
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def console(line: str, *, ends: int = 0, at_most: int | None = None) -> None:
    """Run a line that begins with ``refspec``; print it and what it says. The page fails if it ends with another code.

    Of a long answer the first ``at_most`` lines are printed, and how many were left out.
    """
    program, *words = shlex.split(line)
    if program != "refspec":
        raise ValueError(f"{line!r}; expected a line of refspec")
    run = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'refspec'; from verification.cli import main; main()",
        *words,
    ]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    if done.returncode != ends:
        raise RuntimeError(f"{line!r} ended with {done.returncode} in place of {ends}: {done.stderr}")
    said = [text.rstrip() for text in ESCAPES.sub("", done.stdout).splitlines()]
    shown = said[:at_most]
    left_out = [f"... {len(said) - len(shown)} lines more"] if len(shown) < len(said) else []
    print("\n".join([f"$ {line}", *shown, *left_out]))
