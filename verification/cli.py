"""The command ``refspec``."""

import sys

from verification.commands.exit_codes import EXIT_INTERRUPTED


def main() -> None:
    """Run the command. What it needs takes a second to load, and that may be interrupted too."""
    try:
        from verification.commands.group import run

        run()
    except KeyboardInterrupt:
        print("refspec: interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
