"""Jars from Maven for the tests' servers, resolved once into a cache outside of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

Artifact = tuple[str, str, str]
"""Group, name and version."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headgate-tests"


def resolve(artifacts: Sequence[Artifact], without: Sequence[str] = ()) -> list[Path] | None:
    """The jars of artifacts and what they need, but of no group in `without`; None if the repository lacks one.

    Both answers are kept: emptying the cache asks again.
    """
    folder = cache() / "-".join(f"{name}-{version}" for _, name, version in artifacts)
    absent = folder.with_name(f"{folder.name}.absent")
    if absent.exists():
        return None
    if not folder.exists():
        program = shutil.which("mvn")
        if program is None:
            raise RuntimeError(
                "Maven is not installed: `make test-services` installs it on Debian and Ubuntu"
            )
        beside = cache() / f".{uuid4().hex}"
        beside.mkdir(parents=True)
        try:
            (beside / "pom.xml").write_text(_project(artifacts, without))
            done = subprocess.run(
                [
                    program,
                    "--batch-mode",
                    "--quiet",
                    # Its own repository: descriptors without jars in the usual one would mislead Spark's resolver.
                    f"-Dmaven.repo.local={cache() / 'm2'}",
                    "--file",
                    str(beside / "pom.xml"),
                    "dependency:copy-dependencies",
                    f"-DoutputDirectory={beside / 'jars'}",
                    "-DincludeScope=runtime",
                ],
                check=False,
                capture_output=True,
                timeout=600,
            )
            if done.returncode:
                absent.touch()
                return None
            (beside / "jars").rename(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return sorted(folder.glob("*.jar"))


def _project(artifacts: Sequence[Artifact], without: Sequence[str]) -> str:
    left_out = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>" for group in without
    )
    needed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"<exclusions>{left_out}</exclusions></dependency>"
        for group, name, version in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>headgate</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{needed}</dependencies></project>"
    )
