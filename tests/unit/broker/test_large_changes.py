"""Changes of thousands of partitions: a slice per turn, in order, and never half of one seen."""

from __future__ import annotations

import errno
from collections import Counter
from typing import Any

import pytest

from kafkalite.coordinators.cluster import shard, view
from kafkalite.coordinators.cluster.configs import AlterConfigs, ResourceChange, Step
from kafkalite.coordinators.cluster.events import CreateTopics, DeleteTopics
from kafkalite.coordinators.cluster.image import FOLDS, Image, ImageConflict
from kafkalite.env.background import QueuedBackground
from kafkalite.env.slicing import STEPS_AT_ONCE, STEPS_PER_SLICE
from kafkalite.log.making import NewLog
from kafkalite.log.manager import LogManager
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import AlterConfigsRequest
from kafkalite.replication.partitions import Partitions
from tests.unit.broker.turns import Looked, creation, deletion, growth

MANY = 3_000
RECORDS_PER_STEP = 16


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Any:
    looked = Looked(monkeypatch)
    yield looked
    looked.broker.close()


def most(counts: Counter[int]) -> int:
    assert sum(counts.values()) >= MANY, "it was not seen at all"
    return max(counts.values())


def test_no_turn_makes_or_encodes_thousands_of_records(looked: Looked) -> None:
    encoded = looked.count(view, "as_record")
    folded = looked.count(Image, "apply")
    looked.broker.ask(creation(MANY, "large"), 7)
    assert most(encoded) <= STEPS_PER_SLICE * RECORDS_PER_STEP < MANY * 2
    assert most(folded) <= STEPS_PER_SLICE * RECORDS_PER_STEP


@pytest.mark.parametrize("way", ["created", "grown", "deleted", "set"])
def test_no_turn_folds_thousands_of_records(looked: Looked, way: str) -> None:
    names = [f"t{number}" for number in range(MANY)]
    configs = [AlterConfigsRequest.Config(name="retention.ms", value="5")]
    requests = {
        "created": (creation(1, *names), 7),
        "grown": (growth(2, *names), 3),
        "deleted": (deletion(*names), 5),
        "set": (
            AlterConfigsRequest(
                resources=[
                    AlterConfigsRequest.Resource(
                        resource_type=2, resource_name=name, configs=configs
                    )
                    for name in names
                ]
            ),
            2,
        ),
    }
    if way != "created":
        looked.broker.ask(*requests["created"])
    folded = looked.count(Image, "apply")
    looked.broker.ask(*requests[way])
    assert most(folded) <= STEPS_PER_SLICE * RECORDS_PER_STEP


