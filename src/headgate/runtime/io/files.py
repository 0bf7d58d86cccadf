"""Finding files: from the path of a declaration to the files it means, in the order in which they are read."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

from headgate.model.errors import InputError, UnsupportedError
from headgate.model.suggest import did_you_mean

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/")
_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST_ALTERNATIVES = 1_000


def find_files(path: str, base: Path, *, moving: bool = False) -> tuple[Path, ...]:
    """The files of a path, sorted by name: a file itself, all files below a folder, or what a glob matches.

    Hidden files and those whose name begins with an underscore are skipped, as Spark does. A relative path
    is meant from `base` and stays inside it, also by way of `..` and links; an absolute path may lie anywhere.
    `moving`: files come and go while we look, so there may be none, and one that is gone again is left out.
    """
    given = local_path(path)
    whole = base / given
    if not given.is_absolute() and not _inside(Path(os.path.normpath(whole.absolute())), base.absolute()):
        raise _escape(path, base)
    try:
        found = sorted(set(_expand(whole)), key=lambda file: file.parts)
        if moving:
            found = [file for file in found if file.is_file()]
        for file in found:
            if not moving:
                _require_file(file)
            if not given.is_absolute() and not _inside(file.resolve(), base.resolve()):
                raise _escape(str(file), base)
    except OSError as error:
        where = error.filename or whole
        raise InputError(
            f"cannot read {where}: {error.strerror or error}", remedy="check the path"
        ) from error
    if not found and not (moving and (whole.is_dir() or glob.has_magic(str(given)))):
        raise _nothing(whole, given)
    return tuple(found)


def is_elsewhere(path: str) -> bool:
    """Whether a path is an address in a file system that is not this machine's, as `s3a://shop/bids`."""
    scheme = _SCHEME.match(path)
    return scheme is not None and scheme[1].lower() != "file"


def local_path(path: str) -> Path:
    """The path on this machine that a path, or an address with the scheme `file`, means."""
    if not path or "\0" in path:
        raise InputError(
            f"{path!r} is not a path", remedy="name a file, a folder or a pattern such as 'data/*.csv'"
        )
    if is_elsewhere(path):
        raise UnsupportedError(
            f"{path} is not on this machine, and the local engine reads local files",
            remedy="copy the data here, or run on Spark",
        )
    if _SCHEME.match(path) is None:
        return Path(path)
    return Path("/" + path[len("file:") :].lstrip("/"))


def _inside(path: Path, base: Path) -> bool:
    return path.is_relative_to(os.path.normpath(base))


def _escape(path: str, base: Path) -> InputError:
    return InputError(
        f"{path} leads out of {base}, from which relative paths are read",
        remedy="give an absolute path if that is meant",
    )


def _expand(whole: Path) -> Iterator[Path]:
    """Every file that a path means; nothing if there is none."""
    if whole.exists():
        yield from _below(whole)
    elif glob.has_magic(str(whole)) or "{" in str(whole):
        for pattern in _alternatives(str(whole)):
            parts = Path(pattern).parts
            fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
            for path in _matches(Path(*parts[:fixed]), str(Path(*parts[fixed:]))):
                if not any(_hidden(part) and part not in parts for part in path.parts[fixed:]):
                    yield from _below(path)


def _matches(folder: Path, pattern: str) -> Iterator[Path]:
    try:
        yield from folder.glob(pattern)
    except ValueError as error:
        raise InputError(f"{pattern} is not a pattern of file names: {error}") from error


def _below(path: Path) -> Iterator[Path]:
    """A file itself, or all files in a folder and its sub-folders, each folder once however links lead there."""
    if not path.is_dir():
        yield path
        return
    entered: set[str] = set()
    for folder, folders, names in os.walk(path, followlinks=True, onerror=_raise):
        real = os.path.realpath(folder)
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        folders[:] = sorted(name for name in folders if not _hidden(name))
        yield from (Path(folder) / name for name in names if not _hidden(name))


def _raise(error: OSError) -> None:
    raise error


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _alternatives(pattern: str) -> list[str]:
    """A pattern with `{a,b}` as the patterns without braces."""
    patterns = [pattern]
    while any(_BRACES.search(each) for each in patterns):
        patterns = [
            each[: braces.start()] + choice + each[braces.end() :] if braces else each
            for each in patterns
            for braces in [_BRACES.search(each)]
            for choice in (braces[1].split(",") if braces else [""])
        ]
        if len(patterns) > _MOST_ALTERNATIVES:
            raise InputError(f"the braces in {pattern} have more than {_MOST_ALTERNATIVES:,} alternatives")
    return patterns


def _require_file(file: Path) -> None:
    if not file.is_file():
        raise InputError(
            f"{file} is neither a file nor a folder", remedy="name a file that can be read from start to end"
        )


def _nothing(whole: Path, given: Path) -> InputError:
    if whole.is_dir():
        return InputError(
            f"there are no files in {whole}", remedy="hidden files and names with _ in front do not count"
        )
    if glob.has_magic(str(given)) or "{" in str(given):
        return InputError(f"no file matches {whole}", remedy="check the pattern")
    siblings = [each.name for each in whole.parent.iterdir()] if whole.parent.is_dir() else []
    return InputError(
        f"there is no file {whole}",
        remedy=did_you_mean(whole.name, siblings) or f"there is no folder {whole.parent} either",
    )
