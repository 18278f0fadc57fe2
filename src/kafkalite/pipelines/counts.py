"""What a producer counts of its own sends, for `audit` to hold against broker and lake.

Owns the counters and the form of their events, as the Kafka paper has it: per topic and bucket of
log time, how many records this producer sent. Needs no Spark; sending the events is the caller's.
"""

import json
from collections import Counter

BUCKET_MS = 600_000


class ProducerCounts:
    """Counters of one producer: count each record sent, now and then send `events()`."""

    def __init__(self, producer: str) -> None:
        self._producer = producer
        self._counts: Counter[tuple[str, int]] = Counter()

    def count(self, topic: str, timestamp_ms: int) -> None:
        self._counts[topic, timestamp_ms // BUCKET_MS * BUCKET_MS] += 1

    def events(self) -> list[bytes]:
        """What was counted since the last call, one JSON object per topic and bucket."""
        counted = sorted(self._counts.items())
        self._counts.clear()
        return [
            json.dumps(
                {"producer": self._producer, "topic": topic, "bucket": bucket, "count": count}
            ).encode()
            for (topic, bucket), count in counted
        ]
