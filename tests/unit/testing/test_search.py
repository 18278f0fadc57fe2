"""The search for differences: what it prints, when it fails, and how it cuts conversations."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.client.wire import NoAnswer
from kafkalite.protocol.messages import (
    AddPartitionsToTxnRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    JoinGroupRequest,
    MetadataRequest,
)
from kafkalite.testing.comparison import settling
from kafkalite.testing.comparison.comparing import Difference
from kafkalite.testing.comparison.names import PRODUCER_ID, canonical_id
from kafkalite.testing.embedded import EmbeddedKafka
from tests.differential import conversing
from tests.differential.generating import Step
from tests.differential.pools import REBALANCE_TIMEOUT_MS
from tests.differential.running import Outcome, Runner, Speaker
from tests.differential.shrinking import shrink
from tests.differential.steps import TOPIC, created, earliest, init, markers

ROOT = Path(__file__).parents[3]


@pytest.fixture
def two() -> Iterator[list[str]]:
    with EmbeddedKafka() as ours, EmbeddedKafka() as theirs:
        yield ["--kafkalite", ours.bootstrap_servers, "--apache-kafka", theirs.bootstrap_servers]


def search(two: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "tests.differential", "--quiet", "--workers", "1", *two, *words]
    return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_search_says_what_was_compared(two: list[str]) -> None:
    done = search(two, "--rounds", "2", "--theme", "topics")
    assert done.returncode == 0, done.stdout + done.stderr
    heads = done.stdout.splitlines()
    [columns] = [each for each in heads if "answered by both" in each]
    assert [each in columns for each in ("asked", "compared", "differed", "left out")] == [True] * 4
    [total] = [each.split()[1:] for each in heads if each.startswith("all ")]
    asked, sent, answered, compared, differed, left_out = map(int, total)
    assert 20 < answered <= compared <= sent <= asked == compared + left_out
    assert differed == 0
    assert "versions that both serve were asked" in done.stdout


def test_a_search_that_compared_nothing_fails(two: list[str]) -> None:
    done = search(two, "--rounds", "0")
    assert (done.returncode, "nothing was compared" in done.stdout) == (1, True), done.stdout


def test_a_search_that_finds_a_difference_fails() -> None:
    with (
        EmbeddedKafka(settings={"num.partitions": 5}) as ours,
        EmbeddedKafka() as theirs,
    ):
        two = ["--kafkalite", ours.bootstrap_servers, "--apache-kafka", theirs.bootstrap_servers]
        done = search(two, "--rounds", "20", "--theme", "topics", "--seed", "partitions")
    assert done.returncode == 1, done.stdout
    assert "differs ---" in done.stdout
    assert "unexplained: " in done.stdout


def test_a_conversation_is_cut_down_to_what_differs() -> None:
    """Here where two topics were deleted and a third is asked for."""

    def topics(step: Step) -> set[str]:
        if isinstance(step.request, DeleteTopicsRequest):
            return set(step.request.topic_names)
        return {each.name for each in step.request.topics}

    def run(steps: list[Step]) -> Outcome:
        outcome = Outcome(list(steps))
        deleted = set().union(*(topics(each) for each in steps[:-1]))
        if {"a", "b"} <= deleted and "c" in topics(steps[-1]):
            asked = steps[-1].request
            outcome.differences = [Difference("Metadata", 9, "topics[]", "topics[0]", 1, 2, asked)]
        return outcome

    def asked(*names: str) -> Step:
        wanted = [MetadataRequest.Topic(name=each) for each in names]
        return Step(MetadataRequest(topics=wanted), 9)

    def deleted(*names: str) -> Step:
        return Step(DeleteTopicsRequest(topic_names=list(names)), 3)

    noise = [asked("x"), deleted("y")] * 5
    steps = [*noise, deleted("a", "y"), *noise, deleted("z", "b"), *noise, asked("x", "c", "y")]
    runner: Any = SimpleNamespace(run=run)
    least = shrink(runner, run(steps))
    assert [sorted(topics(each)) for each in least.steps] == [["a"], ["b"], ["c"]]
    assert least.differences


def _refused(runner: Runner, *, beside: bool) -> Iterator[Step]:
    """A transaction whose partition was told of a later producer, by this conversation or not."""
    producer_id = canonical_id(PRODUCER_ID, 1)
    who = {"producer_id": producer_id, "producer_epoch": 0}
    topic = AddPartitionsToTxnRequest.Topic(name=TOPIC, partitions=[0])
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="till-RUN", v3_and_below_topics=[topic],
        **{f"v3_and_below_{name}": value for name, value in who.items()},
    )  # fmt: skip
    marker = markers(producer_id, TOPIC)
    marker.request.markers[0].producer_epoch = 1
    yield created()
    yield init("till-RUN")
    if beside:
        for side in runner.sides:
            assert isinstance(side.ask_again(marker.request, marker.version), bytes)
    else:
        yield marker
    yield Step(add, 1)
    yield Step(EndTxnRequest(transactional_id="till-RUN", committed=True, **who), 0)
    yield earliest()


def test_a_conversation_is_over_where_its_own_marker_leaves_a_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "PATIENCE_S", 1)
    with EmbeddedKafka() as ours, EmbeddedKafka() as theirs:
        sides = [Speaker("127.0.0.1", each.port) for each in (ours, theirs)]
        with closing(Runner(*sides)) as runner:
            outcome = runner.run(_refused(runner, beside=False))
            assert (outcome.differences, outcome.steps[-1].api) == ([], "EndTxn")
            with pytest.raises(NoAnswer, match="until a transaction ends"):
                runner.run(_refused(runner, beside=True))


def test_no_member_of_a_conversation_is_dropped_at_once() -> None:
    """Of version 0, which names no such time: otherwise it would be a matter of a moment."""
    step = Step(JoinGroupRequest(session_timeout_ms=8_000), 0)
    conversing._have_patience(step)
    assert step.version == 1
    assert step.request.rebalance_timeout_ms == REBALANCE_TIMEOUT_MS > 0
