"""One log directory of the broker: whose it is, and the checkpoints of all logs in it.

Owns the lock, `meta.properties`, the clean-shutdown marker and the four checkpoint files. It
never opens a log. Invariant: the marker of a clean stop is on the disk only while no log of the
directory is open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkalite.env.disk import DiskLock
from kafkalite.env.randomness import random_uuid
from kafkalite.log.checkpoints import (
    CorruptFile,
    TopicPartition,
    read_clean_shutdown,
    read_offsets,
    read_properties,
    stage_offsets,
    write_clean_shutdown,
    write_offsets,
    write_properties,
)
from kafkalite.log.home import LogHome
from kafkalite.log.names import (
    CLEAN_SHUTDOWN,
    LOCK,
    META_PROPERTIES,
    RECOVERY_POINTS,
    parse_uuid,
    uuid_text,
)

logger = logging.getLogger(__name__)


class WrongDirectory(Exception):
    """The directory belongs to another cluster or broker."""


@dataclass(slots=True)
class Identity:
    """Whose logs these are."""

    cluster_id: str
    node_id: int


class LogDirectory:
    """A directory that this broker has taken."""

    def __init__(self, home: LogHome) -> None:
        self.home = home
        self.path = home.path
        self.directory_id = bytes(16)
        self.was_clean = False
        self.broker_epoch = -1  # of the stop, when it was clean
        self._lock: DiskLock | None = None
        self._written: dict[str, dict[TopicPartition, int]] = {}
        # Checkpoints that a worker writes, and whether a newer one has overtaken it meanwhile.
        self._under_way: dict[str, bool] = {}

    def take(self, identity: Identity) -> None:
        """Locks the directory and checks whose it is; raises LockedByOther or WrongDirectory."""
        disk = self.home.disk
        if not disk.is_directory(self.path):
            disk.make_directory(self.path)
            disk.sync_directory(self.path.rpartition("/")[0] or ("/" if "/" in self.path else "."))
        self._lock = disk.lock(f"{self.path}/{LOCK}")
        try:
            self._identify(identity)
        except WrongDirectory:
            self.release()
            raise
        marker = f"{self.path}/{CLEAN_SHUTDOWN}"
        self.was_clean = disk.exists(marker)
        if self.was_clean:
            self.broker_epoch = read_clean_shutdown(disk, marker)
            disk.remove(marker)
            disk.sync_directory(self.path)

    def _identify(self, identity: Identity) -> None:
        disk, path = self.home.disk, f"{self.path}/{META_PROPERTIES}"
        found = read_properties(disk, path) if disk.exists(path) else {}
        wanted = {"cluster.id": identity.cluster_id, "node.id": str(identity.node_id)}
        for key, value in wanted.items():
            if found.get(key, value) != value:
                raise WrongDirectory(f"{path} says {key}={found[key]}, but this broker has {value}")
        try:
            self.directory_id = parse_uuid(found["directory.id"])
        except (KeyError, ValueError):
            self.directory_id = random_uuid(self.home.env.random)
        properties = {
            **wanted,
            "version": "1",
            "directory.id": uuid_text(self.directory_id),
        }
        if any(found.get(key) != value for key, value in properties.items()):
            write_properties(disk, path, {**found, **properties})

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def mark_clean(self, broker_epoch: int) -> None:
        """The last act of a clean stop."""
        write_clean_shutdown(self.home.disk, f"{self.path}/{CLEAN_SHUTDOWN}", broker_epoch)

    # --- checkpoints ------------------------------------------------------------------------------

    def read(self, name: str) -> dict[TopicPartition, int]:
        """A checkpoint; one that is damaged counts as empty, since all of them can be made anew."""
        try:
            offsets = read_offsets(self.home.disk, f"{self.path}/{name}")
        except CorruptFile as error:
            logger.warning("a checkpoint is rebuilt: %s", error)
            return {}
        self._written[name] = dict(offsets)
        return offsets

    def saved_recovery_point(self, topic: str, partition: int) -> int:
        return self._written.get(RECOVERY_POINTS, {}).get((topic, partition), 0)

    def is_new(self, name: str, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether these are not the offsets that the file has."""
        return self._written.get(name) != offsets

    def write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Puts a checkpoint onto the disk, unless it is there already."""
        if name in self._under_way:
            self._under_way[name] = True
        if self.is_new(name, offsets):
            write_offsets(self.home.disk, f"{self.path}/{name}", offsets)
            self._written[name] = offsets

    def write_later(
        self,
        name: str,
        offsets: dict[TopicPartition, int],
        then: Callable[[bool], None] = lambda is_written: None,
    ) -> None:
        """The same off the event loop, unless that is being done; `then` is told whether these
        offsets are on the disk."""
        if not self.home.is_online or name in self._under_way:
            then(False)
            return
        if not self.is_new(name, offsets):
            then(True)
            return
        disk, staged = self.home.disk, self._staged(name)
        self._under_way[name] = False
        self.home.env.background.submit(
            lambda: stage_offsets(disk, staged, offsets),
            lambda outcome: self._put_in_place(name, offsets, outcome, then),
        )

    def _staged(self, name: str) -> str:
        return f"{self.path}/{name}.staged.tmp"

    def _put_in_place(
        self,
        name: str,
        offsets: dict[TopicPartition, int],
        outcome: object,
        then: Callable[[bool], None],
    ) -> None:
        """Here and not on the worker: what was written meanwhile must not be undone."""
        disk, is_overtaken = self.home.disk, self._under_way.pop(name)
        if outcome is not None or not self.home.is_online:
            self._told(outcome, then)
        elif is_overtaken:
            self.home.remove_now([self._staged(name)])
            then(False)
        else:
            try:
                disk.rename(self._staged(name), f"{self.path}/{name}")
            except OSError as error:
                self._told(error, then)
                return
            self._written[name] = offsets
            self.home.env.background.submit(
                lambda: disk.sync_directory(self.path), lambda synced: self._told(synced, then)
            )

    def _told(self, outcome: object, then: Callable[[bool], None]) -> None:
        if isinstance(outcome, OSError):
            self.home.storage_error(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        then(outcome is None and self.home.is_online)
