"""Where queries run: on Spark unless told otherwise, and clear words where Spark cannot run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli_runner import headgate

from headgate import Session
from headgate.model.errors import SetupError
from headgate.runtime.spark import cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
NO_JAVA = "there is no Java (JAVA_HOME is not set and java is not in PATH)"


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "why_not_spark", lambda: NO_JAVA)


@pytest.mark.usefixtures("no_java")
def test_without_java_a_run_names_the_other_engine(tmp_path: Path) -> None:
    done = headgate("run", EXAMPLES / "quickstart.cql", "-o", tmp_path / "out")
    assert (done.code, done.out) == (3, "")
    assert NO_JAVA in done.err
    assert "--engine local" in done.err
    assert not (tmp_path / "out").exists()


def test_an_old_pyspark_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.4")
    done = headgate("run", EXAMPLES / "quickstart.cql", "-o", tmp_path / "out")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error[HG601]: Spark cannot run here: PySpark 4.1.4 is too old: before 4.2, ")
    assert "pip install 'headgate[spark]'" in done.err
    with pytest.raises(SetupError, match=r"PySpark 4\.1\.4 is too old"):
        _ = Session(object()).on_spark


@pytest.mark.usefixtures("no_java")
def test_a_refusal_needs_no_java(tmp_path: Path) -> None:
    done = headgate("run", EXAMPLES / "refused.cql", "-o", tmp_path / "out")
    assert done.code == 1
    assert "HG401" in done.err


@pytest.mark.usefixtures("no_java")
def test_without_java_the_demo_runs_all_the_same(tmp_path: Path) -> None:
    done = headgate("demo", "--items", "50", "--picture", tmp_path / "demo.png")
    assert done.code == 0
    assert done.out.splitlines()[0].startswith(
        "on the local engine (as --engine local does): there is no Java"
    )
    assert (tmp_path / "demo.png").exists()


@pytest.mark.usefixtures("no_java")
def test_a_demo_that_was_told_to_use_spark_does_not_use_another(tmp_path: Path) -> None:
    done = headgate("demo", "--engine", "spark", "--picture", tmp_path / "demo.png")
    assert done.code == 3
    assert "--engine local" in done.err


@pytest.mark.usefixtures("no_java")
def test_without_matplotlib_the_demo_plays_and_says_how_to_get_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = headgate("demo", "--items", "50", "--picture", tmp_path / "demo.png")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == (
        "no picture, for matplotlib is not installed: pip install 'headgate[lab]'"
    )
    assert not (tmp_path / "demo.png").exists()


@pytest.mark.parametrize("command", [("reproduce", "joins"), ("bench", "join"), ("soak",)])
def test_a_picture_that_cannot_be_drawn_is_refused_before_the_work(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = headgate(*command, "--picture", tmp_path / "x.png")
    assert (done.code, done.out) == (3, "")
    assert done.err == "error[HG601]: pictures need matplotlib\n  help: pip install 'headgate[lab]'\n"


def test_options_of_spark_are_not_ignored_by_the_local_engine(tmp_path: Path) -> None:
    done = headgate("run", EXAMPLES / "quickstart.cql", "-o", tmp_path / "o", "--engine", "local", "--follow")
    assert done.code == 2
    assert "--follow is for Spark" in done.err
