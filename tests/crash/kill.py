"""Rounds of a real process that is killed while it appends: nothing acknowledged may be missing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from kafkalite.records.batch import iterate_headers, verify
from kafkalite.records.convert import iterate_any
from tests.crash.victim import PARTITIONS, open_logs, value_at

SHARED_ROUNDS = 10  # so many rounds in one directory, each on what the last kill had left


def kill_once(directory: Path, seed: int) -> list[int]:
    """Lets a process append for a while and kills it; returns the acknowledged ends."""
    ends = [0] * PARTITIONS
    with subprocess.Popen(
        [sys.executable, "-m", "tests.crash.victim", str(directory), str(seed)],
        stdout=subprocess.PIPE,
    ) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"ready\n"
        time.sleep(Random(seed).uniform(0.005, 0.12))
        victim.send_signal(signal.SIGKILL)
        for line in victim.stdout:
            if line.endswith(b"\n"):  # a torn line was not read by anyone
                partition, _, last = map(int, line.split())
                ends[partition] = last + 1
    return ends


def check(directory: Path, ends: list[int]) -> int:
    """Recovers what is left, and reads all of it; returns the number of records."""
    manager = open_logs(str(directory), 0)
    count = 0
    for partition, end in enumerate(ends):
        log = manager.get("t", partition)
        assert log is not None or end == 0
        if log is None:
            continue
        assert log.log_end_offset >= end, f"partition {partition}: {log} but {end} was promised"
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found = log.read(offset, 1 << 20)
            assert found.range is not None
            data = found.range.read()
            for header in iterate_headers(data):
                verify(data, header)
                for record in iterate_any(data, header):
                    assert record.offset == offset, (record.offset, offset)
                    assert record.value == value_at(partition, offset)
                    offset += 1
                    count += 1
    for directory_taken in manager.directories:
        manager.periodic.stop()
        directory_taken.release()
    return count


def kill_rounds(root: Path, rounds: int, first_seed: int = 0) -> int:
    """Returns the number of records that were found where they were promised."""
    records = 0
    ends = [0] * PARTITIONS
    for number in range(rounds):
        directory = root / str(number // SHARED_ROUNDS)
        if number % SHARED_ROUNDS == 0:
            ends = [0] * PARTITIONS
        after = kill_once(directory, first_seed + number)
        ends = [max(before, now) for before, now in zip(ends, after, strict=True)]
        records += check(directory, ends)
    return records
