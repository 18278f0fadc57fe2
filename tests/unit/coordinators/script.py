"""The sentences of the groups' scenarios, which have the stage act them out."""

from __future__ import annotations

from kafkalite.coordinators.appending import write
from kafkalite.coordinators.effects import Effects, Producer
from kafkalite.coordinators.groups import consumer_protocol
from kafkalite.coordinators.groups.events import TopicsChanged, TopicsDeleted
from kafkalite.coordinators.groups.gathering import Gathering
from kafkalite.coordinators.groups.records import make
from kafkalite.coordinators.groups.settings import MigrationPolicy
from kafkalite.env.slicing import finish
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from tests.unit.coordinators import consumers
from tests.unit.coordinators.stage import GROUP, Stage, milliseconds
from tests.unit.script import Script

SCRIPT = Script(Stage.tell_log)
act, perform = SCRIPT.act, SCRIPT.perform


def play(lines: list[str], stage: Stage | None = None) -> list[str]:
    """What the scene reads like when it is played."""
    return SCRIPT.play(lines, Stage() if stage is None else stage)


# -- the vocabulary --------------------------------------------------------------------------


@act(r"(\w+) joins")
def _joins(stage: Stage, name: str) -> None:
    """Twice, when the coordinator first hands out an id."""
    who = stage.person(name)
    before = who.member_id
    stage.joins(who)
    if who.instance_id is None and not before and who.member_id and who.version >= 4:
        stage.joins(who)


@act(r"(\w+) joins once")
def _joins_once(stage: Stage, name: str) -> None:
    stage.joins(stage.person(name))


@act(r"(\w+) (?:is|comes back as) static member (\w+)")
def _is_static(stage: Stage, name: str, instance_id: str) -> None:
    who = stage.person(name)
    who.instance_id, who.member_id, who.generation = instance_id, "", -1


@act(r"(\w+) forgets everything")
def _forgets(stage: Stage, name: str) -> None:
    who = stage.person(name)
    who.member_id, who.generation = "", -1


@act(r"(\w+) supports ([\w, ]+)")
def _supports(stage: Stage, name: str, protocols: str) -> None:
    stage.person(name).protocols = protocols.replace(",", "").split()


@act(r"(\w+) speaks version (\d+)")
def _speaks(stage: Stage, name: str, version: str) -> None:
    stage.person(name).version = int(version)


@act(r"(\w+) subscribes to ([\w, ]+)")
def _subscribes(stage: Stage, name: str, topics: str) -> None:
    stage.person(name).topics = topics.replace(",", "").split()


@act(r"(\w+) rebalances within (\w+)")
def _rebalances_within(stage: Stage, name: str, duration: str) -> None:
    stage.person(name).rebalance_timeout_ms = milliseconds(duration)


@act(r"(\w+) has a session of (\w+)")
def _has_session(stage: Stage, name: str, duration: str) -> None:
    stage.person(name).session_timeout_ms = milliseconds(duration)


@act(r"(\w+) syncs")
def _syncs(stage: Stage, name: str) -> None:
    stage.syncs(stage.person(name), {})


@act(r"(\w+) assigns (\w+=.+)")
def _assigns(stage: Stage, name: str, text: str) -> None:
    pairs = (part.split("=") for part in text.split())
    stage.syncs(stage.person(name), {pair[0]: pair[1].encode() for pair in pairs})


@act(r"(\w+) heartbeats")
def _heartbeats(stage: Stage, name: str) -> None:
    stage.heartbeats(stage.person(name))


@act(r"(\w+) leaves")
def _leaves(stage: Stage, name: str) -> None:
    stage.leaves(stage.person(name))


@act(r"an admin removes (\w+)")
def _removes(stage: Stage, name: str) -> None:
    stage.leaves(stage.person(name), by_instance=True)


@act(r"(\w+) believes in generation (-?\d+)")
def _believes(stage: Stage, name: str, generation: str) -> None:
    stage.person(name).generation = int(generation)


@act(r"(\w+) takes the id of (\w+)")
def _takes_id(stage: Stage, name: str, other: str) -> None:
    stage.person(name).member_id = stage.person(other).member_id


@act(r"an outsider commits (\S+) at (\d+)")
def _outsider_commits(stage: Stage, place: str, offset: str) -> None:
    stage.commits(None, place, int(offset))


