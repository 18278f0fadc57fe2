"""Fetch sessions (KIP-227): what a fetcher asked for before and need not say again.

Owns the sessions of one broker, their epochs and their eviction; reads no record. A session's
partitions are kept in the order in which they are to be served: one that was given records goes to
the end, so that a small `max_bytes` starves nobody.
Invariant: a session holds exactly the partitions that its fetcher believes it holds, or is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, FetchResponse
from kafkalite.replication.partition import FetchPosition
from kafkalite.replication.traffic import Traffic

if TYPE_CHECKING:
    from random import Random

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_MS = 120_000
MAX_EPOCH = 2**31 - 1

WANTED_PER_STEP = 64

PartitionKey = tuple[bytes | str, int]


@dataclass(slots=True)
class Wanted:
    """A partition that a fetcher wants, and what it was told last."""

    topic: str
    topic_id: bytes
    index: int
    position: FetchPosition
    told_high_watermark: int = -1
    told_log_start_offset: int = -1
    is_in_session: bool = False
    traffic: Traffic | None = None  # where what is sent of it counts

    def has_news(self, answer: FetchResponse.Partition, length: int) -> bool:
        """Whether an incremental answer has to mention this partition."""
        return (
            length > 0
            or answer.error_code != Error.NONE
            or answer.high_watermark != self.told_high_watermark
            or answer.log_start_offset != self.told_log_start_offset
            or says_more(answer)
        )

    def must_tell(self, answer: FetchResponse.Partition, length: int) -> bool:
        """The same; remembers what it tells."""
        has_news = self.has_news(answer, length)
        self.told_high_watermark = answer.high_watermark
        self.told_log_start_offset = answer.log_start_offset
        if answer.error_code != Error.NONE:
            self.told_high_watermark = -1  # told again, with or without the error, next time
        return has_news

    def refused(self, code: int) -> None:
        if self.traffic is not None:
            self.traffic.refused_fetch(code)

    def converted(self) -> None:
        if self.traffic is not None:
            self.traffic.fetch_conversions += 1


Partitions = dict[PartitionKey, Wanted]


@dataclass(slots=True)
class Session:
    """One fetcher's standing request."""

    id: int
    uses_topic_ids: bool
    is_privileged: bool
    partitions: Partitions
    epoch: int
    created_ms: int
    used_ms: int

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Evicted first when smallest: consumers before replicas, small before large."""
        return self.is_privileged, len(self.partitions), self.id

    @property
    def is_settled(self) -> bool:
        """Whether it was in use for long enough to give way to a larger one."""
        return self.used_ms - self.created_ms > EVICTION_MS

    def next_epoch(self) -> int:
        epoch = self.epoch
        self.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        return epoch


@dataclass(slots=True)
class Fetch:
    """What one request asks for, whether in a session or not."""

    wanted: list[Wanted] = field(default_factory=list)
    session: Session | None = None
    is_incremental: bool = False
    opens: Partitions | None = None  # what a session would be of
    error: Error = Error.NONE


class FetchSessions:
    """The sessions of one broker, at most `slots` of them."""

    def __init__(self, slots: int, random: Random) -> None:
        self.slots = slots
        self._random = random
        self._sessions: dict[int, Session] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def partition_count(self) -> int:
        """Of all sessions together."""
        return sum(len(each.partitions) for each in self._sessions.values())

    def named(self, session_id: int) -> list[tuple[str, int]]:
        """The partitions that a session stands for; none when there is no such session."""
        session = self._sessions.get(session_id)
        wanted = () if session is None else session.partitions.values()
        return [(each.topic, each.index) for each in wanted]

    def open(
        self, request: FetchRequest, named: Partitions, version: int, now_ms: int
    ) -> Fetch:
        """What the request asks for, which names these, with its session brought up to date."""
        if request.session_epoch == FINAL_EPOCH:  # also what versions before sessions say
            self._sessions.pop(request.session_id, None)
            return Fetch(list(named.values()))
        if request.session_epoch == INITIAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            return Fetch(list(named.values()), opens=named)
        return self._resume(request, named, version, now_ms)

    def _resume(
        self, request: FetchRequest, named: Partitions, version: int, now_ms: int
    ) -> Fetch:
        session = self._sessions.get(request.session_id)
        if session is None:
            return Fetch(error=Error.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return Fetch(error=Error.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= 13):
            return Fetch(error=Error.FETCH_SESSION_TOPIC_ID_ERROR)
        _update(session, request, named, version)
        session.used_ms = now_ms
        if not session.partitions:
            del self._sessions[session.id]
            return Fetch(list(named.values()))
        session.next_epoch()
        return Fetch(list(session.partitions.values()), session, is_incremental=True)

    def close(self, fetch: Fetch, request: FetchRequest, version: int, now_ms: int) -> int:
        """The session id to answer with; a full fetch that wants a session gets one if it can."""
        if fetch.session is not None:
            return fetch.session.id
        if fetch.opens is None or not self._has_room(fetch, request, now_ms):
            return NO_SESSION
        session = Session(
            self._new_id(), version >= 13, replica_id(request) >= 0, fetch.opens, 1, now_ms, now_ms
        )
        self._sessions[session.id] = session
        return session.id

    def served(self, fetch: Fetch, wanted: Wanted, version: int) -> None:
        """A partition was given records: it comes last the next time."""
        if fetch.session is not None:
            key = _key(wanted, version)
            if fetch.session.partitions.pop(key, None) is not None:
                fetch.session.partitions[key] = wanted

    def _has_room(self, fetch: Fetch, request: FetchRequest, now_ms: int) -> bool:
        if len(self._sessions) < self.slots:
            return True
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - oldest.used_ms > EVICTION_MS:
            self._evict(oldest)
            return True
        return self._evict_smaller(replica_id(request) >= 0, len(fetch.wanted))

    def _evict_smaller(self, is_privileged: bool, size: int) -> bool:
        """Give a larger or privileged newcomer the place of the least of those old enough."""
        evictable = [
            session for session in self._sessions.values()
            if session.is_settled or is_privileged > session.is_privileged
        ]
        least = min(evictable, key=lambda session: session.rank, default=None)
        if least is None or (is_privileged, size, NO_SESSION) < least.rank:
            return False
        self._evict(least)
        return True

    def _evict(self, session: Session) -> None:
        self.evictions += 1
        del self._sessions[session.id]

    def _new_id(self) -> int:
        while True:
            session_id = self._random.randint(1, 2**31 - 1)
            if session_id not in self._sessions:
                return session_id


def says_more(answer: FetchResponse.Partition) -> bool:
    """Whether it tells a reader to go elsewhere: back to where logs part, or to another replica."""
    return answer.diverging_epoch.end_offset != -1 or answer.preferred_read_replica != -1


def replica_id(request: FetchRequest) -> int:
    """Of the broker that fetches; below 0 it is a client."""
    return max(request.replica_id, request.replica_state.replica_id)


def _key(wanted: Wanted, version: int) -> PartitionKey:
    return (wanted.topic_id if version >= 13 else wanted.topic), wanted.index


def named_in(topics: Iterable[FetchRequest.Topic], version: int) -> Partitions:
    """The partitions that a request names."""
    found: Partitions = {}
    for topic in topics:
        name: bytes | str = topic.topic_id if version >= 13 else topic.topic
        for asked in topic.partitions:
            found[name, asked.partition] = Wanted(
                topic.topic, topic.topic_id, asked.partition, _position(asked)
            )
    return found


def named_in_steps(topics: Iterable[FetchRequest.Topic], version: int) -> Steps[Partitions]:
    """The same for thousands."""
    found: Partitions = {}
    count = 0
    for topic in topics:
        is_small = len(topic.partitions) <= WANTED_PER_STEP
        for part in (topic,) if is_small else _parts(topic):
            found.update(named_in((part,), version))
            count += len(part.partitions)
            if count >= WANTED_PER_STEP:
                yield
                count = 0
    return found


def _parts(topic: FetchRequest.Topic) -> Iterator[FetchRequest.Topic]:
    """A topic asked for so many partitions at a time."""
    for some in pieces(topic.partitions, WANTED_PER_STEP):
        yield FetchRequest.Topic(topic=topic.topic, topic_id=topic.topic_id, partitions=some)


def _position(asked: FetchRequest.Partition) -> FetchPosition:
    """Epochs below zero are none, whichever they are."""
    return FetchPosition(
        asked.fetch_offset, asked.partition_max_bytes, max(asked.current_leader_epoch, -1),
        max(asked.last_fetched_epoch, -1), asked.log_start_offset,
    )


def _update(session: Session, request: FetchRequest, named: Partitions, version: int) -> None:
    for key, wanted in named.items():
        known = session.partitions.get(key)
        if known is None:
            session.partitions[key] = wanted
        else:
            known.position = wanted.position
    for topic in request.forgotten_topics_data:
        name: bytes | str = topic.topic_id if version >= 13 else topic.topic
        for index in topic.partitions:
            session.partitions.pop((name, index), None)
