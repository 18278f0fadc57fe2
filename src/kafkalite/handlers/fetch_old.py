"""Fetched records for clients that know message formats 0 and 1 alone.

Owns the reading on over what has no record for such a client: a run of control batches would
otherwise be an empty answer for ever, since an old client asks for the same offset again.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalite.env.disk import FileRange
from kafkalite.records.batch import iterate_headers
from kafkalite.records.convert import down_convert_in_steps
from kafkalite.records.steps import Steps
from kafkalite.replication.partition import FetchPosition, Partition


def readable(partition: Partition, position: FetchPosition, found: FileRange | None) -> bytes:
    """The batches that were found, or the first behind them that are not of control alone."""
    while found is not None:
        data = found.read()
        headers = list(iterate_headers(data))
        if not headers or not all(header.is_control for header in headers):
            return data
        found = _behind(partition, position, headers[-1].next_offset)
    return b""


def old_format(
    partition: Partition, position: FetchPosition, data: bytes, magic: int
) -> Steps[bytearray]:
    """The records of these batches, or the first behind them that the client can read."""
    while data:
        converted = yield from down_convert_in_steps(data, magic, position.offset)
        ends = [header.next_offset for header in iterate_headers(data)]
        if converted or not ends:
            return converted
        data = readable(partition, position, _behind(partition, position, ends[-1]))
    return bytearray()


def _behind(partition: Partition, position: FetchPosition, offset: int) -> FileRange | None:
    position = replace(position, offset=offset)
    return partition.read(position, is_committed_only=False, min_one=True).records
