"""DescribeTopicPartitions: pages and cursors."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeTopicPartitionsRequest

Request = DescribeTopicPartitionsRequest


def ask(world, *names, cursor=None, limit=2000):
    given = None
    if cursor is not None:
        given = Request.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    request = Request(
        topics=[Request.Topic(name=name) for name in names],
        cursor=given,
        response_partition_limit=limit,
    )
    return world.ask(request, 0)


def shown(response):
    return [
        (topic.name, [each.partition_index for each in topic.partitions])
        for topic in response.topics
    ]


@pytest.fixture
def filled(world):
    world.create("a", 3)
    world.create("b", 1)
    world.create("c", 2)
    return world


def test_all_topics_in_order(filled):
    response = ask(filled)
    assert shown(response) == [("a", [0, 1, 2]), ("b", [0]), ("c", [0, 1])]
    assert response.next_cursor is None


def test_pages_follow_the_cursor_to_the_end(filled):
    pages, cursor = [], None
    for _ in range(10):
        response = ask(filled, cursor=cursor, limit=2)
        pages.append(shown(response))
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert pages == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("c", [0, 1])]]


def test_the_brokers_limit_counts_too(make_world):
    world = make_world(settings={"max.request.partition.size.limit": "1"})
    world.create("a", 2)
    assert shown(ask(world)) == [("a", [0])]


def test_missing_topics_are_named_only_when_asked_for(filled):
    errors = {each.name: each.error_code for each in ask(filled, "a", "nix", "x y").topics}
    assert errors == {
        "a": Error.NONE,
        "nix": Error.UNKNOWN_TOPIC_OR_PARTITION,
        "x y": Error.INVALID_TOPIC_EXCEPTION,
    }


@pytest.mark.parametrize(("names", "cursor"), [(["a"], ("b", 0)), (["a"], ("a", -1))])
def test_a_cursor_that_cannot_be_is_refused(filled, names, cursor):
    response = ask(filled, *names, cursor=cursor)
    assert {each.error_code for each in response.topics} == {Error.INVALID_REQUEST}


def test_replicas_of_three_brokers(three):
    three.create("t", 1, 3)
    ((partition,),) = [each.partitions for each in ask(three, "t").topics]
    assert sorted(partition.replica_nodes) == sorted(partition.isr_nodes) == [1, 2, 3]
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


@pytest.mark.parametrize(
    ("cursor", "codes"),
    [
        (None, {"": Error.UNKNOWN_SERVER_ERROR, "nix": Error.UNKNOWN_SERVER_ERROR}),
        (
            ("", 0),
            {"": Error.INVALID_TOPIC_EXCEPTION, "nix": Error.UNKNOWN_TOPIC_OR_PARTITION},
        ),
    ],
)
def test_a_topic_without_a_name_fails_where_no_cursor_has_it(filled, cursor, codes):
    topics = ask(filled, "", "nix", cursor=cursor).topics
    assert {each.name: each.error_code for each in topics} == codes
