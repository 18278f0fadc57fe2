"""One run from one seed with a share group and a streams group, beside producers and all faults.

Owns the plan: who writes to the topic, who shares and who works on it, and what is asked of both
groups when everybody has had peace for long: all that the topic holds was handed out and done with,
and each task is somebody's.
"""

from __future__ import annotations

from kafkalite.env.clock import ManualClock
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeShareGroupOffsetsRequest,
    IncrementalAlterConfigsRequest,
)
from kafkalite.sim.checker import Anomalies, Final, check
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.member import BEAT_MS, SESSION_MS
from kafkalite.sim.producers import IdempotentProducer, PlainProducer, TransactionalProducer
from kafkalite.sim.run import (
    FAULT_EVERY_MS,
    Verdict,
    begin_strikes,
    finish,
    judge,
    make_peace,
    read_all,
    role,
)
from kafkalite.sim.shared import GROUP, Sharing
from kafkalite.sim.sharers import Sharers
from kafkalite.sim.tasks import Workers, Working
from kafkalite.sim.world import World

TOPIC = "t"
RUN_MS = 5_000
TRANSACTION_TIMEOUTS_MS = (1_000, 3_000)
LOCK_MS = 1_000
SETTLING_MS, LOOK_EVERY_MS = 30_000, 500
GROUP_RESOURCE = 32
ALTER_VERSION, OFFSETS_VERSION = 1, 1
KINDS = ("share", "streams")

SETTINGS = {
    **{f"group.{kind}.min.session.timeout.ms": "100" for kind in KINDS},
    **{f"group.{kind}.session.timeout.ms": str(SESSION_MS) for kind in KINDS},
    **{f"group.{kind}.min.heartbeat.interval.ms": "50" for kind in KINDS},
    **{f"group.{kind}.heartbeat.interval.ms": str(BEAT_MS) for kind in KINDS},
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.share.min.record.lock.duration.ms": str(LOCK_MS),
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.initialize.retry.interval.ms": "500",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # So that a run sees whole states, and what is before them go.
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
    "share.coordinator.state.topic.prune.interval.ms": "400",
    "share.coordinator.cold.partition.snapshot.interval.ms": "700",
}


def simulate_groups(seed: int, clock: ManualClock | None = None) -> Verdict:
    """Runs it and judges it."""
    durability = "fsync" if seed % 2 else "page-cache"
    settings = {
        **SETTINGS,
        "group.share.delivery.count.limit": str(_most_deliveries(seed)),
        **{f"group.{kind}.assignment.interval.ms": str(seed % 3 * 200) for kind in KINDS},
    }
    world = World(seed, durability, settings=settings, clock=clock or ManualClock())
    return judge(world, _play)


def _most_deliveries(seed: int) -> int:
    return 3 if seed % 5 == 0 else 10


def _play(world: World, anomalies: Anomalies) -> None:
    world.run_until(lambda: world.is_up, "the broker starts")
    count = world.random.randrange(1, 4)
    world.create_topic(TOPIC, count)
    partitions = [(TOPIC, index) for index in range(count)]
    sharers, workers = _sharers(world, count), _workers(world, count)
    roles = [
        role(world, PlainProducer, partitions, "plain"),
        role(world, IdempotentProducer, partitions, "idempotent"),
        role(
            world, TransactionalProducer, partitions, "transactional",
            is_new=world.random.random() < 0.6, transactional_id="id",
            timeout_ms=world.random.choice(TRANSACTION_TIMEOUTS_MS),
        ),
    ]
    for each in roles:
        each.live()
    world.begin_faults(FAULT_EVERY_MS)
    begin_strikes(world, [*roles, sharers, workers])
    world.run(RUN_MS)
    sharers.membership.is_peaceful = workers.membership.is_peaceful = True
    clients = [client for each in roles for client in each.clients]
    make_peace(world, clients, max(TRANSACTION_TIMEOUTS_MS))
    finals = read_all(world, partitions)
    _await_all(world, count, anomalies)
    sharers.settle(anomalies)
    workers.settle(anomalies)
    check(world.history, finals, anomalies)
    _check_shared(sharers.membership, finals, anomalies)
    for kind, what in workers.membership.found:
        anomalies.add(kind, what)


def _sharers(world: World, partition_count: int) -> Sharers:
    is_committed_only = world.random.random() < 0.5
    finish(world, _configured(is_committed_only=is_committed_only), "the group is configured")
    sharing = Sharing(
        TOPIC, world.broker.metadata.image.topics[TOPIC].topic_id, partition_count,
        is_committed_only, _most_deliveries(world.seed), world.clock.monotonic_ms,
        lambda: world.life,
    )
    sharers = Sharers(world, sharing)
    sharers.come()
    world.departures.append(sharers.strike)
    return sharers


def _workers(world: World, partition_count: int) -> Workers:
    workers = Workers(world, Working(TOPIC, partition_count, world.clock.monotonic_ms))
    workers.come()
    world.departures.append(workers.strike)
    return workers


def _configured(*, is_committed_only: bool) -> Script:
    kind = IncrementalAlterConfigsRequest
    wanted = {
        "share.auto.offset.reset": "earliest",
        "share.isolation.level": "read_committed" if is_committed_only else "read_uncommitted",
    }
    configs = [kind.Config(name=name, config_operation=0, value=wanted[name]) for name in wanted]
    resource = kind.Resource(
        resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=configs
    )
    while True:
        [answer] = yield Ask([(kind(resources=[resource]), ALTER_VERSION)])
        if answer is not None and answer.responses[0].error_code == Error.NONE:
            return
        yield Sleep(20)


# --- the judgement --------------------------------------------------------------------------------


def _await_all(world: World, partition_count: int, anomalies: Anomalies) -> None:
    """Nothing is left to the group: what it does not begin with is done with."""
    left: dict[int, int] = {}
    for _ in range(SETTLING_MS // LOOK_EVERY_MS):
        finish(world, _read_lags(partition_count, left), "the group's offsets are read")
        if not any(left.values()):
            return
        world.run(LOOK_EVERY_MS)
    anomalies.add("not done with", f"{left} records, by partition of {TOPIC}")


def _read_lags(partition_count: int, left: dict[int, int]) -> Script:
    kind = DescribeShareGroupOffsetsRequest
    topic = kind.Topic(topic_name=TOPIC, partitions=list(range(partition_count)))
    request = kind(groups=[kind.Group(group_id=GROUP, topics=[topic])])
    while True:
        [answer] = yield Ask([(request, OFFSETS_VERSION)])
        if answer is not None and answer.groups[0].error_code == Error.NONE:
            for each in answer.groups[0].topics[0].partitions:
                left[each.partition_index] = each.lag
            return
        yield Sleep(20)


def _check_shared(
    sharing: Sharing, finals: dict[tuple[str, int], Final], anomalies: Anomalies
) -> None:
    for kind, what in sharing.found:
        anomalies.add(kind, what)
    for (_, index), final in finals.items():
        whole = final.committed if sharing.is_committed_only else final.everything
        for kind, what in sharing.check(index, whole.seen):
            anomalies.add(kind, what)
