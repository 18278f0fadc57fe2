"""Commits as they happen: a reader of the topic that all clusters keep them in.

Owns the reading, on a thread of its own and over connections of its own, from a little before the
end on, so that windows are soon full. What cannot be read is told and tried again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.client.consuming import Reader, Start
from kafkalite.coordinators.effects import Record as Kept
from kafkalite.coordinators.groups.records import UnreadableRecord, read
from kafkalite.metrics.windows import Place
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import OffsetCommitKey, OffsetCommitValue
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.record import Record

_LOG = logging.getLogger(__name__)
OFFSETS = "__consumer_offsets"
BEFORE_THE_END = 1_000  # records of each partition
AGAIN_SECONDS = 10.0
PATIENCE_SECONDS = 30.0

# A group, a partition, what is committed (None: it is gone) and when.
Told = Callable[[str, Place, int | None, int], None]


class Commits:
    """Tells each commit, until it is stopped."""

    def __init__(self, connect: Callable[[], Cluster], told: Told) -> None:
        self._connect, self._told = connect, told
        self._is_over = threading.Event()
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="kafkalite-commits", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                with closing(self._connect()) as cluster:
                    self._follow(cluster)
            except (ClientFailed, CorruptRecords) as failure:
                if str(failure) != self._said:  # not there yet, or not for this client
                    self._said = str(failure)
                    _LOG.info("commits cannot be read: %s", failure)
            self._is_over.wait(AGAIN_SECONDS)

    def _follow(self, cluster: Cluster) -> None:
        reader = Reader(
            cluster, OFFSETS, partitions=(), start=Start(offset=-BEFORE_THE_END), follows=True,
            is_committed=True, timeout_s=PATIENCE_SECONDS, tell=_LOG.info,
        )  # fmt: skip
        while not self._is_over.is_set():
            for _, record, _ in reader.round():
                self._tell(record)

    def _tell(self, record: Record) -> None:
        commit = commit_in(record)
        if commit is not None:
            self._told(*commit)


def commit_in(record: Record) -> tuple[str, Place, int | None, int] | None:
    """None when it is a record of something else, or of a version to come."""
    if record.key is None:
        return None
    try:
        found = read(Kept(bytes(record.key), record.value and bytes(record.value)))
    except (UnreadableRecord, MalformedFrame):
        return None
    if found is None or not isinstance(found[0], OffsetCommitKey):
        return None
    key: Any = found[0]
    value = found[1]
    place = (str(key.topic), int(key.partition))
    if not isinstance(value, OffsetCommitValue):
        return str(key.group), place, None, record.timestamp
    return str(key.group), place, int(value.offset), int(value.commit_timestamp)
