"""JOIN … USING (c): a column of both sides is one column of the result, and comes first in `*`, as SQL has it.

```
s (ts, k, v) JOIN r (k, w) USING (k)            *  k, ts, v, w
… JOIN u (w, x) USING (w)                       *  w, k, ts, v, x
o (a), s JOIN r USING (k)                       *  a, k, ts, v, w       a JOIN binds tighter than a comma
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model.errors import NameResolutionError
from headgate.model.suggest import did_you_mean
from headgate.plan.scope import Scope, Visible


class JoinedColumns:
    """The columns of a FROM clause as `*` lists them, while its joins are taken in from left to right."""

    def __init__(self, scope: Scope, statement: Statement) -> None:
        self._scope, self._statement = scope, statement
        self._sources = iter(scope.sources)
        self._before: list[Visible] = []
        """Of the items before the last comma."""
        self._here = self._next()

    def listed(self) -> list[Visible]:
        """All columns, those of USING once."""
        return [*self._before, *self._here]

    def join(self, join: exp.Join) -> Iterator[exp.Expr]:
        """Takes in the next item; the conditions that its USING stands for."""
        right, names = self._next(), join.args.get("using") or []
        if not names:
            if join.args.get("on") is None and not join.args.get("kind"):
                self._before, self._here = self.listed(), []
            self._here = [*self._here, *right]
            return
        shared: list[Visible] = []
        for name in names:
            left, other = self._left(name), _named(right, name.name)
            if left is None or not other:
                raise NameResolutionError(
                    f"USING ({name.name}): both sides need a column of that name",
                    remedy=did_you_mean(name.name, [each.bare for each in self._scope.visible]),
                    place=self._statement.place(name),
                )
            shared.append(left)
            right = [each for each in right if each is not other[0]]
            yield exp.EQ(this=_column(left), expression=_column(other[0]))
        self._before = _without(self._before, shared)
        self._here = [*shared, *_without(self._here, shared), *right]

    def _next(self) -> list[Visible]:
        source = next(self._sources, None)
        return [each for each in self._scope.visible if each.source == source]

    def _left(self, name: exp.Expr) -> Visible | None:
        found = _named(self._here, name.name) or _named(self._before, name.name)
        if len(found) > 1:
            choices = " or ".join(f"{each.source}.{each.bare}" for each in found)
            raise NameResolutionError(
                f"USING ({name.name}) is ambiguous: on the left it can be {choices}",
                remedy="write ON and the columns that are meant",
                place=self._statement.place(name),
            )
        return found[0] if found else None


def _named(columns: Sequence[Visible], name: str) -> list[Visible]:
    """The columns of a name, or else those with it as their second one."""
    wanted = name.casefold()
    first = [each for each in columns if each.bare.casefold() == wanted]
    return first or [each for each in columns if (each.also or "").casefold() == wanted]


def _without(columns: Sequence[Visible], others: Sequence[Visible]) -> list[Visible]:
    return [each for each in columns if not any(each is other for other in others)]


def _column(visible: Visible) -> exp.Column:
    return exp.Column(
        this=exp.to_identifier(visible.bare, quoted=True),
        table=exp.to_identifier(visible.source, quoted=True),
    )
