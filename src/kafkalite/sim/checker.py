"""Judges a run: what was lost, doubled, reordered, half visible, or visible though aborted.

In the manner of Jepsen's checker for queues: a history of what clients sent and saw is held against
one last reading of every partition. Owns the names of the anomalies. Invariant: what it reports is
false under any order of events, so a sound broker is never accused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkalite.sim.compacted import check_compacted
from kafkalite.sim.gone import check_gone
from kafkalite.sim.history import Attempt, Fate, History, Partition, Reading, Sent

SHOWN = 5


@dataclass(slots=True)
class Final:
    """The last reading of one partition by each isolation level."""

    committed: Reading
    everything: Reading
    high_watermark: int
    last_stable_offset: int


@dataclass(slots=True)
class Anomalies:
    """What was found, by kind."""

    found: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, what: str) -> None:
        self.found.setdefault(kind, []).append(what)

    def __bool__(self) -> bool:
        return bool(self.found)

    def __str__(self) -> str:
        return "\n".join(
            f"{kind}: {len(cases)}, such as {'; '.join(cases[:SHOWN])}"
            for kind, cases in self.found.items()
        )


def check(history: History, finals: dict[Partition, Final], anomalies: Anomalies) -> None:
    """Every anomaly of the run."""
    history.bind()
    for complaint in history.complaints:
        anomalies.add("refused", complaint)
    for partition in history.compacted & finals.keys():
        final = finals[partition]
        _check_stable(partition, final, anomalies)
        for kind, what in check_compacted(history, partition, final.committed, final.everything):
            anomalies.add(kind, what)
    for kind, what in check_gone(history, finals.keys()):
        anomalies.add(kind, what)
    finals = {where: final for where, final in finals.items() if where not in history.compacted}
    for partition in history.fading & finals.keys():
        _check_stable(partition, finals.pop(partition), anomalies)
    visible = {
        partition: Counter(value for _, value in final.committed.seen)
        for partition, final in finals.items()
    }
    _check_values(history, visible, anomalies)
    for attempt in history.attempts:
        _check_atomic(attempt, visible, anomalies)
    _check_order(history, finals, anomalies)
    for partition, final in finals.items():
        _check_stable(partition, final, anomalies)
        _check_offsets(history, partition, final, anomalies)
    for reading in history.readings:
        if reading.partition in finals:
            _check_reading(reading, finals[reading.partition], anomalies)


def _check_values(
    history: History, visible: dict[Partition, Counter[bytes]], anomalies: Anomalies
) -> None:
    """Each value once if it was acknowledged, never if it was aborted, at most once otherwise."""
    sent: dict[tuple[Partition, bytes], list[Sent]] = {}
    for each in history.sent:
        if each.partition in visible:
            sent.setdefault((each.partition, each.value), []).append(each)
    for (partition, value), tries in sent.items():
        count = visible[partition][value]
        fates = [each.attempt.fate for each in tries]
        what = f"{value!r} in {partition}"
        if count > 1:
            anomalies.add("duplicate", f"{what}, {count} times")
        if Fate.KEPT in fates and count == 0 and not all(each.is_excused for each in tries):
            anomalies.add("lost", what)
        if fates.count(Fate.KEPT) > 1:
            anomalies.add("kept twice", what)
        if all(fate in (Fate.GONE, Fate.OPEN) for fate in fates) and count:
            is_aborted = any(each.attempt.is_transactional for each in tries)
            anomalies.add("aborted but visible" if is_aborted else "refused but visible", what)
    for partition, counts in visible.items():
        for value in counts:
            if (partition, value) not in sent:
                anomalies.add("invented", f"{value!r} in {partition}")


def _check_atomic(
    attempt: Attempt, visible: dict[Partition, Counter[bytes]], anomalies: Anomalies
) -> None:
    """All of an attempt or nothing, whatever its producer was told."""
    if attempt.fate is not Fate.UNKNOWN:
        return
    values = [each for each in attempt.values if each.partition in visible and not each.is_excused]
    found = [each for each in values if visible[each.partition][each.value]]
    if found and len(found) < len(values):
        anomalies.add("half visible", f"{found[0].value!r} without the rest of its transaction")


def _check_order(
    history: History, finals: dict[Partition, Final], anomalies: Anomalies
) -> None:
    """What one incarnation sent to a partition stands there in the order of sending.

    A copy that was sent again after an abort is left to `check_chain`.
    """
    tries = Counter((each.partition, each.value) for each in history.sent)
    places = {
        (partition, value): offset
        for partition, final in finals.items()
        for offset, value in final.committed.seen
    }
    latest: dict[tuple[str, Partition], tuple[int, bytes]] = {}
    for each in history.sent:
        place = places.get((each.partition, each.value))
        if place is None or tries[each.partition, each.value] > 1:
            continue
        key = each.producer, each.partition
        before, value = latest.get(key, (-1, b""))
        if place < before:
            anomalies.add("reordered", f"{each.value!r} before {value!r} in {each.partition}")
        latest[key] = place, each.value


def _check_stable(partition: Partition, final: Final, anomalies: Anomalies) -> None:
    """Once nobody writes any more, no transaction is open."""
    if final.last_stable_offset != final.high_watermark:
        anomalies.add(
            "hanging",
            f"{partition} is stable up to {final.last_stable_offset} of {final.high_watermark}",
        )


def _check_offsets(
    history: History, partition: Partition, final: Final, anomalies: Anomalies
) -> None:
    """An offset holds one value for everybody, at any time."""
    truth = dict(final.everything.seen)
    readings: Iterator[Reading] = iter([*history.readings, final.committed])
    for reading in readings:
        if reading.partition != partition:
            continue
        for offset, value in reading.seen:
            if truth.get(offset) != value:
                anomalies.add(
                    "inconsistent",
                    f"{partition} had {value!r} at {offset}, in the end {truth.get(offset)!r}",
                )


def _check_reading(reading: Reading, final: Final, anomalies: Anomalies) -> None:
    """A consumer saw, in order and without a gap, all that its isolation level has up to there."""
    whole = final.committed if reading.is_committed_only else final.everything
    expected = [(offset, value) for offset, value in whole.seen if offset < reading.position]
    if reading.seen == expected:
        return
    seen, due = set(reading.seen), set(expected)
    for each in sorted(seen - due):
        anomalies.add("dirty read", f"{each} of {reading.partition}")
    for each in sorted(due - seen):
        anomalies.add("skipped", f"{each} of {reading.partition}")
    if seen == due:
        anomalies.add("read out of order", f"{reading.partition}")


def check_chain(
    source: Final, target: Final, committed_offset: int, anomalies: Anomalies
) -> None:
    """The copies are those of all that lies below the committed offset, in its order."""
    expected = [
        b"copy of " + value for offset, value in source.committed.seen if offset < committed_offset
    ]
    copies = [value for _, value in target.committed.seen]
    if copies != expected:
        anomalies.add(
            "copied wrongly", f"{len(copies)} copies of {len(expected)} below {committed_offset}"
        )
