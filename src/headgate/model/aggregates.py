"""Aggregates: the one registry of aggregate functions, each with all that any part of Headgate asks about it.

A function is a member of `Function`, and its value, a `Traits`, has no field with a default: a function that lacks
a trait cannot be written down. Binding, the gate, the optimizer and the kernels ask the traits and never the name,
and match the enums below exhaustively, so that a new kind or accumulator fails in `make check` wherever it is not
yet thought of. What is not registered has no name that binding would find, and so never reaches the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum, auto, unique
from typing import Any, assert_never

import pyarrow as pa

from headgate.model import types

TypeRule = Callable[[pa.DataType], pa.DataType | None]
"""From the type of the first argument to that of the result; None if the function does not take it."""

MOST_FREQUENT = 10_000
"""TOP keeps no more values than that."""


class Kind(Enum):
    """What has to be remembered of a group to know the function's value after rows have come and gone.

    This is what the gate asks. Over rows that never leave: LINEAR, EXTREME and SKETCH are bounded if the groups
    are, HOLISTIC only if its arguments have finitely many values too.
    """

    LINEAR = auto()
    """Sums of fixed size. Rows are added and taken back."""
    EXTREME = auto()
    """One row. When it leaves, others have to be known."""
    HOLISTIC = auto()
    """Every value: no summary of fixed size of two bags gives the value of their union."""
    SKETCH = auto()
    """How often each of finitely many cells occurs, whatever the values are. Rows are added and taken back."""


class Structure(Enum):
    """Where the aggregate kernel keeps what an accumulator needs."""

    SUMS = auto()
    """The ledger of the group."""
    PRESENCES = auto()
    """How many different values there are: a sum too, which a bag keeps up."""
    EXTREME = auto()
    """The frontier, or a bag where rows may end."""
    BAG = auto()
    """A bag, all of which is read."""


class Term(StrEnum):
    """What is added up of a row: x and y themselves, or products of them."""

    X = "sum"
    Y = "y"
    XX = "xx"
    YY = "yy"
    XY = "xy"


class Accumulator(Enum):
    """How the aggregate kernel computes the value, where it keeps what it needs for that, and what it adds up."""

    COUNT = "count", Structure.SUMS, ()
    SUM = "sum", Structure.SUMS, (Term.X,)
    MEAN = "mean", Structure.SUMS, (Term.X,)
    SAMPLE_VARIANCE = "sample variance", Structure.SUMS, (Term.X, Term.XX)
    POPULATION_VARIANCE = "population variance", Structure.SUMS, (Term.X, Term.XX)
    SAMPLE_DEVIATION = "sample deviation", Structure.SUMS, (Term.X, Term.XX)
    POPULATION_DEVIATION = "population deviation", Structure.SUMS, (Term.X, Term.XX)
    SAMPLE_COVARIANCE = "sample covariance", Structure.SUMS, (Term.X, Term.Y, Term.XY)
    POPULATION_COVARIANCE = "population covariance", Structure.SUMS, (Term.X, Term.Y, Term.XY)
    CORRELATION = "correlation", Structure.SUMS, (Term.X, Term.Y, Term.XX, Term.YY, Term.XY)
    ALL_TRUE = "all true", Structure.SUMS, (Term.X,)
    SOME_TRUE = "some true", Structure.SUMS, (Term.X,)
    LEAST = "least", Structure.EXTREME, ()
    GREATEST = "greatest", Structure.EXTREME, ()
    QUANTILE = "in proportion between two values", Structure.BAG, ()
    RANK = "one of the values by rank", Structure.BAG, ()
    FREQUENT = "most frequent", Structure.BAG, ()
    LIST = "all values", Structure.BAG, ()
    SET = "all different values", Structure.BAG, ()
    COUPONS = "cells of a sketch", Structure.PRESENCES, ()

    def __init__(self, about: str, structure: Structure, terms: tuple[Term, ...]) -> None:
        self.about = about
        self.structure = structure
        self.terms = terms


class Reading(Enum):
    """What the accumulator is given of a row."""

    VALUE = auto()
    """The argument."""
    REAL = auto()
    """The argument as DOUBLE."""
    REAL_PAIR = auto()
    """Both arguments as DOUBLE, nothing if either is NULL."""
    VALUE_BY = auto()
    """The second argument, then the first; nothing if the second is NULL."""
    VALUE_AT = auto()
    """The time, then the argument; nothing if the argument is NULL."""
    BUCKET = auto()
    """The argument rounded to eight significant binary digits."""
    COUPON = auto()
    """The cell of a sketch that the argument's hash falls into."""


