"""The wheel in an environment of its own, without extras: what a first user has. It is built and installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_commands import COMMANDS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples and an environment `venv` that has the wheel and what it depends on."""
    found = tmp_path_factory.mktemp("fresh")
    source = found / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # The wheel carries the glossary of the documents, and an example that `reproduce` runs.
    shutil.copytree(ROOT / "docs", source / "docs")
    shutil.copytree(ROOT / "examples", source / "examples")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", found, source], check=True)
    subprocess.run([sys.executable, "-m", "venv", found / "venv"], check=True)
    [wheel] = found.glob("headgate-*.whl")
    subprocess.run([*pip, "--python", found / "venv", "install", wheel], check=True)
    shutil.copytree(ROOT / "examples", found / "examples")
    return found / "examples"


def headgate(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [place.parent / "venv" / "bin" / "headgate", *arguments]
    setting = {"PATH": os.environ["PATH"], "COLUMNS": "80", "LANG": "C.UTF-8"}
    return subprocess.run(command, cwd=place, env=setting, capture_output=True, text=True, check=False)


def test_there_are_no_extras(place: Path) -> None:
    python = place.parent / "venv" / "bin" / "python"
    names = "('pyspark', 'matplotlib', 'duckdb')"
    asked = f"from importlib.util import find_spec; print([each for each in {names} if find_spec(each)])"
    assert subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_demo_plays_and_says_how_to_get_the_picture(place: Path) -> None:
    done = headgate(place, "demo", "--engine", "local")
    assert done.returncode == 0, done.stderr
    assert "headgate[" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_check_and_run(place: Path) -> None:
    assert headgate(place, "check", "quickstart.cql").returncode == 0
    done = headgate(place, "run", "quickstart.cql", "--output", "out", "--engine", "local")
    assert done.returncode == 0, done.stderr
    assert list((place / "out").glob("*/*.parquet"))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns(place: Path, command: str) -> None:
    done = headgate(place, *command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
