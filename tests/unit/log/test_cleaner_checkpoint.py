"""The cleaner's checkpoints tell of the logs that are there: Apache Kafka's cleaner ends at its
start, for all logs, when two directories tell of one."""

from __future__ import annotations

import pytest

from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.log.checkpoints import read_offsets
from kafkalite.log.config import COMPACT, LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from tests.unit.log.making import CLUSTER_ID, TOPIC_ID, abandon, committed, keyed

CONFIG = LogConfig(
    cleanup_policy=(COMPACT,), segment_bytes=400, index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01,
)  # fmt: skip
BACKOFF_MS = LogSettings().log_cleaner_backoff_ms


def open_both(env: Env) -> LogManager:
    manager = LogManager(
        env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID, config_of=lambda _: CONFIG
    )
    assert manager.start().is_resolved
    return manager


def fill(log: PartitionLog) -> PartitionLog:
    for index in range(60):
        log.append_as_leader(keyed([(b"k%d" % (index % 5), b"v%03d" % index)]), 0)
    return committed(log)


def told(env: Env) -> dict[str, list[str]]:
    """Which topics each directory's checkpoint tells of."""
    found = {}
    for path in ("/one", "/two"):
        file = f"{path}/cleaner-offset-checkpoint"
        known = read_offsets(env.disk, file) if env.disk.exists(file) else {}
        found[path] = [topic for topic, _ in known]
    return found


def cleaned(env: Env) -> LogManager:
    """Two compacted logs in the first directory, and clean."""
    manager = open_both(env)
    for topic in ("t", "other"):
        fill(manager.create(topic, 0, TOPIC_ID, CONFIG, directory="/one"))
    pass_by(env, 5 * BACKOFF_MS)
    assert sorted(told(env)["/one"]) == ["other", "t"]
    return manager


def pass_by(env: Env, how_long_ms: int) -> None:
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(how_long_ms)


@pytest.mark.parametrize("is_cleaned_there", [False, True])
def test_a_log_that_moves_is_told_of_in_its_new_directory_alone(is_cleaned_there: bool) -> None:
    env = manual_env()
    manager = cleaned(env)
    moved: list[PartitionLog] = []
    manager.move("t", 0, "/two", moved.append)
    pass_by(env, 1_000)
    (log,) = moved
    assert told(env)["/one"] == ["other"]
    if is_cleaned_there:
        fill(log)
        pass_by(env, 5 * BACKOFF_MS)
        assert told(env) == {"/one": ["other"], "/two": ["t"]}
    manager.close()
    assert told(env)["/one"] == ["other"]


def test_a_deleted_log_is_told_of_no_more() -> None:
    """A topic of its name may be made anew in another directory."""
    env = manual_env()
    manager = cleaned(env)
    manager.delete("t", 0)
    pass_by(env, 1)
    assert told(env) == {"/one": ["other"], "/two": []}


def test_what_a_crash_left_in_a_checkpoint_goes_at_the_next_start() -> None:
    env = manual_env()
    manager = cleaned(env)
    manager.delete("t", 0)
    abandon(manager)
    assert "t" in told(env)["/one"]
    open_both(env)
    assert told(env) == {"/one": ["other"], "/two": []}
