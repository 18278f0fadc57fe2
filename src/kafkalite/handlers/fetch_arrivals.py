"""How much has come for a fetch that waits, told from positions alone.

Owns where each of its partitions stood when the fetch began to wait, and how many bytes lie between
there and where it may read to now. No record is read for that: an append costs the readers of
thousands of partitions a subtraction each, and only when there is enough are all of them read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from kafkalite.handlers.fetch_sessions import Wanted
from kafkalite.log.reader import Place
from kafkalite.protocol.errors import KafkaError
from kafkalite.replication.partition import Partition
from kafkalite.replication.waiting import Watched


@dataclass(slots=True)
class _Reader:
    """One partition of the fetch."""

    wanted: Wanted
    partition: Partition
    leader_epoch: int
    place: Place | None = None  # of the first byte that it waits for
    end_offset: int = -1  # up to which its bytes are counted
    bytes: int = 0


class Arrivals:
    """The partitions of one waiting fetch."""

    __slots__ = (
        "_bytes",
        "_end_offset",
        "_find",
        "_is_over",
        "_min_bytes",
        "_readers",
    )

    def __init__(
        self,
        wanted: list[Wanted],
        find: Callable[[Wanted], Partition],
        min_bytes: int,
        end_offset: Callable[[Partition], int],
    ) -> None:
        """`end_offset` says up to where a partition may be read."""
        self._find = find
        self._min_bytes = min_bytes
        self._end_offset = end_offset
        self._bytes = 0
        self._is_over = False  # it is of no use to wait for more
        self._readers: dict[int, list[_Reader]] = {}  # a fetch may name a partition twice
        for each in wanted:
            self.add(each)

    def add(self, wanted: Wanted) -> Partition | None:
        """The partition, if it is worth watching and not there yet; nothing of it is counted."""
        with suppress(KafkaError):
            partition = self._find(wanted)
            readers = self._readers.setdefault(id(partition), [])
            readers.append(_Reader(wanted, partition, partition.leader_epoch))
            return partition if len(readers) == 1 else None
        return None

    def partitions(self) -> Iterator[Partition]:
        """Those that are worth watching."""
        return (readers[0].partition for readers in self._readers.values())

    def is_enough(self, moved: Collection[Watched] | None = None) -> bool:
        """Whether to answer now: there are enough bytes, or more will never come from where one of
        them reads. Looks at those that have moved, or at all."""
        readers = self._readers
        looked_at = readers.values() if moved is None else [readers[id(each)] for each in moved]
        self._is_over = self._is_over or any(
            self._count(reader) for same in looked_at for reader in same
        )
        return self._is_over or self._bytes >= self._min_bytes

    def _count(self, reader: _Reader) -> bool:
        """Counts what has come; True when it is of no use to wait for more."""
        try:
            return self._find(reader.wanted) is not reader.partition or self._has_ended(reader)
        except KafkaError:
            return True

    def _has_ended(self, reader: _Reader) -> bool:
        partition, offset = reader.partition, reader.wanted.position.offset
        log = partition.log
        if partition.leader_epoch != reader.leader_epoch or offset < log.log_start_offset:
            return True
        end_offset = self._end_offset(partition)
        if end_offset == reader.end_offset:
            return False
        if reader.place is None or not log.is_current(reader.place):
            reader.place = log.place_of(offset)
        reader.end_offset = end_offset
        if end_offset <= offset:
            return offset > log.log_end_offset
        end = log.place_of(end_offset)
        if end.segment is not reader.place.segment:
            return True  # a read does not go on into the next segment
        come = min(end.position - reader.place.position, reader.wanted.position.max_bytes)
        self._bytes += come - reader.bytes
        reader.bytes = come
        return False
