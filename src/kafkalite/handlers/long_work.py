"""What the requests of one broker have under way in the loop's slices.

Few bytes can hold or ask for much, and whoever sends or asks for it must not hold up the others.
Owns the lines in which batches wait that are to be appended, one per partition, so that what comes
later is appended later; and the bound on what those who wait for an answer hold in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices, Steps, Work, caught
from kafkalite.handlers.call import Call, Client
from kafkalite.log.append import Checked
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import Partition

T = TypeVar("T")

# What waiting readers may hold together; who comes then is asked to come again. Batches that are to
# be appended are the connections' to count, who read no further when there are too many.
MAX_HELD_BYTES = 64 * 1024 * 1024


class LongWork:
    """Begins it, and ends it with the broker."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._lines = slices.lines
        self._is_stopped = False
        # Whose requests are under way, and how many: the next one waits for them.
        self.connections: dict[int, int] = {}

    def is_busy(self, partition: Partition) -> bool:
        """Whether something has to be waited for before the next append."""
        lines = self._lines
        return bool(lines) and _line(partition) in lines

    def examine(
        self,
        partition: Partition,
        steps: Steps[Checked],
        done: Callable[[Checked | Exception], None],
        *,
        is_late: bool,
    ) -> None:
        """Calls `done` in the partition's order: at once if that is soon, but for who comes late in
        a turn that was long enough."""
        if self._is_stopped:
            raise _stopping()
        line = _line(partition)
        work = Work(caught(steps), done, lost=lambda: done(_stopping()), owner=self)
        is_next = not is_late and line not in self._lines
        if not (is_next and self._slices.is_done_at_once(work)):
            self._slices.enter(work, line)

    def answer(self, call: Call, steps: Steps[T], held_bytes: int = 0) -> T | Later[T]:
        """What comes of it, now if that is soon; raises KafkaError also when too much waits
        already, and drops it when the client has gone.

        `held_bytes` is what it keeps in memory meanwhile. What fails later ends the connection.
        """
        later: Later[Any] = Later()
        connection = call.connection
        work = Work(
            caught(steps), later.resolve,
            lost=lambda: later.resolve(_stopping()),
            is_wanted=lambda: not connection.has_ended,
            owner=self, held_bytes=held_bytes,
        )  # fmt: skip
        if not self._slices.is_done_at_once(work):
            try:
                self._check_room(held_bytes)
            except KafkaError as error:
                later.resolve(error)
            else:
                self._slices.enter(work)
        if not later.is_resolved:
            return later
        if isinstance(later.value, Exception):
            raise later.value
        value: T = later.value
        return value

    def of_connection(
        self,
        connection: Client,
        steps: Steps[T],
        done: Callable[[T], None],
        lost: Callable[[], None],
        *,
        is_kept_up: bool = False,
    ) -> None:
        """Has it done, at once if that is soon, after what is under way for the same connection;
        `lost` when the client has gone before, unless it `is_kept_up` all the same, or when the
        broker has."""
        key = id(connection)

        def over(outcome: T) -> None:
            self._leave(key)
            done(outcome)

        def dropped() -> None:
            self._leave(key)
            lost()

        work = Work(steps, over, dropped, owner=self)
        if not is_kept_up:
            work.is_wanted = lambda: not connection.has_ended
        is_next = key not in self.connections
        self.connections[key] = self.connections.get(key, 0) + 1
        if self._is_stopped:
            dropped()
        elif not (is_next and self._slices.is_done_at_once(work)):
            self._slices.enter(work, ("connection", key))

    def is_at_work_for(self, connection: Client) -> bool:
        """Whether a request of this connection is under way."""
        return id(connection) in self.connections

    def _leave(self, key: int) -> None:
        left = self.connections[key] - 1
        if left:
            self.connections[key] = left
        else:
            del self.connections[key]

    def _check_room(self, held_bytes: int) -> None:
        if self._is_stopped:
            raise _stopping()
        held = self._slices.held_bytes
        if held_bytes and held and held + held_bytes > MAX_HELD_BYTES:
            raise KafkaError(Error.REQUEST_TIMED_OUT, "too many large answers are being worked out")

    def stop(self) -> None:
        """Does nothing more, and says so to whoever waits."""
        self._is_stopped = True
        self._slices.drop(self)


def _stopping() -> KafkaError:
    return KafkaError(Error.NOT_LEADER_OR_FOLLOWER, "the broker is stopping")


def _line(partition: Partition) -> tuple[bytes, int]:
    return partition.topic_id, partition.index
