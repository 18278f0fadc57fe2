"""ShareFetch, versions 1–2: a member is handed records, waiting a while when there are none, and
says what became of others.

Version 2 has modes of acquiring (KIP-1206) and renews locks (KIP-1222).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kafkalite.coordinators.shares.records import ShareKey
from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.handlers.share_replies import (
    Outcomes,
    acknowledge,
    by_topic,
    check_member,
    check_topic,
    name_leaders,
    said_in,
)
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ShareFetchRequest, ShareFetchResponse
from kafkalite.replication.partition import FetchPosition, Partition, PartitionRead
from kafkalite.replication.waiting import OTHER, SHARE_FETCH, Parked, Watched
from kafkalite.sharing.reading import Walk, part_with, walk
from kafkalite.sharing.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, Session
from kafkalite.sharing.shared_partition import SharedPartition, State

Response = ShareFetchResponse
Answers = dict[Place, ShareFetchResponse.Partition]

MOST_UNKNOWN = 1_000  # partitions that one session waits for
MODES_SINCE = 2
RECORD_LIMIT = 1  # the mode of so many records and no more


def share_fetch(
    context: Context, call: Call, request: ShareFetchRequest
) -> Response | InSteps | Later[Response | InSteps]:
    check_member(context, call, request)
    is_renewing = call.version >= MODES_SINCE and request.is_renew_ack
    if is_renewing:
        _check_renewing(request)
    said = said_in(request.topics)
    has_said = any(said.values())
    try:
        session = _session(context, call, request, list(said), has_said=has_said)
    except KafkaError as error:
        if error.code != Error.SHARE_SESSION_LIMIT_REACHED:
            raise
        return _later(context, call, request.max_wait_ms, error)
    acknowledged: Later[Outcomes] = Later.of({})
    if has_said:
        acknowledged = acknowledge(context, call, request, said)
    fetch = _Fetch(context, call, request, session)
    if request.share_session_epoch == FINAL_EPOCH or is_renewing:
        return acknowledged.then_ask(lambda outcomes: _told(context, fetch, {}, outcomes))
    # What the member had in a session that has just ended must not be taken for what it has now.
    freed = context.sharing.freed(session.key)
    answer = freed.map(lambda _: begun(fetch.look_or_wait()))
    return acknowledged.then_ask(lambda outcomes: _told(context, fetch, answer, outcomes))


def _told(
    context: Context, fetch: _Fetch, answer: object, outcomes: Outcomes
) -> Later[Response | InSteps]:
    """When both have come."""
    if isinstance(answer, InSteps):
        answer = context.env.slices.later(answer.steps)
        return answer.then_ask(lambda found: _told(context, fetch, found, outcomes))
    if isinstance(answer, Later):
        return answer.then_ask(lambda found: _told(context, fetch, found, outcomes))
    assert isinstance(answer, dict)
    return Later.of(fetch.respond(answer, outcomes))


def _later(
    context: Context, call: Call, delay_ms: int, error: KafkaError
) -> Later[Response | InSteps]:
    """Refused after a while, or when its client has gone: who asks again at once would be refused
    again."""
    refused: Later[Response | InSteps] = Later()
    code = error.code

    def attempt(_: Collection[Watched] | None) -> bool:
        refused.resolve(Response(error_code=code))
        return True

    _expire_with(call, context.waiting.park((), delay_ms, attempt, refused, OTHER), refused)
    return refused


def _expire_with(call: Call, parked: Parked, answer: Later[Any]) -> None:
    """What waits for a client ends when that has gone, or has gone before it began to wait."""
    connection = call.connection
    connection.when_gone(parked.expire)
    answer.then(lambda _: connection.stays_without(parked.expire))
    if connection.has_ended:
        parked.expire()


def _check_renewing(request: ShareFetchRequest) -> None:
    """Who renews locks asks for nothing besides."""
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms:
        raise KafkaError(Error.INVALID_REQUEST)


def _session(
    context: Context, call: Call, request: ShareFetchRequest, named: list[Place], *, has_said: bool
) -> Session:
    assert request.group_id is not None
    assert request.member_id is not None
    sessions = context.sharing.sessions
    key, epoch = (request.group_id, request.member_id), request.share_session_epoch
    if epoch == FINAL_EPOCH:
        return sessions.find(key)
    _check_size(context, {} if epoch == INITIAL_EPOCH else sessions.find(key).places, named)
    if epoch != INITIAL_EPOCH:
        gone = (
            (bytes(topic.topic_id), index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        )
        return sessions.go_on(key, epoch, named, gone)
    if has_said:
        raise KafkaError(Error.INVALID_REQUEST)
    session = sessions.open(key, named)
    connection = call.connection

    def gone_without_a_word() -> None:
        context.sharing.end(session)

    connection.when_gone(gone_without_a_word)
    session.ended.then(lambda _: connection.stays_without(gone_without_a_word))
    return session


def _check_size(context: Context, held: Collection[Place], named: list[Place]) -> None:
    """A session may wait for partitions that are not known here yet, but not for any number."""
    if len(held) + len(named) > MOST_UNKNOWN:
        size = len(held) + sum(place not in held for place in named)
        known = sum(len(topic.partitions) for topic in context.metadata.image.topics.values())
        if size > known + MOST_UNKNOWN:
            raise KafkaError(Error.INVALID_REQUEST)


@dataclass(slots=True)
class _Wanted:
    """A partition that is read for a member."""

    place: Place
    partition: Partition
    shared: SharedPartition
    offset: int = -1
    found: PartitionRead | None = None
    refusal: KafkaError | None = None


@dataclass(slots=True)
class _Fetch:
    """One fetch, looked at again when something has moved that it waits for."""

    context: Context
    call: Call
    request: ShareFetchRequest
    session: Session
    answers: Answers = field(default_factory=dict)
    # Of the request: later ones go on in the same session.
    is_first: bool = False

    def __post_init__(self) -> None:
        self.is_first = self.request.share_session_epoch == INITIAL_EPOCH

    @property
    def group_id(self) -> str:
        return self.session.key[0]

    @property
    def max_bytes(self) -> int:
        return min(self.request.max_bytes, self.context.config.get_int("fetch.max.bytes"))

    @property
    def is_committed_only(self) -> bool:
        return self.context.sharing.settings.is_committed_only(self.group_id)

    def look_or_wait(self) -> Steps[Answers | Later[Answers | InSteps]]:
        wanted = yield from self._find()
        is_last = not wanted or self.request.max_wait_ms <= 0
        ready = self._ready(wanted)
        if self._is_enough(wanted, ready, is_last=is_last):
            return (yield from self._hand_out(ready))
        return self._wait(wanted)

    def _find(self) -> Steps[list[_Wanted]]:
        """Its partitions, from another one on in each epoch; what cannot be read is answered."""
        wanted: list[_Wanted] = []
        is_idle = not self.request.max_records or not self.max_bytes
        places = list(self.session.places)
        turn = max(self.request.share_session_epoch, 0) % len(places) if places else 0
        for count, place in enumerate(places[turn:] + places[:turn], 1):
            try:
                topic = check_topic(self.context, self.call, place)
                partition = find_partition(self.context, topic, place[1])
                partition.check_leader()
                if not is_idle:
                    shared = self.context.sharing.share(ShareKey(self.group_id, *place), partition)
                    wanted.append(_Wanted(place, partition, shared))
            except KafkaError as error:
                self._refuse(place, error)
            if count % 16 == 0:
                yield
        return wanted

    def _refuse(self, place: Place, error: KafkaError) -> None:
        self.answers[place] = Response.Partition(
            partition_index=place[1], error_code=error.code, records=b""
        )

    # --- waiting ----------------------------------------------------------------------------------

    def _wait(self, wanted: list[_Wanted]) -> Later[Answers | InSteps]:
        later: Later[Answers | InSteps] = Later()
        watched = [each for one in wanted for each in (one.partition, one.shared)]

        def attempt(moved: Collection[Watched] | None) -> bool:
            if not self.context.sharing.sessions.holds(self.session):
                later.resolve({})
                return True
            ready = self._ready(wanted)
            if not self._is_enough(wanted, ready, is_last=moved is None):
                return False
            later.resolve(InSteps(self._hand_out(ready)))
            return True

        parked = self.context.waiting.park(
            watched, self.request.max_wait_ms, attempt, later, SHARE_FETCH
        )
        _expire_with(self.call, parked, later)
        return later

    # --- looking ----------------------------------------------------------------------------------

    def _is_enough(self, wanted: list[_Wanted], ready: list[_Wanted], *, is_last: bool) -> bool:
        """Reads what may be handed out: whether that is worth an answer."""
        if not ready:
            return is_last or all(one.place in self.answers for one in wanted)
        room = self.max_bytes // len(ready)
        extra = self.max_bytes - room * len(ready)
        size = sum(
            self._read(one, room + (0 if number else extra)) for number, one in enumerate(ready)
        )
        is_urgent = is_last or any(one.refusal is not None for one in ready)
        return is_urgent or size >= min(self.request.min_bytes, self.max_bytes)

    def _hand_out(self, ready: list[_Wanted]) -> Steps[Answers]:
        """What was read, as far as nobody else has it by now; to somebody who is there."""
        left = self.request.max_records
        for one in ready:
            if not self.context.sharing.sessions.holds(self.session):
                break
            answer, count = yield from self._hand_out_one(one, left)
            self.answers[one.place] = answer
            left -= count
            yield
        return self.answers

    def _ready(self, wanted: list[_Wanted]) -> list[_Wanted]:
        """Those that have records which may be handed out, for all that is known."""
        ready = []
        for one in wanted:
            if one.place in self.answers:
                continue
            if one.shared.state is State.GONE or not one.shared.is_current:
                moved = KafkaError(Error.NOT_LEADER_OR_FOLLOWER)
                self._refuse(one.place, one.shared.failure or moved)
                continue
            offset = one.shared.wanted_offset()
            if offset is not None:
                one.offset, one.found, one.refusal = offset, None, None
                ready.append(one)
        return ready

    def _read(self, one: _Wanted, max_bytes: int) -> int:
        try:
            one.found = one.partition.read(
                FetchPosition(one.offset, max_bytes),
                is_committed_only=self.is_committed_only, min_one=True,
            )  # fmt: skip
        except KafkaError as error:
            one.refusal = error.with_traceback(None)
            return 0
        return one.found.size

    def _hand_out_one(
        self, one: _Wanted, most_records: int
    ) -> Steps[tuple[Response.Partition, int]]:
        answer = Response.Partition(partition_index=one.place[1], records=b"")
        refusal = one.refusal
        if refusal is not None:
            if refusal.code == Error.OFFSET_OUT_OF_RANGE:
                one.shared.log_begins_at(one.partition.log.log_start_offset)
            else:
                answer.error_code = refusal.code
            return answer, 0
        records = one.found.records if one.found is not None else None
        if records is None or one.found is None or most_records <= 0:
            return answer, 0
        aborted = one.found.aborted or ()
        until = max(one.shared.window.end_offset, one.offset) + most_records
        walked = yield from walk(records, until, aborted)
        if not self.context.sharing.sessions.holds(self.session):
            return answer, 0
        return self._acquire(one, answer, records, walked, most_records)

    def _acquire(
        self,
        one: _Wanted,
        answer: Response.Partition,
        records: FileRange,
        walked: Walk,
        most_records: int,
    ) -> tuple[Response.Partition, int]:
        request = self.request
        is_strict = self.call.version >= MODES_SINCE and request.share_acquire_mode == RECORD_LIMIT
        acquired = one.shared.acquire(
            self.session.key[1], most_records, request.batch_size, is_strict=is_strict,
            fetch_offset=one.offset, fetched=walked.batches, aborted=walked.aborted,
        )  # fmt: skip
        if not acquired:
            return answer, 0
        answer.records = part_with(records, walked, acquired)
        answer.acquired_records = [
            Response.AcquiredRecord(
                first_offset=each.first, last_offset=each.last, delivery_count=each.deliveries
            )
            for each in acquired
        ]
        return answer, sum(each.last - each.first + 1 for each in acquired)

    # --- answering --------------------------------------------------------------------------------

    def respond(self, found: Answers, outcomes: Outcomes) -> Response:
        told = [(place, answer) for place, answer in found.items() if self._tells(place, answer)]
        named = {place for place, _ in told}
        for place, answer in told:
            _acknowledged(answer, outcomes.get(place))
        for place, error in outcomes.items():
            if place not in named:
                answer = Response.Partition(partition_index=place[1], records=b"")
                _acknowledged(answer, error)
                told.append((place, answer))
        leaders = name_leaders(self.context, self.call, Response, told)
        if self.request.share_session_epoch == FINAL_EPOCH:
            self.context.sharing.end(self.session)
        return Response(
            acquisition_lock_timeout_ms=self.context.sharing.settings.lock_ms(self.group_id),
            responses=by_topic(Response, told),
            node_endpoints=leaders,
        )

    def _tells(self, place: Place, answer: Response.Partition) -> bool:
        has_records = isinstance(answer.records, FileRange)
        has_error = answer.error_code != Error.NONE
        is_told = self.session.tells(place, has_records=has_records, has_error=has_error)
        return self.is_first or is_told


def _acknowledged(answer: Response.Partition, error: KafkaError | None) -> None:
    if error is not None:
        answer.acknowledge_error_code = error.code
        answer.acknowledge_error_message = error.message
