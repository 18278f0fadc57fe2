"""What the runtime needs of a partition: the line between coordinators and replication.

Nothing here has behaviour. `replication.partition.Partition` is the real one.
"""

from typing import Protocol

from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.log.producers import Verification


class AppendResult(Protocol):
    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


class LogSlice(Protocol):
    @property
    def range(self) -> FileRange | None: ...


class Log(Protocol):
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

    def when_committed(self, offset: int) -> Later[None]:
        """Resolved once every record below `offset` is committed."""
        ...
