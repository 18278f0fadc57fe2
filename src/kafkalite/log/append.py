"""A batch on its way into a log: what it is, what comes along with it, and what became of it.

Owns these shapes and no rule. One `Append` goes from whoever brings a batch through its partition
to the log, and nobody on the way takes it apart. Invariant: the header in it is that of the first
batch of its bytes, read once.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.log.producers import WAIVED, AppendOrigin, Verification
from kafkalite.records.batch import NO_LEADER_EPOCH, NO_TIMESTAMP, BatchHeader

Writable = bytearray | memoryview


@dataclass(slots=True)
class Checked:
    """Batches that may be written as they are."""

    records: bytes | bytearray | memoryview
    headers: list[BatchHeader]
    log_append_time_ms: int = NO_TIMESTAMP


@dataclass(slots=True)
class Append:
    """What is to be appended. Its bytes must not change until it is."""

    records: Writable
    now_ms: int
    header: BatchHeader | None = None  # when somebody has read it: then there is no other batch
    # What a transactional batch of a client brings along to prove that its coordinator knows of
    # it, see `PartitionLog.start_verification`; None is no proof.
    verification: Verification | None = WAIVED
    origin: AppendOrigin = AppendOrigin.CLIENT
    leader_epoch: int = NO_LEADER_EPOCH  # the partition's, which it sets
    transaction_version: int = 0  # by which the epoch of a marker is to be judged
    is_old_format_taken: bool = False
    checked: Checked | None = None  # when all that `validator.examine` looks at has been


@dataclass(slots=True)
class AppendResult:
    """Where a batch is in the log now, or has been since it came for the first time."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False
