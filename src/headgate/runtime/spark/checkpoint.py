"""A run's checkpoint: which query it belongs to, so that a changed query is refused and not misled."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

from headgate.model.errors import InputError, SetupError
from headgate.runtime.spark.stage import FORMAT, Stage

_NAME = "query.json"


def claim(folder: Path, stage: Stage) -> bool:
    """Marks a checkpoint as a query's; whether it is new. SetupError if it belongs to another form of it."""
    path = folder / "headgate" / _NAME
    if not path.exists():
        if (folder / "offsets").exists():
            raise SetupError(
                f"{folder} is a checkpoint, but not one of Headgate's", remedy="choose another --checkpoint"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            content = {"format": FORMAT, "query": stage.graph.query, "stage": stage.description()}
            beside = path.with_name(f".{_NAME}")
            beside.write_text(json.dumps(content, indent=2) + "\n")
            beside.replace(path)
        except OSError as error:
            raise InputError(
                f"cannot write to {folder}: {error.strerror or error}", remedy="choose another --checkpoint"
            ) from error
        return True
    try:
        found = json.loads(path.read_text())
        written, lines = found["format"], list(found["stage"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetupError(
            f"{path} cannot be read: {error}", remedy="restore the checkpoint, or choose another"
        ) from error
    if written != FORMAT:
        raise SetupError(
            f"the state in {folder} has format {written}; this version reads format {FORMAT}",
            remedy="continue with the version that wrote it, or choose another --checkpoint",
        )
    if lines != stage.description():
        raise SetupError(
            f"the checkpoint {folder} belongs to another form of query {stage.graph.query}:\n"
            + "\n".join(_difference(lines, stage.description())),
            remedy="run the query as it was, or choose another --checkpoint",
        )
    return False


def _difference(old: list[str], new: list[str]) -> list[str]:
    """The lines that went and came."""
    changes = difflib.unified_diff(old, new, lineterm="", n=0)
    shown = [line for line in changes if not line.startswith(("---", "+++", "@@"))]
    return [f"  {line[0]} {line[1:][:300]}" for line in shown[:12]]
