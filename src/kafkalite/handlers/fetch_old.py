"""Fetched records for clients that know message formats 0 and 1 alone.

Owns the reading on over what has no record for such a client: control batches, and what compaction
left of others, would otherwise be an empty answer for ever, since an old client asks for the same
offset again. (Apache Kafka 3.9 answered with a message that is cut off, at which clients fail.)
"""

from __future__ import annotations

from dataclasses import replace

from kafkalite.env.slicing import Steps
from kafkalite.records.batch import iterate_headers
from kafkalite.records.convert import down_convert_in_steps
from kafkalite.replication.partition import FetchPosition, Partition


def old_format(
    partition: Partition, position: FetchPosition, data: bytes, magic: int
) -> Steps[bytearray]:
    """The records of these batches, or the first behind them that the client can read; nothing
    when there are none up to the end."""
    while data:
        converted = yield from down_convert_in_steps(data, magic, position.offset)
        ends = [header.next_offset for header in iterate_headers(data)]
        if converted or not ends:
            return converted
        yield
        data = _behind(partition, position, ends[-1])
    return bytearray()


def _behind(partition: Partition, position: FetchPosition, offset: int) -> bytes:
    position = replace(position, offset=offset)
    found = partition.read(position, is_committed_only=False, min_one=True).records
    return b"" if found is None else found.read()
