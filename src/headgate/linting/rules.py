"""The rules: which state Spark drops, and when.

Each follows what Spark does, not what its API suggests:

- An aggregate and a dropDuplicates drop a key once the watermark has passed the event time *in the key*. A
  watermark on a column that is not among the keys drops nothing. In complete mode no group is dropped.
- A join drops both sides if one of its equality keys is event time with a watermark, on either side. Otherwise
  a side is dropped only if both sides have a watermark and the condition bounds its event time from below by the
  other's. A condition in one direction, which Spark accepts even for a full outer join, leaves the other side
  growing.
- What the user's code keeps is the user's to drop.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.linting.operators import (
    Aggregation,
    Deduplication,
    Drop,
    JoinSide,
    Key,
    Limit,
    Operator,
    OwnState,
    Source,
    StreamJoin,
)
from headgate.linting.report import Fix, State

DELAY = "10 minutes"
SPAN = "1 hour"
LATE = f"rows more than {DELAY} late are dropped"


def judge(operator: Operator, output_mode: str) -> Iterator[State]:
    """The states of one operator of a query in append, update or complete mode."""
    match operator:
        case Aggregation():
            yield _aggregation(operator, output_mode)
        case Deduplication(within=True):
            yield _within_watermark(operator)
        case Deduplication():
            yield _deduplication(operator)
        case StreamJoin():
            yield _join_side(operator, "left", operator.left, operator.right)
            yield _join_side(operator, "right", operator.right, operator.left)
        case Limit():
            if output_mode == "append":
                yield State("limit", "", "finite", "only the number of rows so far is kept")
        case OwnState():
            yield _own_state(operator)


def _aggregation(node: Aggregation, output_mode: str) -> State:
    operator = "distinct" if node.distinct else "aggregate"
    of = _by(node.keys) if node.keys else "of all rows"
    if all(key.finite for key in node.keys):
        if not node.growing:
            return State(operator, of, "values" if node.keys else "finite", _few(node.keys))
        reason = f"{', '.join(node.growing)} keeps every value of its group, and a group never ends"
        return State(operator, of, "none", reason, (_window(node),))
    timed = _event_time(node.keys)
    if output_mode == "complete":
        reason = "complete mode keeps every group, whatever the watermark"
        if node.shortened:
            reason += "; orderBy and limit after it shorten what is written, not what is kept"
        return State(operator, of, "none", reason, (_leave_complete(node),))
    if timed is not None:
        return State(operator, of, "watermark", f"a group leaves when the watermark passes {_time(timed)}")
    return State(operator, of, "none", _untimed(node.keys, node.source), (_window(node),))


def _leave_complete(node: Aggregation) -> Fix:
    mode = '.outputMode("update")'
    if _event_time(node.keys) is None:
        mode = f"{_window(node).edit}\n{mode}"
    return Fix("output mode", mode, True, "only the groups that changed are written; late rows are dropped")


def _window(node: Aggregation) -> Fix:
    plain = [f'"{key.name}"' for key in node.keys if key.derived_from is None and key.name.isidentifier()]
    window = f'window("{node.source.time}", "{SPAN}")'
    effect = "one result per group and window, final once the watermark has passed it"
    edit = f"{_watermark(node.source)}.groupBy({', '.join([window, *plain])})"
    return Fix("window", edit, True, effect if node.source.watermarks else f"{effect}; {LATE}")


def _within_watermark(node: Deduplication) -> State:
    operator, of = "dropDuplicatesWithinWatermark", _by(node.keys)
    if not node.source.watermarks:
        edit = f"{_watermark(node.source)}.{operator}({_list(node.keys)})"
        return State(
            operator, of, "none", "there is no watermark to be within", (Fix("watermark", edit, True, LATE),)
        )
    delay = _duration(node.source.watermarks[0].delay_ms)
    return State(
        operator, of, "watermark", f"a key leaves when the watermark is {delay} past the key's first row"
    )


def _deduplication(node: Deduplication) -> State:
    operator, of = "dropDuplicates", _by(node.keys)
    timed = _event_time(node.keys)
    if timed is not None:
        return State(operator, of, "watermark", f"a key leaves when the watermark passes {_time(timed)}")
    if all(key.finite for key in node.keys):
        return State(operator, of, "values", _few(node.keys))
    time, watermark = node.source.time, _watermark(node.source)
    within = Fix(
        "within watermark",
        f"{watermark}.dropDuplicatesWithinWatermark({_list(node.keys)})",
        True,
        "of two equal keys further apart than the watermark's delay both come through",
    )
    in_keys = Fix(
        "event time in the keys",
        f"{watermark}.dropDuplicates({_list((*node.keys, Key(time)))})",
        True,
        f"a row is a duplicate only if its {time} is equal too: right where a repeated row repeats its time",
    )
    return State(operator, of, "none", _untimed(node.keys, node.source), (within, in_keys))


def _join_side(node: StreamJoin, name: str, side: JoinSide, other: JoinSide) -> State:
    operator, of = f"{node.how} join", f"{name} side ({side.source.shown})"
    if side.drop is not None:
        return State(operator, of, "watermark", _dropped(side.drop))
    return State(operator, of, "none", _kept(name, side, other), (_bound_join(node),))


def _dropped(drop: Drop) -> str:
    if drop.by_key:
        return f"a row leaves when the watermark passes its key {drop.column}"
    seconds = round(drop.after_ms / 1000)
    if seconds > 0:
        return f"a row leaves when its {drop.column} is {_duration(seconds * 1000)} behind the watermark"
    if seconds < 0:
        return f"a row leaves {_duration(-seconds * 1000)} before the watermark passes its {drop.column}"
    return f"a row leaves when the watermark passes its {drop.column}"


def _kept(name: str, side: JoinSide, other: JoinSide) -> str:
    own, its = side.source, other.source
    if not own.watermarks and not its.watermarks:
        return "neither side has a watermark, so a partner may always come"
    if not own.watermarks or not its.watermarks:
        marked = name if own.watermarks else _other(name)
        return f"only the {marked} side has a watermark; without event time in the join's keys both need one"
    return (
        f"nothing in the condition says how far {own.time} may lie before {its.time}, "
        "so a partner may always come"
    )


def _bound_join(node: StreamJoin) -> Fix:
    """All that the join lacks: watermarks, and conditions that relate the times both ways."""
    left, right = node.left, node.right
    compared = left.compared or (right.compared[::-1] if right.compared else None)
    left_time, right_time = compared or (left.source.time, right.source.time)
    lines = [
        f'{name}.withWatermark("{time}", "{DELAY}")'
        for name, time, side in (("left", left_time, left), ("right", right_time, right))
        if not side.source.watermarks
    ]
    if left_time == right_time:
        left_time, right_time = f"left.{left_time}", f"right.{right_time}"
    conditions = [
        f"AND {own} >= {its} - INTERVAL {SPAN.upper()}"
        for own, its, side in ((left_time, right_time, left), (right_time, left_time, right))
        if side.drop is None and side.compared is None
    ]
    effects = []
    if lines:
        effects.append(LATE)
    if conditions:
        lines.append(" ".join(conditions))
        effects.append("rows whose times are further apart do not join")
    return Fix("bound the join", "\n".join(lines), True, "; ".join(effects))


def _own_state(node: OwnState) -> State:
    of = f"by {', '.join(node.keys)}"
    if node.clock == "none":
        lacking = "there are no timers" + (" and no TTL in this time mode" if node.transform else "")
        reason = f"{lacking}: a key's state leaves only if your code clears it when a row of the key comes"
    else:
        ways = f"timers in {node.clock} time" + (
            " and TTL" if node.transform and node.clock == "processing" else ""
        )
        reason = f"{ways} are possible, but whether your code uses them for every key is not in the plan"
    if node.transform:
        fix = Fix(
            "ttl",
            "handle.getValueState(name, schema, ttlDurationMs)",
            True,
            'with timeMode "ProcessingTime"; or register a timer for each key, and clear its state when it fires',
        )
    else:
        fix = Fix(
            "timeout",
            "state.setTimeoutDuration(milliseconds)",
            True,
            "with a timeout, and state.remove() when state.hasTimedOut",
        )
    return State(node.name, of, "code", reason, (fix,))


def _watermark(source: Source) -> str:
    """The watermark a source lacks, as a call to chain."""
    return "" if source.watermarks else f'.withWatermark("{source.time}", "{DELAY}")'


def _untimed(keys: tuple[Key, ...], source: Source) -> str:
    """Why no key is ever dropped."""
    if not source.watermarks:
        return "there is no watermark, so no key ever leaves"
    mark = source.watermarks[0].column
    if any(key.name == mark for key in keys):
        return f"{mark} has lost its watermark on the way: set it just before this, after any union"
    derived = next((key for key in keys if key.derived_from), None)
    if derived is not None:
        return f"{derived.name} is computed from {derived.derived_from} and does not carry its watermark"
    return f"the watermark is on {mark}, which is not among the keys, so no key ever leaves"


def _event_time(keys: tuple[Key, ...]) -> Key | None:
    return next((key for key in keys if key.delay_ms is not None), None)


def _time(key: Key) -> str:
    return f"its {key.name}; the watermark is {_duration(key.delay_ms or 0)} behind the newest row"


def _few(keys: tuple[Key, ...]) -> str:
    return "; ".join(f"{key.name} {key.finite}" for key in keys) or "there is one group"


def _by(keys: tuple[Key, ...]) -> str:
    return "by " + ", ".join(key.name for key in keys)


def _list(keys: tuple[Key, ...]) -> str:
    return "[" + ", ".join(f'"{key.name}"' for key in keys) + "]"


def _other(side: str) -> str:
    return "right" if side == "left" else "left"


def _duration(milliseconds: int) -> str:
    for size, unit in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second")):
        if milliseconds and milliseconds % size == 0:
            count = milliseconds // size
            return f"{count} {unit}" + ("" if count == 1 else "s")
    return f"{milliseconds} ms"
