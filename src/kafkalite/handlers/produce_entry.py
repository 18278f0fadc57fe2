"""One partition's part of a Produce request, from the look-up to its acknowledgement.

Owns the partition's answer. Whatever goes wrong here is that answer's error and nobody else's.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.env.later import Later
from kafkalite.handlers.long_work import LongWork
from kafkalite.log.append import Append, AppendResult, Checked
from kafkalite.log.producers import WAIVED, Verification
from kafkalite.log.validator import RefusedRecords
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ProduceRequest, ProduceResponse
from kafkalite.records.batch import CODEC_MASK, NO_PRODUCER_ID, BatchHeader
from kafkalite.replication.partition import Partition

Answer = ProduceResponse.PartitionResponse
RecordError = ProduceResponse.RecordError

# Refusals that tell nothing of the log.
WITHOUT_START = frozenset((
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER, Error.MESSAGE_TOO_LARGE,
    Error.RECORD_LIST_TOO_LARGE, Error.CORRUPT_MESSAGE, Error.KAFKA_STORAGE_ERROR,
    Error.UNKNOWN_TOPIC_ID,
))  # fmt: skip
# What is looked at in one go: some milliseconds of work at most.
LIGHT_RECORDS = 4096


@dataclass(slots=True)
class Entry:
    """What is to be appended where, and what became of it."""

    topic: ProduceRequest.TopicData
    records: memoryview | None
    answer: Answer
    partition: Partition | None = None
    header: BatchHeader | None = None
    verification: Verification | None = WAIVED  # see `Append`
    end_offset: int = 0
    is_transactional: bool = False
    is_all: bool = True  # whether it is acknowledged when all in sync have it
    # While others must go first, or there is much to look at; filled with a mistake of ours.
    examined: Later[Exception | None] | None = None

    @property
    def _is_idempotent(self) -> bool:
        return self.header is not None and self.header.producer_id > NO_PRODUCER_ID

    @property
    def segments(self) -> int:
        """How many there are in its partition's log."""
        return 0 if self.partition is None else len(self.partition.log.segments)

    def keep_records(self) -> None:
        """Take a copy, since what was received is about to be overwritten."""
        if self.records is not None:
            self.records = memoryview(bytearray(self.records))

    def refuse(self, error: KafkaError) -> None:
        answer = self.answer
        answer.error_code = error.code
        if error.code == Error.UNKNOWN_SERVER_ERROR and self._is_idempotent:
            # Apache Kafka's answer makes a client begin a new sequence under batches in flight.
            answer.error_code = Error.INVALID_RECORD
        answer.error_message = error.message
        answer.base_offset = -1
        if self.partition is not None and self.partition.traffic is not None:
            self.partition.traffic.refused_produce(answer.error_code, len(self.records or b""))
        if isinstance(error, RefusedRecords):
            answer.record_errors = [
                RecordError(batch_index=bad.index, batch_index_error_message=bad.message)
                for bad in error.records
            ]

    def _not_appended(self, partition: Partition, error: KafkaError) -> None:
        """Refused by the log, whose start is told then, but for what clients meet every day."""
        self.refuse(error)
        if error.code not in WITHOUT_START:
            self.answer.log_start_offset = partition.log.log_start_offset

    def append(
        self, long_work: LongWork, now_ms: int, *, is_all: bool, is_late: bool = False
    ) -> None:
        """Now, or in the partition's order once a look at all of it has been taken; in another
        turn if this one has taken long enough."""
        partition, records, header = self.partition, self.records, self.header
        self.is_all = is_all
        if self.answer.error_code != Error.NONE or partition is None or records is None:
            return
        append = Append(records, now_ms, header, self.verification)
        if (
            header is None
            or is_late
            or header.record_count > LIGHT_RECORDS
            or header.attributes & CODEC_MASK
            or long_work.is_busy(partition)
        ):
            self._examine(long_work, partition, append, is_late=is_late)
            return
        try:
            result = partition.write(append, is_all=is_all)
        except KafkaError as error:
            self._not_appended(partition, error)
        else:
            self._appended(result)

    def _examine(
        self, long_work: LongWork, partition: Partition, append: Append, *, is_late: bool
    ) -> None:
        self.keep_records()
        assert self.records is not None
        append.records = self.records
        # Only versions before batches v2 come this far without a header.
        append.is_old_format_taken = self.header is None
        is_over = False

        def done(outcome: Checked | Exception) -> None:
            nonlocal is_over
            is_over = True
            mistake = None
            try:
                self._take(partition, append, outcome)
            except Exception as error:
                if self.examined is None:
                    raise
                mistake = error  # the request is answered with it
            if self.examined is not None:
                self.examined.resolve(mistake)

        try:
            long_work.examine(partition, partition.examine(append), done, is_late=is_late)
        except KafkaError as error:
            self._not_appended(partition, error)
            return
        if not is_over:
            self.examined = Later()

    def _take(self, partition: Partition, append: Append, outcome: Checked | Exception) -> None:
        if isinstance(outcome, Checked):
            append.checked = outcome
            try:
                self._appended(partition.write(append, is_all=self.is_all))
                if append.is_old_format_taken and partition.traffic is not None:
                    records = sum(header.record_count for header in outcome.headers)
                    partition.traffic.produce_conversions += records
                return
            except KafkaError as error:
                outcome = error
        if not isinstance(outcome, KafkaError):
            raise outcome
        self._not_appended(partition, outcome)

    def _appended(self, result: AppendResult) -> None:
        answer = self.answer
        answer.base_offset = result.base_offset
        answer.log_append_time_ms = result.log_append_time_ms
        answer.log_start_offset = result.log_start_offset
        self.end_offset = result.last_offset + 1

    def is_waiting(self) -> bool:
        """Whether what was appended is still to be acknowledged; a lost role is its answer."""
        partition, answer = self.partition, self.answer
        if partition is None or answer.error_code != Error.NONE:
            return False
        if partition.acknowledges(self.end_offset, is_all=self.is_all):
            if self.is_all and partition.lacks_in_sync:
                answer.error_code = Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            return False
        if not partition.is_leader:
            answer.error_code = Error.NOT_LEADER_OR_FOLLOWER
        elif not partition.log.home.is_online:
            answer.error_code = Error.KAFKA_STORAGE_ERROR
        return answer.error_code == Error.NONE
