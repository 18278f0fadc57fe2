"""What a log is told: the settings of its topic, and those of the broker that all logs share.

Owns no parsing and no documentation of settings (the `config` room does). A field is named as
Kafka's setting with underscores for dots. Invariant: a `LogConfig` is never changed; a new one
takes its place.
"""

from __future__ import annotations

from kafkalite.env.dataclasses import dataclass, field

NO_LIMIT = -1
FOREVER = 2**63 - 1

COMPACT = "compact"
DELETE = "delete"
LOG_APPEND_TIME = "LogAppendTime"
CREATE_TIME = "CreateTime"
FSYNC = "fsync"
MAX_INDEX_ENTRY_BYTES = 12
PAGE_CACHE = "page-cache"


@dataclass(slots=True, frozen=True)
class LogConfig:
    """The settings of one topic."""

    cleanup_policy: tuple[str, ...] = (DELETE,)
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    # Each as PARTITION:BROKER, or `*` alone.
    follower_replication_throttled_replicas: frozenset[str] = frozenset()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: frozenset[str] = frozenset()
    max_compaction_lag_ms: int = FOREVER
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_type: str = CREATE_TIME
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = NO_LIMIT
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    kafkalite_durability: str = PAGE_CACHE
    is_plain: bool = field(init=False)  # takes uncompressed batches as they come
    index_slots: int = field(init=False)  # so many entries fit into each index

    def __post_init__(self) -> None:
        is_plain = (
            not self.is_compacted
            and self.compression_type in ("producer", "uncompressed")
            and self.message_timestamp_type == CREATE_TIME
            and self.message_timestamp_before_max_ms == FOREVER
        )
        # Frozen: set here and never again.
        object.__setattr__(self, "is_plain", is_plain)
        object.__setattr__(self, "index_slots", self.segment_index_bytes // MAX_INDEX_ENTRY_BYTES)

    @property
    def is_compacted(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        return DELETE in self.cleanup_policy

    @property
    def is_fsynced(self) -> bool:
        """Whether nothing may be acknowledged before it is on stable storage."""
        return self.kafkalite_durability == FSYNC or self.flush_messages <= 1


@dataclass(slots=True)
class LogSettings:
    """The settings of the broker that all its logs share, as they now are."""

    log_retention_check_interval_ms: int = 300_000
    log_flush_scheduler_interval_ms: int = FOREVER
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 134_217_728
    log_cleaner_io_max_bytes_per_second: float = float(2**53)
    replica_alter_log_dirs_io_max_bytes_per_second: int = FOREVER
    num_recovery_threads_per_data_dir: int = 2
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    transaction_max_timeout_ms: int = 900_000
