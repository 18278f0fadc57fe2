"""The whole search, run by `make crash SEED=… ROUNDS=…`: a thousand crash points and two killed
processes for each round. A failure names the seed and the operation that lead back to it."""

import logging
import os
import time
from itertools import product

import pytest

from tests.crash.kill import kill_rounds
from tests.crash.moves import MoveWorkload, crash_points_of_moves
from tests.crash.seams import live
from tests.crash.search import crash_points
from tests.crash.worlds import Workload

pytestmark = [pytest.mark.crash, pytest.mark.full]

SEED = int(os.environ.get("SEED") or 1)
ROUNDS = int(os.environ.get("ROUNDS") or 100)
SHARDS = 4  # for several workers
STATES = 4  # ways to crash at each operation


@pytest.mark.timeout(0)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_crash_of_the_machine_breaks_a_promise(shard, capsys):
    logging.disable(logging.CRITICAL)
    wanted, count, seed = ROUNDS * 1000 // SHARDS, 0, SEED * 1_000_000 + shard * 100_000
    started = time.monotonic()
    while count < wanted:
        for is_fsynced, is_compacted, is_uneven in product((True, False), repeat=3):
            count += crash_points(
                Workload(
                    seed, is_fsynced, is_compacted, has_cuts=not is_compacted, is_uneven=is_uneven
                ),
                STATES,
            )
        seed += 1
        with capsys.disabled():
            print(f"shard {shard}: {count} of {wanted} crash points", flush=True)
    logging.disable(logging.NOTSET)
    with capsys.disabled():
        print(f"\n{count} crash points, nothing lost ({time.monotonic() - started:.0f} s)")


@pytest.mark.timeout(0)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_stop_in_a_move_and_no_start_without_a_disk_breaks_a_promise(shard, capsys):
    logging.disable(logging.CRITICAL)
    wanted, count, seed = ROUNDS * 100 // SHARDS, 0, SEED * 1_000_000 + shard * 100_000
    started = time.monotonic()
    while count < wanted:
        for is_fsynced, is_uneven in product((True, False), repeat=2):
            workload = MoveWorkload(seed, is_fsynced, is_uneven)
            count += crash_points_of_moves(workload, states=2, every=3)
        seed += 1
    logging.disable(logging.NOTSET)
    with capsys.disabled():
        took = time.monotonic() - started
        print(f"\n{count} starts after a stop in a move, nothing lost ({took:.0f} s)")


@pytest.mark.timeout(0)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_meeting_of_what_changes_logs_breaks_a_promise(shard, capsys):
    logging.disable(logging.CRITICAL)
    wanted, count, seed = ROUNDS * 100 // SHARDS, 0, SEED * 1_000_000 + shard * 100_000
    started = time.monotonic()
    while count < wanted:
        count += live(seed)
        seed += 1
    logging.disable(logging.NOTSET)
    with capsys.disabled():
        took = time.monotonic() - started
        print(f"\n{count} lives of several logs were lived, nothing lost ({took:.0f} s)")


@pytest.mark.timeout(0)
def test_no_killed_process_breaks_a_promise(tmp_path, capsys):
    started = time.monotonic()
    records = kill_rounds(tmp_path, ROUNDS * 2, SEED)
    with capsys.disabled():
        took = time.monotonic() - started
        print(f"\n{ROUNDS * 2} processes killed, {records} records found ({took:.0f} s)")
