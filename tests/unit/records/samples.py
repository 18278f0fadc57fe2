"""Records of every shape for the tests of this room, and the plain twin of the fast reader."""

from hypothesis import strategies as st

from kafkalite.records.batch import HEADER_BYTES, BatchHeader, TimestampType
from kafkalite.records.compression import decompress
from kafkalite.records.record import Record

CODECS = range(5)
LEGACY_CODECS = range(4)  # zstd came after message sets

byte_strings = st.binary(max_size=200)
maybe_bytes = st.none() | byte_strings
timestamps = st.integers(-1, 2**62)
headers = st.lists(st.tuples(byte_strings, maybe_bytes), max_size=3).map(tuple)
contents = st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes, headers), min_size=1)


@st.composite
def records(draw: st.DrawFn, gaps: bool = True) -> list[Record]:
    """Records in offset order, with the gaps that compaction leaves."""
    offset = draw(st.integers(0, 2**40))
    result = []
    for timestamp, key, value, entries in draw(contents):
        result.append(Record(offset, timestamp, key, value, entries))
        offset += draw(st.integers(1, 100_000)) if gaps else 1
    return result


def without_headers(given: list[Record]) -> list[Record]:
    return [Record(one.offset, one.timestamp, one.key, one.value) for one in given]


def read_plainly(buffer: bytes, header: BatchHeader) -> list[Record]:
    """What iterate_records yields, by one field after the other and nothing in line."""
    data = decompress(header.compression, buffer[header.position + HEADER_BYTES : header.end])
    reader = _Reader(data)
    result = [_read_record(reader, header) for _ in range(header.record_count)]
    assert reader.position == len(data)
    return result


def _read_record(reader: "_Reader", header: BatchHeader) -> Record:
    end = reader.number() + reader.position
    reader.take(1)
    timestamp = header.base_timestamp + reader.number()
    if header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        timestamp = header.max_timestamp
    offset = header.base_offset + reader.number()
    key, value = reader.nullable(), reader.nullable()
    entries = tuple((reader.nullable() or b"", reader.nullable()) for _ in range(reader.number()))
    assert reader.position == end
    return Record(offset, timestamp, key, value, entries)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number // 2 if number % 2 == 0 else -(number + 1) // 2

    def nullable(self) -> bytes | None:
        size = self.number()
        return None if size < 0 else self.take(size)
