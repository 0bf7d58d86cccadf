"""Expressions at the ends of what their types hold: the largest numbers, halves, instants that do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

_NINES = "9" * 28 + "." + "9" * 10
_LARGEST = f"CAST('{_NINES}' AS DECIMAL(38, 10))"
_MOST = f"CAST('{'9' * 38}' AS DECIMAL(38, 0))"
_ONES = f"CAST('{'1' * 38}' AS DECIMAL(38, 0))"
_HALF = f"CAST('-{'4' * 20}.5' AS DECIMAL(30, 1))"
_SIXES = f"CAST('6{'0' * 37}' AS DECIMAL(38, 0))"
_MORE_SIXES = f"CAST('-6{'0' * 37}' AS DECIMAL(38, 0))"
_DOUBLES = ("1e300D", "-1e300D", "9223372036854775807D", "-9223372036854775808D", "-9223372036854777856D")


def edges() -> Iterator[str]:
    """Expressions with a value in every row."""
    for part in (_rounded, _cut, _read, _tried, _whole, _times, _apart, _texts, _chosen, _asked):
        yield from part()


def failing() -> Iterator[str]:
    """Expressions that have no value in some row, so that ANSI SQL stops at it."""
    yield from (
        *(
            "i / (i - i)",
            "i % (l - l)",
            "i DIV (i - i)",
            "c / (c - c)",
            "n % 0",
            "x / 0",
            "pmod(i, 0)",
            "g % 0",
        ),
        *("y + 125Y", "h * h * h * h", "i * 2000000", "l + 9223372036854775807", "-9223372036854775807 - l"),
        *("l * 9223372036854775807", "abs(-128Y)", "negative(CAST(-32768 AS SMALLINT))", "-(-2147483648)"),
        *(f"{_MOST} + 1", f"-{_MOST} - 1", f"{_MOST} * 10", f"{_MOST} / 1", f"{_LARGEST} * {_LARGEST}"),
        *(f"round({_MOST}, -1)", f"bround({_MOST}, -2)", "round(127Y, -1)", "round(2147483647, -1)"),
        *("CAST(i AS TINYINT)", "CAST(x AS INT)", "CAST(l AS SMALLINT)", "CAST(c AS DECIMAL(3, 2))"),
        *(
            "CAST(s AS INT)",
            "CAST(s AS DOUBLE)",
            "CAST(s AS BOOLEAN)",
            "CAST(s AS DATE)",
            "CAST(s AS TIMESTAMP)",
        ),
        *("CAST(s AS DECIMAL(5, 1))", "CAST(x AS DECIMAL(5, 1))", "CAST('2024-02-30' AS DATE)"),
        *("CAST('2024-01-01 24:00:00' AS TIMESTAMP)", "CAST('2024-01-01 10:60:00' AS TIMESTAMP)"),
        *("CAST(300 AS TINYINT)", "CAST(1e10D AS INT)", "CAST('NaN' AS INT)", "CAST(1e30D AS BIGINT)"),
        *(
            "make_date(2023, 2, 29)",
            "make_date(2023, 13, 1)",
            "to_date('x', 'yyyy')",
            "to_date(s, 'yyyy-MM-dd')",
        ),
        *("to_timestamp('2024-02-30 1:00', 'yyyy-MM-dd H:mm')", "unix_timestamp('x', 'yyyy')"),
        *("t + INTERVAL 100000 DAYS * 2000000", "INTERVAL 1 DAY * 1e300D"),
        *("t + INTERVAL 1 HOUR / 0", "t + INTERVAL 1 HOUR / (i - i)"),
        *(
            "CASE WHEN i > 100 THEN 1 / 0 ELSE i END",
            "coalesce(i, 1 / 0)",
            "if(p, i, 1 / 0)",
            "nvl(i, l / 0)",
        ),
        *("coalesce(NULL, i, 1 / (y - y))", "nvl2(i, 1, 1 / 0)", "CASE WHEN 1 / i > 0 THEN l % (l - l) END"),
        *("element_at(split(s, ','), 9)", "9223372036854775807 DIV CAST(0 AS BIGINT)", "CAST(t AS TINYINT)"),
        *(
            f"CAST({_LARGEST} AS DECIMAL(30, 10))",
            f"CAST({_MOST} AS BIGINT)",
            "CAST(-9223372036854775808 AS BIGINT) DIV -1",
        ),
        *("floor(9223372036854775808D)", "floor(-9223372036854777856D)", "ceil(CAST('-inf' AS DOUBLE))"),
        *("floor(x * 1e10D)", "floor(1e20D, 1)", "ceil(abs(w), -38)", "floor(-abs(w), -39)"),
        *("element_at(split(s, ','), -9)", "INTERVAL 1 DAY * -1e300D", f"round({_MOST}, -38)"),
        *("CAST(p AS DECIMAL(1, 1))", "n / EXTRACT(SECOND FROM r)", "unix_timestamp(o, 'yyyy')"),
        *("CASE WHEN p THEN 1 ELSE 1 / (y - 5) END", "CASE WHEN 1 / (y - 1) > 0 THEN 1 END"),
        *(
            "CASE WHEN y = 1 THEN 0 WHEN 1 / (y - 2) > 0 THEN 1 ELSE 2 END",
            "coalesce(i, 1 / (i - i), 1 / (y + 7))",
        ),
    )


def _rounded() -> Iterator[str]:
    for function, value in product(
        ("round", "bround"), (_LARGEST, _ONES, _HALF, f"-{_LARGEST}", "w", "v", "c")
    ):
        yield from (f"{function}({value}, {places})" for places in (-39, -38, -30, -20, -5, -2, 0, 2, 9, 12))
    for value in (_LARGEST, _ONES, _HALF, "w", "v"):
        shapes = ("DECIMAL(38, 0)", "DECIMAL(38, 2)", "DECIMAL(10, 1)", "DECIMAL(38, 20)", "DECIMAL(38, 37)")
        yield from (f"TRY_CAST({value} AS {shape})" for shape in shapes)
        yield from (f"{function}({value})" for function in ("ceil", "floor"))
    for divisor in ("128", "-128", "64", "7"):
        yield from (f"CAST({a} AS DECIMAL(38, 6)) / CAST({divisor} AS DECIMAL(3, 0))" for a in "yhil")
    yield from ("CAST(x AS DECIMAL)", "CAST(c AS DECIMAL)", "CAST(i AS DECIMAL(12))")
    yield from (f"round({value}, {places})" for value in _DOUBLES for places in (-300, -2, 0, 2, 300))
    yield from (f"{function}({value})" for function in ("ceil", "floor") for value in (*_DOUBLES, "x", "-x"))
    yield from (
        f"{function}(CAST('{word}' AS DOUBLE))" for function in ("ceil", "floor") for word in ("NaN", "inf")
    )
    for value in ("25Y", "-25S", "35", "-35", "9223372036854775807", "-45L"):
        yield from (
            f"{function}({value}, {places})" for function in ("round", "bround") for places in (-19, -1, 0, 1)
        )


def _cut() -> Iterator[str]:
    """FLOOR and CEIL to digits behind the point, and to tens and hundreds."""
    for function, value in product(("floor", "ceil"), "yhilgxcnwv"):
        yield from (f"{function}({value}, {places})" for places in (-20, -2, -1, 0, 1, 3))
    yield from (
        "ceil(c, 5)",
        "floor(v, 17)",
        "ceil(c, -(1))",
        "floor(-x / 3, 4)",
        "ceil(x / 3, 4)",
    )
    yield from (
        "floor(w, -29)",
        "ceil(abs(w), -29)",
        "ceil(w, -37)",
        "floor(abs(w), -39)",
        "ceil(-abs(w), -39)",
    )
    yield from ("CAST(floor(c) AS STRING)", "CAST(ceil(w) AS STRING)", "CAST(floor(n) AS STRING)")
    yield from ("floor(9223372036854774784D)", "ceil(CAST('NaN' AS FLOAT))", f"round({_ONES}, -38)")
    yield from (f"{function}({_LARGEST}, -28)" for function in ("round", "bround"))
    # From 2^52 on a double has no fraction.
    yield from (
        f"{function}({value}D)"
        for function in ("round", "bround")
        for value in (2**52, -(2**52), 2**52 - 0.5)
    )


def _read() -> Iterator[str]:
    """Text and floating-point numbers as decimals: what is just below a half, and what has an exponent."""
    nines = "9" * 30
    for text in (
        *(
            f"0.4{nines}",
            f"-0.4{nines}",
            "0.4999999999999",
            f"1.24{nines}",
            f"99999.4{nines}",
            "99999.5",
            "0.005",
        ),
        *(
            "0.05",
            "0.95",
            "-0.5",
            "-.4",
            "5.",
            ".",
            "+",
            "",
            "--1",
            "1e1.5",
            "1e",
            "e2",
            "0x1",
            "1.2.3",
            "1,000",
        ),
        *(
            "5e-1",
            "-5e-1",
            f"4.{nines}e-1",
            "4.9e-2",
            "5e-2",
            "1E2",
            "1e+2",
            "12345.678e-3",
            "123e2",
            "1e40",
            "1e-40",
        ),
        *("0e100", "0e2147483648", "1e2147483648", f"{'0' * 50}12.5", f"0.{'0' * 60}1e60", "000", " 1.5 "),
    ):
        yield from (f"TRY_CAST('{text}' AS {shape})" for shape in ("DECIMAL(5, 0)", "DECIMAL(5, 1)"))
    for text in (
        f"{'9' * 38}",
        f"-{'9' * 38}.4",
        f"{'9' * 38}.5",
        f"9.{'9' * 37}4",
        f"0.{'9' * 38}5",
        "1234567890e-47",
    ):
        yield from (f"TRY_CAST('{text}' AS DECIMAL(38, {scale}))" for scale in (0, 37, 38))
    for value in (
        "0.49999999999999994D",
        "-2.4999999999999996D",
        "1e-40D",
        "4.9e-324D",
        "1.5e22D",
        "x / 7",
        "g / 3",
    ):
        yield from (f"TRY_CAST({value} AS {shape})" for shape in ("DECIMAL(5, 0)", "DECIMAL(38, 20)"))
    yield from (f"CAST(CAST({value} AS FLOAT) AS DECIMAL(30, 12))" for value in ("0.1D", "x / 1000", "1e-7D"))
    yield from ("TRY_CAST(l * 1000000 AS DECIMAL)", "CAST(-w AS TIMESTAMP)", "CAST(-v AS TIMESTAMP)")
    yield from (
        f"CAST(CAST('{text}' AS DECIMAL(20, {scale})) AS TIMESTAMP)"
        for text, scale in (
            ("-1.1234567", 7),
            ("-0.0000005", 7),
            ("253402300799.999999", 6),
            ("-62135596800", 6),
            ("253402300799", 0),
        )
    )


def _tried() -> Iterator[str]:
    # Each is small enough, and both together are not.
    yield from (f"try_add({_SIXES}, {_SIXES})", f"try_subtract({_SIXES}, {_MORE_SIXES})")
    for function in ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod"):
        for a, b in product(
            (_LARGEST, f"-{_LARGEST}", _MOST, f"-{_MOST}", "w"), ("1", "-1", "0.5", "0", "c")
        ):
            yield f"{function}({a}, {b})"
        for a in ("127Y", "-128Y", "2147483647", "9223372036854775807", "-9223372036854775807"):
            yield from (f"{function}({a}, {b})" for b in ("1Y", "-2Y", "i", "l"))
    yield from (
        f"try_add({_MOST}, {_MOST})",
        f"try_multiply({_LARGEST}, {_LARGEST})",
        f"try_divide({_MOST}, v)",
    )
    # The rows that are too large are told from those that are not.
    yield from ("try_multiply(w * 1000000, 100000000000000000000)", "try_divide(w, v - 1)")
    yield from (
        "try_multiply(l, 92233720368547758)",
        "try_add(y, 125Y)",
        "try_divide(i, y - 1)",
        "try_mod(i, y - 5)",
    )


def _whole() -> Iterator[str]:
    for value in ("9007199254740993", "-9007199254740993", "9223372036854775807"):
        yield from (f"{value} DIV {by}" for by in ("1", "y", "-2", "10L"))
        yield from (f"{value} % {by}" for by in ("10", "y", "-7"))
        yield from (f"pmod({value}, {by})" for by in ("10", "-10"))
    yield from (f"{_ONES} DIV {by}" for by in ("10000000000000000000", "-100000000000000000000"))
    yield from (
        "-l % -3",
        "pmod(-l, -3)",
        "pmod(i, -4)",
        "pmod(x, 2)",
        "pmod(-x, 0.5D)",
        "pmod(c, 0.3)",
        "pmod(-c, 0.3)",
    )
    yield from (
        "1e300D % 7",
        "x % 1e-3D",
        "-x % 3",
        "log(3, abs(x))",
        "log(10, abs(x))",
        "log(x, 5)",
        "log(0.5D, abs(x))",
    )
    yield from (
        "ln(0D)",
        "ln(-1D)",
        "log10(0D)",
        "log2(-1D)",
        "log1p(-1D)",
        "log1p(-2D)",
        "sqrt(-1D)",
        "log(1, 2)",
        "log(-1, 2)",
    )
    yield from (
        "y & h",
        "i | 12",
        "l ^ 5",
        "~i",
        "~y",
        "NULL DIV i",
        "i DIV NULL",
        "i & 255L",
        "CAST(p AS DECIMAL(3, 1))",
        "CAST(p AS DOUBLE)",
    )


def _times() -> Iterator[str]:
    clocks = (
        "23:59:59",
        "24:00:00",
        "0:0:0",
        "10:60:00",
        "10:59:60",
        "10:59",
        "10",
        "1:2:3.1234567",
        "10:11:12 ",
    )
    zones = ("Z", "+02:00", "-0330", " UTC", "+2", "+18:00", "-18:01", "X", "+02:60")
    for clock in clocks:
        yield f"TRY_CAST('2024-02-29 {clock}' AS TIMESTAMP)"
    yield from (f"TRY_CAST('2024-02-29T10:11:12{zone}' AS TIMESTAMP)" for zone in zones)
    yield from (
        f"TRY_CAST('{day}' AS DATE)"
        for day in (" 2024-01-01 ", "2024-13-01", "2024-00-01", "2024-01-01x", "+2024-01-01")
    )
    for factor in ("2", "i", "0.5", "-1.5D", "c"):
        yield from (f"t + INTERVAL 3 HOURS * {factor}", f"t + {factor} * INTERVAL '1' SECOND")
    yield from (f"t - INTERVAL 1 DAY / {by}" for by in ("7", "2.5", "-3", "g"))
    yield from (
        "INTERVAL 1 HOUR + t",
        "t + INTERVAL i HOURS",
        "t + INTERVAL (l) SECONDS",
        "t - INTERVAL '1' DAY + INTERVAL '2' HOUR",
    )
    yield from (
        f"t + INTERVAL '{text}' {units}"
        for text, units in (
            ("1 2", "DAY TO HOUR"),
            ("1:30", "HOUR TO MINUTE"),
            ("1:2:3.5", "HOUR TO SECOND"),
            ("2 3:4:5.25", "DAY TO SECOND"),
            ("3:4.5", "MINUTE TO SECOND"),
            ("-1 2:03", "DAY TO MINUTE"),
        )
    )
    yield from (f"t + INTERVAL {count} {unit}" for count in (1, -13, 25) for unit in ("MONTHS", "YEARS"))
    yield from (f"d + INTERVAL {count} {unit}" for count in (1, -13) for unit in ("MONTHS", "YEARS"))
    yield from (f"t {sign} INTERVAL '1 DAY 2 HOURS'" for sign in "+-")
    yield from ("d + y", "d - i", "3 + d", "h + d", "d - b", "b - t", "t - d")
    for pattern in ("Z", "z", "xxx", "yyyy-MM-dd HH:mm:ssZ", "h a", "HHmm", "d.M.yyyy", "MMM d", "mm''ss"):
        yield from (f'date_format({a}, "{pattern}")' for a in "td")
    yield from (f"date_format(t, '{'S' * count}')" for count in (1, 2, 4, 5, 7, 9))
    yield "to_timestamp('2024-01-01 00:00:00+0200', 'yyyy-MM-dd HH:mm:ssZ')"
    yield from (
        f"to_timestamp('{text}', '{pattern}')"
        for text, pattern in (
            ("2024", "yyyy"),
            ("29/02/24 7", "dd/MM/yy H"),
            ("10:11", "HH:mm"),
            ("2024-060", "yyyy-DDD"),
            ("1 PM", "h a"),
            ("Feb 29 2024", "MMM d yyyy"),
            ("20240229", "yyyyMMdd"),
            ("2024-02-29 10:11:12.345", "yyyy-MM-dd HH:mm:ss.SSS"),
            ("10:11.123456789", "HH:mm.SSSSSSSSS"),
            ("10:11.123456", "HH:mm.SSSSSS"),
        )
    )
    yield from (
        "unix_timestamp('2024-02-29', 'yyyy-MM-dd')",
        "to_unix_timestamp(d)",
        "unix_timestamp(d)",
        "from_unixtime(-1)",
        "from_unixtime(l, 'yyyy HH')",
    )
    yield from (
        f"EXTRACT({part} FROM {a})"
        for part in ("DAYOFWEEK", "DOW", "DOY", "WEEK", "QUARTER", "SECOND")
        for a in "td"
    )
    yield from (
        "CAST(CAST(t AS TIMESTAMP_NTZ) AS STRING)",
        "CAST(CAST(t AS TIMESTAMP_NTZ) AS DATE)",
        "CAST(t AS TIMESTAMP_NTZ) < r",
        "CAST(t AS FLOAT)",
        "CAST(l AS TIMESTAMP)",
        "CAST(x AS TIMESTAMP)",
        "CAST(t AS INT)",
    )
    yield from (
        "TRY_CAST(t AS TINYINT)",
        "TRY_CAST(1e18D AS TIMESTAMP)",
        "CAST(i AS STRING) || d",
        "CAST(t - r AS BIGINT)",
        "t - r < INTERVAL 2 DAYS",
        "INTERVAL 2 HOURS * 3 > t - r",
    )


def _apart() -> Iterator[str]:
    """Instants, spans and the calendar: what is one thing less than a month apart, and what stands before a +."""
    for months, micros in product((-2, -1, 0, 1, 2), (-1, 0, 1)):
        other = f"t + INTERVAL {months} MONTHS + INTERVAL {micros} MICROSECONDS"
        yield from (f"timestampdiff(MONTH, t, {other})", f"timestampdiff(MONTH, {other}, t)")
    for one, other in product(
        ("2024-03-31 10:00:00", "2024-05-01 09:00:00", "2024-07-01 11:00:00", "0001-01-01 00:00:00"), repeat=2
    ):
        yield from (
            f"timestampdiff({unit}, TIMESTAMP '{one}', TIMESTAMP '{other}')" for unit in ("MONTH", "QUARTER")
        )
    yield from ("timestampdiff(YEAR, t, r + INTERVAL 400 DAYS)", "timestampdiff(MONTH, t, d)")
    yield from (
        "timestampdiff(MONTH, CAST(t AS TIMESTAMP_NTZ), r)",
        "timestampdiff(HOUR, CAST(t AS TIMESTAMP_NTZ), r)",
    )
    yield from (
        "add_months(DATE '0002-01-31', -12)",
        "add_months(DATE '9998-12-31', 12)",
        "timestampadd(DAY, 1, TIMESTAMP '0001-01-01 00:00:00')",
    )
    yield from (f"INTERVAL {step} + {a}" for step in ("1 DAY", "5 HOURS", "1 MONTH") for a in "dt")
    yield from (f"INTERVAL 2 DAYS {sign} (t - r)" for sign in "+-")
    yield from (f"(t - r) {sign} INTERVAL 1 HOUR" for sign in "+-")
    yield from ("3 * (t - r)", "(t - r) / 2", "(t - r) + d", "d + (t - r)", "d - b", "b - d", "d - t")
    yield from ("CAST(d + INTERVAL 1 DAY AS STRING)", "CAST(INTERVAL 1 DAY + d AS STRING)")
    yield from ("INTERVAL 1 DAY * 3660000", "INTERVAL 1 DAY * -3660000")
    for moved in ("{} + INTERVAL 1 HOUR", "timestampadd(HOUR, 3, {})", "timestampadd(MONTH, 3, {})"):
        yield moved.format("CAST(t AS TIMESTAMP_NTZ)") + " < CAST(r AS TIMESTAMP_NTZ)"
    yield from ("w * EXTRACT(SECOND FROM t)", "EXTRACT(SECOND FROM t) / 7")
    yield from (f"to_date({a}, 'yyyy')" for a in "dt")
    for function in ("unix_timestamp", "to_unix_timestamp"):
        yield from (f"{function}({a}, 'yyyy')" for a in "dt")
        yield f"{function}(date_format(t, 'dd.MM.yyyy HH'), 'dd.MM.yyyy HH')"
        yield from (f"{function}('{text}')" for text in ("2024-02-29 10:11:12", "1969-12-31 23:59:59"))


def _texts() -> Iterator[str]:
    for mark in ("'.'", "'|'", "'['", "'\\\\'", "'$'"):
        yield from (f"{function}(s, {mark})" for function in ("contains", "startswith", "endswith", "instr"))
        yield from (f"split_part(s, {mark}, 1)", f"replace(s, {mark}, '^$')", f"replace(s, {mark})")
    yield from (f"locate('{part}', s, {start})" for part in ("", "d", "l") for start in (0, 1, 11, 12))
    yield "regexp_extract(s, '([a-z]+)[ ,.]([a-z]*)')"
    yield from (f"repeat(s, {count})" for count in ("3", "i % 4", "-1", "y"))
    yield from (
        "repeat('ab', y)",
        "space(y)",
        "space(-1)",
        "space(0)",
        "lpad(s, 4)",
        "rpad(s, 0)",
        "rpad('é', 3, 'äö')",
        "lpad('', 3, 'xyz')",
    )
    yield from (
        "trim('  a ')",
        "trim(BOTH FROM s)",
        "trim(LEADING FROM s)",
        "trim(TRAILING FROM s)",
        "trim('h' FROM s)",
        "ltrim('  a ')",
        "rtrim(' a  ')",
    )
    yield from (f"replace(s, {old})" for old in ("'l'", "'wör'"))
    yield from (
        "replace(s, 'l', o)",
        "replace(s, 'll', 'L')",
        "replace(s, 'l', NULL)",
        "translate(s, 'hé', 'xyz')",
        "translate(s, '', 'x')",
        "translate(s, 'll', 'ab')",
    )
    yield from (
        f"s LIKE '{pattern}'"
        for pattern in ("%", "_%", "a,_,,c", "%\\\\%", "h%d", "%é%w%", "a%c", "_____________")
    )
    yield from (
        "s LIKE '%#,%' ESCAPE '#'",
        "s LIKE 'a#_%' ESCAPE '#'",
        "s LIKE '%\\\\_%'",
        "s ILIKE '%WÖR%'",
        "concat(s, '%') LIKE '%\\\\%'",
    )
    yield from (f"split_part(s, '{by}', {part})" for by in (",", "l", "|", ".") for part in (1, 2, 3, -2))
    yield from (f"size(split(s, '{by}'))" for by in (",", "\\\\|", "[,.]", "x"))
    yield from (f"element_at(split(s, ','), {at})" for at in (1, -1))
    yield from (f"get(split(s, ','), {at})" for at in (0, 1, 9, -1))
    yield from ("array_contains(split(s, ','), 'b')", "size(split('', ','))", "cardinality(split(s, ' '))")
    yield from (
        "regexp_replace(s, '([a-z])([a-z])', '$2$1')",
        "regexp_replace(s, 'l', '\\\\$')",
        "regexp_extract(s, '(l+)|(z)', 2)",
        "regexp_like(s, '^[a-z]')",
    )
    yield from (f"instr(s, '{part}')" for part in ("", "ö", "zz"))
    yield from (
        f"locate({part}, s, {start})" for part in ("''", "'l'", "o") for start in ("y", "h", "NULL", "12")
    )
    yield from (
        "left(s, NULL)",
        "right(s, y)",
        "left(s, y)",
        "substring(s, y)",
        "substring(s, y, y)",
        "substring(s, -y, 3)",
        "initcap('a-b c.d éa')",
        "upper('straße')",
        "length('a b ')",
    )


def _chosen() -> Iterator[str]:
    yield from (
        "coalesce(y, h, i)",
        "coalesce(NULL, i)",
        "coalesce(i, if(l > 0, l, 0))",
        "coalesce(c, x)",
        "nvl(s, o)",
        "ifnull(d, b)",
    )
    yield from (
        "nullif(i, NULL)",
        "nullif(i, l)",
        "nullif(s, o)",
        "nullif(t, r)",
        "nullif(c, 1.25)",
    )
    yield from (
        "NULL = i",
        "i = NULL",
        "NULL <=> NULL",
        "NULL = NULL",
        "i <=> NULL",
        "NULL < s",
        "s <=> NULL",
        "NULL IS NULL",
    )
    yield from (
        "greatest(x, CAST('NaN' AS DOUBLE))",
        "least(x, CAST('NaN' AS DOUBLE))",
        "greatest(NULL, i)",
        "least(i, l, h)",
        "greatest(d, b)",
    )
    yield from (
        f"i {word} IN ({members})"
        for word in ("", "NOT")
        for members in (
            "7",
            "NULL",
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17",
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, NULL",
            "l, 7",
            "7.0, 2.5",
        )
    )
    yield from (
        "s IN ('42', 'a,b,,c', NULL)",
        "d IN (b, NULL)",
        "c IN (1.25, 99.99)",
        "i BETWEEN NULL AND 7",
        "i NOT BETWEEN 2 AND NULL",
        "x BETWEEN g AND c",
    )
    yield from (
        "if(i > 2, i / 2, 1 / 3)",
        "if(i = 0, 0, 7 / i)",
        "CASE WHEN y = 2 THEN 0 ELSE 1 / (y - 2) END",
        "coalesce(y, 1 / (i - i + 1))",
        "CASE WHEN NULL THEN 1 ELSE 2 END",
        "CASE y WHEN NULL THEN 1 WHEN 2 THEN 2 END",
    )
    yield from (
        "if(NULL, 1, 2)",
        "nvl2(i, y, h)",
        "nvl2(NULL, 1, 2L)",
        "isnan(x / 0.0D + 1) IS NULL OR TRUE",
        "isnull(i)",
        "isnotnull(s)",
        "isnan(i)",
        "nanvl(g, x)",
        "p <=> NULL",
        "p XOR q",
    )


def _asked() -> Iterator[str]:
    """What must not fail: parts that no row asks for."""
    yield from (
        "if(p, 1 / (y - 5), 0)",
        "CASE WHEN p THEN 1 / (y - 5) ELSE 7 END",
        "CASE WHEN y = 1 THEN 0 WHEN 1 / (y - 1) > 0 THEN 1 ELSE 2 END",
        "coalesce(i, l, 1 / (h - h))",
        "coalesce(i, l, 1 / (i - i))",
    )
    # Of long lists, those that have columns in them are compared.
    yield from (
        f"{operand} IN ({members})"
        for operand, members in (
            ("i", "1, 2, 3, 4, 5, 6, 8, 9, 10, l"),
            ("i", "y, h, l, i, y, h, l, y, l"),
            ("i", "1.5, 2, 3, 4, 5, 6, 7, 8, 12.5, -7"),
            ("x", "CAST('NaN' AS DOUBLE), 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 2.5D"),
            ("CAST('NaN' AS DOUBLE)", "CAST('NaN' AS DOUBLE), 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 2.5D"),
            ("x - x", "CAST('-0.0' AS DOUBLE), 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 2.5D"),
            ("w", "1.5, 2, 3, 4, 5, 6, 7, 8, 12.5, -9"),
            ("s", "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '42', ''"),
            ("t", "TIMESTAMP '2024-01-01 00:00:00', r, r, r, r, r, r, r, r"),
            ("p", "TRUE, FALSE, TRUE, TRUE, FALSE, FALSE, TRUE, TRUE, FALSE"),
        )
    )
    yield from (f"e() {operator} x" for operator in ("*", "<", "+"))
    yield from ("greatest(e(), x)", "coalesce(e(), x)", "pi() * x", "if(p, e(), x)")
    yield from (f"CAST({text}D AS STRING)" for text in ("1e16", "1.5e16", "123456789012345680", "1e-7"))
