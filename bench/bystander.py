"""Somebody who has nothing to do with it: `python -m bench.bystander HOST PORT TOPIC`.

A process of its own, so that what it measures is the broker's and not its load generator's. It
asks for ApiVersions and produces one record, in turns, each a millisecond after the other's answer,
until its standard input ends; then it prints when each request began and how long it took.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

from bench.raw_client import PRODUCE_VERSION, RawClient, decode_reply, frame_of, make_batch
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ProduceRequest,
    ProduceResponse,
)

PAUSE_SECONDS = 0.001


def main() -> None:
    host, port, topic = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    batch, _ = make_batch(100, 100)
    partition = ProduceRequest.PartitionData(index=0, records=batch)
    data = ProduceRequest.TopicData(name=topic, partition_data=[partition])
    produce = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data])
    frames = [
        (frame_of(ApiVersionsRequest(), 0, 1), ApiVersionsResponse, 0),
        (frame_of(produce, PRODUCE_VERSION, 1), ProduceResponse, PRODUCE_VERSION),
    ]
    clients = [RawClient(host, port) for _ in frames]
    waits: list[tuple[float, float]] = []
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        for client, (frame, response, version) in zip(clients, frames, strict=True):
            began = time.monotonic()
            client.send(frame)
            reply = client.receive()
            waits.append((began, time.monotonic() - began))
            answer: Any = decode_reply(reply, response, version)
            assert not _error_of(answer), answer
    json.dump(waits, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


def _error_of(answer: Any) -> int:
    if isinstance(answer, ProduceResponse):
        answer = answer.responses[0].partition_responses[0]
    code: int = answer.error_code
    return code


if __name__ == "__main__":
    main()