def test_a_mistake_in_the_fold_leaves_the_log_and_the_image_as_they_are(
    looked: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ImageConflict("a planted mistake")

    broker = looked.broker.broker
    end = broker.controller.log.end_offset
    with monkeypatch.context() as patch:
        patch.setitem(FOLDS, "PartitionRecord", fail)
        answer = looked.broker.ask(creation(MANY, "t"), 7)
    assert answer.topics[0].error_code == Error.UNKNOWN_SERVER_ERROR
    assert (looked.seen("t"), broker.controller.log.end_offset) == (0, end)
    assert "t" not in broker.metadata.image.topics
    looked.broker.ask(creation(1, "t"), 7)
    assert looked.served("t") == 1


def test_no_turn_opens_or_closes_more_partitions_than_a_slice_has_steps(looked: Looked) -> None:
    opened = looked.count(looked.broker.broker.partitions, "add")
    taken = looked.count(looked.broker.broker.logs, "take_new")
    closed = looked.count(looked.broker.broker.logs, "delete")
    looked.broker.ask(creation(MANY, "large"), 7)
    looked.broker.ask(deletion("large"), 5)
    assert max(most(opened), most(taken), most(closed)) <= STEPS_PER_SLICE
    assert len(looked.broker.broker.partitions) == 0


def test_thousands_of_topics_come_and_go_in_slices(looked: Looked) -> None:
    names = [f"t{number}" for number in range(MANY)]
    opened = looked.count(looked.broker.broker.partitions, "add")
    closed = looked.count(looked.broker.broker.logs, "delete")
    looked.broker.ask(creation(1, *names), 7)
    looked.broker.ask(deletion(*names), 5)
    # What begins within a slice takes its first steps at once.
    assert max(most(opened), most(closed)) <= STEPS_PER_SLICE + STEPS_AT_ONCE


def test_a_topic_is_seen_with_all_its_partitions_or_not_at_all(looked: Looked) -> None:
    seen: set[tuple[int, int]] = set()
    log = looked.broker.broker.controller.log
    start = log.end_offset
    looked.between(lambda: seen.add((looked.seen("large"), log.end_offset - start)))
    looked.broker.ask(creation(MANY, "large"), 7)
    assert seen == {(0, 0), (MANY, MANY + 1)}, "the image has what the log has, and no part of it"


def test_the_answer_comes_when_every_partition_is_served(looked: Looked) -> None:
    came = looked.broker.send(creation(MANY, "large"), 7)
    served: list[int] = []
    came.then(lambda _: served.append(looked.served("large")))
    assert not came.is_resolved
    looked.clock.advance(0)
    assert served == [MANY]
    gone = looked.broker.send(deletion("large"), 5)
    gone.then(lambda _: served.append(len(list(looked.broker.broker.logs))))
    looked.clock.advance(0)
    assert served == [MANY, 0]


def test_what_is_deleted_is_served_no_more_from_the_turn_in_which_it_is_not_seen(
    looked: Looked,
) -> None:
    looked.broker.ask(creation(MANY, "large"), 7)
    looked.between(lambda: states.add((looked.seen("large") > 0, looked.served("large") > 0)))
    states: set[tuple[bool, bool]] = set()
    looked.broker.ask(deletion("large"), 5)
    assert (False, False) in states
    assert states <= {(True, True), (False, False)}


def test_what_is_asked_meanwhile_is_decided_after_it_and_answered_in_order(
    looked: Looked,
) -> None:
    answers: list[str] = []
    for name, request, version in (
        ("made", creation(MANY, "t"), 7),
        ("again", creation(1, "t"), 7),
        ("gone", deletion("t"), 5),
        ("new", creation(2, "t"), 7),
    ):
        came = looked.broker.send(request, version)

        def told(answer: Any, name: str = name) -> None:
            parts = getattr(answer, "topics", None) or answer.responses
            answers.append(f"{name} {Error(parts[0].error_code).name}")

        came.then(told)
    looked.clock.advance(0)
    assert sorted(answers) == [
        "again TOPIC_ALREADY_EXISTS", "gone NONE", "made NONE", "new NONE",
    ]  # fmt: skip
    done = [each for each in answers if each.endswith("NONE")]
    assert done == ["made NONE", "gone NONE", "new NONE"]
    assert looked.served("t") == looked.seen("t") == 2


def test_who_cannot_wait_finishes_what_is_under_way_first(looked: Looked) -> None:
    controller = looked.broker.broker.controller
    came = looked.broker.send(creation(MANY, "large"), 7)
    assert looked.seen("large") == 0
    change = ResourceChange(2, "large", [Step("retention.ms", 0, "1")])
    assert controller.decide(AlterConfigs([change])) == [None]
    assert looked.seen("large") == MANY
    looked.clock.advance(0)
    assert came.value.topics[0].error_code == Error.NONE
    assert looked.broker.broker.logs.get("large", 1).config.retention_ms == 1  # type: ignore[union-attr]


def test_what_is_decided_in_slices_is_what_a_start_reads(looked: Looked) -> None:
    looked.broker.ask(creation(MANY, "large", "larger"), 7)
    looked.broker.ask(deletion("large"), 5)
    topics = looked.broker.context.metadata.image.topics
    looked.broker.close()
    again = looked.broker.started_again()
    assert again.context.metadata.image.topics == topics
    assert sum(each.topic == "larger" for each in again.broker.partitions) == MANY
    again.close()


def test_a_stop_in_between_answers_and_makes_no_files_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    background = QueuedBackground()
    looked = Looked(monkeypatch, background)
    background.run_all()
    came = looked.broker.send(creation(MANY, "large"), 7)
    while not len(background):
        looked.clock.advance(0)
    assert looked.seen("large") == MANY
    looked.broker.broker.stop(0)
    for _ in range(10):
        looked.clock.advance(100)
        background.run_all()
    names = looked.broker.env.disk.list_directory("/data")
    assert not [name for name in names if name.startswith("large-")]
    assert came.is_resolved
    looked.broker.is_closed = True


def test_a_log_that_cannot_be_made_leaves_its_partition_offline_and_no_other(
    looked: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = NewLog.make_files

    def refuse(new: NewLog) -> Any:
        return OSError(errno.ENOSPC, "full") if new.partition == 7 else make(new)

    monkeypatch.setattr(NewLog, "make_files", refuse)
    looked.broker.ask(creation(100, "t"), 7)
    assert looked.served("t") == 99
    assert looked.broker.broker.partitions.offline == {("t", 7)}


def test_a_mistake_over_one_partition_keeps_no_other_from_being_served(
    looked: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = LogManager.take_new

    def fail(manager: LogManager, new: NewLog, made: Any) -> Any:
        if new.partition == 7:
            raise ValueError("a planted mistake")
        return take(manager, new, made)

    monkeypatch.setattr(LogManager, "take_new", fail)
    looked.broker.ask(creation(100, "t"), 7)
    assert looked.served("t") == 99


def test_a_mistake_in_a_decision_is_answered_and_the_next_is_decided(
    looked: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        yield
        raise ValueError("a planted mistake")

    monkeypatch.setitem(shard.DECISIONS, DeleteTopics, fail)
    controller = looked.broker.context.controller
    refused = controller.submit(DeleteTopics(deletion("t")))
    made = controller.submit(CreateTopics(creation(1, "t")))
    looked.clock.advance(0)
    assert isinstance(refused.value, KafkaError)
    assert refused.value.code == Error.UNKNOWN_SERVER_ERROR
    assert not isinstance(made.value, KafkaError)
    assert made.value.topics[0].error_code == Error.NONE


def test_a_refusal_as_a_whole_is_the_answer_to_each_topic(looked: Looked) -> None:
    answer = looked.broker.ask(creation(20_000, "t"), 7)
    assert answer.topics[0].error_code == Error.POLICY_VIOLATION


def test_nobody_is_told_of_partitions_that_could_not_be_written(
    looked: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise KafkaError(Error.KAFKA_STORAGE_ERROR)

    controller = looked.broker.broker.controller
    with monkeypatch.context() as patch:
        patch.setattr(controller.log, "append", refuse)
        answer = looked.broker.ask(creation(MANY, "t"), 7)
    assert answer.topics[0].error_code == Error.KAFKA_STORAGE_ERROR
    assert looked.seen("t") == looked.served("t") == 0
    assert isinstance(looked.broker.broker.partitions, Partitions)
    looked.broker.ask(creation(1, "t"), 7)
    assert looked.served("t") == 1
