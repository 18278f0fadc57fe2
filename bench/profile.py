"""Where a busy broker spends its time: flame graphs by py-spy. `python -m bench.profile`

    python -m bench.profile [produce fetch groups] [--seconds 8]

Each load runs against a kafkalite of its own while py-spy looks at it 500 times a second; the
graphs go to bench/results/profile-*.svg. System calls count as the Python line that makes them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from bench import groups, pair
from bench.pair import Target
from bench.raw_client import Fetch, Produce, RawClient, make_batch, make_topic
from bench.raw_client import run as run_load
from bench.rows import RESULTS
from tests.compat.brokers import KAFKALITE

LOOKS_PER_SECOND = 500
BATCH_BYTES = 16_384
FETCHED_BATCHES = 2_048
IN_FLIGHT = 5
WARM_UP_SECONDS = 1.0
WAIT_SECONDS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description="Flame graphs of a busy kafkalite.")
    parser.add_argument("loads", nargs="*", help=" ".join(LOADS))
    parser.add_argument("--seconds", type=float, default=8.0)
    arguments = parser.parse_args()
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if spy is None:
        raise SystemExit("py-spy is not installed: it is part of the dev extra")
    RESULTS.mkdir(exist_ok=True)
    for name in arguments.loads or LOADS:
        path = RESULTS / f"profile-{name}.svg"
        with tempfile.TemporaryDirectory(prefix="kafkalite-profile-") as folder:
            target = pair.start(KAFKALITE, Path(folder))
            try:
                _watch(spy, target, LOADS[name], arguments.seconds, path)
            finally:
                target.broker.stop()
        print(f"{name}: {path}")


def _watch(
    spy: str, target: Target, load: Callable[[Target, float], None], seconds: float, path: Path
) -> None:
    if load is rebalance:
        groups.prepare(target)
    load(target, WARM_UP_SECONDS)
    command = [spy, "record", "--pid", str(target.pid), "--output", str(path)]
    command += ["--rate", str(LOOKS_PER_SECOND), "--duration", str(max(1, round(seconds)))]
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    load(target, seconds + 1)
    out, _ = watching.communicate(timeout=WAIT_SECONDS)
    if watching.returncode != 0:
        raise SystemExit(f"py-spy failed; it may need root: {out.decode()}")


# --- loads ----------------------------------------------------------------------------------------


def produce(target: Target, seconds: float) -> None:
    client, topic = _client(target)
    load = Produce(topic, *make_batch(BATCH_BYTES, 1_000))
    run_load(client, load, in_flight=IN_FLIGHT, seconds=seconds)
    client.close()


def fetch(target: Target, seconds: float) -> None:
    client, topic = _client(target)
    batch, records = make_batch(BATCH_BYTES, 1_000)
    filling = Produce(topic, batch, records)
    run_load(client, filling, in_flight=IN_FLIGHT, requests=FETCHED_BATCHES)
    load = Fetch(topic, len(batch), records, 1, FETCHED_BATCHES)
    run_load(client, load, in_flight=IN_FLIGHT, seconds=seconds)
    client.close()


def rebalance(target: Target, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        groups.rebalances(target, f"profiled-{uuid.uuid4().hex[:8]}")


def _client(target: Target) -> tuple[RawClient, str]:
    client = RawClient(target.host, target.port)
    topic = f"profiled-{uuid.uuid4().hex[:8]}"
    make_topic(client, topic)
    return client, topic


LOADS: dict[str, Callable[[Target, float], None]] = {
    "produce": produce,
    "fetch": fetch,
    "groups": rebalance,
}


if __name__ == "__main__":
    main()
