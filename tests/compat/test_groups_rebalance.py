"""Rebalances under load: members of each stock client join, leave, crash and are cut off."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.compat.group_peer import group_on
from tests.compat.group_watch import SETTINGS, Crowd, Kind, Load, Member, judge
from tests.compat.java_classes import compile_classes

PARTITIONS = 6
LONG_SESSION_MS = 40_000  # a client is started again within it, however busy the machine
EVERY = [
    Kind("confluent", assignor="cooperative"),
    Kind("confluent", "consumer"),
    Kind("confluent"),
    Kind("kafka-python"),
    Kind("kafka-python", assignor="cooperative"),
    Kind("aiokafka"),
    *(
        Kind(f"java-{version}", *how)
        for version in ("3.9.2", "4.3.1")
        for how in (("classic",), ("classic", "cooperative"), ("consumer",))
    ),
]
# Two of them in every run of the tests.
KINDS = [*EVERY[:2], *(pytest.param(kind, marks=pytest.mark.full) for kind in EVERY[2:])]

# One worker runs them, since the brokers with short sessions are its own.
pytestmark = pytest.mark.xdist_group("rebalances")


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    source = Path(__file__).parent / "java" / "GroupMember.java"
    compile_classes([source], folder, ["kafka-clients-4.3.1"])
    return folder


@pytest.fixture(scope="session")
def broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One whose sessions are short."""
    started = brokers.start(broker_kind, tmp_path_factory.mktemp("broker"), SETTINGS)
    yield started
    started.stop()


@pytest.fixture
def crowd(broker: Broker, topic: str, unique, request: pytest.FixtureRequest) -> Iterator[Crowd]:
    make_topic(broker, topic)
    is_java = "java" in request.node.callspec.id
    classes = request.getfixturevalue("classes") if is_java else None
    with Crowd(broker, unique("group"), [topic], classes) as crowd:
        yield crowd


@pytest.fixture
def load(broker: Broker, topic: str, crowd: Crowd) -> Iterator[Load]:
    with Load(broker, topic, PARTITIONS) as load:
        yield load