class Second(Enum):
    """What a function reads besides its first argument."""

    NOTHING = auto()
    NUMBER = auto()
    """A second argument, a number."""
    ORDER = auto()
    """A second argument that has an order."""
    TIME = auto()
    """The event time of the row, which nobody writes."""


class Parameter(Enum):
    """A constant after the arguments."""

    NONE = auto()
    SHARE = auto()
    """From 0 to 1."""
    SIZE = auto()
    """A whole number from 1 to `MOST_FREQUENT`."""


class Distinct(Enum):
    """What DISTINCT before the argument does."""

    ONCE_EACH = auto()
    """Every value counts once; the values have to be known then."""
    NO_DIFFERENCE = auto()
    REFUSED = auto()


class OverNothing(Enum):
    """The value where there is no row, or none with a value."""

    ZERO = auto()
    NULL = auto()
    EMPTY = auto()
    """An array without elements."""


@dataclass(frozen=True)
class Traits:
    """All about one function. Nothing has a default."""

    names: tuple[str, ...]
    """As Spark SQL has them; messages and plans use the first."""
    parsed: tuple[str, ...]
    """Further names by which the parser calls its nodes."""
    about: str
    """What the documentation says of it, in a line."""
    takes: str
    """What the argument has to be, as a message says it."""
    result: TypeRule
    second: Second
    parameter: Parameter
    distinct: Distinct
    over_nothing: OverNothing
    kind: Kind
    mergeable: bool
    """Whether parts of a group can be added up apart from one another (by the kernel `condense`)."""
    invertible: bool
    """Whether a row is taken back without knowing the others."""
    duplicates_matter: bool
    """Whether repeating a row changes the value."""
    reading: Reading
    accumulator: Accumulator

    def __post_init__(self) -> None:
        if self.kind is Kind.HOLISTIC and self.mergeable:
            raise ValueError(f"{self.names[0]}: what needs every value is not mergeable")
        if self.invertible is not (self.kind in (Kind.LINEAR, Kind.SKETCH)):
            raise ValueError(f"{self.names[0]}: sums are invertible, and extremes and bags are not")
        two = self.reading in (Reading.REAL_PAIR, Reading.VALUE_BY, Reading.VALUE_AT)
        if two is not (self.second is not Second.NOTHING):
            raise ValueError(
                f"{self.names[0]}: reads a second argument that it does not take, or the other way round"
            )


def _bigint(argument: pa.DataType) -> pa.DataType | None:
    return types.BIGINT


def _number(argument: pa.DataType) -> pa.DataType | None:
    return types.DOUBLE if types.is_numeric(argument) else None


def _sum(argument: pa.DataType) -> pa.DataType | None:
    if pa.types.is_decimal(argument):
        return pa.decimal128(min(38, argument.precision + 10), argument.scale)
    return types.BIGINT if types.is_integer(argument) else _number(argument)


def _mean(argument: pa.DataType) -> pa.DataType | None:
    if pa.types.is_decimal(argument):
        return pa.decimal128(min(38, argument.precision + 4), min(38, argument.scale + 4))
    return _number(argument)


def _truth(argument: pa.DataType) -> pa.DataType | None:
    return types.BOOLEAN if argument == types.BOOLEAN else None


def _same(argument: pa.DataType) -> pa.DataType | None:
    return argument if types.is_orderable(argument) else None


def _same_number(argument: pa.DataType) -> pa.DataType | None:
    return argument if types.is_numeric(argument) else None


def _array(argument: pa.DataType) -> pa.DataType | None:
    return pa.list_(argument) if types.is_orderable(argument) else None


def _counted_array(argument: pa.DataType) -> pa.DataType | None:
    if not types.is_orderable(argument):
        return None
    return pa.list_(pa.struct([("item", argument), ("count", types.BIGINT)]))


