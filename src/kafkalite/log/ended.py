"""Which batches of a log belong to aborted transactions, and which markers still have batches.

Owns what compaction knows of transactions that have ended; of open ones it never sees a batch.
Invariant: whether a batch was aborted follows from where it lies and from the transaction index,
never from what was read before it. So a reading may begin anywhere, and a marker may be gone: what
a producer writes behind the end of its aborted transaction is not part of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.records.batch import BatchHeader
from kafkalite.records.control import ControlType, read_type
from kafkalite.records.record import Record


class Aborted:
    """The aborted transactions of a log, as stretches of the offsets of their producers."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._of_producers: dict[int, list[AbortedTransaction]] = {}
        for transaction in sorted(transactions, key=_first_offset):
            self._of_producers.setdefault(transaction.producer_id, []).append(transaction)

    def find(self, header: BatchHeader) -> AbortedTransaction | None:
        """The one that a transactional batch or an abort marker belongs to."""
        known = self._of_producers.get(header.producer_id)
        if known is None:
            return None
        slot = bisect_right(known, header.base_offset, key=_first_offset) - 1
        if slot < 0 or known[slot].last_offset < header.base_offset:
            return None
        return known[slot]

    def has(self, header: BatchHeader) -> bool:
        """Whether a data batch was aborted."""
        return header.is_transactional and self.find(header) is not None


class Markers:
    """Follows the transactions of a log while it is read from its start: what of them is left?"""

    def __init__(self, aborted: Aborted) -> None:
        self._aborted = aborted
        self._with_batches: set[int] = set()  # producers of whom a batch was met since a marker
        self.kept: list[AbortedTransaction] = []  # for the index of the new segment

    def met_batch(self, header: BatchHeader) -> None:
        if header.is_transactional:
            self._with_batches.add(header.producer_id)

    def met_marker(self, header: BatchHeader, records: list[Record]) -> bool:
        """Whether a marker has lost all batches of its transaction, and may go when it is old."""
        if not records:
            return True
        kind = read_type(records[0].key)
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return False
        if header.producer_id not in self._with_batches:
            return True
        self._with_batches.discard(header.producer_id)
        transaction = self._aborted.find(header) if kind == ControlType.ABORT else None
        if transaction is not None:
            self.kept.append(transaction)
        return False


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset
