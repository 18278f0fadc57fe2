"""The comparison of two brokers' answers: whatever differs is reported, unless a row names it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kafkalite.protocol import spec
from kafkalite.protocol.messages import (
    DescribeConfigsResponse,
    DescribeGroupsResponse,
    FetchResponse,
    JoinGroupRequest,
    ListOffsetsResponse,
    MetadataResponse,
    message_class,
)
from kafkalite.testing.comparison.allowed import ALLOWED
from kafkalite.testing.comparison.comparing import Comparison, Difference
from kafkalite.testing.comparison.conditions import CLOSE_MS
from kafkalite.testing.comparison.differences import explain, unexplained
from kafkalite.testing.comparison.names import PRODUCER_ID, Names
from kafkalite.testing.comparison.views import View
from tests.differential.ledger import Ledger
from tests.differential.page import as_page
from tests.differential.planting import GOLDEN, asked_apis, survey
from tests.differential.replies import batches, reply
from tests.differential.scenes import SCENES


def found(ours: Any, theirs: Any, version: int, asked: Any = None) -> list[Difference]:
    names = Names(), Names()
    views = [View(names[0]).of(ours, version), View(names[1]).of(theirs, version)]
    api = ours.SPEC.api.name
    asked = asked or message_class(f"{api}Request")()
    return Comparison(*names).differences(api, version, views[0], views[1], asked)


def paths(ours: Any, theirs: Any, version: int) -> list[str]:
    return [each.path for each in unexplained(found(ours, theirs, version))]


def topic(name: str, partitions: int) -> MetadataResponse.Topic:
    return MetadataResponse.Topic(
        name=name,
        partitions=[MetadataResponse.Partition(partition_index=each) for each in range(partitions)],
    )


# --- what once was called alike -------------------------------------------------------------------


def test_a_topic_of_three_partitions_is_not_one_of_five() -> None:
    ours, theirs = (MetadataResponse(topics=[topic("orders", count)]) for count in (3, 5))
    assert paths(ours, theirs, 9) == ["topics[].partitions[]"] * 2


def test_no_topics_are_not_two() -> None:
    theirs = MetadataResponse(topics=[topic("a", 0), topic("b", 0)])
    assert paths(MetadataResponse(topics=[]), theirs, 9) == ["topics[]"] * 2


def test_a_fetch_that_leaves_out_a_partition() -> None:
    def answer(*indexes: int) -> FetchResponse:
        partitions = [
            FetchResponse.Partition(partition_index=each, records=b"") for each in indexes
        ]
        return FetchResponse(responses=[FetchResponse.Response(topic="a", partitions=partitions)])

    assert paths(answer(0), answer(0, 1), 11) == ["responses[].partitions[]"]


def test_settings_that_are_not_told() -> None:
    def answer(**settings: str) -> DescribeConfigsResponse:
        configs = [
            DescribeConfigsResponse.Config(name=name, value=value)
            for name, value in settings.items()
        ]
        result = DescribeConfigsResponse.Result(resource_name="a", configs=configs)
        return DescribeConfigsResponse(results=[result])

    differing = paths(answer(one="1"), answer(one="2", two="2", three="3"), 4)
    assert differing == ["results[].configs[].value", *["results[].configs[]"] * 2]


def test_a_group_that_is_missing() -> None:
    groups = [DescribeGroupsResponse.Group(group_id=each) for each in ("a", "b")]
    ours, theirs = (DescribeGroupsResponse(groups=groups[:count]) for count in (1, 2))
    assert paths(ours, theirs, 5) == ["groups[]"]


# --- order, times, ids ----------------------------------------------------------------------------


def test_order_counts_where_no_row_says_otherwise() -> None:
    names = ("a", "b")
    made = [message_class("CreateTopicsResponse").Topic(name=each) for each in names]
    ours, theirs = (
        message_class("CreateTopicsResponse")(topics=each) for each in (made, made[::-1])
    )
    assert paths(ours, theirs, 5) == ["topics[] order"]
    ours, theirs = (MetadataResponse(topics=[topic(each, 1) for each in one])
                    for one in (names, names[::-1]))
    [difference] = found(ours, theirs, 9)
    row = explain(difference)
    assert row is not None
    assert row.name == "order of a hash table"


def test_times_of_the_brokers_are_compared_within_a_bound() -> None:
    def answer(timestamp: int) -> ListOffsetsResponse:
        partition = ListOffsetsResponse.Partition(partition_index=0, timestamp=timestamp)
        return ListOffsetsResponse(
            topics=[ListOffsetsResponse.Topic(name="a", partitions=[partition])]
        )

    now = int(time.time() * 1000)
    assert paths(answer(now), answer(now - CLOSE_MS // 2), 7) == []
    assert paths(answer(now), answer(now - 2 * CLOSE_MS), 7) == ["topics[].partitions[].timestamp"]
    assert paths(answer(1_000), answer(1_001), 7) == ["topics[].partitions[].timestamp"]


def test_a_new_id_stands_for_one_thing_within_an_answer() -> None:
    def answer(*ids: bytes) -> MetadataResponse:
        topics = [topic(f"topic {number}", 1) for number in range(len(ids))]
        for each, topic_id in zip(topics, ids, strict=True):
            each.topic_id = topic_id
        return MetadataResponse(topics=topics)

    one, other = b"1" * 16, b"2" * 16
    assert paths(answer(one, other), answer(other, one), 12) == []
    assert paths(answer(one, one), answer(one, other), 12) == ["topics[].topic_id"]


def test_topics_of_new_ids_are_not_taken_for_one_another() -> None:
    """A topic in several places of a fetch is compared as one; another topic stays another."""

    def answer(*topics: tuple[bytes, list[int]]) -> FetchResponse:
        return FetchResponse(
            responses=[
                FetchResponse.Response(
                    topic_id=topic_id,
                    partitions=[FetchResponse.Partition(partition_index=each) for each in indexes],
                )
                for topic_id, indexes in topics
            ]
        )

    one, other = b"1" * 16, b"2" * 16
    apart = answer((one, [0]), (other, [1]))
    assert paths(apart, answer((one, [0]), (other, [1])), 13) == []
    assert paths(answer((one, [0]), (one, [1])), answer((one, [0, 1])), 13) == []
    assert paths(apart, answer((one, [0, 1])), 13) != []
    assert paths(apart, answer((one, [0]), (one, [1])), 13) != []


def test_a_number_alone_is_no_id_that_a_text_tells() -> None:
    names = Names()
    names.bind(PRODUCER_ID, 5000, 1_000_000_002)
    assert names.text_in("5000") == "5000"
    assert names.text_in("producer 5000 is unknown") == "producer 1000000002 is unknown"


def test_every_record_is_compared() -> None:
    def answer(records: bytes) -> FetchResponse:
        partition = FetchResponse.Partition(partition_index=0, records=memoryview(records))
        return FetchResponse(responses=[FetchResponse.Response(topic="a", partitions=[partition])])

    whole = batches()
    first = int.from_bytes(whole[8:12]) + 12
    assert paths(answer(whole), answer(whole), 11) == []
    assert paths(answer(whole), answer(whole[:first]), 11) == [
        "responses[].partitions[].records[]"
    ] * 3


# --- the table ------------------------------------------------------------------------------------


def test_every_row_names_the_fields_that_it_is_about() -> None:
    fields = [each for row in ALLOWED for each in row.fields]
    assert not [each for each in fields if "*" in each]
    assert all(row.reason and row.fields for row in ALLOWED)
    assert len({row.name for row in ALLOWED}) == len(ALLOWED)


def test_a_condition_without_sense_for_a_value_does_not_hold() -> None:
    ours = reply("DescribeLogDirs", 4)
    theirs = reply("DescribeLogDirs", 4)
    theirs.results[0].total_bytes = -1
    assert paths(ours, theirs, 4) == ["results[].total_bytes"]


def test_a_row_about_a_request_speaks_of_no_other() -> None:
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
    ours, theirs = reply("JoinGroup", 5), reply("JoinGroup", 5)
    theirs.error_code = 42
    once, twice = (JoinGroupRequest(protocols=[protocol] * count) for count in (1, 2))
    assert unexplained(found(ours, theirs, 5, once))
    assert not unexplained(found(ours, theirs, 5, twice))


def test_the_page_says_what_the_table_says() -> None:
    page = Path(__file__).parents[3] / "docs" / "generated" / "differences.md"
    assert page.read_text(encoding="utf-8") == as_page(), "write it: see the page's first lines"


# --- planted differences --------------------------------------------------------------------------


@pytest.mark.parametrize("api", asked_apis(), ids=lambda api: api.name)
def test_a_difference_in_any_field_is_reported_or_passed_by_a_row_that_names_it(
    api: spec.Api,
) -> None:
    """In each layout of its answers, asked also as rows speak of: what passes is known by line."""
    done = survey([api])
    assert done.planted > 5
    assert done.unseen == []
    golden = GOLDEN.read_text(encoding="utf-8").splitlines()
    passed, known = (
        [line for line in lines if line.startswith(f"{api.name} v")]
        for lines in (done.lines(), golden)
    )
    assert passed == known, "is it so on purpose? make planted ARGS=--write"


def test_every_row_is_tried() -> None:
    """A row that lets no planted difference pass may be as wide as it likes."""
    golden = GOLDEN.read_text(encoding="utf-8").splitlines()
    passed_by = {line.partition("passed by: ")[2] for line in golden if "passed by: " in line}
    tried = {scene.row for scene in SCENES} | passed_by
    assert {row.name for row in ALLOWED} - tried == set()


# --- what was compared ----------------------------------------------------------------------------


def test_a_ledger_adds_up() -> None:
    ledger = Ledger()
    states = [ledger.is_nothing]
    ledger.leave_out("Produce", "no answer is due (acks=0)", sent=True)
    ledger.compared("Fetch", answered=False, differed=False)
    states.append(ledger.is_nothing)
    ledger.compared("Fetch", answered=True, differed=True)
    states.append(ledger.is_nothing)
    assert states == [True, True, False], "that neither answers proves nothing"
    ledger.check()
    assert Ledger.from_plain(ledger.to_plain()) == ledger
    *_, total, why = ledger.lines()
    assert total.split() == ["all", "3", "3", "1", "2", "1", "1"]
    assert why.split() == "1 left out: Produce: no answer is due (acks=0)".split()
