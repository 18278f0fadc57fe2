"""Settings of one group: given by an administrator, followed by its coordinator at once."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from kafkalite.jvm import jars, java
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.compat.brokers import Broker
from tests.compat.conftest import StartBroker
from tests.compat.group_peer import GroupPeer, group_on

HEARTBEAT = "consumer.heartbeat.interval.ms"
SESSION = "consumer.session.timeout.ms"
CONFIG_COMMAND = "kafka.admin.ConfigCommand"
# What is looked for comes long before the default of 45 seconds would have it come.
PATIENCE_S = 20


@pytest.fixture
def group(broker: Broker, unique: Callable[[str], str]) -> Iterator[GroupPeer]:
    with group_on(broker, unique("group")) as peer:
        yield peer


def give(broker: Broker, group_id: str, settings: dict[str, str]) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group_id, configs=settings)])


def beat(group: GroupPeer, member_id: str, epoch: int = 0) -> tuple[Error, int, int]:
    """A heartbeat's error, the member's epoch, and when the coordinator wants the next."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group.group_id,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=10_000 if epoch == 0 else -1,
        subscribed_topic_names=["no-such-topic"] if epoch == 0 else None,
        topic_partitions=[] if epoch == 0 else None,
    )
    answer = group.ask(request, 1)
    return Error(answer.error_code), answer.member_epoch, answer.heartbeat_interval_ms


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)


def test_a_group_beats_as_it_was_told(group: GroupPeer) -> None:
    code, epoch, interval_ms = beat(group, "ana")
    assert (code, interval_ms) == (Error.NONE, 5_000)
    give(group.broker, group.group_id, {HEARTBEAT: "7000"})
    until(lambda: beat(group, "ana", epoch)[2] == 7_000)
    with group_on(group.broker, f"{group.group_id}-other") as other:
        assert beat(other, "bob")[2] == 5_000, "another group goes on as before"


@pytest.mark.slow
def test_a_member_is_gone_after_its_groups_session_timeout(
    start_broker: StartBroker, unique: Callable[[str], str]
) -> None:
    broker = start_broker({
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "500",
    })
    with group_on(broker, unique("group")) as group:
        give(broker, group.group_id, {SESSION: "1500", HEARTBEAT: "600"})
        until(lambda: beat(group, "ana")[2] == 600)
        _, epoch, _ = beat(group, "ana")
        until(lambda: group.describe_consumers().group_state == "Empty")
        assert beat(group, "ana", epoch)[0] == Error.UNKNOWN_MEMBER_ID


@pytest.mark.slow
def test_the_command_for_settings_knows_groups(group: GroupPeer) -> None:
    def run(*words: str) -> str:
        name = ["--bootstrap-server", group.broker.bootstrap, "--group", group.group_id]
        call = java.command(
            jars.class_path("reference"), CONFIG_COMMAND, *name, *words, heap="128M"
        )
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    assert "Completed updating config" in run("--alter", "--add-config", f"{HEARTBEAT}=8000")
    until(lambda: beat(group, "ana")[2] == 8_000)
    assert f"{HEARTBEAT}=8000" in run("--describe")
    assert "must be greater than" in run("--alter", "--add-config", f"{HEARTBEAT}=1")
    assert "Completed updating config" in run("--alter", "--delete-config", HEARTBEAT)
    until(lambda: beat(group, "bob")[2] == 5_000)