def _count_distinct(argument: pa.DataType) -> pa.DataType | None:
    return types.BIGINT if types.is_orderable(argument) else None


def _linear(
    *names: str,
    about: str,
    takes: str,
    result: TypeRule,
    accumulator: Accumulator,
    reading: Reading,
    distinct: Distinct,
    parsed: tuple[str, ...] = (),
    over_nothing: OverNothing = OverNothing.NULL,
    duplicates_matter: bool = True,
) -> Traits:
    """What is computed from sums."""
    return Traits(
        names=names,
        parsed=parsed,
        about=about,
        takes=takes,
        result=result,
        second=Second.NUMBER if reading is Reading.REAL_PAIR else Second.NOTHING,
        parameter=Parameter.NONE,
        distinct=distinct,
        over_nothing=over_nothing,
        kind=Kind.LINEAR,
        mergeable=True,
        invertible=True,
        duplicates_matter=duplicates_matter,
        reading=reading,
        accumulator=accumulator,
    )


def _moment(*names: str, about: str, accumulator: Accumulator, reading: Reading) -> Traits:
    """What is computed from sums of numbers and of their products."""
    return _linear(
        *names,
        about=about,
        takes="a number",
        result=_number,
        accumulator=accumulator,
        reading=reading,
        distinct=Distinct.REFUSED,
    )


def _extreme(
    *names: str, about: str, accumulator: Accumulator, second: Second, parsed: tuple[str, ...] = ()
) -> Traits:
    """The value of one row, which comes first or last in an order."""
    alone = second is Second.NOTHING
    return Traits(
        names=names,
        parsed=parsed,
        about=about,
        takes="an order",
        result=_same,
        second=second,
        parameter=Parameter.NONE,
        distinct=Distinct.NO_DIFFERENCE,
        over_nothing=OverNothing.NULL,
        kind=Kind.EXTREME,
        mergeable=True,
        invertible=False,
        duplicates_matter=False,
        reading=Reading.VALUE if alone else Reading.VALUE_BY,
        accumulator=accumulator,
    )


def _holistic(
    *names: str,
    about: str,
    takes: str,
    result: TypeRule,
    accumulator: Accumulator,
    distinct: Distinct,
    parameter: Parameter = Parameter.NONE,
    over_nothing: OverNothing = OverNothing.NULL,
    second: Second = Second.NOTHING,
    duplicates_matter: bool = True,
    parsed: tuple[str, ...] = (),
) -> Traits:
    """What is computed from all values."""
    return Traits(
        names=names,
        parsed=parsed,
        about=about,
        takes=takes,
        result=result,
        second=second,
        parameter=parameter,
        distinct=distinct,
        over_nothing=over_nothing,
        kind=Kind.HOLISTIC,
        mergeable=False,
        invertible=False,
        duplicates_matter=duplicates_matter,
        reading=Reading.VALUE if second is Second.NOTHING else Reading.VALUE_AT,
        accumulator=accumulator,
    )


