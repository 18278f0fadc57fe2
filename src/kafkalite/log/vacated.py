"""Names that logs gave up, until that lasts.

Owns, for one log directory, which names a power cut could still give back to those that had them,
and the sync that ends this, off the event loop. It renames nothing itself. Invariant: a log that
has a name which is not in here, and never gave it up, has it after a power cut, too, or nobody has.
"""

from __future__ import annotations

from typing import Protocol

from kafkalite.env import Env
from kafkalite.env.disk import Disk
from kafkalite.protocol.errors import KafkaError

_SYNC_AFTER_MS = 100  # for many together
_AGAIN_AFTER_MS = 1_000  # where it could not be done, though the disk works


class Home(Protocol):
    """The directory, as far as it matters here."""

    env: Env
    disk: Disk
    path: str

    @property
    def is_online(self) -> bool: ...

    def storage_error(self, error: OSError) -> KafkaError: ...


class Vacated:
    """The names that were given up in one log directory."""

    def __init__(self, home: Home) -> None:
        self._home = home
        # How often names had been given up when each was, and whether who had it tells whose it is.
        self._names: dict[str, tuple[int, bool]] = {}
        self._count = 0
        self._is_on_its_way = False

    def __contains__(self, path: str) -> bool:
        return path in self._names

    def add(self, path: str, *, tells_its_topic: bool) -> None:
        self._count += 1
        self._names[path] = (self._count, tells_its_topic)
        if not self._is_on_its_way:
            self._sync_after(_SYNC_AFTER_MS)

    def _sync_after(self, delay_ms: int) -> None:
        self._is_on_its_way = True
        self._home.env.clock.call_later(delay_ms, self._sync)

    def is_doubtful(self, path: str) -> bool:
        """Whether what comes back under a name could be taken for that of its next owner."""
        return path in self._names and not self._names[path][1]

    def _sync(self) -> None:
        home, count = self._home, self._count
        if not home.is_online or not self._names:
            self._is_on_its_way = False
            return
        home.env.background.submit(
            lambda: home.disk.sync_directory(home.path), lambda outcome: self._done(count, outcome)
        )

    def _done(self, count: int, outcome: object) -> None:
        self._is_on_its_way = False
        if isinstance(outcome, OSError):
            self._home.storage_error(outcome)
            self._sync_after(_AGAIN_AFTER_MS)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            later = {path: each for path, each in self._names.items() if each[0] > count}
            self._names.clear()
            for path, (_, tells_its_topic) in later.items():
                self.add(path, tells_its_topic=tells_its_topic)
