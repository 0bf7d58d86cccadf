"""Random queries over declared streams and tables, as CQL text: everything that means something, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.oracle.choices import Choices
from tests.oracle.generate_data import BIGINT, DATE, STRING, TIMESTAMP, Declared
from tests.oracle.generate_expressions import (
    AVERAGE,
    TOP,
    Typed,
    aggregate,
    few_valued,
    literal,
    predicate,
    scalar,
)

STREAM_KINDS = ("ISTREAM", "DSTREAM", "RSTREAM")


@dataclass(frozen=True)
class Item:
    """A FROM item: its text and the columns it brings."""

    text: str
    columns: tuple[Typed, ...]


@dataclass(frozen=True)
class Core:
    """A SELECT without its relation-to-stream operator: `SELECT [DISTINCT] items tail`, or a set operation."""

    items: tuple[Typed, ...]
    tail: str
    distinct: bool = False
    whole: str | None = None
    """The text of a set operation, which has no list of its own."""
    grouped: bool = False
    star: bool = False
    """All columns of the inputs instead of `items`."""

    def columns(self) -> tuple[Typed, ...]:
        return tuple(Typed(f"c{position}", item.type) for position, item in enumerate(self.items))

    def listed(self) -> str:
        if self.star:
            return "*"
        return ", ".join(f"{item.text} AS c{position}" for position, item in enumerate(self.items))

    def sql(self, kind: str | None = None, suffix: str = "") -> str:
        """The text, with a relation-to-stream operator around the list if `kind` names one."""
        if self.whole is not None:
            return self.whole if kind is None else f"SELECT {kind}(*){suffix} FROM ({self.whole}) AS w"
        distinct = "DISTINCT " if self.distinct else ""
        if kind is None:
            return f"SELECT {distinct}{self.listed()} {self.tail}"
        return f"SELECT {kind}({distinct}{self.listed()}){suffix} {self.tail}"


@dataclass
class Author:
    """Writes one query: knows what it may read, and the slide that all its windows share, if any."""

    choices: Choices
    declared: tuple[Declared, ...]
    slide: int | None = None
    unwindowed: int = 0
    """The share of streams, in percent, that get no window for sure."""
    timed: int = 15
    """How often, in percent, joins and groups get a condition on time."""
    aliases: int = 0

    # -- windows and inputs -----------------------------------------------------------------------

    def alias(self) -> str:
        self.aliases += 1
        return "pqrvwyz"[self.aliases - 1] if self.aliases <= 7 else f"p{self.aliases}"

    def range_window(self) -> str:
        lengths = {"5 SECONDS": 3, "8 SECONDS": 3, "20 SECONDS": 2, "3 SECONDS": 2, "1 SECOND": 1}
        length = self.choices.weigh(lengths | {"1500 MILLISECONDS": 1})
        if self.slide is None:
            self.choices.features.add("range")
            return f"RANGE {length}"
        self.choices.features.add("slide")
        if self.choices.chance(40):
            self.choices.features.add("tumbling")
            length = f"{self.slide} SECONDS"
        return f"RANGE {length} SLIDE {self.slide} SECONDS"

    def window(self, columns: Sequence[str], *, timely: bool = False) -> str:
        """The inside of a window's brackets; `timely` asks for a window by time."""
        if self.slide is not None:
            return self.range_window()
        if self.unwindowed and self.choices.chance(self.unwindowed):
            return "UNBOUNDED"
        kinds = {"range": 9, "now": 1, "unbounded": 1}
        # A table that changes cannot be joined with rows that may end early.
        changing = any(each.changing for each in self.declared)
        if not timely and not (changing and self.choices.chance(80)):
            kinds |= {"rows": 4, "partition": 3}
        kind = self.choices.weigh(kinds)
        self.choices.features.add(kind)
        match kind:
            case "range":
                return self.range_window()
            case "now":
                return "NOW"
            case "unbounded":
                return "UNBOUNDED"
            case "rows":
                return f"ROWS {self.choices.choose((2, 3, 5, 1, 3))}"
            case _:
                by = ", ".join(self.choices.subset([column for column in columns if column != "ts"], 1, 2))
                return f"PARTITION BY {by} ROWS {self.choices.choose((1, 2, 3))}"

    def stream_item(self, *, timely: bool = False, internal: bool = False) -> Item:
        """A declared stream with a window on it."""
        stream = self.choices.choose([each for each in self.declared if each.slack is not None])
        inside = self.window([column.name for column in stream.columns], timely=timely)
        if internal:
            self.choices.features.add("internal")
            inside += " INTERNAL"
        alias = self.alias()
        columns = tuple(Typed(f"{alias}.{column.name}", column.type) for column in stream.columns)
        if inside == "UNBOUNDED" and self.choices.chance(50):
            return Item(f"{stream.name} AS {alias}", columns)
        if self.choices.chance(50):
            return Item(f"{stream.name} [{inside}] {alias}", columns)
        return Item(f"{stream.name} AS {alias} [{inside}]", columns)

    def table_item(self) -> Item | None:
        table = next((each for each in self.declared if each.slack is None), None)
        if table is None:
            return None
        self.choices.features.add("table")
        alias = self.alias()
        return Item(
            f"{table.name} AS {alias}", tuple(Typed(f"{alias}.{c.name}", c.type) for c in table.columns)
        )

    def table_alone(self, kind: str) -> list[Item]:
        """A table that is asked what exists beside it, now and then."""
        lasting = [each for each in self.declared if each.slack is None and not each.non_retroactive]
        if kind != "exists" or not lasting or not self.choices.chance(25):
            return []
        item = self.table_item()
        self.choices.features.add("table alone")
        return [] if item is None else [item]

    def derived_item(self, text: str, columns: tuple[Typed, ...], *, window: int) -> Item:
        """A sub-query in parentheses or the name of a query; `window` percent of them get a window."""
        alias = self.alias()
        brought = tuple(
            Typed(f"{alias}.{column.text}", column.type)
            for column in columns
            if column.type not in (TOP, AVERAGE)
        )
        inside = ""
        if self.choices.chance(window):
            kinds = {"RANGE 5 SECONDS": 3, "RANGE 2 SECONDS": 2, "ROWS 2": 2, "ROWS 3": 1, "NOW": 1}
            inside = f" [{self.choices.weigh(kinds)}]"
            self.choices.features.add("window over query")
        return Item(f"{text} AS {alias}{inside}", brought)

    # -- SELECTs ----------------------------------------------------------------------------------

    def tail(self, items: Sequence[Item], conditions: Sequence[str]) -> str:
        """FROM and WHERE; of two items, the first condition may stand in an ON."""
        source = ", ".join(item.text for item in items)
        if len(items) == 2 and self.choices.chance(25):
            source = f"{items[0].text} JOIN {items[1].text} ON {conditions[0]}"
            conditions = conditions[1:]
        elif len(items) > 1 and self.choices.chance(20) and (shared := _shared(items)):
            self.choices.features.add("using")
            using = ", ".join(self.choices.subset(shared, 1, 2))
            source = items[0].text + "".join(f" JOIN {each.text} USING ({using})" for each in items[1:])
        return f"FROM {source}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")

    def conditions(self, items: Sequence[Item]) -> list[str]:
        """Join conditions that connect all items, perhaps more between them, perhaps filters."""
        found = []
        for position in range(1, len(items)):
            other = self.choices.choose(items[:position])
            found.append(self.join_condition(items[position], other))
            if self.choices.chance(15):
                found.append(self.inequality(items[position], other))
            if self.choices.chance(self.timed):
                found.append(self.time_condition(items[position], other))
        if self.choices.chance(35):
            found.append(predicate(self.choices, [column for item in items for column in item.columns]))
        parted = [item for item in items if re.match(r"[^(]*PARTITION BY", item.text)]
        return found + [self.part(item) for item in parted if self.choices.chance(50)]

    def part(self, item: Item) -> str:
        """A filter on a column that a window is partitioned by."""
        (named,) = re.findall(r"PARTITION BY (\w+)", item.text)
        column = next(each for each in item.columns if each.text.endswith(f".{named}"))
        self.choices.features.add("filter on a partition")
        return (
            f"{column.text} IN ({literal(self.choices, column.type)}, {literal(self.choices, column.type)})"
        )

    def join_condition(self, left: Item, right: Item) -> str:
        pairs = _pairs(left, right)
        if not pairs or self.choices.chance(5):
            return self.inequality(left, right)
        keys = [pair for pair in pairs if pair[0].type == BIGINT] or pairs
        found = [self.choices.choose(keys if self.choices.chance(75) else pairs)]
        if self.choices.chance(12):
            found.append(self.choices.choose(pairs))
        return " AND ".join(f"{one.text} = {two.text}" for one, two in found)

    def inequality(self, left: Item, right: Item) -> str:
        pairs = _pairs(left, right, instants=True)
        if not pairs:
            return "TRUE"
        self.choices.features.add("inequality join")
        one, two = self.choices.choose(pairs)
        return f"{one.text} {self.choices.choose(('<=', '<', '<>', '>='))} {two.text}"

    def time_condition(self, left: Item, right: Item) -> str:
        """How far apart the instants of two items may be."""
        one, two = (
            next((c.text for c in item.columns if c.type == TIMESTAMP), None) for item in (left, right)
        )
        if one is None or two is None:
            return "TRUE"
        self.choices.features.add("time condition")
        before, after = (self.choices.choose((2, 0, 1, 5)) for _ in range(2))
        kinds = {
            f"{one} BETWEEN {two} - INTERVAL {before} SECONDS AND {two} + INTERVAL {after} SECONDS": 5,
            f"{one} - {two} <= INTERVAL {after} SECONDS": 2,
            f"{one} = {two}": 1,
            f"date_trunc('second', {one}) = date_trunc('second', {two})": 1,
            f"unix_timestamp({one}) DIV 5 = unix_timestamp({two}) DIV 5": 1,
            f"unix_timestamp({one}) - unix_timestamp({two}) BETWEEN -{before} AND {after}": 1,
            f"{one} > {two} - INTERVAL {before} SECONDS": 1,
            f"{one} <= {two} + INTERVAL 1 SECOND * {after} AND {one} >= {two} - {before} * INTERVAL 1 SECOND": 1,
            f"{one} - INTERVAL 1 MONTH BETWEEN {two} - INTERVAL 1 MONTH AND {two} - INTERVAL 25 DAYS": 1,
            f"CAST({one} AS DATE) = CAST({two} AS DATE) + 0 AND {one} >= {two}": 1,
            f"ABS(unix_timestamp({one}) - unix_timestamp({two})) < {after}": 1,
            f"TIMESTAMPDIFF(SECOND, {one}, {two}) BETWEEN -{before} AND {after}": 1,
            f"DATEDIFF({one}, {two}) = 0 AND {one} < {two}": 1,
            f"{one} IN ({two}, {two} + INTERVAL {after} SECONDS)": 1,
            f"({one} = {two} OR {one} = DATEADD(SECOND, {after}, {two}))": 1,
            f"NOT ({one} < {two} OR {one} - {two} > INTERVAL {after} SECONDS)": 1,
            f"({one} - {two}) * 2 BETWEEN INTERVAL -{before} SECONDS AND INTERVAL {after} SECONDS": 1,
            f"-({one} - {two}) <= INTERVAL {after} SECONDS AND {one} <=> {two}": 1,
        }
        return self.choices.weigh(kinds)

    def time_key(self, columns: Sequence[Typed]) -> Typed | None:
        """A bucket of event time, by which groups are closed when time has gone beyond it."""
        instants = [column.text for column in columns if column.type == TIMESTAMP]
        if not instants:
            return None
        self.choices.features.add("group by time")
        at = self.choices.choose(instants)
        kinds = (
            Typed(f"date_trunc('minute', {at})", TIMESTAMP),
            Typed(f"date_format({at}, 'yyyy-MM-dd HH:mm')", STRING),
            Typed(f"date_format({at}, 'ssmmHH.ddMMyyyy')", STRING),
            Typed(at, TIMESTAMP),
            Typed(f"unix_timestamp({at}) DIV 3", BIGINT),
            Typed(f"CAST({at} AS DATE)", DATE),
            Typed(f"unix_timestamp({at}) - unix_timestamp({at}) % 4", BIGINT),
        )
        return self.choices.choose(kinds)

    def inputs(
        self, *, timely: bool = False, internal: bool = False, most: int = 3, table: bool = True
    ) -> list[Item]:
        """One to three windows, and perhaps a table beside them."""
        weights = {1: 5, 2: 4, 3: 2}
        count = self.choices.weigh({count: weight for count, weight in weights.items() if count <= most})
        with_table = table and any(each.slack is None for each in self.declared) and self.choices.chance(40)
        items = [self.stream_item(timely=timely, internal=internal) for _ in range(count)]
        if with_table and (item := self.table_item()) is not None:
            items.append(item)
        if len(items) > 1:
            self.choices.features.add(f"join of {len(items)}")
        return items

    def project(self, items: Sequence[Item], conditions: Sequence[str]) -> Core:
        """Select-project-join."""
        columns = [column for item in items for column in item.columns]
        listed = [self.value(columns) for _ in range(self.choices.choose((1, 2, 3)))]
        keys = [column for column in columns if column.type == BIGINT]
        if keys and self.choices.chance(60):
            # Who reads this query wants something to join on.
            listed[0] = self.choices.choose(keys)
        return Core(tuple(listed), self.tail(items, conditions))

    def value(self, columns: Sequence[Typed]) -> Typed:
        """Something for a select list."""
        return (few_valued if self.choices.chance(20) else scalar)(self.choices, columns)

    def distinct(self, items: Sequence[Item], conditions: Sequence[str]) -> Core:
        self.choices.features.add("distinct")
        core = self.project(items, conditions)
        return replace(core, distinct=True)

    def all_timed(self, items: Sequence[Item]) -> bool:
        """Whether every row has the event time of a stream that is read itself."""
        streams = {each.name for each in self.declared if each.slack is not None}
        known = {each.name for each in self.declared}
        read = {item.text.split()[0] for item in items}
        return read <= known and bool(read & streams)

    def group(
        self, items: Sequence[Item], conditions: Sequence[str], *, plain: bool = False, total: bool = True
    ) -> Core:
        """An aggregate, by group or (if `total`) over everything; `plain` keeps the list to keys and aggregates."""
        columns = [column for item in items for column in item.columns]
        usable = [column for column in columns if column.type != TIMESTAMP]
        by = [] if not usable or (total and self.choices.chance(35)) else self.choices.subset(usable, 1, 2)
        if by and not plain and self.choices.chance(40):
            by[0] = self.choices.choose((few_valued, few_valued, scalar))(self.choices, usable)
            by = by[:1] if by[0] in by[1:] else by
        if by and self.choices.chance(self.timed) and (key := self.time_key(columns)) is not None:
            by.append(key)
        values = [
            aggregate(self.choices, columns, timed=self.all_timed(items))
            for _ in range(self.choices.choose((1, 2, 3)))
        ]
        if all(value.type in (TOP, AVERAGE) for value in values):
            values.append(Typed("COUNT(*)", BIGINT))
        listed = [*self.choices.subset(by, 0 if self.choices.chance(10) else len(by), len(by)), *values]
        if not plain and self.choices.chance(10) and values[0].type == BIGINT:
            listed.append(Typed(f"{values[0].text} * 2", BIGINT))
        tail = self.tail(items, conditions)
        if by:
            self.choices.features.add("group by")
            tail += " GROUP BY " + ", ".join(key.text for key in by)
        else:
            self.choices.features.add("global aggregate")
        if self.choices.chance(15):
            self.choices.features.add("having")
            counted = next((v.text for v in values if v.text.startswith("COUNT")), None)
            if counted is not None or not plain:
                tail += f" HAVING {counted or 'COUNT(*)'} {self.choices.choose(('> 1', '>= 1', '< 3'))}"
        return Core(tuple(listed), tail, grouped=True)

    def exists(self, items: Sequence[Item], *, derived: bool = False) -> str:
        """[NOT] EXISTS over one more window or the table, tied to the items.

        A NON RETROACTIVE table that changes answers for rows of streams only, not for those of a query.
        """
        answers = not derived or not any(each.changing and each.non_retroactive for each in self.declared)
        asked = answers and "table alone" not in self.choices.features
        table = self.table_item() if asked and self.choices.chance(30) else None
        inner = table or self.stream_item()
        outer = self.choices.choose(items)
        conditions = [self.join_condition(inner, outer)]
        if self.choices.chance(25):
            conditions.append(self.inequality(inner, outer))
        if self.choices.chance(self.timed):
            conditions.append(self.time_condition(inner, outer))
        if self.choices.chance(25):
            conditions.append(predicate(self.choices, inner.columns, 0))
        negated = self.choices.chance(60)
        self.choices.features.add("not exists" if negated else "exists")
        listed = self.choices.choose(("1", "*", "1" if table else "RSTREAM(*)"))
        return (
            f"{'NOT ' * negated}EXISTS (SELECT {listed} FROM {inner.text} WHERE {' AND '.join(conditions)})"
        )

    def relation(
        self, *, total: bool = True, items: Sequence[Item] | None = None, lonely: bool = False
    ) -> Core:
        """Any SELECT without INTERNAL windows, over given items or its own; if `lonely`, over nothing else."""
        kinds = {"project": 5, "distinct": 3, "group": 5} | ({} if lonely else {"exists": 3})
        kind = self.choices.weigh(kinds)
        tied = kind == "exists" or (
            items is None and not lonely and kind != "project" and self.choices.chance(25)
        )
        own = list(items) if items is not None else self.table_alone(kind) or self.inputs()
        conditions = self.conditions(own)
        if tied:
            conditions.append(self.exists(own, derived=items is not None))
        match kind:
            case "distinct":
                return self.distinct(own, conditions)
            case "group":
                return self.group(own, conditions, total=total)
            case _:
                return self.project(own, conditions)

    def set_operation(self) -> Core:
        """UNION [ALL] or EXCEPT [ALL] of two SELECTs with the same types."""
        sides = [self.inputs(most=2), self.inputs(most=2)]
        left, right = ([column for item in items for column in item.columns] for items in sides)
        pairs = [(one, two) for one in left for two in right if one.type == two.type]
        keys = [pair for pair in pairs if pair[0].type == BIGINT]
        chosen = [self.choices.choose(keys), *self.choices.subset(pairs, 0, 1)]
        conditions = [self.conditions(items) for items in sides]
        if self.choices.chance(20):
            conditions[0].append(self.exists(sides[0]))
        cores = [
            Core(tuple(pair[side] for pair in chosen), self.tail(items, conditions[side]))
            for side, items in enumerate(sides)
        ]
        if self.choices.chance(20):
            cores[0] = replace(cores[0], distinct=True)
        op = self.choices.weigh({"EXCEPT ALL": 3, "UNION ALL": 3, "EXCEPT": 3, "UNION": 2})
        self.choices.features.add(op.lower())
        return Core(cores[0].items, "", whole=f"{cores[0].sql()} {op} {cores[1].sql()}")

    def internal(self, *, mark: bool, total: bool = True) -> tuple[Core, bool]:
        """A select-project-join or an aggregate to be read as INTERNAL, and whether its results ever die.

        `mark` writes the keyword, on all windows of an aggregate and on some of a join; WSTREAM needs none.
        """
        if self.choices.chance(45):
            # What INTERNAL makes permanent, a change of a retroactive table would take back.
            lasts = not any(each.changing and not each.non_retroactive for each in self.declared)
            items = self.inputs(internal=mark, most=2, table=lasts)
            return self.group(items, self.conditions(items), plain=True, total=total), False
        first = self.stream_item(internal=mark)
        others = [
            self.stream_item(internal=mark and self.choices.chance(50))
            for _ in range(self.choices.choose((1, 0, 2)))
        ]
        items = [first, *others]
        if self.choices.chance(25) and (table := self.table_item()) is not None:
            items.append(table)
        dies = mark and any("INTERNAL" not in item.text for item in items)
        return self.project(items, self.conditions(items)), dies


def _shared(items: Sequence[Item]) -> list[str]:
    """Names of columns that all items have, in one type; not those of instants, which are seldom equal."""
    names = [
        {(c.text.rpartition(".")[2], c.type) for c in item.columns if c.type not in (TIMESTAMP, TOP)}
        for item in items
    ]
    return sorted(name for name, _ in set.intersection(*names))


def _pairs(left: Item, right: Item, *, instants: bool = False) -> list[tuple[Typed, Typed]]:
    """Columns of equal type, one of each item."""
    return [
        (one, two)
        for one in left.columns
        for two in right.columns
        if one.type == two.type and one.type != TOP and (instants or one.type != TIMESTAMP)
    ]