@act(r"(\w+) commits (\S+) at (\d+)(?: noting (.+))?")
def _commits(stage: Stage, name: str, place: str, offset: str, note: str | None) -> None:
    stage.commits(stage.person(name), place, int(offset), note or "")


@act(r"producer (\d+) commits (\S+) at (\d+)")
def _producer_commits(stage: Stage, producer_id: str, place: str, offset: str) -> None:
    stage.commits_in_transaction(Producer(int(producer_id), 0), place, int(offset))


@act(r"producer (\d+) (commits|aborts) its transaction")
def _producer_ends(stage: Stage, producer_id: str, how: str) -> None:
    stage.ends_transaction(Producer(int(producer_id), 0), committed=how == "commits")


@act(r"a reader asks for (\S+)")
def _reads(stage: Stage, place: str) -> None:
    stage.reads(place)


@act(r"a reader asks for stable (\S+)")
def _reads_stable(stage: Stage, place: str) -> None:
    stage.reads(place, stable=True)


@act(r"an admin deletes offset (\S+)")
def _deletes_offset(stage: Stage, place: str) -> None:
    stage.deletes_offset(place)


@act(r"an admin deletes the group")
def _deletes_group(stage: Stage) -> None:
    stage.deletes_group()


@act(r"an admin looks")
def _looks(stage: Stage) -> None:
    stage.looks()


@act(r"(\w+) passes|(\w+) pass")
def _time_passes(stage: Stage, one: str | None, other: str | None) -> None:
    stage.clock.advance(milliseconds(one or other or ""))


@act(r"the clock is set back by (\w+)")
def _set_back(stage: Stage, duration: str) -> None:
    stage.clock.jump(-milliseconds(duration))


@act(r"the coordinator restarts")
def _restarts(stage: Stage) -> None:
    stage.restart()


@act(r"an older coordinator notes the topics")
def _notes_the_topics(stage: Stage) -> None:
    """As Apache Kafka did before 4.1, which keeps their hash instead."""
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    note = make(key, ConsumerGroupPartitionMetadataValue(topics=[]))
    finish(write(stage.partition, Effects([note]), stage.clock.now_ms(), lambda *_: None))
    stage.restart()


@act(r"the next append fails with (\w+)")
def _next_append_fails(stage: Stage, name: str) -> None:
    stage.partition.failures.append(KafkaError(Error[name]))


@act(r"replication lags")
def _lags(stage: Stage) -> None:
    stage.partition.is_lagging = True


@act(r"replication catches up")
def _catches_up(stage: Stage) -> None:
    stage.partition.is_lagging = False
    stage.partition.commit()


@act(r"new groups wait for company")
def _wait_for_company(stage: Stage) -> None:
    stage.settings.gathering = Gathering()


@act(r"the group's assignments are (\w+) apart")
def _paces(stage: Stage, duration: str) -> None:
    interval_ms = milliseconds(duration)
    stage.settings.consumer_assignment_ms = lambda: interval_ms


@act(r"(\w+) looks for the coordinator")
def _looks_for_it(stage: Stage, name: str) -> None:
    stage.look_ups.note(GROUP, name, stage.clock.now_ms())


@act(r"the setting (\w+) is (\d+)")
def _setting(stage: Stage, name: str, value: str) -> None:
    assert hasattr(stage.settings, name), name
    setattr(stage.settings, name, int(value))


@act(r"topic (\w+) has (\d+) partitions?")
def _topic(stage: Stage, name: str, count: str) -> None:
    stage.topics.add(name, int(count))
    stage.runtime.submit(TopicsChanged([name]))


@act(r"topic (\w+) is deleted")
def _topic_deleted(stage: Stage, name: str) -> None:
    view = stage.topics.by_name(name)
    assert view is not None
    stage.topics.remove(name)
    stage.runtime.submit(TopicsChanged([name]))
    stage.runtime.submit(TopicsDeleted([(name, view.topic_id)]))


@act(r"the setting (\w+) is (disabled|upgrade|downgrade|bidirectional)")
def _policy(stage: Stage, name: str, value: str) -> None:
    setattr(stage.settings, name, MigrationPolicy(value))


# -- the vocabulary of consumer groups -------------------------------------------------------


