"""What a start costs: importing kafkalite and building the codecs of a first produce.

    python bench/startup.py

Each figure is a process of its own, timed from its first line on, as time passed and as time of the
processor, which other load disturbs less. `kept` finds the code that an earlier run left behind,
`fresh` finds none and goes the way over construct. The goal is 60 ms.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

RUNS = 11
GOAL_MILLISECONDS = 60.0

# The APIs that a producer and a consumer of a group go through until records flow.
CODE = """
import time
start = time.perf_counter(), time.process_time()
import kafkalite
from kafkalite.protocol import codec, kept
from kafkalite.protocol.messages import message_class
if {fresh}:
    kept.load = lambda *_: None
    kept.store = lambda *_: None
for api, version in (
    ("ApiVersions", 4), ("Metadata", 12), ("InitProducerId", 4), ("Produce", 9), ("Fetch", 12),
    ("FindCoordinator", 4), ("JoinGroup", 7), ("SyncGroup", 5), ("Heartbeat", 4),
    ("OffsetFetch", 8),
):
    codec.decoder(message_class(api + "Request"), version)
    codec.encoder(message_class(api + "Response"), version)
codec.prefix_decoder(message_class("RequestHeader"), 2)
codec.encoder(message_class("ResponseHeader"), 1)
print((time.perf_counter() - start[0]) * 1000, (time.process_time() - start[1]) * 1000)
"""


def main() -> None:
    for name, fresh in (("kept", False), ("fresh", True)):
        run_once(fresh)
        passed, processor = zip(*(run_once(fresh) for _ in range(RUNS)), strict=True)
        print(f"{name:6} passed {row(passed)}   processor {row(processor)}")
    print(f"goal: {GOAL_MILLISECONDS:g} ms")


def row(costs: tuple[float, ...]) -> str:
    return f"best {min(costs):6.1f} ms, median {statistics.median(costs):6.1f} ms"


def run_once(fresh: bool) -> tuple[float, float]:
    command = [sys.executable, "-c", CODE.format(fresh=fresh)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    passed, processor = map(float, done.stdout.split())
    return passed, processor


if __name__ == "__main__":
    main()
