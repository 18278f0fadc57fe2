"""What `kafka-consumer-groups --describe` tells: offsets and lag, members, or states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, execution, runtime, wrapped
from kafkalite.tools.group_questions import Committed, Group, Member, committed, describe
from kafkalite.tools.java_maps import TopicPartition
from kafkalite.tools.partition_offsets import LATEST, leaders_of, offsets_at
from kafkalite.tools.running import tell, tell_error

_NOTHING = "-"
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_OFFSET_HEADS = (
    "GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG",
    "CONSUMER-ID", "HOST", "CLIENT-ID",
)  # fmt: skip
_EPOCH = _OFFSET_HEADS.index("LEADER-EPOCH")
_INSTANCE = 2
_MEMBER_HEADS = (
    "GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS",
    "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED",
)  # fmt: skip
_MEMBER_WIDTHS = (15, 15, 17, 15, 15, 15, 15, 20, 15, 20, 0)
_SHORT_MEMBER, _LONG_MEMBER = 6, 10  # columns

Row = Sequence[str]


def print_offsets(asking: Asking, group_ids: Iterable[str], *, is_verbose: bool) -> None:
    reports = {
        group.group_id: (group, _offset_rows(asking, group))
        for group in describe(asking, group_ids)
    }
    for group_id in sorted(reports):
        group, rows = reports[group_id]
        if _is_to_be_shown(group, len(rows)):
            _print_offset_rows([_OFFSET_HEADS, *rows], is_verbose=is_verbose)


def _offset_rows(asking: Asking, group: Group) -> list[Row]:
    with wrapped(execution, runtime):
        offsets = committed(asking, group.group_id)
    busy = [each for each in group.members if each.partitions]
    busy.sort(key=lambda each: len(each.partitions), reverse=True)
    rows: list[Row] = []
    for each in busy:
        about = (each.member_id, each.host, each.client_id)
        rows += _partition_rows(asking, group, each.partitions, offsets, about)
    assigned = {partition for each in busy for partition in each.partitions}
    others = [each for each in offsets if each not in assigned]
    if others:
        rows += _partition_rows(asking, group, others, offsets, (_NOTHING,) * 3)
    return rows


def _partition_rows(
    asking: Asking, group: Group, partitions: Sequence[TopicPartition],
    offsets: Mapping[TopicPartition, Committed | None], about: Row,
) -> list[Row]:
    """Each partition with what is committed, where it ends if it has a leader, and who reads it."""
    with wrapped(execution, runtime):
        leaders = leaders_of(asking, [topic for topic, _ in partitions])
    led = {each: leader for each in partitions if (leader := leaders.get(each, -1)) >= 0}
    ends = offsets_at(asking, led, LATEST)
    rows: list[Row] = []
    for topic, partition in sorted(partitions):
        known, end = offsets.get((topic, partition)), ends.get((topic, partition))
        offset, epoch = (None, None) if known is None else (known.offset, known.leader_epoch)
        lag = None if offset is None or end is None else end - offset
        rows.append((
            group.group_id, topic, str(partition), _shown(epoch), _shown(offset), _shown(end),
            _shown(lag), *about,
        ))  # fmt: skip
    return rows


def _print_offset_rows(rows: Sequence[Row], *, is_verbose: bool) -> None:
    widths = [
        _width(rows, 0), _width(rows, 1), 10, 15, 15, 15, 15, _width(rows, 7), _width(rows, 8), 0,
    ]  # fmt: skip
    for row in rows:
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)]
        if not is_verbose:
            del cells[_EPOCH]
        print("\n" + " ".join(cells), end="")
    print()


def _width(rows: Iterable[Row], column: int, least: int = 15) -> int:
    return max(least, *(len(row[column]) for row in rows))


def _shown(value: int | None) -> str:
    return _NOTHING if value is None else str(value)


def _is_to_be_shown(group: Group, rows: int) -> bool:
    """Says what is to be said of a group's state, and whether there is more."""
    if group.state == "Dead":
        tell_error(f"Consumer group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        tell(f"\nConsumer group '{group.group_id}' has no active members.")
    elif group.state in _REBALANCING:
        tell(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.")
    elif group.state != "Stable":
        message = f"Expected a valid consumer group state, but found '{group.state}'."
        raise Failure("org.apache.kafka.common.KafkaException", message)
    return group.state != "Dead" and rows > 0


def print_members(asking: Asking, group_ids: Iterable[str], *, is_verbose: bool) -> None:
    groups = {group.group_id: group for group in describe(asking, group_ids)}
    for group_id in sorted(groups):
        group = groups[group_id]
        is_wide = _is_to_be_shown(group, len(group.members))
        rows = [_MEMBER_HEADS, *(_member_row(group, each) for each in group.members)]
        widths = [
            _width(rows, column, least) if is_wide and _grows(column) else least
            for column, least in enumerate(_MEMBER_WIDTHS)
        ]
        kinds = {each.is_upgraded for each in group.members} if is_wide else set()
        has_instances = is_wide and any(each.instance_id for each in group.members)
        columns = _SHORT_MEMBER
        if is_verbose:
            columns = _LONG_MEMBER + (kinds >= {True, False})
        print()
        for row in rows:
            cells = [f"{row[column]:{widths[column]}}" for column in range(columns)]
            if not has_instances:
                del cells[_INSTANCE]
            print(" ".join(cells), end="\n" if is_verbose else " \n")


def _grows(column: int) -> bool:
    return not _MEMBER_HEADS[column].endswith(("EPOCH", "#PARTITIONS", "UPGRADED"))


def _member_row(group: Group, member: Member) -> Row:
    is_upgraded = _NOTHING if member.is_upgraded is None else str(member.is_upgraded).lower()
    return (
        group.group_id, member.member_id, member.instance_id, member.host, member.client_id,
        str(len(member.partitions)), _shown(member.epoch), _assignment(member.partitions),
        _shown(group.target_epoch), _assignment(member.target), is_upgraded,
    )  # fmt: skip


def _assignment(partitions: Sequence[TopicPartition]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    parts = [f"{name}:{','.join(map(str, sorted(topics[name])))}" for name in topics]
    return ";".join(sorted(parts)) or _NOTHING


def print_states(asking: Asking, group_ids: Iterable[str], *, is_verbose: bool) -> None:
    groups = {group.group_id: group for group in describe(asking, group_ids)}
    for group_id in sorted(groups):
        group = groups[group_id]
        if not _is_to_be_shown(group, 1):
            continue
        node = asking.coordinator_of("describeConsumerGroups", group_id)
        row = [
            group_id, f"{node.host}:{node.port}  ({node.node_id})", group.assignor or _NOTHING,
            group.state, _shown(group.epoch), _shown(group.target_epoch), str(len(group.members)),
        ]  # fmt: skip
        heads = [
            "GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH",
            "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS",
        ]  # fmt: skip
        widths = [max(15, len(row[0])), max(25, len(row[1])), 20, 20, 15, 25, 0]
        for line in (heads, row):
            cells = [f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)]
            if not is_verbose:
                del cells[4:6]
            print("\n" + " ".join(cells), end="")
        print()
