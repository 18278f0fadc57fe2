"""What may enter a log, and the fields of it that the leader sets.

Owns the checks that Apache Kafka's log makes of what a client, a coordinator or a leader sends,
with its error codes, and the batches that must be built anew. It never changes a log. Invariant:
what comes out has rising offsets from the first one given, the leader's epoch, and a right
checksum.

Who checks what of a batch on its way in, in this order:

| what                                                         | where                   |
| ------------------------------------------------------------ | ----------------------- |
| the request: its acks, its one transaction, what is internal | `handlers/produce*`     |
| one whole batch, of a format and codec of the request's time | `handlers/produce`      |
| the same where nobody has read the header before             | `only_batch`            |
| leader, enough replicas in sync                              | `replication/partition` |
| base offset, size, checksum, count, sequence, codec          | `examine`               |
| all fields of all records: is each right, yes or no answer   | `records/quick_check`   |
| which is not, and why; keys, times in bounds (`rules_for`)   | `records/full_check`    |
| producer: repetition, epoch, sequence, transaction, marker   | `log/producers`         |
| room in a segment                                            | `log/rolling`           |
| offsets and epochs that another leader gave                  | `check_as_given`        |

`accept` has no rule of its own: it says yes to what nearly every client sends and `examine` would
take as it is, in few steps, and nothing of any other. A test holds one to the other.

The bytes of a batch v2 stay as they are but for the header, unless the topic asks for another codec
or the offsets inside are not dense. Records are looked at one by one, as Apache Kafka does, to
refuse a batch whose records are not what its header says, keyless records where keys are needed,
and timestamps out of bounds.
"""

from __future__ import annotations

from struct import Struct

from kafkalite.env.slicing import Steps, finish
from kafkalite.log.append import Append, Checked, Writable
from kafkalite.log.config import CREATE_TIME, FOREVER, LogConfig
from kafkalite.log.producers import AppendOrigin
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Compression,
    TimestampType,
    check_produced,
    codec,
    iterate_headers,
    patch,
    patch_timestamps,
    read_header,
    verify,
)
from kafkalite.records.checksum import crc32c
from kafkalite.records.convert import Wanted, up_convert_in_steps
from kafkalite.records.errors import CorruptRecords, InvalidRecords, TruncatedRecords
from kafkalite.records.full_check import BadRecord, RecordRules, scan_in_steps
from kafkalite.records.quick_check import highest_delta
from kafkalite.records.walks import lone_delta

_PRODUCER = "producer"
_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_SHOWN_ERRORS = 3
_FEW_RECORDS = 3
_place = Struct(">qii").pack_into  # offset, length, leader epoch
_UNDER_CRC = slice(ATTRIBUTES_POSITION, None)


class RefusedRecords(KafkaError):
    """A batch of which some records break a rule; which ones is told where the reply has room for
    it."""

    def __init__(self, code: Error, message: str, records: list[BadRecord]) -> None:
        super().__init__(code, message)
        self.records = records


# --- the usual batch ------------------------------------------------------------------------------


def accept(append: Append, header: BatchHeader, config: LogConfig, offset: int) -> bool:
    """Whether a client's batch may be written to a topic without special wishes as it is; then its
    offset and epoch are set. False when it needs a closer look."""
    records, size = append.records, header.size
    base_timestamp, max_timestamp = header.base_timestamp, header.max_timestamp
    count = header.record_count
    if (
        header.magic != 2
        or size != len(records)
        or size > config.max_message_bytes
        or header.attributes & ~TRANSACTIONAL_BIT
        or header.base_offset
        or count <= 0
        or header.last_offset_delta + 1 != count
        or header.producer_id >= 0 > header.base_sequence
        or max_timestamp > append.now_ms + config.message_timestamp_after_max_ms
        or max_timestamp < base_timestamp
        or base_timestamp < 0
    ):
        return False
    view = records if isinstance(records, memoryview) else memoryview(records)
    if count == 1:
        delta = lone_delta(view, HEADER_BYTES)
    else:
        body = view[HEADER_BYTES:]
        # Bytes are read faster than a view of them, but have to be copied first.
        delta = highest_delta(bytes(body) if count > _FEW_RECORDS else body, count)
    if (
        delta is None
        or base_timestamp + delta != max_timestamp
        or crc32c(view[_UNDER_CRC]) != header.crc
    ):
        return False
    leader_epoch = append.leader_epoch
    _place(records, 0, offset, size - LOG_OVERHEAD, leader_epoch)
    header.base_offset, header.partition_leader_epoch = offset, leader_epoch
    return True


# --- any batch ------------------------------------------------------------------------------------


def check(append: Append, config: LogConfig, first_offset: int) -> Checked:
    """What may be written at the log's end of what came."""
    if append.origin == AppendOrigin.RAFT:
        return check_as_given(append.records, first_offset, append.leader_epoch)
    checked = append.checked
    if checked is None:
        checked = finish(examine(append, config))
    assert not isinstance(checked.records, bytes)
    patch(checked.records, checked.headers[0], first_offset, append.leader_epoch)
    return checked


