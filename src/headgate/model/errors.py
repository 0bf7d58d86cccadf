"""The one family of errors a user can meet: each has a code, a place, a cause and a remedy."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.source import SourceText, Span


@dataclass(frozen=True)
class Place:
    """A span of a source text: where in the user's words an error lies."""

    source: SourceText
    span: Span


class HeadgateError(Exception):
    """A mistake or a limit that the user can act on; never a bug of ours.

    `code` is stable and documented, `cause` is one sentence, `remedy` says what to do,
    `place` points into the user's text where there is one.
    """

    code = "HG000"
    exit_code = 2
    """Of the command: 1 refused, 2 bad input, 3 the environment failed."""

    def __init__(self, cause: str, *, remedy: str | None = None, place: Place | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.place = place

    def at(self, source: SourceText) -> str:
        """`file:line:column` of the error, or the file alone when it has no place."""
        if self.place is None:
            return source.name
        return self.place.source.locate(self.place.span.start)

    def render(self) -> str:
        """The whole message as text: place, cause, source line with a caret, remedy."""
        lines = []
        if self.place is None:
            lines.append(f"error[{self.code}]: {self.cause}")
        else:
            where = self.place.source.locate(self.place.span.start)
            lines.append(f"{where}: error[{self.code}]: {self.cause}")
            lines.extend(self.place.source.excerpt(self.place.span))
        if self.remedy:
            lines.append(f"  help: {self.remedy}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


class InputError(HeadgateError):
    """A file that cannot be read as what it should be: missing, empty, binary, too long."""

    code = "HG001"


class LanguageError(HeadgateError):
    """Text that is not CQL."""

    code = "HG101"


class UnsupportedError(HeadgateError):
    """SQL that is well formed but that Headgate does not run."""

    code = "HG102"


class NameResolutionError(HeadgateError):
    """A stream, table, column or function that does not exist, or a name that fits several."""

    code = "HG201"


class TypeMismatchError(HeadgateError):
    """An expression whose types do not fit."""

    code = "HG202"


class DeclarationError(HeadgateError):
    """A CREATE statement that contradicts itself or the catalog."""

    code = "HG203"


class MeaninglessError(HeadgateError):
    """A query that parses and binds but whose answer cannot mean anything."""

    code = "HG301"


class RefusedError(HeadgateError):
    """A query whose state is not proven bounded."""

    code = "HG401"
    exit_code = 1

    def __init__(
        self, cause: str, *, query: str, remedy: str | None = None, place: Place | None = None
    ) -> None:
        super().__init__(cause, remedy=remedy, place=place)
        self.query = query


class DataError(HeadgateError):
    """Input data that does not fit its declaration; names the file and the row."""

    code = "HG501"


class DisagreementError(HeadgateError):
    """Runs that had to find the same and did not: their times are not compared."""

    code = "HG701"
    exit_code = 1


class SetupError(HeadgateError):
    """The environment failed: no room on a disk, no memory, no Java, a package or a server that is not there."""

    code = "HG601"
    exit_code = 3
