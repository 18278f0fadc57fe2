"""What producers count of their own sends."""

import json

from kafkalite.pipelines.counts import BUCKET_MS, ProducerCounts


def test_counts_per_topic_and_bucket() -> None:
    counts = ProducerCounts("shop-1")
    for timestamp in (0, 1, BUCKET_MS - 1, BUCKET_MS):
        counts.count("orders", timestamp)
    counts.count("clicks", 5)
    assert [json.loads(event) for event in counts.events()] == [
        {"producer": "shop-1", "topic": "clicks", "bucket": 0, "count": 1},
        {"producer": "shop-1", "topic": "orders", "bucket": 0, "count": 3},
        {"producer": "shop-1", "topic": "orders", "bucket": BUCKET_MS, "count": 1},
    ]


def test_each_send_is_told_once() -> None:
    counts = ProducerCounts("shop-1")
    counts.count("orders", 0)
    assert len(counts.events()) == 1
    assert counts.events() == []
