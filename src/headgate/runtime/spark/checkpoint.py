"""A run's checkpoint: which queries and which run it belongs to, so that nothing else is misled by what is there."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from pathlib import Path
from uuid import uuid4

from headgate.model.errors import InputError, SetupError
from headgate.runtime.disk import writing
from headgate.runtime.locks import Lock
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.stage import FORMAT, Stage

_NAME = "query.json"
_MOST_LINES = 12
_MOST_LETTERS = 300
_BEFORE = 60


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Within it, a checkpoint is used by nobody else; InputError if another run uses it."""
    with writing(folder, "--checkpoint"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder)
        free = lock.take()
    if free is False:
        raise in_use(folder)
    try:
        yield
    finally:
        lock.release()


def require_free(folder: Folder) -> None:
    """Raises InputError if a run of the command line uses a checkpoint now.

    That is known on this machine only; of two runs elsewhere, Spark stops the one that is behind.
    """
    local = folder.local
    if local is not None and local.is_dir():
        with held(local):
            pass


def in_use(folder: Path | str) -> InputError:
    """What to say when two runs would use one checkpoint."""
    return InputError(
        f"another run is using the checkpoint {folder}",
        remedy="stop that run or wait for its end, or choose another --checkpoint",
    )


@dataclass(frozen=True)
class Claim:
    """A checkpoint that queries may use. It is theirs once the claim is kept; until then nothing is written."""

    folder: Folder | None
    """None: Spark finds a place by itself, for this run only."""
    stages: tuple[Stage, ...]
    run: str
    """Tells the run from all others, for as long as its checkpoint lasts; the folders that it adds to bear it."""
    fresh: bool

    def keep(self) -> None:
        """Marks the checkpoint as used. Whatever may refuse the run comes before this."""
        if self.folder is None or not self.fresh:
            return
        content = {
            "format": FORMAT,
            "run": self.run,
            "queries": {stage.graph.query: stage.description() for stage in self.stages},
        }
        try:
            (self.folder / "headgate").write(_NAME, (json.dumps(content, indent=2) + "\n").encode())
        except OSError as error:
            raise InputError(
                f"cannot write to {self.folder}: {error.strerror or error}",
                remedy="choose another --checkpoint",
            ) from error


def claim(folder: Folder | None, stages: Sequence[Stage]) -> Claim:
    """Whether queries may use a checkpoint, and as which run. InputError if it belongs to others."""
    fresh = Claim(folder, tuple(stages), uuid4().hex, fresh=True)
    if folder is None:
        return fresh
    try:
        note = (folder / "headgate").read(_NAME) or _note_below(folder)
        if note is None:
            if folder.exists("offsets"):
                raise InputError(
                    f"{folder} is a checkpoint, but not one of Headgate's",
                    remedy="choose another --checkpoint",
                )
            return fresh
        found = json.loads(note)
        written = found["format"]
        known = (
            {str(name): list(lines) for name, lines in found["queries"].items()} if written == FORMAT else {}
        )
        run = str(found["run"]) if written == FORMAT else ""
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{folder}/headgate/{_NAME} cannot be read: {error}",
            remedy="restore the checkpoint, or choose another",
        ) from error
    if written != FORMAT:
        raise InputError(
            f"the state in {folder} has format {written}; this version reads format {FORMAT}",
            remedy="continue with the version that wrote it, or choose another --checkpoint",
        )
    names = [stage.graph.query for stage in stages]
    if [*known] != names:
        raise InputError(
            f"the checkpoint {folder} belongs to {_listed([*known])}, and this run is of {_listed(names)}",
            remedy="run the same queries with it, or choose another --checkpoint",
        )
    for stage in stages:
        lines = known[stage.graph.query]
        if lines != stage.description():
            raise InputError(
                f"the checkpoint {folder} belongs to another form of query {stage.graph.query}:\n"
                + "\n".join(_difference(lines, stage.description())),
                remedy="run the query as it was, or choose another --checkpoint",
            )
    return Claim(folder, tuple(stages), run, fresh=False)


def _note_below(folder: Folder) -> bytes | None:
    """The note of a checkpoint of old, which had a folder for each query; it can only be refused."""
    for name in folder.names():
        note = None if name.startswith(".") else (folder / name / "headgate").read(_NAME)
        if note is not None and json.loads(note)["format"] != FORMAT:
            return note
    return None


def _listed(names: list[str]) -> str:
    return f"{'query' if len(names) == 1 else 'the queries'} {', '.join(names)}"


def _difference(old: list[str], new: list[str]) -> list[str]:
    """The lines that went and came, long ones from where they begin to differ."""
    shown = []
    for kind, low, high, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            for went, came in zip_longest(old[low:high], new[start:end], fillvalue=""):
                shown += [
                    f"  {sign} {_excerpt(a, b)}" for sign, a, b in (("-", went, came), ("+", came, went)) if a
                ]
    return shown[:_MOST_LINES]


def _excerpt(line: str, other: str) -> str:
    """A line, or as much of it as fits from shortly before where it differs from another."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(line, other, strict=False)))
    start = max(0, same - _BEFORE) if len(line) > _MOST_LETTERS else 0
    return ("…" if start else "") + line[start : start + _MOST_LETTERS]
