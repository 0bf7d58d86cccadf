"""The command line: a thin door to the session. Commands import what they need when they run, to start fast."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import headgate
from headgate.cli import check, demo, experiments, explain, glossary, lint, profile, soak
from headgate.cli import run as running
from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog
from headgate.cli.interrupt import INTERRUPTED, RunInterrupt
from headgate.model.errors import HeadgateError, SetupError

app = typer.Typer(
    name="headgate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: two columns, readable at 80.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=help_epilog(
        "headgate check queries.cql",
        "headgate run queries.cql --output out",
        "headgate run --help",
        codes={0: "done", 1: "a query is refused, or a comparison failed", 130: "interrupted (Ctrl-C)"},
    ),
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headgate {headgate.__version__}")
        raise typer.Exit


@app.callback()
def _(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Continuous SQL on Spark whose queries are proven to keep bounded state before they run."""


for _command, _epilog, _short in (
    (check.check, check.EPILOG, "Is each query's state bounded, by what, and if not, what helps?"),
    (profile.profile, profile.EPILOG, "What do the rows promise, and what would that save?"),
    (explain.explain, explain.EPILOG, "Show plans, update patterns, states and costs."),
    (running.run, running.EPILOG, "Run queries and write their results as Parquet."),
    (lint.lint, lint.EPILOG, "Which states of a plain PySpark job grow for ever?"),
    (glossary.glossary, glossary.EPILOG, "What do the words of the reports mean?"),
    (demo.demo, demo.EPILOG, "Watch an auction, live, with a picture at the end."),
    (experiments.reproduce, experiments.REPRODUCE_EPILOG, "Run a document's experiment."),
    (experiments.bench, experiments.BENCH_EPILOG, "Measure Headgate, and others beside it."),
    (soak.soak, soak.EPILOG, "Follow an auction for long: is memory flat?"),
):
    app.command(epilog=_epilog, short_help=_short)(_command)


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
        _say(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader went away (headgate … | head): that is its right. Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except RunInterrupt as interrupt:
        _print(f"interrupted: {interrupt}")
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        # So ends what Typer was interrupted in, without a word.
        if ended.code == INTERRUPTED:
            _print("interrupted")
        raise
    except (OSError, MemoryError) as error:
        failed = environment_error(error)
        _say(failed)
        sys.exit(failed.exit_code)


def _say(error: HeadgateError) -> None:
    _print(_visible(error.render()))


def _print(text: str) -> None:
    open_console(stderr=True, soft_wrap=True).print(Text(text))


def environment_error(error: OSError | MemoryError) -> SetupError:
    """What no part of a command foresaw that the system says: no room, no memory, a file that is not to be had."""
    from headgate.runtime.disk import disk_full, is_full

    if isinstance(error, MemoryError):
        remedy = "give it more memory, or take smaller steps with --batch-rows"
        return SetupError(f"there is not enough memory{f': {error}' if str(error) else ''}", remedy=remedy)
    if is_full(error):
        return disk_full(None if error.filename is None else Path(os.fsdecode(error.filename)))
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return SetupError(f"{where}{error.strerror or error}")


def _visible(message: str) -> str:
    """The message with control characters of the user's text replaced: they could do things to a terminal."""
    return "".join(
        each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in message
    )


if __name__ == "__main__":
    run()
