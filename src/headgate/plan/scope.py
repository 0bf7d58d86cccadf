"""Scopes: which columns a name in a query can mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model.errors import NameResolutionError
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean


@dataclass(frozen=True)
class Visible:
    """A column that can be named: by its bare name, or with the source's name before it.

    `also` is a second name that counts when nothing has it as its first: SUM(a) without an alias answers to a.
    """

    source: str
    bare: str
    column: Column
    also: str | None = None

    @cached_property
    def folded(self) -> tuple[str, str, str | None]:
        """Source and both names without their case: every name of a query is compared with those of all columns."""
        also = None if self.also is None else self.also.casefold()
        return self.source.casefold(), self.bare.casefold(), also


@dataclass
class Scope:
    """The columns of a FROM clause and, for a correlated sub-query, those of the query around it."""

    visible: list[Visible] = field(default_factory=list)
    outer: Scope | None = None
    same: Callable[[str, str], bool] = lambda left, right: False
    """Whether two columns are equal in every row that the query can see."""
    times: dict[str, str | None] = field(default_factory=dict)
    """The event time's column of each stream in FROM; None for what has rows and no time of their own."""
    star: list[Visible] | None = None
    """What `*` stands for where that is not all columns in their order: JOIN … USING (c) has c once."""

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(v.source for v in self.visible))

    def find(self, source: str | None, bare: str) -> list[Visible]:
        """All columns of this scope that the name can mean."""
        wanted, owner = bare.casefold(), None if source is None else source.casefold()

        def named(place: int) -> list[Visible]:
            alike = [v for v in self.visible if v.folded[place] == wanted]
            return [v for v in alike if owner is None or v.folded[0] == owner]

        return named(1) or named(2)

    def resolve(self, source: str | None, bare: str) -> list[Visible]:
        """As `find`, looking outwards when this scope has nothing of the name."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.find(source, bare)
            if found:
                first = found[0].column.name
                if all(scope.same(first, other.column.name) for other in found[1:]):
                    return found[:1]
                return found
            scope = scope.outer
        return []

    def column(self, node: exp.Column, statement: Statement) -> Column:
        """The one column a name means; NameResolutionError if there is none or more than one."""
        source, bare = node.table or None, node.name
        found = self.resolve(source, bare)
        if len(found) == 1:
            return found[0].column
        shown = f"{source}.{bare}" if source else bare
        if found:
            choices = [f"{v.source}.{v.bare}" for v in found]
            if len({v.source for v in found}) == 1:
                raise NameResolutionError(
                    f"{shown} is ambiguous: {found[0].source} has several columns of that name",
                    remedy="name them apart with AS",
                    place=statement.place(node),
                )
            raise NameResolutionError(
                f"{shown} is ambiguous: it can be {' or '.join(choices)}",
                remedy=f"write {choices[0]} or {choices[1]}",
                place=statement.place(node),
            )
        raise NameResolutionError(
            self._unknown(source, shown), remedy=self._near(source, bare), place=statement.place(node)
        )

    def _unknown(self, source: str | None, shown: str) -> str:
        known = {s.casefold() for s in self._all_sources()}
        if source and source.casefold() not in known:
            return f"there is no input named {source} in this query"
        return f"there is no column {shown}"

    def _near(self, source: str | None, bare: str) -> str | None:
        known = self._all_sources()
        if source and source.casefold() not in {s.casefold() for s in known}:
            return did_you_mean(source, known)
        scope: Scope | None = self
        names: list[str] = []
        while scope is not None:
            names += [v.bare for v in scope.visible if not source or v.source.casefold() == source.casefold()]
            scope = scope.outer
        return did_you_mean(bare, names)

    def _all_sources(self) -> list[str]:
        return self.sources + (self.outer._all_sources() if self.outer else [])
