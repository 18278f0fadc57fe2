"""The directory that a log lives in, as far as the log itself needs to know it.

Owns what the logs of one directory share: the world, the settings, the flusher, whether the disk
still works, and files that are to vanish later. It never looks into a log. Invariant: once a
directory has failed, nothing is written to it until the broker starts again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kafkalite.env import Env
from kafkalite.log.config import LogSettings
from kafkalite.log.failures import Kind, is_out_of_descriptors, kind_of
from kafkalite.log.flusher import Flusher
from kafkalite.log.vacated import Vacated
from kafkalite.protocol.errors import Error, KafkaError

logger = logging.getLogger(__name__)

WARN_EVERY_MS = 60_000

# The same by a worker; it is told whether the checkpoint lasts.
SaveLater = Callable[[str, Callable[[bool], None]], None]


class LogHome:
    """One of the broker's log directories."""

    def __init__(
        self,
        env: Env,
        path: str,
        settings: LogSettings,
        on_failure: Callable[[LogHome, OSError], None] | None = None,
    ) -> None:
        self.env = env
        self.disk = env.disk
        self.path = path
        self.settings = settings
        self.failure: OSError | None = None
        self.flusher = Flusher(env, self.fail)
        self.vacated = Vacated(self)
        self._on_failure = on_failure
        self._when_failed: list[Callable[[], None]] = []
        self._doomed: list[Callable[[], Iterable[str]]] = []
        self._is_removing = False
        self._warn_after_ms = 0
        # Set by who keeps them: a checkpoint as it is to be now, and what it says of a log.
        self.save_checkpoint: Callable[[str], None] = lambda name: None
        self.save_checkpoint_later: SaveLater = lambda name, then: then(True)
        self.saved_recovery_point: Callable[[str, int], int] = lambda topic, partition: 0

    @property
    def is_online(self) -> bool:
        return self.failure is None

    def fail(self, error: OSError) -> None:
        """Takes the directory out of service: what is on this disk is not known any more."""
        if self.failure is None:
            self.failure = error
            logger.error("log directory %s is offline: %s", self.path, error)
            for told in self._when_failed:
                told()
            if self._on_failure is not None:
                self._on_failure(self, error)

    def when_failed(self, told: Callable[[], None]) -> None:
        """For a log that no manager tells of it."""
        self._when_failed.append(told)

    def refuse_writes(self) -> None:
        """The directory is about to be closed cleanly: what came behind would not be vouched for.

        Syncing a coordinator's log commits decisions, and those would be acted on meanwhile.
        """
        self.failure = self.failure or OSError(f"log directory {self.path} is closed")

    def check_online(self) -> None:
        if self.failure is not None:
            raise KafkaError(Error.KAFKA_STORAGE_ERROR, f"log directory {self.path} is offline")

    def storage_error(self, error: OSError) -> KafkaError:
        """What a peer is told of a failed change of files. A disk that is only full stays in
        service; any other failure takes the directory out of it."""
        if is_out_of_descriptors(error):
            self._warn_of_descriptors(error)
        elif kind_of(error) is Kind.REQUEST:
            logger.warning("log directory %s takes no more: %s", self.path, error)
        else:
            self.fail(error)
        return KafkaError(Error.KAFKA_STORAGE_ERROR, str(error))

    def _warn_of_descriptors(self, error: OSError) -> None:
        now_ms = self.env.clock.monotonic_ms()
        if now_ms >= self._warn_after_ms:
            self._warn_after_ms = now_ms + WARN_EVERY_MS
            logger.warning(
                "log directory %s is well, but nothing more can be opened: %s. Raise the limit of "
                "open files (ulimit -n, LimitNOFILE=), or have fewer connections and partitions",
                self.path, error,
            )

    def remove_later(self, paths: Callable[[], Iterable[str]], delay_ms: int) -> None:
        """Removes files after a delay in which readers may finish with them; what they are called
        by then is asked when they go, for a directory may have another name, and its old one may
        be that of a new log.

        A worker does it, since a gigabyte takes a tenth of a second, and one at a time: workers are
        few, and others wait for theirs.
        """
        self.env.clock.call_later(delay_ms, lambda: self._doom(paths))

    def _doom(self, paths: Callable[[], Iterable[str]]) -> None:
        self._doomed.append(paths)
        if not self._is_removing:
            self._remove_doomed()

    def _remove_doomed(self) -> None:
        doomed, self._doomed = self._doomed, []
        self._is_removing = True
        self.env.background.submit(
            lambda: self._remove_all([path for paths in doomed for path in paths()]), self._removed
        )

    def _removed(self, outcome: object) -> None:
        self._is_removing = False
        if isinstance(outcome, BaseException):
            raise outcome
        if self._doomed:
            self._remove_doomed()

    def _remove_all(self, paths: list[str]) -> None:
        """On a worker."""
        if any(self.disk.is_directory(path) for path in paths):
            # Or a crash could leave a part of one under the name that it had in service.
            self.disk.sync_directory(self.path)
        self.remove_now(paths)

    def remove_now(self, paths: list[str]) -> None:
        """Removes what is there of these, whatever it is; waits for nothing."""
        for path in paths:
            if self.failure is not None:
                return
            try:
                if self.disk.is_directory(path):
                    self.disk.remove_tree(path)
                else:
                    self.disk.remove(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                logger.warning("%s could not be removed: %s", path, error)
