"""Of the copies of a partition that a start finds, the one that counts.

Owns the choice after a move that a stop cut short, and after directories that were away. It never
touches a file. Invariant: a copy is chosen only when no other that may be newer can lie in a
directory that is not there.

A move goes: the copy is filled under a `-future` name; when it is even with the log and lasts, the
metadata names its directory; when that lasts, and both are even again, the copy gets the
partition's own name, and takes the appends; when that lasts, the old log gets a `-delete` name. So
what has the partition's own name in the directory that the metadata names has everything, and a
`-future` one may lack something as long as the log itself may be somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.log.directory import LogDirectory
from kafkalite.log.names import is_future_name, uuid_text
from kafkalite.log.offline import UNKNOWN_TOPIC_ID, UnopenedLog
from kafkalite.log.partition_log import PartitionLog

# The id of the directory in which the metadata has our replica of a topic's partition, None when
# it names none.
NamedDirectory = Callable[[str, int], bytes | None]
# The name of the topic with this id, when the cluster has a replica of its partition here.
TopicOf = Callable[[bytes, int], str | None]
Copy = PartitionLog | UnopenedLog

_CURE = "put the directory back and start again, or delete the topic"


@dataclass(slots=True)
class Places:
    """The log directories of a broker, as far as they are there."""

    online: dict[bytes, str]  # path by id
    offline: list[str]

    @classmethod
    def of(cls, directories: Iterable[LogDirectory]) -> Places:
        online, offline = {}, []
        for directory in directories:
            if directory.home.is_online:
                online[directory.directory_id] = directory.path
            else:
                offline.append(directory.path)
        return cls(online, offline)

    def why_not_made(self, named: bytes | None, *, is_copied: bool = False) -> str | None:
        """Why a log that is nowhere to be found must not be made anew: it may be where nobody can
        look now. None when it may; one `is_copied` from others when no directory is offline, since
        that of the metadata was exchanged then."""
        if named is not None and named not in self.online and (self.offline or not is_copied):
            return self.why_not_there(named)
        if self.offline:
            return f"its log may lie in {', '.join(self.offline)}, which is offline; {_CURE}"
        return None

    def why_not_there(self, named: bytes) -> str:
        """That the directory which the metadata names is missing."""
        where = "is none of log.dirs"
        if self.offline:
            where = f"is not there, and {', '.join(self.offline)} is offline"
        return f"the log directory with its log, whose id is {uuid_text(named)}, {where}; {_CURE}"


@dataclass(slots=True)
class Choice:
    """What becomes of the copies of one partition."""

    log: PartitionLog | None = None  # that is served; a future one is promoted
    future: PartitionLog | None = None  # that is filled on
    aside: list[Copy] = field(default_factory=list)  # which do not count, and are kept
    reason: str = ""  # why none is served, and all are left as they are


def strangers(
    copies: list[Copy], topic_of: TopicOf, named: bytes | None, places: Places
) -> list[Copy]:
    """Those of the logs under a partition's name that are of another topic, or may be.

    One whose id is lost is the partition's only where the metadata names its directory: a log was
    made there for this topic, and before that its forerunner's name was gone for good. Anything
    else may be the forerunner's, brought back by a power cut that took its id, too. (Apache Kafka
    takes every log without an id for a stray.)
    """
    path = places.online.get(named) if named is not None else None

    def is_own(each: Copy) -> bool:
        if each.topic_id != UNKNOWN_TOPIC_ID:
            return topic_of(each.topic_id, each.partition) == each.topic
        return each.home.path == path and not is_future_name(each.directory)

    own = [each for each in copies if is_own(each)]
    if own:
        return [each for each in copies if each not in own]
    return [
        each
        for each in copies
        if isinstance(each, PartitionLog) and each.topic_id == UNKNOWN_TOPIC_ID
    ]


def choose(copies: Iterable[Copy], named: bytes | None, places: Places) -> Choice:
    """Chooses among the copies of one partition; `named` is the directory of the metadata."""
    copies = list(copies)
    opened = [copy for copy in copies if isinstance(copy, PartitionLog)]
    opened.sort(key=lambda log: (log.epochs.latest, log.log_end_offset), reverse=True)
    own = [log for log in opened if not log.is_future]
    futures = [log for log in opened if log.is_future]
    path = places.online.get(named) if named is not None else None
    log = next((log for log in own if log.home.path == path), None)
    if log is None:
        reason = _why_none(copies, own, named, places)
        if reason is not None:
            return Choice(reason=reason)
        # A future one: nothing else is left anywhere, so it was complete, or is all there is.
        log = own[0] if own else futures[0]
    future = next((each for each in futures if each.home is not log.home), None)
    return Choice(log, future, [copy for copy in copies if copy not in (log, future)])


def _why_none(
    copies: list[Copy], own: list[PartitionLog], named: bytes | None, places: Places
) -> str | None:
    """Why a copy that the metadata does not name must not count; None when one may."""
    for copy in copies:
        if isinstance(copy, UnopenedLog):
            return copy.reason
    if not own:
        return places.why_not_made(named)
    if named is not None and named not in places.online and places.offline:
        return places.why_not_there(named)
    return None