@act(r"consumer (\w+) enters")
def _enters(stage: Stage, name: str) -> None:
    consumers.enters(stage, consumers.consumer(stage, name))


@act(r"consumer (\w+) beats")
def _beats(stage: Stage, name: str) -> None:
    consumers.beats(stage, consumers.consumer(stage, name))


@act(r"consumer (\w+) tells all")
def _tells_all(stage: Stage, name: str) -> None:
    consumers.beats(stage, consumers.consumer(stage, name), is_full=True)


@act(r"consumer (\w+) leaves")
def _consumer_leaves(stage: Stage, name: str) -> None:
    who = consumers.consumer(stage, name)
    who.epoch = -1
    consumers.beats(stage, who)


@act(r"consumer (\w+) goes away")
def _goes_away(stage: Stage, name: str) -> None:
    who = consumers.consumer(stage, name)
    who.epoch = -2
    consumers.beats(stage, who)


@act(r"consumer (\w+) starts again(?: as static member (\w+))?")
def _starts_again(stage: Stage, name: str, instance_id: str | None) -> None:
    stage.consumers[name] = consumers.new_consumer(stage, name)
    stage.consumers[name].instance_id = instance_id


@act(r"consumer (\w+) is static member (\w+)")
def _consumer_is_static(stage: Stage, name: str, instance_id: str) -> None:
    consumers.consumer(stage, name).instance_id = instance_id


@act(r"consumer (\w+) subscribes to ([\w, ]+)")
def _consumer_subscribes(stage: Stage, name: str, topics: str) -> None:
    who = consumers.consumer(stage, name)
    who.topics = [] if topics == "nothing" else topics.replace(",", "").split()


@act(r"consumer (\w+) matches (\S+)")
def _matches(stage: Stage, name: str, regex: str) -> None:
    who = consumers.consumer(stage, name)
    who.topics, who.regex = [], regex


@act(r"consumer (\w+) prefers (\w+)")
def _prefers(stage: Stage, name: str, assignor: str) -> None:
    consumers.consumer(stage, name).assignor = assignor


@act(r"consumer (\w+) clings to what it has")
def _clings(stage: Stage, name: str) -> None:
    consumers.consumer(stage, name).is_clinging = True


@act(r"consumer (\w+) lets go")
def _lets_go(stage: Stage, name: str) -> None:
    consumers.lets_go(consumers.consumer(stage, name))


@act(r"consumer (\w+) believes in epoch (-?\d+)")
def _believes_in_epoch(stage: Stage, name: str, epoch: str) -> None:
    consumers.consumer(stage, name).epoch = int(epoch)


@act(r"consumer (\w+) rebalances within (\w+)")
def _consumer_rebalances_within(stage: Stage, name: str, duration: str) -> None:
    consumers.consumer(stage, name).rebalance_timeout_ms = milliseconds(duration)


@act(r"consumer (\w+) commits (\S+) at (\d+)(?: in epoch (\d+))?")
def _consumer_commits(stage: Stage, name: str, place: str, offset: str, epoch: str | None) -> None:
    who = consumers.consumer(stage, name)
    consumers.commits(stage, who, place, int(offset), None if epoch is None else int(epoch))


@act(r"(\w+) owns (\w+) ([\d ]+)")
def _owns(stage: Stage, name: str, topic: str, indexes: str) -> None:
    stage.person(name).owned = {topic: [int(index) for index in indexes.split()]}


@act(r"(\w+) owns nothing")
def _owns_nothing(stage: Stage, name: str) -> None:
    stage.person(name).owned = {}


@act(r"(\w+) assigns as consumers do: (.+)")
def _assigns_embedded(stage: Stage, name: str, text: str) -> None:
    """`ana=orders:0,1 bob=orders:2,3`, in the embedded protocol."""
    assignments = {}
    for part in text.split():
        who, _, places = part.partition("=")
        topic, _, indexes = places.partition(":")
        partitions = {topic: [int(index) for index in indexes.split(",")]}
        assignments[who] = consumer_protocol.write_assignment(partitions, 0)
    stage.syncs(stage.person(name), assignments)


@act(r"an admin looks closer")
def _looks_closer(stage: Stage) -> None:
    consumers.looks_closer(stage)
