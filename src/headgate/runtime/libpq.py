"""libpq's connection strings: refused in words of ours where they cannot be read, because libpq's words quote them.

```
postgresql://bob:hun%zzter2@db/shop      libpq: invalid percent-encoded token: "hun%zzter2"
postgresql://bob:hun/ter2@db/shop        libpq: a server bob, at port hun
postgresql://bob:hun@ter2@db/shop        libpq: a server ter2@db
```
"""

from __future__ import annotations

import re
from typing import Any

from headgate.model.errors import SetupError

HOW_TO_WRITE = (
    "write host=… dbname=… user=…, or postgresql://user@host/database, with options of libpq's; "
    "in a user or a password %, @, / and : are %25, %40, %2F and %3A"
)
_HOW_TO_BE_LET_IN = "check the database, the user and the password of its address, then run the query again"
_SCHEMES = ("postgresql://", "postgres://")

# libpq keeps the code of what a server says to a connection for itself; its words are all there is.
_REFUSAL = re.compile(
    r'FATAL:\s+(?:database|role) ".*" does not exist'
    r'|FATAL:\s+role ".*" is not permitted to log in'
    r"|FATAL:\s+permission denied for database"
    r"|FATAL:\s+no such (?:database|user)"
    r"|FATAL:\s+no pg_hba\.conf entry"
    r"|FATAL:\s+\w+ authentication failed"
    r"|no password supplied"
)


def psycopg_for(what: str) -> Any:
    """The module psycopg; SetupError if it is not installed."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
        import psycopg.conninfo  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(f"{what} needs psycopg", remedy="pip install 'headgate[postgres]'") from error
    return psycopg


def is_readable(dsn: str, psycopg: Any) -> bool:
    """Whether libpq reads a connection string, and takes no piece of a password for a server's name or port."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError):
        return False
    ports = str(parts.get("port", "")).split(",")
    return "\0" not in dsn and all(not each or each.isdecimal() for each in ports) and _has_one_user(dsn)


def _has_one_user(dsn: str) -> bool:
    """Whether a URL, if it is one, has no @ but the one behind its user; libpq seeks that before the first slash."""
    found = next((each for each in _SCHEMES if dsn.startswith(each)), None)
    if found is None:
        return True
    rest = dsn.removeprefix(found)
    start = rest.partition("/")[0]
    behind = rest[start.find("@") + 1 :]
    return "@" not in behind.partition("?")[0]


def reason(error: BaseException) -> str:
    """The first line of what PostgreSQL or libpq say."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def stop_if_refused(error: BaseException, whose: str) -> None:
    """Raises SetupError if a failure to connect will not pass by itself; `whose` connection it is."""
    refused = refusal(error)
    if refused is not None:
        raise SetupError(
            f"{whose}: PostgreSQL refuses the connection: {refused}", remedy=_HOW_TO_BE_LET_IN
        ) from error


def refusal(error: BaseException) -> str | None:
    """Why a server lets nobody in, if that will not pass by itself: an unknown database or user, a wrong password.

    None for all else, and for servers that speak another language than English: those are asked again.
    """
    found = next((each for each in str(error).splitlines() if _REFUSAL.search(each)), None)
    return None if found is None else found.strip()[:300]
