"""Reports about a statement hold no password that stands in its OPTIONS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli_runner import headgate

from headgate.language.masked import masked
from headgate.language.parse import parse
from headgate.language.render import render
from headgate.model.source import SourceText

SECRET = "hunter2"


@pytest.mark.parametrize(
    "option",
    [
        "kafka.sasl.jaas.config 'x required password=\"hunter2\";'",
        "kafka.ssl.key.password 'hunter2'",
        "'PassWord' 'hunter2'",
        "dsn 'postgresql://bob:hunter2@db/shop'",
        "dsn 'host=db PASSWORD = hunter2'",
        "url 'jdbc:postgresql://db/shop?password=hunter2'",
        "fs.s3a.secret.key 'hunter2'",
        "accessKey 'hunter2'",
    ],
)
def test_passwords_are_masked(option: str) -> None:
    [statement] = parse(
        SourceText("q.cql", f"CREATE TABLE t (k INT) USING x OPTIONS (path 'a@b', {option});")
    )
    assert SECRET in render(statement.tree)
    shown = render(masked(statement.tree))
    assert SECRET not in shown
    assert "path 'a@b'" in shown
    assert "'…'" in shown
    assert SECRET in render(statement.tree)


@pytest.mark.parametrize("format", ["text", "json", "html"])
def test_a_report_of_fixes_has_no_password(format: str, tmp_path: Path) -> None:
    path = tmp_path / "q.cql"
    path.write_text(
        "CREATE STREAM a (ts TIMESTAMP, k INT) TIMESTAMP BY ts USING kafka OPTIONS (subscribe 'a', "
        f"kafka.bootstrap.servers 'h:1', kafka.sasl.jaas.config 'x password=\"{SECRET}\";');\n"
        "CREATE QUERY q AS SELECT a.k FROM a, a b WHERE a.k = b.k;\n"
    )
    done = headgate("check", path, "--format", format)
    assert done.code == 1
    assert SECRET not in done.out + done.err
    if format == "json":
        assert "jaas.config '…'" in json.dumps(json.loads(done.out), ensure_ascii=False)
