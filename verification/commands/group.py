"""The group of all commands, and what becomes of what goes wrong in one."""

import sys

import click

from refspec import __version__
from verification.adapters.protocol import AdapterError, UsageError
from verification.commands.check import check_command
from verification.commands.exit_codes import EXIT_INCONCLUSIVE, EXIT_USAGE
from verification.commands.law import law_command
from verification.commands.pairs import pairs_command
from verification.commands.plan import plan_command


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=__version__, prog_name="refspec")
@click.pass_context
def command(context: click.Context) -> None:
    """Say whether an implementation of speculative sampling follows the target's law."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


command.add_command(check_command)
command.add_command(law_command)
command.add_command(pairs_command)
command.add_command(plan_command)


def run() -> None:
    """Run the command of the command line; turn what a person did wrong into one line and exit code 4."""
    try:
        command(standalone_mode=False)
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except AdapterError as error:
        _leave(str(error), EXIT_INCONCLUSIVE)
    except click.ClickException as error:
        _leave(error.format_message(), EXIT_USAGE)
    except (UsageError, OSError) as error:
        _leave(str(error), EXIT_USAGE)


def _leave(message: str, code: int) -> None:
    """Say one line on the error stream, whatever line ends the message has."""
    print(f"refspec: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
