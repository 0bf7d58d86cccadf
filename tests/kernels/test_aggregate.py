"""What an aggregate announces and ends, function by function, on streams small enough to read."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from tests.kernels.aggregate_reference import Row, batch_of, contents, rows_of, run

from headgate.kernels.aggregate import Aggregate, AggregateCall, Function
from headgate.model.errors import DataError
from headgate.model.time import NEVER, Clock

COUNT_ROWS = AggregateCall(Function.COUNT, None, "n")


def over(
    dtype: pl.DataType, *calls: AggregateCall, keys: tuple[str, ...] = ("k",), **options: Any
) -> Aggregate:
    """An aggregate of a value x of the type by a key k."""
    return Aggregate(
        {"k": pl.String(), "x": dtype}, keys, calls, **{"slide": None, "append": False, **options}
    )


def call(
    function: Function, *, distinct: bool = False, parameter: float | int | None = None
) -> AggregateCall:
    return AggregateCall(function, "x", "y", distinct, parameter)


def value(dtype: pl.DataType, what: AggregateCall, values: list[Any]) -> Any:
    """What a call says of some values that are all there at one instant."""
    said, _ = run(over(dtype, what), [Row(("a", x), 0) for x in values])
    ((_, answer),) = contents(said, 0)
    return answer


class TestWhatIsSaid:
    def test_a_new_value_ends_the_old_one(self) -> None:
        said, _ = run(over(pl.Int64(), call(Function.SUM)), [Row(("a", 3), 1), Row(("a", 5), 4, 9)])
        assert said == [
            Row(("a", 3), 1),
            Row(("a", 3), 4, NEVER, -1),
            Row(("a", 8), 4),
            Row(("a", 8), 9, NEVER, -1),
            Row(("a", 3), 9),
        ]

    def test_a_value_that_does_not_change_is_left_alone(self) -> None:
        said, _ = run(over(pl.Int64(), call(Function.MAX)), [Row(("a", 5), 1), Row(("a", 3), 2, 6)])
        assert said == [Row(("a", 5), 1)]

    def test_a_row_that_takes_the_place_of_another_at_the_same_instant_changes_nothing(self) -> None:
        said, _ = run(over(pl.Int64(), call(Function.SUM)), [Row(("a", 5), 1, 4), Row(("a", 5), 4)], cuts=[3])
        assert said == [Row(("a", 5), 1)]

    @pytest.mark.parametrize("what", [call(Function.SUM), call(Function.MEDIAN)], ids=["SUM", "MEDIAN"])
    def test_a_row_may_die_at_the_instant_zero(self, what: AggregateCall) -> None:
        said, _ = run(over(pl.Int64(), what), [Row(("a", 5), 1, 4)], cuts=[2], epoch=4)
        assert [(row.born, row.sign) for row in said] == [(1, 1), (4, -1)]

    def test_a_group_that_is_empty_has_no_row(self) -> None:
        said, _ = run(over(pl.Int64(), COUNT_ROWS), [Row(("a", 1), 1, 4), Row(("a", 1), 6, 7)])
        assert [contents(said, instant).total() for instant in range(8)] == [0, 1, 1, 1, 0, 0, 1, 0]

    def test_an_ending_takes_the_row_out(self) -> None:
        rows = [Row(("a", 5), 1, 20), Row(("a", 7), 1), Row(("a", 7), 3, NEVER, -1), Row(("a", 5), 8, 20, -1)]
        said, _ = run(over(pl.Int64(), call(Function.SUM)), rows, cuts=[1, 5])
        assert [list(contents(said, instant)) for instant in (1, 3, 8, 20)] == [
            [("a", 12)],
            [("a", 5)],
            [],
            [],
        ]

    def test_several_results_change_together(self) -> None:
        least = AggregateCall(Function.MIN, "x", "least")
        most = AggregateCall(Function.MAX, "x", "most")
        said, _ = run(over(pl.Int64(), least, most), [Row(("a", 2), 0), Row(("a", 9), 1)])
        assert said == [Row(("a", 2, 2), 0), Row(("a", 2, 2), 1, NEVER, -1), Row(("a", 2, 9), 1)]

    def test_a_null_result_becomes_a_value_and_null_again(self) -> None:
        said, _ = run(over(pl.Int64(), call(Function.SUM)), [Row(("a", None), 0), Row(("a", 1), 2, 3)])
        assert [list(contents(said, instant)) for instant in (0, 2, 3)] == [
            [("a", None)],
            [("a", 1)],
            [("a", None)],
        ]

    def test_an_input_without_endings_may_not_have_one(self) -> None:
        kernel = over(pl.Int64(), COUNT_ROWS, endings=False)
        with pytest.raises(ValueError, match="ending"):
            run(kernel, [Row(("a", 1), 1), Row(("a", 1), 2, NEVER, -1)])


class TestGroups:
    def test_nulls_are_one_group(self) -> None:
        said, _ = run(over(pl.Int64(), COUNT_ROWS), [Row((None, 1), 0), Row((None, 2), 0), Row(("", 3), 0)])
        assert contents(said, 0) == {(None, 2): 1, ("", 1): 1}

    def test_nan_is_one_group_and_zero_has_no_sign(self) -> None:
        kernel = Aggregate({"k": pl.Float64()}, ("k",), (COUNT_ROWS,), slide=None, append=False)
        state, zeros = kernel.initial(), [Row((0.0,), 0), Row((math.nan,), 0)]
        state, first = kernel.advance(state, [batch_of(kernel.schema, zeros)], Clock(-1, 0, 0))
        more = [Row((-0.0,), 1), Row((math.nan,), 1)]
        _, second = kernel.advance(state, [batch_of(kernel.schema, more)], Clock(0, 1, 0))
        assert contents(rows_of(first) + rows_of(second), 1) == {(0.0, 2): 1, ("NaN", 2): 1}
        assert "-0.0" not in [str(key) for key in second.frame["k"]]

    @pytest.mark.parametrize("dtype", [pl.Float32(), pl.Float64()], ids=str)
    def test_a_negative_zero_is_said_as_zero_among_others_too(self, dtype: pl.DataType) -> None:
        kernel = Aggregate({"k": dtype}, ("k",), (COUNT_ROWS,), slide=None, append=False)
        rows = [Row((key,), 0) for key in (-0.0, 7.0, math.nan, None)]
        _, said = kernel.advance(kernel.initial(), [batch_of(kernel.schema, rows)], Clock(-1, 0, 0))
        # By their text, because -0.0 == 0.0.
        assert sorted(map(str, said.frame["k"])) == ["0.0", "7.0", "None", "nan"]

    def test_several_keys(self) -> None:
        kernel = Aggregate(
            {"a": pl.Int64(), "b": pl.Date()}, ("b", "a"), (COUNT_ROWS,), slide=None, append=False
        )
        day = dt.date(2024, 1, 1)
        said, _ = run(kernel, [Row((1, day), 0), Row((1, None), 0), Row((1, day), 0)])
        assert contents(said, 0) == {(day, 1, 2): 1, (None, 1, 1): 1}

    def test_groups_without_results_are_the_different_keys(self) -> None:
        said, _ = run(
            over(pl.Int64()), [Row(("a", 1), 0, 5), Row(("a", 2), 1, 3), Row((None, 3), 2)], cuts=[1]
        )
        assert said == [Row(("a",), 0), Row((None,), 2), Row(("a",), 5, NEVER, -1)]

    def test_keys_with_one_hash_stay_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def weak(frame: pl.DataFrame, columns: Any) -> Any:
            return frame.select(pl.lit(0, pl.UInt64).repeat_by(frame.height).explode()).to_series().to_numpy()

        for module in ("aggregate.groups", "state.table", "state.sorted_runs"):
            monkeypatch.setattr(f"headgate.kernels.{module}.key_hash", weak)
        rows = [
            Row((key, 1), born, born + 6)
            for born in range(12)
            for key in ("a", "b", None, "c")[: 1 + born % 4]
        ]
        said, _ = run(over(pl.Int64(), COUNT_ROWS), rows, cuts=range(20))
        monkeypatch.undo()
        assert contents(said, 11) == {("a", 6): 1, ("b", 5): 1, (None, 4): 1, ("c", 2): 1}
        assert not contents(said, 30)


class TestWithoutKeys:
    def test_there_is_a_row_over_nothing(self) -> None:
        kernel = over(pl.Int64(), COUNT_ROWS, call(Function.SUM), keys=())
        said, _ = run(kernel, [Row(("a", 5), 3, 6)], start=3)
        assert said[0] == Row((1, 5), 3)
        assert contents(said, 6) == {(0, None): 1}

    def test_the_row_over_nothing_comes_with_the_first_row_of_the_query(self) -> None:
        said, _ = run(over(pl.Int64(), COUNT_ROWS, keys=()), [Row(("a", 5), 7)], start=4, cuts=[2, 5])
        assert said == [Row((0,), 4), Row((0,), 7, NEVER, -1), Row((1,), 7)]

    def test_nothing_is_said_before_the_query_has_a_row(self) -> None:
        said, _ = run(over(pl.Int64(), COUNT_ROWS, keys=()), [], start=None)
        assert said == []

    def test_with_a_slide_the_row_comes_with_the_first_tick(self) -> None:
        kernel = over(pl.Int64(), COUNT_ROWS, keys=(), slide=10)
        said, _ = run(kernel, [Row(("a", 5), 10, 20)], start=3, cuts=[3, 9])
        assert said == [Row((1,), 10), Row((1,), 20, NEVER, -1), Row((0,), 20)]


class TestAppend:
    def test_values_are_announced_and_never_ended(self) -> None:
        kernel = over(pl.Int64(), call(Function.SUM), append=True)
        said, _ = run(kernel, [Row(("a", 3), 1, 8), Row(("a", 5), 4, 8), Row(("a", 1), 9)], cuts=[5])
        assert said == [Row(("a", 3), 1), Row(("a", 8), 4), Row(("a", 1), 9)]

    def test_without_keys_the_empty_value_is_announced_too(self) -> None:
        said, _ = run(over(pl.Int64(), COUNT_ROWS, keys=(), append=True), [Row(("a", 3), 1, 8)], start=1)
        assert said == [Row((1,), 1), Row((0,), 8)]


class TestFunctions:
    @pytest.mark.parametrize(
        ("what", "values", "answer"),
        [
            (call(Function.COUNT), [1, None, 1], 2),
            (call(Function.COUNT, distinct=True), [1, None, 1, 2], 2),
            (call(Function.COUNT), [None], 0),
            (call(Function.SUM), [1, None, 1], 2),
            (call(Function.SUM, distinct=True), [4, 4, 3], 7),
            (call(Function.AVG), [1, 2], 1.5),
            (call(Function.AVG, distinct=True), [1, 1, 2], 1.5),
            (call(Function.AVG), [2**63 - 1, 2**63 - 1], float(2**63)),
            (call(Function.MIN), [3, None, 2], 2),
            (call(Function.MAX, distinct=True), [3, None, 2, 3], 3),
            (call(Function.MEDIAN), [1, 2, 10, 3], 2.5),
            (call(Function.QUANTILE, parameter=0), [5, 1, 3], 1.0),
            (call(Function.QUANTILE, parameter=1), [5, 1, 3], 5.0),
            (call(Function.QUANTILE, parameter=0.25), [0, 10], 2.5),
            (call(Function.TOP, parameter=2), [7, 3, 3, 1, None, 1, 9], ((1, 2), (3, 2))),
            (call(Function.TOP, parameter=5), [7], ((7, 1),)),
            (call(Function.TOP, parameter=5), [None], None),
            (call(Function.SUM), [None, None], None),
            (call(Function.MEDIAN), [None], None),
        ],
        ids=str,
    )
    def test_of_integers(self, what: AggregateCall, values: list[int | None], answer: Any) -> None:
        assert value(pl.Int64(), what, values) == answer

    @pytest.mark.parametrize(
        ("function", "values", "answer"),
        [
            (Function.SUM, [0.1] * 10, 1.0),
            (Function.SUM, [1e308, 1e308, -1e308], 1e308),
            (Function.SUM, [1e308, 1e308], math.inf),
            (Function.SUM, [math.inf, 1.0], math.inf),
            (Function.SUM, [math.inf, -math.inf], "NaN"),
            (Function.AVG, [-math.inf, 1.0], -math.inf),
            (Function.AVG, [math.nan, 1.0], "NaN"),
            (Function.MIN, [math.nan, math.inf], math.inf),
            (Function.MAX, [math.nan, math.inf], "NaN"),
            (Function.MIN, [-math.inf, -1e308, 0.0], -math.inf),
            (Function.MEDIAN, [math.nan, 1.0, 2.0], 2.0),
            (Function.MEDIAN, [math.inf, math.inf], math.inf),
        ],
    )
    def test_of_doubles(self, function: Function, values: list[float], answer: Any) -> None:
        assert value(pl.Float64(), call(function), values) == answer

    def test_a_sum_of_doubles_forgets_what_has_left(self) -> None:
        rows = [Row(("a", 0.1), 0)]
        rows += [Row(("a", x), 1 + place, 9) for place, x in enumerate([1e300, math.inf, math.nan, -1e-300])]
        mean = AggregateCall(Function.AVG, "x", "mean")
        said, _ = run(over(pl.Float64(), call(Function.SUM), mean), rows)
        assert [list(contents(said, instant)) for instant in (1, 2, 3, 9)] == [
            [("a", 1e300, 5e299)],
            [("a", math.inf, math.inf)],
            [("a", "NaN", "NaN")],
            [("a", 0.1, 0.1)],
        ]

    @pytest.mark.parametrize(
        ("what", "values", "answer"),
        [
            (call(Function.SUM), ["0.10", "0.20"], "0.30"),
            (call(Function.AVG), ["0.01", "0.02", "0.02"], "0.016667"),
            (call(Function.AVG), ["-0.01", "-0.02", "-0.02"], "-0.016667"),
            (call(Function.AVG), ["0.05", "0.06"], "0.055000"),
            (call(Function.MIN), ["9999999.99", "-0.01"], "-0.01"),
        ],
    )
    def test_of_decimals(self, what: AggregateCall, values: list[str], answer: str) -> None:
        assert value(pl.Decimal(9, 2), what, [Decimal(text) for text in values]) == Decimal(answer)

    def test_halves_are_rounded_away_from_zero(self) -> None:
        tiny = [Decimal("0.0001")] + [Decimal(0)] * 15_999
        assert value(pl.Decimal(9, 4), call(Function.AVG), tiny) == Decimal("0.00000001")
        minus = [-x for x in tiny]
        assert value(pl.Decimal(9, 4), call(Function.AVG), [*minus, *[Decimal(0)] * 4000]) == Decimal(
            "-0.00000001"
        )

    @pytest.mark.parametrize(
        ("dtype", "values"),
        [
            (pl.String(), ["b", "", "é"]),
            (pl.Binary(), [b"b", b"", b"\xff"]),
            (pl.Boolean(), [True, False, True]),
            (pl.Date(), [dt.date(1960, 1, 1), dt.date(1900, 1, 1), dt.date(2024, 1, 1)]),
            (
                pl.Datetime("us", "UTC"),
                [dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (1960, 1900, 2024)],
            ),
            (pl.Duration("us"), [dt.timedelta(seconds=n) for n in (0, -5, 7)]),
            (pl.Decimal(18, 2), [Decimal("-9" + "9" * 15 + ".99"), Decimal("9" * 16 + ".99"), Decimal(0)]),
            (pl.Decimal(19, 0), [Decimal("-" + "9" * 19), Decimal("9" * 19), Decimal(0)]),
            (pl.Decimal(38, 2), [Decimal("1e30"), Decimal("-1e30"), Decimal("1e31")]),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("endings", [False, True])
    def test_extremes_of_any_type(self, dtype: pl.DataType, values: list[Any], endings: bool) -> None:
        least, most = AggregateCall(Function.MIN, "x", "least"), AggregateCall(Function.MAX, "x", "most")
        rows = [Row(("a", x), born, 10 - born) for born, x in enumerate(values)] + [Row(("a", None), 0)]
        said, _ = run(over(dtype, least, most, endings=endings), rows, cuts=[0, 1, 8])
        for instant in range(11):
            alive = [row.payload[1] for row in rows[:-1] if row.born <= instant < row.dies]
            extremes = (min(alive), max(alive)) if alive else (None, None)
            assert list(contents(said, instant)) == [("a", *extremes)]


class TestOverflow:
    def test_a_sum_of_integers_that_does_not_fit(self) -> None:
        with pytest.raises(DataError, match=r"SUM\(x\) overflowed"):
            value(pl.Int64(), call(Function.SUM), [2**63 - 1, 1])

    def test_a_sum_that_fits_although_parts_of_it_do_not(self) -> None:
        assert value(pl.Int64(), call(Function.SUM), [2**63 - 1, 2**63 - 1, -(2**63), -(2**63)]) == -2

    def test_deaths_that_do_not_fit_together(self) -> None:
        rows = [Row(("a", x), 0, 5) for x in (2**62, 2**62, -(2**62))] + [Row(("a", -(2**62)), 0)]
        rows += [Row(("a", -(2**62)), 5, 9)]
        said, _ = run(over(pl.Int64(), call(Function.SUM)), rows, cuts=[2])
        assert [list(contents(said, instant)) for instant in (0, 5)] == [[("a", 0)], [("a", -(2**63))]]

    def test_a_sum_of_decimals_that_does_not_fit(self) -> None:
        with pytest.raises(DataError, match=r"SUM\(DISTINCT x\) overflowed"):
            value(pl.Decimal(38, 0), call(Function.SUM, distinct=True), [Decimal("9e37"), Decimal("8e37")])

    def test_an_average_of_decimals_that_does_not_fit(self) -> None:
        with pytest.raises(DataError, match=r"AVG\(x\) overflowed"):
            value(pl.Decimal(38, 2), call(Function.AVG), [Decimal("9e35")])


class TestTypes:
    @pytest.mark.parametrize(
        ("function", "argument", "result"),
        [
            (Function.COUNT, pl.String(), pl.Int64()),
            (Function.SUM, pl.Int16(), pl.Int64()),
            (Function.SUM, pl.Float32(), pl.Float64()),
            (Function.SUM, pl.Decimal(9, 2), pl.Decimal(19, 2)),
            (Function.SUM, pl.Decimal(35, 2), pl.Decimal(38, 2)),
            (Function.AVG, pl.Int32(), pl.Float64()),
            (Function.AVG, pl.Decimal(9, 2), pl.Decimal(13, 6)),
            (Function.AVG, pl.Decimal(38, 36), pl.Decimal(38, 38)),
            (Function.MIN, pl.Float32(), pl.Float32()),
            (Function.MEDIAN, pl.Decimal(9, 2), pl.Float64()),
            (Function.TOP, pl.Date(), pl.List(pl.Struct({"item": pl.Date(), "count": pl.Int64()}))),
        ],
    )
    def test_results(self, function: Function, argument: pl.DataType, result: pl.DataType) -> None:
        what = call(function, parameter=3 if function == Function.TOP else None)
        assert over(argument, what).output_schema == {"k": pl.String(), "y": result}
        said, _ = run(over(argument, what), [Row(("a", None), 0)])
        assert len(said) == 1

    @pytest.mark.parametrize(
        ("function", "options"),
        [
            (Function.QUANTILE, {}),
            (Function.QUANTILE, {"parameter": 1.5}),
            (Function.TOP, {"parameter": 0}),
            (Function.TOP, {"parameter": 2.5}),
            (Function.MEDIAN, {"distinct": True}),
        ],
    )
    def test_calls_that_make_no_sense(self, function: Function, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=function.name):
            call(function, **options)

    def test_only_count_goes_without_an_argument(self) -> None:
        with pytest.raises(ValueError, match="SUM needs an argument"):
            AggregateCall(Function.SUM, None, "y")
        with pytest.raises(ValueError, match="COUNT needs an argument"):
            AggregateCall(Function.COUNT, None, "y", distinct=True)

    def test_only_some_functions_read_a_second_column(self) -> None:
        with pytest.raises(ValueError, match="CORR has another number of arguments"):
            AggregateCall(Function.CORR, "x", "y")
        with pytest.raises(ValueError, match="SUM has another number of arguments"):
            AggregateCall(Function.SUM, "x", "y", second="k")

    def test_only_numbers_are_added(self) -> None:
        with pytest.raises(ValueError, match="SUM of a column of type String"):
            over(pl.String(), call(Function.SUM))

    def test_columns_must_exist_and_differ(self) -> None:
        with pytest.raises(ValueError, match="no input columns"):
            Aggregate({"k": pl.Int64()}, ("missing",), (COUNT_ROWS,), slide=None, append=False)
        with pytest.raises(ValueError, match="two columns of one name"):
            Aggregate({"n": pl.Int64()}, ("n",), (COUNT_ROWS,), slide=None, append=False)
