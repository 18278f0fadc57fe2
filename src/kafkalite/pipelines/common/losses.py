"""Records that can no longer be read: expired before it was their turn, or of a deleted topic.

Owns noticing them and writing the lost ranges down; never lets a pipeline pass over them silently.
Spark misses a topic recreated with as many records as the old one, so topic ids are compared.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import Offsets, Range

TOPICS_FILE = "topics.json"
LOST_FILE = "lost-ranges.json"

EXPIRED = "expired before it was read"
RECREATED = "topic deleted and recreated"
DELETED = "topic deleted"


class RecordsLost(RuntimeError):
    """Records that cannot be read any more; `losses` names the ranges."""

    def __init__(self, losses: list["Loss"], written_to: str) -> None:
        self.losses = losses
        lines = "\n".join(f"  {loss}" for loss in losses)
        super().__init__(f"records lost (also written to {written_to}):\n{lines}")


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets `start` to `end` (not included) of one partition, and why; `end` None: not known."""

    topic: str
    partition: int
    start: int
    end: int | None
    reason: str

    def __str__(self) -> str:
        if self.end is None:
            return f"{self.topic}-{self.partition} from offset {self.start}: {self.reason}"
        return f"{Range(self.topic, self.partition, self.start, self.end)}: {self.reason}"


def expired(reads_from: Mapping[tuple[str, int], int], log_starts: Offsets) -> list[Loss]:
    """What lay between where a pipeline would read on and where the log now starts."""
    return [
        Loss(topic, partition, offset, log_starts[topic, partition], EXPIRED)
        for (topic, partition), offset in sorted(reads_from.items())
        if log_starts.get((topic, partition), 0) > offset >= 0
    ]


def replaced(known: Mapping[str, str], now: Mapping[str, str], reads_from: Offsets) -> list[Loss]:
    """What was left unread of topics whose id is another one now, or that are gone."""
    return [
        Loss(topic, partition, offset, None, RECREATED if topic in now else DELETED)
        for (topic, partition), offset in sorted(reads_from.items())
        if topic in known and now.get(topic) != known[topic]
    ]


class Guard:
    """Compares what a checkpoint wants to read with what the cluster still has."""

    def __init__(self, admin: KafkaAdmin, notes: Folder, keep_going: bool) -> None:
        self._admin = admin
        self._notes = notes
        self._keep_going = keep_going

    def check(self, reads_from: Offsets) -> list[Loss]:
        """Raises `RecordsLost`, or with `keep_going` gives what expired, after writing it down.

        A recreated topic always raises: offsets of the old one mean nothing in the new one.
        """
        topics = {topic for topic, _ in reads_from}
        now = {name: topic.topic_id for name, topic in self._admin.topics(topics).items()}
        known = json.loads(self._notes.read(TOPICS_FILE) or "{}")
        gone = replaced(known, now, reads_from)
        present = {each: offset for each, offset in reads_from.items() if each[0] in now}
        old = expired(present, self._admin.starts(present)) if present else []
        losses = gone or old
        if losses:
            self._write_down(losses)
        if losses and (gone or not self._keep_going):
            raise RecordsLost(losses, f"{self._notes.path}/{LOST_FILE}")
        if any(known.get(topic) != topic_id for topic, topic_id in now.items()):
            self._notes.write(TOPICS_FILE, json.dumps({**known, **now}, sort_keys=True))
        return losses

    def _write_down(self, losses: Iterable[Loss]) -> None:
        rows = json.loads(self._notes.read(LOST_FILE) or "[]")
        rows += [row for row in map(asdict, losses) if row not in rows]
        self._notes.write(LOST_FILE, json.dumps(rows, indent=1))
