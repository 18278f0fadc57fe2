"""A mistake of ours while records are folded in: the image is what the log says, or nothing is
decided any more."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.coordinators.cluster.brokers import FenceBroker, RegisterBroker
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.controller import OutcomeUnknown
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.image import FOLDS
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.env import Env, manual_env
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest
from tests.unit.coordinators.cluster.test_local_controller import open_controller

FOLDED = FOLDS["PartitionRecord"]
PARTITIONS = 5


@pytest.fixture
def env() -> Env:
    env = manual_env(3)
    env.disk.make_directory("/data")
    return env


class Mistake:
    """Partitions are folded, but for one, and from then on some times not at all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.left = times
        self.folded = 0
        monkeypatch.setitem(FOLDS, "PartitionRecord", self.fold)

    def fold(self, image: Any, record: Any, changes: Changes) -> None:
        self.folded += 1
        if self.folded > 2 and self.left:
            self.left -= 1
            raise ValueError("a planted mistake")
        FOLDED(image, record, changes)


def creation(name: str) -> CreateTopics:
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=PARTITIONS, replication_factor=1
    )
    return CreateTopics(CreateTopicsRequest(topics=[topic]))


def test_the_image_is_what_its_log_says_after_a_mistake(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = open_controller(env)
    heard: list[Changes] = []
    at_once: list[int] = []
    controller.metadata.subscribe(
        heard.append, lambda changes: at_once.append(len(controller.metadata.image.topics))
    )
    with monkeypatch.context() as patch:
        Mistake(patch, 1)
        answer = controller.submit(creation("t")).value
    assert isinstance(answer, OutcomeUnknown)  # it is in the log
    assert len(controller.metadata.image.topics["t"].partitions) == PARTITIONS
    [changes] = heard
    assert (len(changes.created), len(changes.partitions)) == (1, PARTITIONS)
    assert at_once == [1]
    assert not isinstance(controller.submit(creation("u")).value, KafkaError)
    assert open_controller(env, node_ids=()).metadata.image == controller.metadata.image


def test_a_controller_whose_log_does_not_fold_decides_no_more(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = open_controller(env)
    lost: list[Exception] = []
    controller.when_lost = lost.append
    heard: list[Changes] = []
    controller.metadata.subscribe(heard.append)
    end = controller.log.end_offset
    with monkeypatch.context() as patch:
        Mistake(patch, 9)
        first, second = controller.submit(creation("t")), controller.submit(creation("u"))
    assert isinstance(first.value, OutcomeUnknown)
    assert isinstance(lost[0], ValueError)
    assert heard == []  # nobody follows a guess
    written = controller.log.end_offset
    assert written > end
    assert not second.is_resolved
    with pytest.raises(KafkaError) as refused:
        controller.decide(FenceBroker(1))
    assert refused.value.code == Error.NOT_CONTROLLER
    controller.close()
    assert isinstance(second.value, KafkaError)
    again = open_controller(env, node_ids=())
    assert again.log.end_offset == written + 1  # no more than its epoch was written
    assert len(again.metadata.image.topics["t"].partitions) == PARTITIONS  # no guess is a snapshot


def test_who_decides_at_once_is_told_of_a_mistake(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = open_controller(env)
    with monkeypatch.context() as patch:
        Mistake(patch, 1)
        with pytest.raises(OutcomeUnknown):
            controller.decide(creation("t"))
    assert len(controller.metadata.image.topics["t"].partitions) == PARTITIONS


def registered(controller: LocalController, node_id: int) -> int:
    endpoint = EndPoint("PLAINTEXT", "", 9092, 0)
    return controller.decide(
        RegisterBroker(node_id, [endpoint], None, [bytes([node_id]) * 16], True)
    )


def test_a_mistake_after_a_snapshot_is_made_good_from_it(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = open_controller(env)
    controller.decide(creation("before"))
    controller.write_snapshot()
    registered(controller, 2)
    with monkeypatch.context() as patch:
        Mistake(patch, 1)
        assert isinstance(controller.submit(creation("t")).value, OutcomeUnknown)
    assert sorted(controller.metadata.image.topics) == ["before", "t"]
    assert controller.metadata.image.live_brokers() == [1, 2]