@unique
class Function(Enum):
    """The aggregate functions there are."""

    COUNT = _linear(
        "COUNT",
        about="rows, or values that are not NULL",
        takes="a value",
        result=_bigint,
        accumulator=Accumulator.COUNT,
        reading=Reading.VALUE,
        distinct=Distinct.ONCE_EACH,
        over_nothing=OverNothing.ZERO,
    )
    SUM = _linear(
        "SUM",
        about="exact: for DOUBLE, the true sum rounded once",
        takes="a number",
        result=_sum,
        accumulator=Accumulator.SUM,
        reading=Reading.VALUE,
        distinct=Distinct.ONCE_EACH,
    )
    AVG = _linear(
        "AVG",
        "MEAN",
        about="from the exact sum",
        takes="a number",
        result=_mean,
        accumulator=Accumulator.MEAN,
        reading=Reading.VALUE,
        distinct=Distinct.ONCE_EACH,
    )
    VAR_SAMP = _moment(
        "VAR_SAMP",
        "VARIANCE",
        about="sample variance, from exact sums; NULL for one value",
        accumulator=Accumulator.SAMPLE_VARIANCE,
        reading=Reading.REAL,
    )
    VAR_POP = _moment(
        "VAR_POP",
        about="population variance, from exact sums",
        accumulator=Accumulator.POPULATION_VARIANCE,
        reading=Reading.REAL,
    )
    STDDEV_SAMP = _moment(
        "STDDEV_SAMP",
        "STDDEV",
        "STD",
        about="square root of VAR_SAMP",
        accumulator=Accumulator.SAMPLE_DEVIATION,
        reading=Reading.REAL,
    )
    STDDEV_POP = _moment(
        "STDDEV_POP",
        about="square root of VAR_POP",
        accumulator=Accumulator.POPULATION_DEVIATION,
        reading=Reading.REAL,
    )
    COVAR_SAMP = _moment(
        "COVAR_SAMP",
        about="sample covariance of the pairs without NULL; NULL for one pair",
        accumulator=Accumulator.SAMPLE_COVARIANCE,
        reading=Reading.REAL_PAIR,
    )
    COVAR_POP = _moment(
        "COVAR_POP",
        about="population covariance of the pairs without NULL",
        accumulator=Accumulator.POPULATION_COVARIANCE,
        reading=Reading.REAL_PAIR,
    )
    CORR = _moment(
        "CORR",
        about="Pearson's correlation of the pairs without NULL; NULL for one pair, NaN if one side does not vary",
        accumulator=Accumulator.CORRELATION,
        reading=Reading.REAL_PAIR,
    )
    BOOL_AND = _linear(
        "BOOL_AND",
        "EVERY",
        about="whether all values are true",
        takes="a BOOLEAN",
        result=_truth,
        accumulator=Accumulator.ALL_TRUE,
        reading=Reading.VALUE,
        distinct=Distinct.NO_DIFFERENCE,
        duplicates_matter=False,
    )
    BOOL_OR = _linear(
        "BOOL_OR",
        "ANY",
        "SOME",
        about="whether some value is true",
        takes="a BOOLEAN",
        result=_truth,
        accumulator=Accumulator.SOME_TRUE,
        reading=Reading.VALUE,
        distinct=Distinct.NO_DIFFERENCE,
        duplicates_matter=False,
    )
    MIN = _extreme("MIN", about="the least value", accumulator=Accumulator.LEAST, second=Second.NOTHING)
    MAX = _extreme(
        "MAX",
        about="the greatest value; NaN is greater than any number",
        accumulator=Accumulator.GREATEST,
        second=Second.NOTHING,
    )
    ANY_VALUE = _extreme(
        "ANY_VALUE",
        about="one of the values that are not NULL, always the same one: the least",
        accumulator=Accumulator.LEAST,
        second=Second.NOTHING,
    )
    MIN_BY = _extreme(
        "MIN_BY",
        about="the value of the row with the least second argument; among equal ones the least value",
        accumulator=Accumulator.LEAST,
        second=Second.ORDER,
    )
    MAX_BY = _extreme(
        "MAX_BY",
        about="the value of the row with the greatest second argument; among equal ones the greatest value",
        accumulator=Accumulator.GREATEST,
        second=Second.ORDER,
    )
    FIRST = _extreme(
        "FIRST",
        "FIRST_VALUE",
        about="the value of the earliest row; among equal times the least value",
        accumulator=Accumulator.LEAST,
        second=Second.TIME,
    )
    LAST = _extreme(
        "LAST",
        "LAST_VALUE",
        about="the value of the latest row; among equal times the greatest value",
        accumulator=Accumulator.GREATEST,
        second=Second.TIME,
    )
    MEDIAN = _holistic(
        "MEDIAN",
        about="the value in the middle, or half-way between two",
        takes="a number",
        result=_number,
        accumulator=Accumulator.QUANTILE,
        distinct=Distinct.REFUSED,
    )
    QUANTILE = _holistic(
        "QUANTILE",
        "PERCENTILE",
        about="the value below which a share of the others lies, in proportion between two",
        takes="a number",
        result=_number,
        accumulator=Accumulator.QUANTILE,
        distinct=Distinct.REFUSED,
        parameter=Parameter.SHARE,
    )
    TOP = _holistic(
        "TOP",
        about="an array of the most frequent values with their counts; among equally frequent ones the least first",
        takes="an order",
        result=_counted_array,
        accumulator=Accumulator.FREQUENT,
        distinct=Distinct.REFUSED,
        parameter=Parameter.SIZE,
    )
    COLLECT_LIST = _holistic(
        "COLLECT_LIST",
        "ARRAY_AGG",
        about="an array of the values that are not NULL, by event time; at equal times by value",
        takes="an order",
        result=_array,
        accumulator=Accumulator.LIST,
        distinct=Distinct.REFUSED,
        over_nothing=OverNothing.EMPTY,
        second=Second.TIME,
    )
    COLLECT_SET = _holistic(
        "COLLECT_SET",
        about="an array of the different values that are not NULL, in ascending order",
        takes="an order",
        result=_array,
        accumulator=Accumulator.SET,
        distinct=Distinct.NO_DIFFERENCE,
        over_nothing=OverNothing.EMPTY,
        duplicates_matter=False,
        parsed=("ARRAY_UNIQUE_AGG",),
    )
    APPROX_COUNT_DISTINCT = Traits(
        names=("APPROX_COUNT_DISTINCT",),
        parsed=("APPROX_DISTINCT",),
        about="about how many different values; the relative standard error is 1.1 %",
        takes="an order",
        result=_count_distinct,
        second=Second.NOTHING,
        parameter=Parameter.NONE,
        distinct=Distinct.NO_DIFFERENCE,
        over_nothing=OverNothing.ZERO,
        kind=Kind.SKETCH,
        mergeable=False,
        invertible=True,
        duplicates_matter=False,
        reading=Reading.COUPON,
        accumulator=Accumulator.COUPONS,
    )
    APPROX_PERCENTILE = Traits(
        names=("APPROX_PERCENTILE", "PERCENTILE_APPROX"),
        parsed=("APPROX_QUANTILE",),
        about="a value within 0.4 % of the one below which a share of the others lies",
        takes="a number",
        result=_same_number,
        second=Second.NOTHING,
        parameter=Parameter.SHARE,
        distinct=Distinct.REFUSED,
        over_nothing=OverNothing.NULL,
        kind=Kind.SKETCH,
        mergeable=False,
        invertible=True,
        duplicates_matter=True,
        reading=Reading.BUCKET,
        accumulator=Accumulator.RANK,
    )

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        # By name: the traits hold functions, and are the same wherever it is read.
        return getattr, (Function, self.name)

    def __repr__(self) -> str:
        return f"Function.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def traits(self) -> Traits:
        return self.value

    @property
    def is_extreme(self) -> bool:
        return self.value.kind is Kind.EXTREME

    @property
    def is_largest(self) -> bool:
        """Whether an extreme is the greatest one."""
        return self.value.accumulator is Accumulator.GREATEST


