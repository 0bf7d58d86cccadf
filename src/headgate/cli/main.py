"""The command line: a thin door to the session. Commands import what they need when they run, to start fast."""

from __future__ import annotations

import io
import os
import signal
import sys

import typer
from rich.console import Console

from headgate.cli import check, demo, experiments, explain, glossary, lint, soak
from headgate.cli import run as running
from headgate.model.errors import HeadgateError

app = typer.Typer(
    name="headgate",
    help="Continuous SQL on Spark whose queries are proven to keep bounded state before they run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=check.EPILOG)(check.check)
app.command(epilog=explain.EPILOG)(explain.explain)
app.command(epilog=running.EPILOG)(running.run)
app.command(epilog=lint.EPILOG)(lint.lint)
app.command(epilog=glossary.EPILOG)(glossary.glossary)
app.command(epilog=demo.EPILOG)(demo.demo)
app.command(epilog=experiments.REPRODUCE_EPILOG)(experiments.reproduce)
app.command(epilog=experiments.BENCH_EPILOG)(experiments.bench)
app.command(epilog=soak.EPILOG)(soak.soak)


def run() -> None:
    """Runs the command line; a user's mistake ends in one clear message, never in a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show ✓ or └ shows ? for it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # Ended by another process, a command still ends its own and takes its temporary folders away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        app()
    except HeadgateError as error:
        Console(stderr=True, soft_wrap=True, highlight=False, markup=False).print(_visible(error.render()))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader went away (headgate … | head): that is its right. Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)


def _visible(message: str) -> str:
    """The message with control characters of the user's text replaced: they could do things to a terminal."""
    return "".join(
        each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in message
    )


if __name__ == "__main__":
    run()