def examine(append: Append, config: LogConfig) -> Steps[Checked]:
    """All that can be said of a batch without knowing the log's end, in steps: its bytes may be
    few and its records many."""
    records = append.records
    header = append.header or only_batch(records)
    if header.magic != 2:
        if not append.is_old_format_taken:
            raise InvalidRecords(f"a batch of magic {header.magic} where 2 is needed")
        return (yield from _convert(append, config))
    is_client = append.origin == AppendOrigin.CLIENT
    if is_client and header.base_offset != 0:
        raise InvalidRecords(f"the base offset of a produced batch is {header.base_offset}, not 0")
    if append.origin != AppendOrigin.COORDINATOR:
        # Coordinators see to it themselves: a marker or a tombstone must find its place, however
        # small the topic's limit is.
        check_size(header.size, config)
    verify(records, header)
    if is_client:
        check_produced(header)
    if _needs_codec(header, config):
        return (yield from _build_anew(memoryview(records)[: header.size], config, append.now_ms))
    max_timestamp = header.max_timestamp
    if is_client:
        summary = yield from scan_in_steps(records, header, rules_for(config, append.now_ms))
        if summary.bad:
            raise refusal(summary.bad)
        if not summary.is_dense and header.compression != Compression.NONE:
            batch = memoryview(records)[: header.size]
            return (yield from _build_anew(batch, config, append.now_ms))
        max_timestamp = summary.max_timestamp
    if len(records) != header.size:
        records = memoryview(records)[: header.size]
    if config.message_timestamp_type == CREATE_TIME:
        patch_timestamps(records, header, TimestampType.CREATE_TIME, max_timestamp)
        return Checked(records, [header])
    patch_timestamps(records, header, TimestampType.LOG_APPEND_TIME, append.now_ms)
    return Checked(records, [header], append.now_ms)


def check_size(size: int, config: LogConfig) -> None:
    if size > config.max_message_bytes:
        raise KafkaError(
            Error.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes is larger than max.message.bytes {config.max_message_bytes}",
        )


def only_batch(records: Writable) -> BatchHeader:
    """The one batch; a torn second one behind it is ignored, as Apache Kafka does."""
    try:
        header = read_header(records)
    except TruncatedRecords as error:
        raise InvalidRecords(f"no whole batch: {error}") from None
    is_alone = header.magic != 2 or header.end == len(records)
    if not is_alone and next(iterate_headers(records, header.end), None) is not None:
        raise InvalidRecords("more than one batch for a partition")
    return header


def _convert(append: Append, config: LogConfig) -> Steps[Checked]:
    """Messages of the formats before v2, as old producers send them."""
    for header in iterate_headers(append.records):
        check_size(header.size, config)
        verify(append.records, header)
    return (yield from _build_anew(append.records, config, append.now_ms))


# --- records --------------------------------------------------------------------------------------


def rules_for(config: LogConfig, now_ms: int) -> RecordRules:
    if config.message_timestamp_type != CREATE_TIME:
        return RecordRules(config.is_compacted, TimestampType.LOG_APPEND_TIME)
    rules = RecordRules(config.is_compacted)
    if config.message_timestamp_before_max_ms < FOREVER:
        rules.oldest_timestamp = now_ms - config.message_timestamp_before_max_ms
    if config.message_timestamp_after_max_ms < FOREVER:
        rules.newest_timestamp = now_ms + config.message_timestamp_after_max_ms
    return rules


def refusal(bad: list[BadRecord]) -> RefusedRecords:
    if any(record.code == Error.INVALID_TIMESTAMP for record in bad):
        message = "One or more records have been rejected due to invalid timestamp"
        return RefusedRecords(Error.INVALID_TIMESTAMP, message, bad)
    shown = "; ".join(f"record {record.index}: {record.message}" for record in bad[:_SHOWN_ERRORS])
    return RefusedRecords(Error.INVALID_RECORD, f"{len(bad)} records are refused: {shown}", bad)


# --- building anew --------------------------------------------------------------------------------


def _needs_codec(header: BatchHeader, config: LogConfig) -> bool:
    """Whether the topic wants another codec than the producer used; control batches are left
    alone."""
    if config.compression_type == _PRODUCER or (header.is_control and header.compression == 0):
        codec(header)
        return False
    return header.compression != _CODECS[config.compression_type]


def _level(compression: Compression, config: LogConfig) -> int | None:
    return {
        Compression.GZIP: config.compression_gzip_level,
        Compression.LZ4: config.compression_lz4_level,
        Compression.ZSTD: config.compression_zstd_level,
    }.get(compression)


def _build_anew(records: Writable, config: LogConfig, now_ms: int) -> Steps[Checked]:
    """The same records as one batch v2, at dense offsets, in the codec that the topic asks for."""
    compression = None if config.compression_type == _PRODUCER else _CODECS[config.compression_type]
    append_time = None if config.message_timestamp_type == CREATE_TIME else now_ms
    wanted = Wanted(
        compression=compression,
        level=None if compression is None else _level(compression, config),
        append_time=append_time,
        rules=rules_for(config, now_ms),
    )
    converted = yield from up_convert_in_steps(records, wanted)
    if converted.bad:
        raise refusal(converted.bad)
    check_size(len(converted.batch), config)
    header = read_header(converted.batch)
    return Checked(converted.batch, [header], NO_TIMESTAMP if append_time is None else append_time)


# --- what another broker's leader, or a raft leader, has set already ------------------------------


def check_as_given(records: Writable, next_offset: int, leader_epoch: int | None) -> Checked:
    """Checks batches whose offsets and epochs are set; those of a later epoch than ours are left
    out."""
    headers: list[BatchHeader] = []
    end = 0
    for header in iterate_headers(records):
        if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
            break
        verify(records, header)
        if header.last_offset < next_offset or header.last_offset < header.base_offset:
            raise CorruptRecords(f"offset {header.last_offset} came where {next_offset} was next")
        next_offset = header.next_offset
        headers.append(header)
        end = header.end
    view = records if end == len(records) else memoryview(records)[:end]
    return Checked(view, headers)