def _by_name() -> dict[str, Function]:
    found: dict[str, Function] = {}
    for function in Function:
        if function.traits.names[0] != function.name:
            raise ValueError(f"{function.name} is called {function.traits.names[0]}")
        for name in (*function.traits.names, *function.traits.parsed):
            if name in found:
                raise ValueError(f"{name} is both {found[name]} and {function}")
            found[name] = function
    return found


_BY_NAME = _by_name()


def function_named(name: str) -> Function | None:
    """The function of a name in any case, as Spark SQL or the parser spells it; None if there is none."""
    return _BY_NAME.get(name.upper())


def aggregate_names() -> tuple[str, ...]:
    """Every name that a query may use."""
    return tuple(name for function in Function for name in function.traits.names)


def result_type(
    function: Function, argument: pa.DataType | None, second: pa.DataType | None
) -> pa.DataType | None:
    """The type of a function over arguments of these types, as in Spark SQL; None if it does not take them."""
    traits = function.traits
    if argument is None:
        return types.BIGINT if traits.accumulator is Accumulator.COUNT else None
    match traits.second:
        case Second.NOTHING:
            fits = second is None
        case Second.NUMBER:
            fits = second is not None and types.is_numeric(second)
        case Second.ORDER | Second.TIME:
            fits = second is not None and types.is_orderable(second)
        case _:
            assert_never(traits.second)
    return traits.result(argument) if fits else None
