"""Fetched records for clients that know message formats 0 and 1 alone.

Owns the reading on over what has no record for such a client: a run of control batches would
otherwise be an empty answer for ever, since an old client asks for the same offset again.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalite.records.batch import iterate_headers
from kafkalite.records.convert import down_convert
from kafkalite.replication.partition import FetchPosition, Partition, PartitionRead


def old_format(
    partition: Partition, position: FetchPosition, found: PartitionRead, magic: int
) -> bytearray:
    """The records that were found, or the first behind them that the client can read."""
    while found.records is not None:
        data = found.records.read()
        converted = down_convert(data, magic, position.offset)
        ends = [header.next_offset for header in iterate_headers(data)]
        if converted or not ends:
            return converted
        behind = replace(position, offset=ends[-1])
        found = partition.read(behind, is_committed_only=False, min_one=True)
    return bytearray()
