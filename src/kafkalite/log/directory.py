"""One log directory of the broker: whose it is, and the checkpoints of all logs in it.

Owns the lock, `meta.properties`, the clean-shutdown marker and the four checkpoint files. It
never opens a log. Invariant: the marker of a clean stop is on the disk only while no log of the
directory is open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import DiskLock
from kafkalite.env.randomness import random_uuid
from kafkalite.log.checkpoints import (
    CorruptFile,
    TopicPartition,
    is_own_shutdown,
    read_clean_shutdown,
    read_offsets,
    read_properties,
    stage_offsets,
    write_clean_shutdown,
    write_offsets,
    write_properties,
)
from kafkalite.log.home import LogHome
from kafkalite.log.log_state import LogState
from kafkalite.log.names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
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


def lock_all(directories: list[LogDirectory], identity: Identity) -> None:
    """Locks all or, when one is another's, none; one whose disk fails is offline."""
    locked: list[LogDirectory] = []
    for directory in directories:
        try:
            directory.lock(identity)
        except OSError as error:
            directory.home.fail(error)
        except Exception:
            for other in locked:
                other.release()
            raise
        locked.append(directory)


OffsetsOf = Callable[[str], dict[TopicPartition, int]]


class LogDirectory:
    """A directory that this broker has taken."""

    def __init__(self, home: LogHome) -> None:
        self.home = home
        self.path = home.path
        self.directory_id = bytes(16)
        self.was_clean = False
        self.was_closed_here = False  # by kafkalite: another broker changed nothing since
        self.broker_epoch = -1  # of the stop, when it was clean
        self._lock: DiskLock | None = None
        # `meta.properties`: as it was found, and as it shall be.
        self._found: dict[str, str] = {}
        self._properties: dict[str, str] = {}
        self._written: dict[str, dict[TopicPartition, int]] = {}
        # Checkpoints that do not last yet, and whether a newer one has overtaken it meanwhile.
        self._under_way: dict[str, bool] = {}
        self._afterwards: list[Callable[[], None]] = []  # once one of them lasts, or will not

    def lock(self, identity: Identity) -> None:
        """Locks the directory and checks whose it is; raises LockedByOther or WrongDirectory. What
        is in it stays as it is."""
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

    def take(self) -> None:
        """Makes a locked directory this broker's own: it says so, and is no longer one that was
        stopped cleanly."""
        disk = self.home.disk
        if self._properties != self._found:
            write_properties(disk, f"{self.path}/{META_PROPERTIES}", self._properties)
        marker = f"{self.path}/{CLEAN_SHUTDOWN}"
        self.was_clean = disk.exists(marker)
        if self.was_clean:
            self.broker_epoch = read_clean_shutdown(disk, marker)
            self.was_closed_here = is_own_shutdown(disk, marker)
            disk.remove(marker)
            disk.sync_directory(self.path)

    def _identify(self, identity: Identity) -> None:
        disk, path = self.home.disk, f"{self.path}/{META_PROPERTIES}"
        try:
            self._found = found = read_properties(disk, path) if disk.exists(path) else {}
        except CorruptFile as error:
            raise WrongDirectory(f"{error}: bring it back from a copy") from None
        wanted = {"cluster.id": identity.cluster_id, "node.id": str(identity.node_id)}
        if found.get("version", "1") not in ("0", "1"):
            version = found["version"]
            raise WrongDirectory(
                f"{path} is of version {version}, which this broker does not know: go on with the "
                "Apache Kafka that wrote it, or with a newer kafkalite"
            )
        # Version 0 calls the node's id by its older name.
        for key, value in {**wanted, "broker.id": wanted["node.id"]}.items():
            if found.get(key, value) != value:
                raise WrongDirectory(f"{path} says {key}={found[key]}, but this broker has {value}")
        try:
            self.directory_id = parse_uuid(found["directory.id"])
        except (KeyError, ValueError):
            self.directory_id = random_uuid(self.home.env.random)
        # A key that is not known here is somebody else's, and stays.
        self._properties = {
            **found,
            **wanted,
            "version": "1",
            "directory.id": uuid_text(self.directory_id),
        }

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

    @staticmethod
    def due(name: str, log: LogState) -> int | None:
        """What a checkpoint is to say of a log, if anything."""
        if name == RECOVERY_POINTS:
            return log.recovery_point
        if name == HIGH_WATERMARKS:
            return log.high_watermark
        is_inside = log.log_start_offset > log.segments[0].base_offset
        return log.log_start_offset if is_inside else None

    def all_saved(self, name: str) -> dict[TopicPartition, int]:
        """What a checkpoint says, as it was read or written last. A start reads it where a failure
        takes the directory out of service, and nowhere else."""
        return dict(self._written.get(name, {}))

    def saved(self, name: str, topic: str, partition: int) -> int | None:
        """What a checkpoint says of a partition, as it was read or written last."""
        return self._written.get(name, {}).get((topic, partition))

    def forget_now(self, key: TopicPartition, offsets_of: OffsetsOf) -> None:
        """What checkpoints tell, or are about to, of a log that had the place must not be said of
        the next: where it began, say. They forget all that are gone at once, so it is seldom."""
        for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS):
            if self.saved(name, *key) is not None or self._under_way.get(name) is False:
                self.write(name, offsets_of(name))

    def may_tell_of(self, keys: Sequence[TopicPartition]) -> bool:
        """Whether some checkpoint does, or one that is under way."""
        told = self._written.values()
        return bool(self._under_way) or any(key in offsets for offsets in told for key in keys)

    def forget_later(
        self, keys: Sequence[TopicPartition], offsets_of: OffsetsOf, then: Callable[[bool], None]
    ) -> None:
        """The same of several, off the event loop; `then` is told whether it could be done."""
        self._forget_in([RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS], keys, offsets_of, then)

    def _forget_in(
        self, left: list[str], keys: Sequence[TopicPartition], offsets_of: OffsetsOf,
        then: Callable[[bool], None],
    ) -> None:  # fmt: skip
        go_on = partial(self._forget_in, left, keys, offsets_of, then)

        def tells(name: str) -> bool:
            return any(self.saved(name, *key) is not None for key in keys)

        def written(name: str, is_written: bool) -> None:
            if not is_written and tells(name):
                then(False)
            else:
                go_on()

        while left and self.home.is_online:
            if left[0] in self._under_way:
                self._afterwards.append(go_on)
                return
            name = left.pop(0)
            if tells(name):
                self.write_later(name, offsets_of(name), partial(written, name))
                return
        then(True)

    def saved_recovery_point(self, topic: str, partition: int) -> int:
        return self._written.get(RECOVERY_POINTS, {}).get((topic, partition), 0)

    def is_new(self, name: str, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether these are not the offsets that the file has."""
        return self._written.get(name) != offsets

    def write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Puts a checkpoint onto the disk, unless it is there already."""
        is_overtaking = name in self._under_way
        if is_overtaking:
            self._under_way[name] = True
        if is_overtaking or self.is_new(name, offsets):
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

    def write_in_turn(
        self, offsets_of: OffsetsOf, name: str, then: Callable[[bool], None]
    ) -> None:
        """The same after what is being done, with what is so then."""
        if name in self._under_way:
            self._afterwards.append(partial(self.write_in_turn, offsets_of, name, then))
        else:
            self.write_later(name, offsets_of(name), then)

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
        disk = self.home.disk
        if outcome is None and self.home.is_online and not self._under_way[name]:
            try:
                disk.rename(self._staged(name), f"{self.path}/{name}")
            except OSError as error:
                outcome = error
            else:
                self.home.env.background.submit(
                    lambda: disk.sync_directory(self.path),
                    lambda synced: self._lasts(name, offsets, synced, then),
                )
                return
        if outcome is None:
            self.home.remove_now([self._staged(name)])
        self._lasts(name, None, outcome, then)

    def _lasts(
        self,
        name: str,
        offsets: dict[TopicPartition, int] | None,
        outcome: object,
        then: Callable[[bool], None],
    ) -> None:
        """Only now does the checkpoint count: files go because of what it says."""
        is_overtaken = self._under_way.pop(name)
        afterwards, self._afterwards = self._afterwards, []
        if isinstance(outcome, OSError):
            self.home.storage_error(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        is_written = outcome is None and offsets is not None and self.home.is_online
        if is_written and not is_overtaken:
            assert offsets is not None
            self._written[name] = offsets
        then(is_written and not is_overtaken)
        for each in afterwards:
            each()
