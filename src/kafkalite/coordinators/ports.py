"""What the runtime needs: of a partition, the line between coordinators and replication; and of
what it runs.

Nothing here has behaviour. `replication.partition.Partition` is the real partition.
"""

from typing import Protocol

from kafkalite.coordinators.effects import Effects, Producer, Record
from kafkalite.coordinators.events import Event
from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.log.producers import Verification
from kafkalite.protocol.errors import KafkaError


class AppendResult(Protocol):
    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


class LogSlice(Protocol):
    @property
    def range(self) -> FileRange | None: ...


class LogConfig(Protocol):
    @property
    def max_message_bytes(self) -> int: ...


class Log(Protocol):
    @property
    def config(self) -> LogConfig: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def read(self, offset: int, max_bytes: int, limit_offset: int) -> LogSlice: ...

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> Verification | None: ...


class Partition(Protocol):
    @property
    def log(self) -> Log: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin,
        *,
        is_all: bool,
        transaction_version: int = 0,
    ) -> AppendResult: ...

    def delete_records_before(self, offset: int) -> int:
        """Has the log begin at `offset`; returns where it does."""
        ...

    def when_committed(self, offset: int) -> Later[KafkaError | None]:
        """Filled once every record below `offset` is committed, or with why it never is here."""
        ...


class Shard(Protocol):
    """A coordinator's state machine; see architecture.md for its laws."""

    def decide(self, event: Event[object], now_ms: int) -> Effects | InSteps:
        """Reads state and answers with what should happen; a KafkaError is a plain refusal. What
        takes long comes in steps, between which nothing else happens to the shard."""
        ...

    def mark(self, event: Event[object]) -> object:
        """Equal before and after a decision on this event that has changed nothing."""
        ...

    def replay(self, record: Record) -> None:
        """The only writer of durable state; total; no clock, no chance."""
        ...

    def replay_end_transaction(self, producer: Producer, committed: bool) -> Steps[None] | None:
        """A commit or abort marker for the transactional records of this producer; in steps, when
        there are many."""
        ...

    def loaded(self, now_ms: int) -> Effects:
        """Called once the whole log is replayed: arms timers again."""
        ...
