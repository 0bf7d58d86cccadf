"""The functions that expressions may call, by their Spark SQL names, each with a call that shows its form."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_CALLS = {
    "conditional": """
        coalesce(i, j); nvl(i, j); ifnull(i, j); nvl2(i, j, k); nullif(i, j); if(b, i, j); isnull(i);
        isnotnull(i); isnan(x); nanvl(x, y); equal_null(i, j); greatest(i, j); least(i, j)
    """,
    "number": """
        abs(i); negative(i); positive(i); mod(i, j); pmod(i, j); try_add(i, j); try_subtract(i, j);
        try_multiply(i, j); try_divide(x, y); try_mod(i, j); round(x, 2); bround(x, 2); floor(x);
        ceil(x); ceiling(x); rint(x); sign(x); signum(x); sqrt(x); cbrt(x); exp(x); ln(x); log(x, y);
        log10(x); log2(x); log1p(x); pow(x, y); power(x, y); sin(x); cos(x); tan(x); asin(x); acos(x);
        atan(x); atan2(x, y); degrees(x); radians(x); pi(); e()
    """,
    "text": """
        concat(s, t); concat_ws(',', s, t); upper(s); ucase(s); lower(s); lcase(s); initcap(s);
        length(s); char_length(s); len(s); substring(s, 1, 2); substr(s, 1, 2); left(s, 2); right(s, 2);
        trim(s); ltrim(s); rtrim(s); btrim(s); replace(s, 'a', 'b'); translate(s, 'ab', 'c');
        instr(s, t); locate(s, t); position(s, t); startswith(s, t); endswith(s, t); contains(s, t);
        lpad(s, 5, '*'); rpad(s, 5, '*'); repeat(s, 2); space(i); reverse(s); split(s, ',');
        split_part(s, ',', 1); regexp_like(s, 'a+'); regexp_replace(s, 'a', 'b');
        regexp_extract(s, '(a)', 1)
    """,
    "time": """
        year(ts); quarter(ts); month(ts); day(ts); dayofmonth(ts); dayofweek(ts); weekday(ts);
        dayofyear(ts); weekofyear(ts); hour(ts); minute(ts); second(ts); extract(SECOND FROM ts);
        date_trunc('HOUR', ts); trunc(d, 'MM'); to_date(ts); date(ts); to_timestamp(s, 'yyyy-MM-dd');
        timestamp(d); unix_timestamp(ts); to_unix_timestamp(ts); unix_seconds(ts); unix_millis(ts);
        unix_micros(ts); unix_date(d); date_from_unix_date(i); timestamp_seconds(i);
        timestamp_millis(i); timestamp_micros(i); from_unixtime(i); date_format(ts, 'yyyy-MM-dd');
        datediff(d, d); date_diff(d, d); timestampdiff(HOUR, ts, ts); timestampadd(HOUR, 1, ts);
        date_add(d, 1); date_sub(d, 1); dateadd(d, 1); add_months(d, 1); last_day(d);
        make_date(2020, 1, i)
    """,
    "cast": """
        int(s); string(i); double(i); float(i)
    """,
    "array": """
        size(a); array_size(a); cardinality(a); array_contains(a, i); element_at(a, 1); get(a, 0)
    """,
}

SUPPORTED_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {call.strip().split("(")[0]: call.strip() for calls in _CALLS.values() for call in calls.split(";")}
)
"""Name of each function, in lower case, to a call of it."""
