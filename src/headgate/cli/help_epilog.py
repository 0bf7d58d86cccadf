"""What stands at the end of a command's help: its exit codes, and examples."""

from __future__ import annotations

from collections.abc import Mapping

_SHARED = {
    2: "bad input: a wrong option, query, declaration, file or row",
    3: "the environment failed: disk, memory, Java, Spark, a server",
}
_KEEP_LINES = "\b"
"""Tells the help not to join the lines of a paragraph."""


def help_epilog(*examples: str, codes: Mapping[int, str]) -> str:
    """The end of a help text; codes 2 and 3 mean the same everywhere."""
    meanings = sorted({**codes, **_SHARED}.items())
    width = len(str(meanings[-1][0]))
    listed = [f"  {code:<{width}}  {meaning}" for code, meaning in meanings]
    shown = [f"  {example}" for example in examples]
    return "\n".join([_KEEP_LINES, "Exit codes:", *listed, "", _KEEP_LINES, "Examples:", *shown])
