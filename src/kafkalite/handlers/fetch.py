"""Fetch, versions 0–18: reads record batches, waiting a while when there are too few.

Versions: 0–3 old message formats (converted down), 3 `max_bytes` over all partitions, 4 isolation
level and batches v2, 5 log start offset, 7 sessions (KIP-227), 9 leader epochs (KIP-320), 10 zstd,
11 rack and preferred replica (KIP-392), 12 flexible, diverging epochs (KIP-595), 13 topic ids
(KIP-516), 15 replica state (KIP-903), 16 node endpoints (KIP-951), 17 directory ids, 18 the
follower's high watermark (KIP-1166).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, finish, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_arrivals import Arrivals
from kafkalite.handlers.fetch_consumers import ConsumerFetch
from kafkalite.handlers.fetch_failed import TOPIC_ID_VERSION, failed
from kafkalite.handlers.fetch_followers import follower_of
from kafkalite.handlers.fetch_old import old_format
from kafkalite.handlers.fetch_quota import Answers, most_bytes, nothing_yet
from kafkalite.handlers.fetch_sessions import (
    NO_SESSION,
    Fetch,
    Partitions,
    Wanted,
    named_in,
    named_in_steps,
    says_more,
)
from kafkalite.handlers.isolation import ISOLATION_LEVELS
from kafkalite.handlers.leaders import (
    current_leader,
    endpoints,
    find_partition,
    find_topic_name,
)
from kafkalite.handlers.permission import may_cluster, require
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import FetchRequest, FetchResponse
from kafkalite.replication.partition import Partition, PartitionRead
from kafkalite.replication.waiting import Parked, Watched
from kafkalite.security.acl import CLUSTER_ACTION, READ, TOPIC

# Of what the metadata does not know, or who asks may not read, nothing is read, and the rest of the
# fetch waits as it would.
_UNKNOWN = (
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.TOPIC_AUTHORIZATION_FAILED
)  # fmt: skip
LAST_OLD_FORMAT_VERSION = 3
LIMITED_VERSION = 3
LEADERS_VERSION = 16
MOVED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)

# Partitions; of more those that many follow are read in a step.
READ_AT_ONCE = 100
READ_PER_STEP = 10
WATCHED_PER_STEP = 16
TOLD_PER_STEP = 64


def fetch(
    context: Context, call: Call, request: FetchRequest, named: Partitions | None = None
) -> FetchResponse | InSteps | Later[Any]:
    """With what the request names, where that was found out before."""
    if named is None:
        count = 0
        for topic in request.topics:
            count += len(topic.partitions)
        if count > READ_AT_ONCE:
            return InSteps(_fetch_many(context, call, request))
        named = named_in(request.topics, call.version)
    now_ms = context.env.clock.now_ms()
    asked = context.fetch_sessions.open(request, named, call.version, now_ms)
    if asked.error != Error.NONE:
        return FetchResponse(error_code=asked.error)
    attempt = _Attempt(context, call, request, asked)
    is_last = request.max_wait_ms <= 0 or not asked.wanted
    if len(asked.wanted) > READ_AT_ONCE:
        return InSteps(attempt.look_in_steps(is_last=is_last))
    if request.isolation_level not in ISOLATION_LEVELS and attempt.names_a_partition(asked.wanted):
        return finish(failed(request, call.version))
    response = attempt.look(is_last=is_last)
    return attempt.wait() if response is None else response


def _fetch_many(context: Context, call: Call, request: FetchRequest) -> Steps[Any]:
    named = yield from named_in_steps(request.topics, call.version)
    return (yield from outcome_of(fetch(context, call, request, named)))


class _Reading:
    """What was found in the partitions that were read."""

    __slots__ = ("answers", "is_anything_there", "is_urgent", "room", "size")

    def __init__(self, room: int) -> None:
        self.answers: Answers = []
        self.room = room
        self.size = 0
        self.is_urgent = False
        self.is_anything_there = False


class _Attempt:
    """One fetch, read again each time that a partition of it has moved."""

    __slots__ = (
        "_arrivals", "asked", "call", "context", "follower", "has_session", "later", "max_bytes",
        "min_bytes", "reader", "request",
    )

    def __init__(
        self, context: Context, call: Call, request: FetchRequest, asked: Fetch
    ) -> None:
        self.context = context
        self.call = call
        self.request = request
        self.asked = asked
        self.has_session = asked.opens is not None or asked.session is not None
        self.later: Later[Any] | None = None  # when it has to wait
        self.follower = follower_of(context, call, request)
        self.reader = self.follower or ConsumerFetch(context, call, request)
        most = context.config.get_int("fetch.max.bytes")
        self.max_bytes = min(request.max_bytes, most) if call.version >= LIMITED_VERSION else most
        if call.meter is not None:
            self.max_bytes = most_bytes(call, request, self.max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)  # more will never come at once
        self._arrivals: Arrivals | None = None  # when it has to wait

    @property
    def arrivals(self) -> Arrivals:
        if self._arrivals is None:
            self._arrivals = self._arrivals_of(self.asked.wanted)
        return self._arrivals

    def _arrivals_of(self, wanted: list[Wanted]) -> Arrivals:
        return Arrivals(
            wanted,
            partial(_find, self.context, self.call, is_follower=self.follower is not None),
            self.min_bytes,
            self.reader.end_offset,
        )

    def _find(self, wanted: Wanted) -> Partition:
        is_follower = self.follower is not None
        return _find(self.context, self.call, wanted, is_follower=is_follower)

    def names_a_partition(self, some: list[Wanted]) -> bool:
        return any(self._is_there(wanted) for wanted in some)

    def _is_there(self, wanted: Wanted) -> bool:
        with suppress(KafkaError):
            self._find(wanted)
            return True
        return False

    def wait(self) -> Later[Any]:
        """Has it looked at again when there is enough, the time is up, or the client has gone."""
        later = self.later = Later()
        self._park(self.arrivals.partitions(), later)
        return later

    def _park(self, watched: Iterable[Watched], later: Later[Any]) -> Parked:
        parked = self.context.waiting.park(watched, self.request.max_wait_ms, self.run, later)
        connection = self.call.connection
        connection.when_gone(parked.expire)
        later.then(lambda _: connection.stays_without(parked.expire))
        return parked

    def wait_in_steps(self, *, is_counted: bool) -> Steps[Later[Any]]:
        """The same for many partitions: each is watched before it is counted, so that nothing is
        missed that comes meanwhile. What was there and is enough is read again, unless it was
        `is_counted` before."""
        later = self.later = Later()
        arrivals = self._arrivals = self._arrivals_of([])
        parked = self._park((), later)
        try:
            for count, wanted in enumerate(self.asked.wanted, 1):
                partition = arrivals.add(wanted)
                if partition is not None:
                    parked.watch(partition)
                    arrivals.is_enough((partition,))
                if count % WATCHED_PER_STEP == 0:
                    yield
                    if later.is_resolved:
                        return later
            if not is_counted:
                parked.retry()
        except Exception as error:  # noqa: BLE001 - a mistake of ours, which is the answer
            parked.leave()
            later.resolve(error)
        return later

    def run(self, moved: Collection[Watched] | None) -> bool:
        """Another look, after waiting; everything is read again only when that is worth it."""
        if moved is not None and not self.arrivals.is_enough(moved):
            return False
        assert self.later is not None
        if len(self.asked.wanted) > READ_AT_ONCE:  # there is enough, or no time is left
            self.later.resolve(InSteps(self.look_in_steps(is_last=True)))
            return True
        response = self.look(is_last=moved is None)
        if response is None:
            return False
        if isinstance(response, Later):
            response.then(self.later.resolve, self.later.fail)
        else:
            self.later.resolve(response)
        return True

    def look(self, is_last: bool) -> FetchResponse | Later[Any] | None:
        """Reads everything; None when there is not enough to answer."""
        reading = _Reading(self.max_bytes)
        self._read(reading, self.asked.wanted)
        return self._judge(reading, is_last)

    def look_in_steps(
        self, is_last: bool
    ) -> Steps[FetchResponse | Later[Any]]:
        """The same for so many partitions that others must have their turn in between."""
        reading, wanted = _Reading(self.max_bytes), self.asked.wanted
        if self.request.isolation_level not in ISOLATION_LEVELS:
            for start in range(0, len(wanted), READ_PER_STEP):
                if self.names_a_partition(wanted[start : start + READ_PER_STEP]):
                    return (yield from failed(self.request, self.call.version))
                yield
        for start in range(0, len(wanted), READ_PER_STEP):
            self._read(reading, wanted[start : start + READ_PER_STEP])
            yield
        is_due = self._is_due(reading, is_last)
        is_counted = reading.size >= self.min_bytes
        if is_due or is_counted:
            if self.call.version > LAST_OLD_FORMAT_VERSION:
                return (yield from self._respond_in_steps(reading.answers))
            response = self._told(reading, is_due)
            if response is not None:
                return response
        return (yield from self.wait_in_steps(is_counted=is_counted))

    def _is_due(self, reading: _Reading, is_last: bool) -> bool:
        return is_last or reading.is_urgent or not reading.is_anything_there

    def _judge(
        self, reading: _Reading, is_last: bool
    ) -> FetchResponse | Later[Any] | None:
        """Answers when there is enough, an error, or no time left; also when, as Apache Kafka
        counts, no more can come from where one of its partitions is read. What has no record for a
        client of old formats is not enough."""
        is_due = self._is_due(reading, is_last)
        if not (is_due or reading.size >= self.min_bytes or self.arrivals.is_enough()):
            return None
        return self._told(reading, is_due)

    def _told(self, reading: _Reading, is_due: bool) -> FetchResponse | Later[Any] | None:
        answers, size = reading.answers, reading.size
        response = self._answer_of(answers, size)
        is_left = any(answer.records or answer.error_code for _, answer, _ in answers)
        return response if is_due or is_left or not size else None

    def _answer_of(
        self, answers: Answers, size: int
    ) -> FetchResponse | Later[Any]:
        if self.call.version > LAST_OLD_FORMAT_VERSION:
            return self._respond(answers)
        try:
            return self.context.long_work.answer(self.call, self._converted(answers), size)
        except KafkaError as error:
            for _, answer, _ in answers:
                _refuse(answer, error.code)
            return self._respond(answers)

    def _converted(self, answers: Answers) -> Steps[FetchResponse]:
        """The answer to a client of old formats."""
        magic = 0 if self.call.version <= 1 else 1
        for wanted, answer, length in answers:
            if not length:
                continue
            try:
                partition = self._find(wanted)
                position, data = wanted.position, answer.records
                answer.records = yield from old_format(partition, position, data, magic)
                wanted.converted()
            except KafkaError as error:
                _refuse(answer, error.code)
        return (yield from self._respond_in_steps(answers))

    def _read(self, reading: _Reading, some: list[Wanted]) -> None:
        for wanted in some:
            room = reading.room
            # Also for versions 0–2: a client that waits for less than a batch hangs.
            answer = self._read_one(wanted, room, not reading.size)
            records = answer.records
            length = len(records) if records is not None else 0
            if length or (room < 0 and answer.error_code not in _UNKNOWN):
                reading.room = max(0, room - length)
            reading.size += length
            if answer.error_code not in _UNKNOWN:
                reading.is_anything_there = True
                if answer.error_code or says_more(answer):
                    reading.is_urgent = True
            reading.answers.append((wanted, answer, length))

    def _read_one(self, wanted: Wanted, room: int, min_one: bool) -> FetchResponse.Partition:
        try:
            partition = self._find(wanted)
            wanted.traffic = None if self.follower is not None else partition.traffic
            return self._read_partition(partition, wanted, room, min_one)
        except KafkaError as error:
            wanted.refused(error.code)
            return FetchResponse.Partition(
                partition_index=wanted.index, error_code=error.code,
                high_watermark=-1, records=b"",
                # Null is what reading came to; of a partition that is not there nothing was read.
                aborted_transactions=[] if error.code in _UNKNOWN else None,
            )

    def _read_partition(
        self, partition: Partition, wanted: Wanted, room: int, min_one: bool
    ) -> FetchResponse.Partition:
        position = wanted.position
        full_max_bytes = position.max_bytes
        position.max_bytes = max_bytes = min(full_max_bytes, room)
        min_one = min_one or max_bytes < 0
        try:
            found = self.reader.read(partition, wanted, min_one=min_one)
        finally:
            position.max_bytes = full_max_bytes
        if max_bytes < 0 and found.records is not None:
            raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
        return self._answer(wanted, partition, found)

    def _answer(
        self, wanted: Wanted, partition: Partition, found: PartitionRead
    ) -> FetchResponse.Partition:
        answer = FetchResponse.Partition(
            partition_index=wanted.index,
            high_watermark=found.high_watermark,
            last_stable_offset=found.last_stable_offset,
            log_start_offset=found.log_start_offset,
            records=found.records if found.records is not None else b"",
            aborted_transactions=None,
        )
        if found.aborted is not None:
            answer.aborted_transactions = [
                FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=offset)
                for producer_id, offset in found.aborted
            ]
        if found.diverging is not None:
            epoch, end_offset = found.diverging
            answer.diverging_epoch = FetchResponse.DivergingEpoch(
                epoch=epoch, end_offset=end_offset
            )
        if found.nearer is not None:
            answer.preferred_read_replica = found.nearer
        if self.call.version <= LAST_OLD_FORMAT_VERSION:
            self._take_for_conversion(answer, partition, found)
        return answer

    def _take_for_conversion(
        self,
        answer: FetchResponse.Partition,
        partition: Partition,
        found: PartitionRead,
    ) -> None:
        """Give an old client what can be converted, or say that it cannot. Apache Kafka does the
        latter no more since it dropped the former: versions 4 to 9 get batches as they are."""
        if partition.log.config.compression_type == "zstd":
            raise KafkaError(Error.UNSUPPORTED_COMPRESSION_TYPE)
        # Read now: what is in the file may change until it is converted.
        if found.records is not None:
            answer.records = found.records.read()

    def _name_leaders(self, answers: Answers) -> list[FetchResponse.NodeEndpoint]:
        """Spare a client that came to the wrong leader the metadata round trip (KIP-951)."""
        leaders: set[int] = set()
        for wanted, answer, _ in answers:
            if answer.error_code in MOVED:
                leader_id, leader_epoch = current_leader(
                    self.context, wanted.topic, wanted.topic_id, wanted.index
                )
                answer.current_leader = FetchResponse.CurrentLeader(
                    leader_id=leader_id, leader_epoch=leader_epoch
                )
                leaders.add(leader_id)
        return [
            FetchResponse.NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in endpoints(self.context, self.call, leaders)
        ] if leaders else []

    def _respond(self, answers: Answers) -> FetchResponse:
        if self.call.meter is not None:
            nothing = nothing_yet(self.call, self.request, self.asked, answers)
            if nothing is not None:
                return nothing
        told = self._news(answers) if self.has_session else answers
        responses: list[FetchResponse.Response] = []
        _add_by_topic(responses, told, self.call.version)
        return self._response(told, responses)

    def _respond_in_steps(self, answers: Answers) -> Steps[FetchResponse]:
        """The same about thousands of partitions."""
        nothing = nothing_yet(self.call, self.request, self.asked, answers)
        if nothing is not None:
            return nothing
        told, responses = answers, list[FetchResponse.Response]()
        if self.has_session:
            told = []
            for some in pieces(answers, TOLD_PER_STEP):
                told += self._news(some)
                yield
        for some in pieces(told, TOLD_PER_STEP):
            _add_by_topic(responses, some, self.call.version)
            yield
        return self._response(told, responses)

    def _response(
        self, told: Answers, responses: list[FetchResponse.Response]
    ) -> FetchResponse:
        session_id, version = NO_SESSION, self.call.version
        if self.has_session:
            now_ms = self.context.env.clock.now_ms()
            sessions = self.context.fetch_sessions
            session_id = sessions.close(self.asked, self.request, version, now_ms)
        if self.follower is not None:
            self.follower.answered((wanted, length) for wanted, _, length in told)
        response = FetchResponse(session_id=session_id, responses=responses)
        if version >= LEADERS_VERSION and any(answer.error_code for _, answer, _ in told):
            leaders = self._name_leaders(told)
            response.node_endpoints = [] if self.follower is not None else leaders
        return response

    def _news(self, answers: Answers) -> Answers:
        """What this session has not been told yet; all of it when the session begins."""
        asked, told = self.asked, []
        for wanted, answer, length in answers:
            has_news = wanted.must_tell(answer, length)
            if has_news or not asked.is_incremental:
                told.append((wanted, answer, length))
            if length:
                self.context.fetch_sessions.served(asked, wanted, self.call.version)
        return told


def _refuse(answer: FetchResponse.Partition, code: Error) -> None:
    answer.error_code, answer.high_watermark, answer.records = code, -1, b""


def _find(context: Context, call: Call, wanted: Wanted, *, is_follower: bool) -> Partition:
    """Asked each time: who waits loses at once what he may not read any more."""
    if is_follower and not may_cluster(context, call, CLUSTER_ACTION):
        raise KafkaError(Error.TOPIC_AUTHORIZATION_FAILED)
    if call.version >= TOPIC_ID_VERSION:
        # A session keeps the name that an id had when it was first seen.
        wanted.topic = wanted.topic or find_topic_name(context, wanted.topic_id)
    if context.authorizer is not None and not is_follower:
        require(context, call, READ, TOPIC, wanted.topic)
    partition = find_partition(context, wanted.topic, wanted.index)
    if call.version >= TOPIC_ID_VERSION and partition.topic_id != wanted.topic_id:
        raise KafkaError(Error.INCONSISTENT_TOPIC_ID)
    return partition


def _add_by_topic(
    responses: list[FetchResponse.Response], answers: Answers, version: int
) -> None:
    """Neighbours of one topic share an entry; the order of partitions stays as it was served."""
    last: bytes | str | None = None
    if responses:
        last = responses[-1].topic_id if version >= TOPIC_ID_VERSION else responses[-1].topic
    for wanted, answer, _ in answers:
        name: bytes | str = wanted.topic_id if version >= TOPIC_ID_VERSION else wanted.topic
        if name != last:
            responses.append(FetchResponse.Response(topic=wanted.topic, topic_id=wanted.topic_id))
            last = name
        responses[-1].partitions.append(answer)
        if wanted.traffic is not None and answer.records:
            wanted.traffic.bytes_out += len(answer.records)
