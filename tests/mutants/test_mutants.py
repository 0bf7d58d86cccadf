"""The changes that are made to code on purpose."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.mutants.__main__ import EQUIVALENT
from tests.mutants.covering import noting
from tests.mutants.operators import mutants
from tests.mutants.process import ROOT
from tests.mutants.worker import Change, Functions

from headgate.kernels.state.tiers import newest_to_merge


def changes(source: str) -> set[str]:
    return {" ".join(each.mutated.split()) for each in mutants("m.py", source.encode())}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {"(a <= b)"}),
        ("x = a == b", {"(a != b)"}),
        ("x = a and b", {"(a or b)", "a", "b"}),
        ("x = not a", {"a"}),
        ("x = a + b", {"(a - b)"}),
        ("x = 3", {"4"}),
        ("x = True", {"False"}),
        ("x = max(a, b)", {"(min(a, b))"}),
        ("x = any(a)", {"(all(a))"}),
        ("x = rows.filter(a)", {"rows"}),
        ("x = f(a, strict=True)", {"False"}),
        ("x[a] = b", {"pass"}),
        ("forget(a)", {"pass"}),
        ("x = a if b else c", {"a", "c"}),
        ("def f() -> bool:\n    return a", {"return not a"}),
        ("def f() -> int | None:\n    return a", {"return None"}),
    ],
)
def test_each_operator(source: str, expected: set[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""Words."""',
        "def f(x: 'int' = a) -> int: ...",
        "assert a < b",
        "x = f'{a + 1}'",
        "@f(True)\ndef g(): ...",
        "x = zip(a, b, strict=True)",
        "x = pl.concat(a, rechunk=True)",
        "x = np.abs(a)",
        "assert_never(x)",
    ],
)
def test_what_is_only_said_is_left_alone(source: str) -> None:
    assert changes(source) == set()


def test_a_change_replaces_its_own_text_alone() -> None:
    source = "é = 'ü'; x = [a < b,\n  c]\n".encode()
    (mutant,) = mutants("m.py", source)
    assert mutant.applied(source).decode() == "é = 'ü'; x = [(a <= b),\n  c]\n"
    assert str(mutant) == "m.py:1  a < b → (a <= b)"


def test_a_change_knows_its_function_and_its_statement() -> None:
    source = b"LIMIT = 3\nclass C:\n    def f(self):\n        return g(\n            1,\n        )\n"
    at_import, inside = mutants("m.py", source)
    assert (at_import.function, at_import.statement) == ("", 0)
    assert (inside.function, inside.line, inside.statement) == ("C.f", 5, 4)


def test_like_changes_of_a_function_have_keys_of_their_own() -> None:
    found = mutants("m.py", b"def f(a):\n    return a[1] + a[1]\ndef g(a):\n    return a[1]\n")
    assert [each.key for each in found if each.original == "1"] == [
        "m.py f: 1 → 2",
        "m.py f: 1 → 2 (place 2)",
        "m.py g: 1 → 2",
    ]


def test_code_notes_the_lines_that_run() -> None:
    source = b"""def chosen(flag):
    if flag:
        return 1
    elif flag is None:
        return [
            2,
        ]
    return 3
"""
    lines: set[int] = set()
    names: dict[str, Any] = {"_note_line": lines.add}
    exec(compile(noting(source), "m.py", "exec"), names)
    assert names["chosen"](None) == [2]
    assert lines == {2, 4, 5}


def test_a_change_is_made_in_the_running_process_and_taken_back() -> None:
    path = "src/headgate/kernels/state/tiers.py"
    found = mutants(path, (ROOT / path).read_bytes())
    change = next(each for each in found if each.function == "newest_to_merge" and each.original == "1")
    made = Change(Functions.found(ROOT / "src"), change)
    assert newest_to_merge([10]) == 1
    with made:
        assert newest_to_merge([10]) == 2
    assert newest_to_merge([10]) == 1


def test_a_constant_of_a_module_cannot_be_changed_in_a_running_process() -> None:
    path = "src/headgate/kernels/state/tiers.py"
    change = next(each for each in mutants(path, (ROOT / path).read_bytes()) if not each.statement)
    assert not Change(Functions.found(ROOT / "src"), change).fits


def test_every_equivalent_change_has_a_reason() -> None:
    listed = yaml.safe_load(EQUIVALENT.read_text())
    assert all(isinstance(reason, str) and len(reason) > 20 for reason in listed.values())
