"""The registry of aggregates: what it says is true of the kernels, and what it does not list does not exist."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from headgate.kernels.aggregate import Aggregate, AggregateCall
from headgate.kernels.expressions.dtypes import arrow_type
from headgate.model.aggregates import (
    Distinct,
    Function,
    Kind,
    OverNothing,
    Parameter,
    Second,
    Traits,
    aggregate_names,
    function_named,
    result_type,
)
from headgate.model.batch import LIFETIME_SCHEMA, Batch
from headgate.model.errors import UnsupportedError
from headgate.model.time import NEVER, Clock
from headgate.session import Query, Session

LANGUAGE = Path(__file__).parents[2] / "docs" / "language.md"

STREAM = "CREATE STREAM s (ts TIMESTAMP, x INT, y DOUBLE, b BOOLEAN) TIMESTAMP BY ts;"
PARAMETERS: dict[Parameter, float | int | None] = {
    Parameter.NONE: None,
    Parameter.SHARE: 0.5,
    Parameter.SIZE: 3,
}


def query(aggregate: str) -> Query:
    found = Session().sql(f"{STREAM} CREATE QUERY q AS SELECT {aggregate} AS v FROM s [RANGE 5 SECONDS];")
    assert found is not None
    return found


def argument(function: Function) -> str:
    """A column that the function takes."""
    return "x" if function.traits.result(arrow_type(pl.Int32())) is not None else "b"


def written(name: str, function: Function) -> str:
    """A call of the function by one of its names."""
    parts = [argument(function)]
    if function.traits.second in (Second.NUMBER, Second.ORDER):
        parts.append("y")
    if function.traits.parameter is not Parameter.NONE:
        parts.append(str(PARAMETERS[function.traits.parameter]))
    return f"{name}({', '.join(parts)})"


@pytest.mark.parametrize("name", aggregate_names())
def test_every_name_is_bound(name: str) -> None:
    function = function_named(name)
    assert function is not None
    assert query(written(name.lower(), function)).judged.admitted


@pytest.mark.parametrize("text", ["KURTOSIS(x)", "MODE(x)", "BIT_AND(x)"])
def test_what_is_not_registered_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(UnsupportedError, match="is not supported") as refused:
        _ = query(text).judged
    remedy = refused.value.remedy or ""
    assert all(re.search(rf"\b{name}\b", remedy) for name in aggregate_names())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAX(x, y)", "MAX takes one argument"),
        ("MAX_BY(x)", "MAX_BY takes two arguments"),
        ("APPROX_PERCENTILE(x)", "between 0 and 1"),
        ("APPROX_PERCENTILE(x, 1.5)", "between 0 and 1"),
        ("STDDEV(DISTINCT x)", "does not take DISTINCT"),
        ("COLLECT_LIST(DISTINCT x)", "does not take DISTINCT"),
        ("COUNT(DISTINCT x, y)", "takes one value"),
    ],
)
def test_calls_of_the_wrong_shape(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        _ = query(text).judged


@pytest.mark.parametrize("text", ["FIRST(n)", "COLLECT_LIST(n)"])
def test_what_goes_by_event_time_needs_a_stream(text: str) -> None:
    groups = "(SELECT x, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY x) g"
    with pytest.raises(UnsupportedError, match="the rows of g have none") as refused:
        Session().sql(f"{STREAM} CREATE QUERY q AS SELECT {text} AS v FROM {groups};")
    assert "MIN_BY" in str(refused.value.remedy)


def test_a_function_that_lacks_a_trait_cannot_be_written_down() -> None:
    given = {name: getattr(Function.MEDIAN.traits, name) for name in Traits.__dataclass_fields__}
    assert Traits(**given) == Function.MEDIAN.traits
    for name in given:
        with pytest.raises(TypeError, match=name):
            Traits(**{key: value for key, value in given.items() if key != name})


@pytest.mark.parametrize(
    "wrong", [{"mergeable": True}, {"invertible": True}, {"second": Second.TIME}, {"kind": Kind.LINEAR}]
)
def test_traits_that_contradict_one_another(wrong: dict[str, Any]) -> None:
    given = {name: getattr(Function.MEDIAN.traits, name) for name in Traits.__dataclass_fields__}
    with pytest.raises(ValueError, match="MEDIAN"):
        Traits(**{**given, **wrong})


def over_nothing(function: Function) -> Any:
    """What the kernel says of a group whose only row has no value."""
    schema = {"k": pl.Int64(), "x": pl.Boolean() if argument(function) == "b" else pl.Int32()}
    second = None if function.traits.second is Second.NOTHING else "k"
    call = AggregateCall(function, "x", "v", False, PARAMETERS[function.traits.parameter], second)
    kernel = Aggregate(schema, ("k",), (call,))
    lives = dict(zip(LIFETIME_SCHEMA, ([1], [NEVER], [1]), strict=True))
    rows = pl.DataFrame({"k": [1], "x": [None], **lives}, schema={**schema, **LIFETIME_SCHEMA})
    _, said = kernel.advance(kernel.initial(), [Batch(rows)], Clock(0, 2, 1))
    return said.frame["v"].to_list()[0]


@pytest.mark.parametrize("function", list(Function))
def test_what_is_said_of_nothing(function: Function) -> None:
    said = {OverNothing.ZERO: 0, OverNothing.NULL: None, OverNothing.EMPTY: []}
    assert over_nothing(function) == said[function.traits.over_nothing]


@pytest.mark.parametrize("function", list(Function))
def test_a_function_is_itself_in_another_process(function: Function) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("function", list(Function))
def test_types_are_those_of_the_traits(function: Function) -> None:
    taken = arrow_type(pl.Boolean() if argument(function) == "b" else pl.Int32())
    second = None if function.traits.second is Second.NOTHING else arrow_type(pl.Float64())
    found = query(written(function.name, function)).plan.schema[0].type
    assert found == result_type(function, taken, second)


def _rows() -> dict[str, tuple[str, ...]]:
    """The table of aggregates in the documentation: by name, the other cells of its line."""
    text = LANGUAGE.read_text().split("### Aggregates")[1].split("###")[0]
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {line[0].split("`")[1].split("(")[0]: tuple(cell.strip() for cell in line) for line in lines}


def test_the_documentation_lists_what_there_is() -> None:
    assert list(_rows()) == [function.name for function in Function]


@pytest.mark.parametrize("function", list(Function))
def test_the_documentation_says_what_the_registry_says(function: Function) -> None:
    traits = function.traits
    call, kind, nothing, about = _rows()[function.name]
    assert re.findall(r"`(\w+)[`(]", call) == list(traits.names)
    assert kind == traits.kind.name.lower()
    assert (
        nothing
        == {OverNothing.ZERO: "0", OverNothing.NULL: "NULL", OverNothing.EMPTY: "[]"}[traits.over_nothing]
    )
    assert about == traits.about + (
        "; DISTINCT counts each value once" if traits.distinct is Distinct.ONCE_EACH else ""
    )
