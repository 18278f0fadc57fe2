"""Records that can no longer be read: expired before it was their turn, or of a deleted topic.

Owns noticing them and writing the lost ranges down; never lets a pipeline pass over them silently.
Spark misses a topic recreated with as many records as the old one, so topic ids are compared.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import Offsets, Range
from kafkalite.pipelines.common.outcomes import Different

TOPICS_FILE = "topics.json"
LOST_FILE = "lost-ranges.json"

EXPIRED = "expired before it was read"
EXPIRING = "expired while it was read, perhaps unread"
RECREATED = "topic deleted and recreated"
DELETED = "topic deleted"
# The same under a batch: a consumer goes on in a new topic of the same name, and tells nobody.
WHILE_READ = {
    RECREATED: f"{RECREATED} while it was read, what was written from there on may be of the new",
    DELETED: f"{DELETED} while it was read, perhaps unread",
}


class RecordsLost(Different):
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


def expiring(ranges: Iterable[Range], before: Iterable[Loss], log_starts: Offsets) -> list[Loss]:
    """What of a batch that was just read is no longer there, but was when it began."""
    began = {(loss.topic, loss.partition): loss.end or 0 for loss in before}
    found = []
    for each in ranges:
        key = (each.topic, each.partition)
        start = max(each.start, began.get(key, 0))
        end = min(each.end, log_starts.get(key, 0))
        if end > start:
            found.append(Loss(each.topic, each.partition, start, end, EXPIRING))
    return found


def replaced(known: Mapping[str, str], now: Mapping[str, str], reads_from: Offsets) -> list[Loss]:
    """What was left unread of topics whose id is another one now, or that are gone."""
    return [
        Loss(topic, partition, offset, None, RECREATED if topic in now else DELETED)
        for (topic, partition), offset in sorted(reads_from.items())
        if topic in known and now.get(topic) != known[topic]
    ]


def topic_ids(admin: KafkaAdmin, topics: Iterable[str]) -> dict[str, str]:
    return {name: topic.topic_id for name, topic in admin.topics(topics).items()}


def recreated(notes: Folder, admin: KafkaAdmin, topics: Iterable[str]) -> list[str]:
    """Those of these topics that are others than were noted, under their names."""
    known = json.loads(notes.read(TOPICS_FILE) or "{}")
    now = topic_ids(admin, topics)
    return sorted(name for name in now if known.get(name, now[name]) != now[name])


def note_topics(notes: Folder, admin: KafkaAdmin, topics: Iterable[str]) -> None:
    """Which topics these are, for `recreated`."""
    known = json.loads(notes.read(TOPICS_FILE) or "{}")
    now = topic_ids(admin, topics)
    if any(known.get(name) != topic_id for name, topic_id in now.items()):
        notes.write(TOPICS_FILE, json.dumps({**known, **now}, sort_keys=True))


def begins(ranges: Iterable[Range]) -> Offsets:
    return {(each.topic, each.partition): each.start for each in ranges}


class Guard:
    """Compares what a checkpoint wants to read with what the cluster still has."""

    def __init__(self, admin: KafkaAdmin, notes: Folder, keep_going: bool) -> None:
        self._admin = admin
        self._notes = notes
        self._keep_going = keep_going
        self.noted: list[Loss] = []

    def check(self, reads_from: Offsets, ranges: Sequence[Range] = ()) -> list[Loss]:
        """Raises `RecordsLost`, or with `keep_going` gives what expired, after writing it down.

        A recreated topic always raises: offsets of the old one mean nothing in the new one.
        `ranges` may be of topics of which nothing was read yet.
        """
        planned = {**begins(ranges), **reads_from}
        now = topic_ids(self._admin, {topic for topic, _ in planned})
        known = json.loads(self._notes.read(TOPICS_FILE) or "{}")
        gone = replaced(known, now, planned)
        present = {each: offset for each, offset in reads_from.items() if each[0] in now}
        # A new topic may have fewer partitions, for which one would wait in vain.
        old = expired(present, self._admin.starts(present)) if present and not gone else []
        losses = gone or old
        if losses:
            self._write_down(losses)
        if losses and (gone or not self._keep_going):
            raise RecordsLost(losses, f"{self._notes.path}/{LOST_FILE}")
        if any(known.get(topic) != topic_id for topic, topic_id in now.items()):
            self._notes.write(TOPICS_FILE, json.dumps({**known, **now}, sort_keys=True))
        return losses

    def check_again(self, ranges: Sequence[Range], before: Sequence[Loss]) -> None:
        """After a batch: of the topics that were read none was another one by then. And Spark
        passes without a word over what is gone, where it was told to."""
        known = json.loads(self._notes.read(TOPICS_FILE) or "{}")
        now = topic_ids(self._admin, {each.topic for each in ranges})
        others = replaced(known, now, begins(ranges))
        gone = [replace(each, reason=WHILE_READ[each.reason]) for each in others]
        if gone:
            self._write_down(gone)
            raise RecordsLost(gone, f"{self._notes.path}/{LOST_FILE}")
        if self._keep_going:
            self._write_down(expiring(ranges, before, self._admin.starts(begins(ranges))))

    def _write_down(self, losses: Iterable[Loss]) -> None:
        """Each range once: a restart and the batches after it meet the same loss again."""
        written = [Loss(**row) for row in json.loads(self._notes.read(LOST_FILE) or "[]")]
        new = [loss for loss in losses if not any(_covers(each, loss) for each in written)]
        if new:
            self.noted += new
            rows = [asdict(loss) for loss in written + new]
            self._notes.write(LOST_FILE, json.dumps(rows, indent=1))


def _covers(written: Loss, loss: Loss) -> bool:
    if written.end is None or loss.end is None:
        return written == loss
    same = (written.topic, written.partition, written.reason)
    within = written.start <= loss.start and loss.end <= written.end
    return within and same == (loss.topic, loss.partition, loss.reason)
