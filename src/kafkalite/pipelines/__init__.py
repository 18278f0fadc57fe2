"""Data pipelines on PySpark: topics to tables, to topics, and the accounts of both.

Owns what people write by hand around Kafka. Reaches brokers over the wire only, through Spark's own
`format("kafka")` and the Kafka client that comes with it, so any Kafka will do. Progress is kept by
Spark's checkpoints; what a checkpoint cannot promise is made idempotent per batch.

Each pipeline is a class here, a command `kafkalite pipeline NAME`, and pure steps from DataFrame to
DataFrame in its module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkalite.pipelines.audit import Audit
    from kafkalite.pipelines.common.source import KafkaSource
    from kafkalite.pipelines.dlq import DeadLetters
    from kafkalite.pipelines.lag import CommitOffsetsListener
    from kafkalite.pipelines.mirror import Mirror
    from kafkalite.pipelines.replay import Replay
    from kafkalite.pipelines.snapshot import Snapshot
    from kafkalite.pipelines.to_lake import ToLake

_HOMES = {
    "Audit": "audit",
    "CommitOffsetsListener": "lag",
    "DeadLetters": "dlq",
    "KafkaSource": "common.source",
    "Mirror": "mirror",
    "Replay": "replay",
    "Snapshot": "snapshot",
    "ToLake": "to_lake",
}

__all__ = [
    "Audit",
    "CommitOffsetsListener",
    "DeadLetters",
    "KafkaSource",
    "Mirror",
    "Replay",
    "Snapshot",
    "ToLake",
]


def __getattr__(name: str) -> Any:
    # Importing one pipeline imports pyspark; naming the package does not.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