def make_topic(broker: Broker, name: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([confluent_kafka.admin.NewTopic(name, PARTITIONS, 1)])[name].result(20)


def places(topic: str) -> set[str]:
    return {f"{topic}:{index}" for index in range(PARTITIONS)}


def finish(crowd: Crowd, *loads: Load) -> None:
    """Everything is read, everybody leaves, and what they said is judged."""
    acknowledged: dict[str, set[int]] = {}
    for load in loads:
        load.stop()
        acknowledged |= load.acknowledged
    count = sum(map(len, acknowledged.values()))
    crowd.until(lambda: len(crowd.seen) == count, "not every record came")
    for member in crowd.members:
        if member.process.poll() is None:
            crowd.leave(member)
    print(crowd.group, judge(crowd, acknowledged))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rebalances_under_load(kind: Kind, topic: str, crowd: Crowd, load: Load) -> None:
    everything = places(topic)
    ana, bob = crowd.join("ana", kind), crowd.join("bob", kind)
    crowd.settled(everything, ana, bob)
    cat = crowd.join("cat", kind)
    crowd.settled(everything, ana, bob, cat)
    crowd.leave(ana)
    crowd.settled(everything, bob, cat)
    crowd.kill(bob)
    crowd.settled(everything, cat)
    finish(crowd, load)


@pytest.mark.full
@pytest.mark.parametrize("kind", EVERY, ids=str)
def test_member_that_was_cut_off_commits_nothing(
    kind: Kind, topic: str, crowd: Crowd, load: Load
) -> None:
    """It stands still until its partitions are another's, then goes on as if nothing were."""
    everything = places(topic)
    ana, bob = crowd.join("ana", kind), crowd.join("bob", kind)
    crowd.settled(everything, ana, bob)
    crowd.freeze(ana)
    crowd.settled(everything, bob)
    crowd.thaw(ana)
    crowd.settled(everything, ana, bob)
    assert ana.said("lost", "refused"), crowd.story(ana)
    finish(crowd, load)


@pytest.mark.full
@pytest.mark.parametrize("kind", [one for one in EVERY if one.is_incremental], ids=str)
def test_members_keep_what_does_not_move(
    kind: Kind, topic: str, crowd: Crowd, load: Load
) -> None:
    everything = places(topic)
    ana, bob = crowd.join("ana", kind), crowd.join("bob", kind)
    crowd.settled(everything, ana, bob)
    since = time.monotonic_ns()
    cat = crowd.join("cat", kind)
    crowd.until(lambda: len(cat.owned) == PARTITIONS // 3, "cat has not got her share")
    crowd.settled(everything, ana, bob, cat)
    given_up = [place for one in (ana, bob) for each in one.said("revoked", after=since)
                for place in each.words]
    assert sorted(given_up) == sorted(cat.owned)
    finish(crowd, load)


@pytest.mark.full
@pytest.mark.parametrize("kind", EVERY, ids=str)
def test_static_member_restarts_and_nobody_notices(
    kind: Kind, topic: str, crowd: Crowd, load: Load
) -> None:
    """By the classic protocol even after a crash; by the other one it must have said that it goes
    for a while, else its place is held until its session ends."""
    everything = places(topic)
    crowd.session_ms = LONG_SESSION_MS
    with group_on(crowd.broker, crowd.group) as group:
        group.configure("consumer.session.timeout.ms", str(LONG_SESSION_MS))
    ana, bob = (crowd.join(name, kind, instance=name) for name in ("ana", "bob"))
    crowd.settled(everything, ana, bob)
    had, before = ana.owned, bob.said("assigned", "revoked", "lost")
    (crowd.leave if kind.protocol == "consumer" else crowd.kill)(ana)
    again = crowd.join("ana-again", kind, instance="ana")
    crowd.settled(everything, again, bob)
    assert again.owned == had
    assert bob.said("assigned", "revoked", "lost") == before, crowd.story(bob)
    finish(crowd, load)


@pytest.mark.full
@pytest.mark.parametrize("kind", EVERY, ids=str)
def test_positions_are_sought_and_reset(
    kind: Kind, broker: Broker, topic: str, crowd: Crowd, load: Load
) -> None:
    everything = places(topic)
    first = f"{topic}:0"

    def offsets(member: Member, since: int = 0) -> list[int]:
        return [int(each.words[1]) for each in member.said("record", after=since)
                if each.words[0] == first]

    ana = crowd.join("ana", kind)
    crowd.settled(everything, ana)
    crowd.until(lambda: len(offsets(ana)) > 2, "no records")
    since = time.monotonic_ns()
    ana.tell("seek", topic, 0, 1)
    crowd.until(lambda: 1 in offsets(ana, since), "the position was not sought")
    crowd.leave(ana)
    for name, reset in (("bob", "earliest"), ("cat", "latest")):
        commit_by_hand(broker, crowd.group, topic, 1_000_000)  # where no record is
        end = max(load.acknowledged[first])
        member = crowd.join(name, kind, reset=reset)
        crowd.until(partial(offsets, member), "no records")  # type: ignore[arg-type]
        assert offsets(member)[0] == 0 if reset == "earliest" else offsets(member)[0] >= end
        crowd.leave(member)


@pytest.mark.full
@pytest.mark.parametrize("kind", EVERY, ids=str)
def test_pattern_takes_in_topics_to_come(
    kind: Kind, broker: Broker, crowd: Crowd, unique: Callable[[str], str]
) -> None:
    prefix = unique("pattern")
    crowd.topics = [f"^{prefix}-.*"]
    everything: set[str] = set()
    members: list[Member] = []
    with ExitStack() as loads:
        started = []
        for name in (f"{prefix}-1", f"{prefix}-2"):
            make_topic(broker, name)
            started.append(loads.enter_context(Load(broker, name, PARTITIONS)))
            everything |= places(name)
            if not members:
                members += [crowd.join("ana", kind), crowd.join("bob", kind)]
            crowd.settled(everything, *members)
        finish(crowd, *started)


@pytest.mark.full
@pytest.mark.parametrize("client", ["confluent", "java-4.3.1"])
def test_group_changes_its_protocol_and_back(
    client: str, broker: Broker, topic: str, crowd: Crowd, load: Load
) -> None:
    everything = places(topic)
    old, new = Kind(client), Kind(client, "consumer")
    ana, bob = crowd.join("ana", old), crowd.join("bob", old)
    crowd.settled(everything, ana, bob)
    assert type_of(broker, crowd.group) == "CLASSIC"
    cat = crowd.join("cat", new)
    crowd.settled(everything, ana, bob, cat)
    assert type_of(broker, crowd.group) == "CONSUMER"
    crowd.leave(ana)
    dan = crowd.join("dan", new)
    crowd.settled(everything, bob, cat, dan)
    crowd.kill(bob)
    crowd.settled(everything, cat, dan)
    eve = crowd.join("eve", old)
    crowd.settled(everything, cat, dan, eve)
    crowd.leave(cat)
    crowd.leave(dan)
    crowd.settled(everything, eve)
    assert type_of(broker, crowd.group) == "CLASSIC"
    finish(crowd, load)


def commit_by_hand(broker: Broker, group: str, topic: str, offset: int) -> None:
    where = confluent_kafka.TopicPartition(topic, 0, offset)
    asked = confluent_kafka.ConsumerGroupTopicPartitions(group, [where])
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    [done] = admin.alter_consumer_group_offsets([asked]).values()
    assert done.result(20).topic_partitions[0].error is None


def type_of(broker: Broker, group: str) -> str:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    listed = admin.list_consumer_groups().result(20).valid
    [found] = [each for each in listed if each.group_id == group]
    return str(found.type.name)
