"""Members of a share group: they fetch records, and accept, release, reject, renew or keep them.

As Apache Kafka's, a member that missed an answer leaves its session and begins another, and says
nothing more of what it had. What it knows goes into `Sharing`, for the judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from kafkalite.records.batch import iterate_headers
from kafkalite.records.record import iterate_records
from kafkalite.sim.client import Ask, Client, Script, Sleep
from kafkalite.sim.member import Member
from kafkalite.sim.places import Anomaly, Places
from kafkalite.sim.producers import PASSING
from kafkalite.sim.shared import ACCEPT, GAP, REJECT, RELEASE, RENEW, Handed, Record, Sharing

LEAVES = -1
HEARTBEAT_VERSION, FETCH_VERSION = 1, 2
BEAT_CHANCE, KEEP_CHANCE, ASIDE_CHANCE = 0.3, 0.15, 0.4
# How a record fares, while there are faults.
FATES = {ACCEPT: 70, RELEASE: 15, REJECT: 5, RENEW: 10}
NAMES = {
    GAP: "gaps", ACCEPT: "accepted", RELEASE: "released", REJECT: "rejected", RENEW: "renewed",
}  # fmt: skip
# The session is another, or none.
ENDED = (
    Error.SHARE_SESSION_NOT_FOUND,
    Error.INVALID_SHARE_SESSION_EPOCH,
    Error.SHARE_SESSION_LIMIT_REACHED,
)
# Of records that are not the member's any more, or not for now.
TOO_LATE = (*PASSING, Error.INVALID_RECORD_STATE, Error.FENCED_LEADER_EPOCH)

Said = dict[Record, int]


@dataclass(slots=True)
class Sharer(Member):
    """One incarnation of a member."""

    membership: Sharing
    client: Client
    owned: set[int] = field(default_factory=set)
    held: dict[Record, tuple[int, bool]] = field(default_factory=dict)  # delivery, is it a record
    session_epoch: int = 0
    asked_for: set[int] = field(default_factory=set)  # in the session
    lock_ms: int = 0
    lives: int = 0
    has_missed: bool = False

    def forget(self) -> None:
        Member.forget(self)
        self.lives += 1
        self.member_id, self.epoch = f"{self.name}-{self.lives}", 0

    def has_left(self) -> None:
        Member.has_left(self)
        self.owned = set()
        self._end_session()

    def live(self) -> Script:
        if self.epoch <= 0 or self.random.random() < BEAT_CHANCE:
            yield from self._tell(self.epoch)
            yield self.beat()
        if self.epoch > 0 and self.owned | self.asked_for:
            yield from self._share()

    def leave(self) -> Script:
        yield from self._tell(LEAVES)

    # --- the group --------------------------------------------------------------------------------

    def _tell(self, epoch: int) -> Script:
        is_whole = epoch == 0 or self.has_missed
        request = ShareGroupHeartbeatRequest(
            group_id=self.membership.group_id, member_id=self.member_id, member_epoch=epoch,
            subscribed_topic_names=[self.membership.topic] if is_whole else None,
        )
        [answer] = yield Ask([(request, HEARTBEAT_VERSION)])
        self.has_missed = answer is None or answer.error_code != Error.NONE
        if answer is None or epoch == LEAVES:
            return
        code = Error(answer.error_code)
        if code is not Error.NONE:
            self.told(code, "ShareGroupHeartbeat")
            return
        self.epoch, self.is_steady = answer.member_epoch, True
        if answer.assignment is not None:
            found = answer.assignment.topic_partitions
            self.owned = {index for each in found for index in each.partitions}

    # --- the session ------------------------------------------------------------------------------

    def _end_session(self) -> None:
        for record in self.held:
            self.membership.let_go(record)
        self.held.clear()
        self.asked_for = set()
        self.session_epoch = 0

    def _share(self) -> Script:
        said = self._say() if self.session_epoch else {}
        is_renewal = RENEW in said.values()
        if said and (is_renewal or self.random.random() < ASIDE_CHANCE):
            yield from self._acknowledge(said, is_renewal=is_renewal)
        else:
            yield from self._fetch(said)

    def _say(self) -> Said:
        said: Said = {}
        for record, (_, is_record) in self.held.items():
            if not is_record:
                said[record] = GAP
            elif self.membership.is_peaceful:
                said[record] = ACCEPT
            elif self.random.random() >= KEEP_CHANCE:
                said[record] = self.random.choices(list(FATES), list(FATES.values()))[0]
        return said

    def _acknowledge(self, said: Said, *, is_renewal: bool) -> Script:
        request = ShareAcknowledgeRequest(
            group_id=self.membership.group_id, member_id=self.member_id,
            share_session_epoch=self.session_epoch, is_renew_ack=is_renewal,
            topics=self._topics(ShareAcknowledgeRequest, said, set()),
        )
        asked_ms = self.membership.now_ms()
        answer = yield from self._ask(request, said)
        for index, told in self._partitions(answer):
            self._settle(index, said, Error(told.error_code), asked_ms)

    def _fetch(self, said: Said) -> Script:
        kind = ShareFetchRequest
        gone = self.asked_for - self.owned
        request = kind(
            group_id=self.membership.group_id, member_id=self.member_id,
            share_session_epoch=self.session_epoch, max_wait_ms=100, min_bytes=1,
            max_bytes=1 << 16, max_records=self.random.choice((3, 40)), batch_size=5,
            share_acquire_mode=self.random.randrange(2),
            topics=self._topics(kind, said, self.owned - self.asked_for),
            forgotten_topics_data=[
                kind.ForgottenTopicsData(
                    topic_id=self.membership.topic_id, partitions=sorted(gone)
                )
            ] if gone else [],
        )
        asked_ms, life = self.membership.now_ms(), self.membership.life()
        answer = yield from self._ask(request, said)
        if answer is None:
            self.membership.lost.update(self.owned | self.asked_for)
            self.history.count("share fetches without an answer")
            yield Sleep(20)
            return
        if answer.error_code == Error.NONE:
            self.asked_for, self.lock_ms = set(self.owned), answer.acquisition_lock_timeout_ms
        for index, told in self._partitions(answer):
            self._settle(index, said, Error(told.acknowledge_error_code), asked_ms)
            self._take(index, told, asked_ms, life)
        yield Sleep(5) if self.held else self.beat()

    def _topics(self, kind: Any, said: Said, added: set[int]) -> list[Any]:
        indexes = sorted({index for index, _ in said} | added)
        partitions = [
            kind.Partition(
                partition_index=index,
                acknowledgement_batches=[
                    kind.AcknowledgementBatch(
                        first_offset=run[0], last_offset=run[-1],
                        acknowledge_types=[said[index, offset] for offset in run],
                    )
                    for run in _runs(sorted(offset for of, offset in said if of == index))
                ],
            )
            for index in indexes
        ]
        topic_id = self.membership.topic_id
        return [kind.Topic(topic_id=topic_id, partitions=partitions)] if partitions else []

    def _ask(self, request: Any, said: Said) -> Script:
        """Its answer, or None when there is none or the session has ended."""
        for record, what in said.items():
            if what != RENEW:
                self.membership.let_go(record)
        [answer] = yield Ask([(request, FETCH_VERSION)])
        code = None if answer is None else Error(answer.error_code)
        if code is Error.NONE:
            self.session_epoch += 1
            return answer
        self._end_session()
        if code is not None and code not in ENDED and code not in PASSING:
            self.history.complain(f"{self.name}: {type(request).__name__} got {code.name}")
        return None

    def _partitions(self, answer: Any) -> Iterator[tuple[int, Any]]:
        for topic in () if answer is None else answer.responses:
            for told in topic.partitions:
                yield told.partition_index, told

    def _settle(self, index: int, said: Said, code: Error, asked_ms: int) -> None:
        if code is not Error.NONE and code not in TOO_LATE:
            self.history.complain(f"{self.name} was told {code.name} of {said}")
        for record, what in said.items():
            if record[0] != index or record not in self.held:
                continue
            if code is not Error.NONE:
                self.history.count(f"shared records: {code.name}")
                self.membership.let_go(record)
                del self.held[record]
            elif what == RENEW:
                self.membership.renew(record, self.member_id, asked_ms, self.lock_ms)
            else:
                self.membership.settle(record, what, self.held.pop(record)[0])
            if code is Error.NONE:
                self.history.count(f"shared records: {NAMES[what]}")

    def _take(self, index: int, told: Any, asked_ms: int, life: object) -> None:
        code = Error(told.error_code)
        if code is not Error.NONE:
            if code not in TOO_LATE:
                self.history.complain(f"{self.name}: ShareFetch of {index} got {code.name}")
            return
        values = {
            record.offset: bytes(record.value)
            for header in (iterate_headers(told.records) if told.records else ())
            if not header.is_control
            for record in iterate_records(told.records, header)
            if record.value is not None
        }
        for each in told.acquired_records:
            if each.delivery_count > 1:
                self.history.count("shared records: again")
            for offset in range(each.first_offset, each.last_offset + 1):
                record = index, offset
                self.held[record] = each.delivery_count, offset in values
                if offset in values:
                    handed = Handed(record, values[offset], each.delivery_count, asked_ms, life)
                    self.membership.hand(self.member_id, self.client, handed, self.lock_ms)


def _runs(offsets: list[int]) -> Iterator[list[int]]:
    """Stretches without a gap."""
    begin = 0
    for place, (one, other) in enumerate(pairwise(offsets), 1):
        if other != one + 1:
            yield offsets[begin:place]
            begin = place
    if offsets:
        yield offsets[begin:]


@dataclass(slots=True)
class Sharers(Places[Sharer]):
    """All members of the group."""

    membership: Sharing

    def make(self, number: int, incarnation: int, client: Client) -> Sharer:
        self.world.history.count("members of a share group")
        return Sharer(
            f"sharer-{number}.{incarnation}", self.world.random, self.world.history,
            self.membership, client,
        )

    def check(self) -> Iterator[Anomaly]:
        read: set[int] = set()
        for place in self.places:
            if not (place.client.is_running and place.member.is_steady):
                yield "not in the group", place.member.name
            read |= place.member.owned
        for index in range(self.membership.partition_count):
            if index not in read:
                yield "read by nobody", f"partition {index} of {self.membership.topic}"
