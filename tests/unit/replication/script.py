"""The sentences of the scenarios of replication, which have the stage act them out."""

from __future__ import annotations

from kafkalite.protocol.errors import Error
from kafkalite.replication.acting import lead
from kafkalite.replication.leader import Leader
from kafkalite.replication.partition import NO_LEADER
from tests.unit.replication.stage import Node, Stage
from tests.unit.script import Script

SCRIPT = Script(Stage.tell)
act, perform = SCRIPT.act, SCRIPT.perform


def play(lines: list[str]) -> list[str]:
    return SCRIPT.play(lines, Stage())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _leading(stage: Stage, broker_id: str | None) -> tuple[Node, Leader]:
    node = stage.leader if broker_id is None else stage.nodes[int(broker_id)]
    role = node.partition.role
    assert isinstance(role, Leader)
    return node, role


# --- the metadata ---------------------------------------------------------------------------------


@act(r"replicas are ([\d ]+)")
def _replicas(stage: Stage, text: str) -> None:
    """The first ones are in sync, and the first of them leads."""
    replicas = _numbers(text)
    for broker_id in replicas:
        if broker_id not in stage.nodes:
            stage.add(broker_id)
    if stage.said.leader_id == NO_LEADER:
        stage.say(replicas[0], replicas, replicas)
    else:
        stage.say(replicas=replicas)


@act(r"(\d+) leads(?:, in sync (?:is|are) ([\d ]+))?")
def _leads(stage: Stage, broker_id: str, isr: str | None) -> None:
    stage.say(int(broker_id), isr=None if isr is None else _numbers(isr))


@act(r"nobody leads(?:, in sync is ([\d ]+))?")
def _nobody_leads(stage: Stage, isr: str | None) -> None:
    stage.say(NO_LEADER, isr=None if isr is None else _numbers(isr))


@act(r"in sync (?:is|are) ([\d ]+)")
def _in_sync(stage: Stage, isr: str) -> None:
    stage.say(isr=_numbers(isr))


@act(r"(\d+) hears nothing")
def _hears_nothing(stage: Stage, broker_id: str) -> None:
    stage.nodes[int(broker_id)].is_deaf = True


@act(r"(\d+) hears of it")
def _hears(stage: Stage, broker_id: str) -> None:
    node = stage.nodes[int(broker_id)]
    node.is_deaf = False
    stage.hear(node)


@act(r"broker (\d+) is fenced")
def _fenced(stage: Stage, broker_id: str) -> None:
    stage.neighbours.epochs.pop(int(broker_id))


@act(r"broker (\d+) is back in epoch (\d+)")
def _back(stage: Stage, broker_id: str, epoch: str) -> None:
    stage.nodes[int(broker_id)].epoch = int(epoch)
    stage.neighbours.epochs[int(broker_id)] = int(epoch)
    stage.neighbours.stopping.discard(int(broker_id))


@act(r"the metadata has broker (\d+) in epoch (\d+)")
def _other_epoch(stage: Stage, broker_id: str, epoch: str) -> None:
    stage.neighbours.epochs[int(broker_id)] = int(epoch)


@act(r"broker (\d+) is about to stop")
def _stopping(stage: Stage, broker_id: str) -> None:
    stage.neighbours.stopping.add(int(broker_id))


@act(r"the controller agrees")
def _agrees(stage: Stage) -> None:
    stage.controller_says(None)


@act(r"the controller says (\w+)")
def _says(stage: Stage, name: str) -> None:
    stage.controller_says(Error[name])


@act(r"(min.insync.replicas|segment.bytes) is (\d+)")
def _setting(stage: Stage, name: str, value: str) -> None:
    stage.configure(**{name.replace(".", "_"): int(value)})


# --- time and machines ----------------------------------------------------------------------------


@act(r"(\d+)(ms|s) pass(?:es)?")
def _time_passes(stage: Stage, number: str, unit: str) -> None:
    for node in stage.nodes.values():
        node.world.clock.advance(int(number) * (1_000 if unit == "s" else 1))


@act(r"(\d+) is down")
def _is_down(stage: Stage, broker_id: str) -> None:
    stage.nodes[int(broker_id)].is_down = True


@act(r"(\d+) is killed and starts again")
def _restarts(stage: Stage, broker_id: str) -> None:
    stage.restart(int(broker_id))


# --- records --------------------------------------------------------------------------------------


@act(r"(\d+) records? comes?( with acks=all)?(?: to (\d+))?")
def _records(stage: Stage, count: str, acks: str | None, broker_id: str | None) -> None:
    node = stage.leader if broker_id is None else stage.nodes[int(broker_id)]
    stage.append(node, int(count), is_all=acks is not None)


@act(r"producer (\d+) sends (\d+) records? from sequence (\d+)")
def _producer(stage: Stage, producer_id: str, count: str, sequence: str) -> None:
    stage.append(
        stage.leader, int(count), producer_id=int(producer_id), producer_epoch=0,
        base_sequence=int(sequence),
    )  # fmt: skip


@act(r"records below (\d+) are deleted")
def _deleted(stage: Stage, offset: str) -> None:
    stage.leader.partition.delete_records_before(int(offset))


@act(r"are they, up to (\d+)\?")
def _low_watermark(stage: Stage, offset: str) -> None:
    node, leader = _leading(stage, None)
    low_watermark = leader.low_watermark(node.partition.moment(stage.now_ms()))
    stage.lines.append(f"  {'yes' if low_watermark >= int(offset) else 'no'}")


@act(r"what is acks=all answered at (\d+)\?")
def _outcome(stage: Stage, offset: str) -> None:
    node, leader = _leading(stage, None)
    found = leader.outcome_at(int(offset), node.partition.moment(stage.now_ms()))
    stage.lines.append(f"  {'nothing yet' if found is None else found.name}")


@act(r"are (\d+) and (\d+) the same\?")
def _same(stage: Stage, one: str, other: str) -> None:
    contents = [stage.contents(stage.nodes[int(each)]) for each in (one, other)]
    assert contents[0]
    stage.lines.append(f"  {'yes' if contents[0] == contents[1] else 'no'}")


# --- replicas -------------------------------------------------------------------------------------


@act(r"(\d+) fetches(?: (\d+) bytes)?(?: until it is at (\d+))?")
def _fetches(stage: Stage, broker_id: str, size: str | None, until: str | None) -> None:
    node = stage.nodes[int(broker_id)]
    for _ in range(100):
        stage.asks(node, *([] if size is None else [int(size)]))
        stage.gets_answer(node)
        if until is None or node.log.log_end_offset >= int(until):
            return
    raise AssertionError("it never comes there")


@act(r"(\d+) asks")
def _asks(stage: Stage, broker_id: str) -> None:
    stage.asks(stage.nodes[int(broker_id)])


@act(r"(\d+) gets its answer")
def _gets_answer(stage: Stage, broker_id: str) -> None:
    stage.gets_answer(stage.nodes[int(broker_id)])


@act(r"(?:the leader|(\d+)) looks at its followers")
def _looks(stage: Stage, broker_id: str | None) -> None:
    node, leader = _leading(stage, broker_id)
    moment = node.partition.moment(stage.now_ms())
    stage.ask(node, lead(node.partition, leader.time_passed(moment)))


@act(r"(\d+) forgets its epochs")
def _forgets(stage: Stage, broker_id: str) -> None:
    """As a log of old formats knows none."""
    stage.nodes[int(broker_id)].log.epochs.clear()
