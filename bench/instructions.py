"""How many instructions a small request takes a broker: `python -m bench.instructions [TREE ...]`.

Owns the count, by valgrind's callgrind: of this tree, and of others beside it, such as a checkout
of the last release. Times of a shared machine differ by a twentieth from run to run, these by a
thousandth, so they tell what a change costs. What the kernel does is not in them, nor what memory
makes the processor wait for. One request is under way at a time: under callgrind everything takes
fifty times as long, and turns of the loop would be cut short that are not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import groups
from bench.raw_client import Fetch, Produce, RawClient, frame_of, make_batch, make_topic
from bench.raw_client import run as run_load
from tests.compat.brokers import COMMON

WARM, COUNTED = 300, 1_500
TOPIC, BATCHES = "counted", 64
START_SECONDS = 120
HERE = Path(__file__).parents[1]

# A broker that does not make ready what nobody asks for here, which would be counted with it.
CODE = """
import runpy
try:
    from kafkalite.server import preparing
    preparing.BEGIN_MS = 1 << 40
except ImportError:
    pass  # an older tree has none
runpy.run_module("kafkalite", run_name="__main__", alter_sys=True)
"""

Send = Callable[[int], object]  # so many requests
Load = Callable[[RawClient], Send]


def main() -> None:
    if shutil.which("valgrind") is None:
        raise SystemExit("instructions are counted by valgrind: apt-get install valgrind")
    trees = [HERE, *(Path(name).resolve() for name in sys.argv[1:])]
    table = Table("thousands of instructions", *(tree.name for tree in trees))
    for name, load in LOADS.items():
        ours, *theirs = (count(tree, load) / 1_000 for tree in trees)
        others = (f"{other:.1f} ({ours / other:.3f} x)" for other in theirs)
        table.add_row(name, f"{ours:.1f}", *others)
    Console().print(table)


def count(tree: Path, load: Load) -> float:
    """Per request."""
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as name:
        folder = Path(name)
        with _broker(tree, folder) as (pid, port):
            client = RawClient("127.0.0.1", port)
            send = load(client)
            send(WARM)
            _count(pid, "on")
            send(COUNTED)
            _count(pid, "off")
            client.close()
        found = (folder / "counted").read_text().split("totals: ")[1]
        return int(found.split()[0]) / COUNTED


# --- loads ----------------------------------------------------------------------------------------


def produce(client: RawClient) -> Send:
    make_topic(client, TOPIC)
    load = Produce(TOPIC, *make_batch(200, 100))
    return lambda requests: run_load(client, load, in_flight=1, requests=requests)


def fetch(client: RawClient) -> Send:
    make_topic(client, TOPIC)
    batch, records = make_batch(16_384, 1_000)
    run_load(client, Produce(TOPIC, batch, records), in_flight=1, requests=BATCHES)
    load = Fetch(TOPIC, len(batch), records, 1, BATCHES)
    return lambda requests: run_load(client, load, in_flight=1, requests=requests)


def commit(client: RawClient) -> Send:
    groups.make_ready(client)
    frame = frame_of(groups.commit_of(TOPIC), groups.COMMIT, 0)
    return lambda requests: groups.send_commits(client, [frame] * requests, 1)


LOADS: dict[str, Load] = {"produce 200 B": produce, "fetch 16 KB": fetch, "commit": commit}

# --- the broker -----------------------------------------------------------------------------------


@contextmanager
def _broker(tree: Path, folder: Path) -> Iterator[tuple[int, int]]:
    """Its process and its port; what was counted is in the folder afterwards."""
    port_file = folder / "port"
    call = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
    call += [f"--callgrind-out-file={folder / 'counted'}"]
    call += [sys.executable, "-c", CODE, "serve", "--listen", "127.0.0.1:0"]
    call += ["--data-dir", str(folder / "data"), "--port-file", str(port_file)]
    for name, value in COMMON.items():
        call += ["--override", f"{name}={value}"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            call, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _until(partial(_is_written, port_file))
            yield process.pid, int(port_file.read_text())
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _count(pid: int, switch: str) -> None:
    call = ["callgrind_control", "-i", switch, str(pid)]
    subprocess.run(call, check=True, capture_output=True)


def _is_written(file: Path) -> bool:
    return file.exists() and bool(file.read_text().strip())


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + START_SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"the broker did not start within {START_SECONDS} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
