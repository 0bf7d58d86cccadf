"""Headgate: continuous SQL on Spark whose queries are proven to keep bounded state before they run."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.linting.lint import lint
    from headgate.model.errors import HeadgateError
    from headgate.runtime.io.kafka_topic import KafkaTopic
    from headgate.runtime.io.postgres_view import PostgresView
    from headgate.session import Query, Session

__all__ = ["HeadgateError", "KafkaTopic", "PostgresView", "Query", "Session", "lint"]
__version__ = "0.1.0"


def __dir__() -> list[str]:
    """The public names, whether they are loaded yet or not."""
    return sorted([*__all__, "__version__", "__doc__"])


def __getattr__(name: str) -> Any:
    """Loads the public names when they are first used, so that importing a part does not import all."""
    if name in ("Query", "Session"):
        from headgate import session

        return getattr(session, name)
    if name == "HeadgateError":
        from headgate.model.errors import HeadgateError

        return HeadgateError
    if name == "KafkaTopic":
        from headgate.runtime.io.kafka_topic import KafkaTopic

        return KafkaTopic
    if name == "PostgresView":
        from headgate.runtime.io.postgres_view import PostgresView

        return PostgresView
    if name == "lint":
        from headgate.linting.lint import lint

        return lint
    raise AttributeError(f"module 'headgate' has no attribute {name!r}")
