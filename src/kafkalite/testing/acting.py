"""What a test has running brokers do beside serving: on their loop, each told when it is done.

Owns what `EmbeddedKafka` offers beyond start and stop; the loop and what is on it are running.py's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafkalite.testing.arguments import HIGHEST_MOMENT_MS
from kafkalite.testing.outcome import Outcome
from kafkalite.testing.plan import CONTROLLER, BrokerFailed
from kafkalite.testing.running import Run

if TYPE_CHECKING:
    from kafkalite.broker.broker import Broker
    from kafkalite.protocol.messages import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )

# Something has settled when nothing was at work at so many looks in a row.
QUIET_LOOKS = 5
LOOK_SECONDS = 0.002


def disconnect(run: Run, outcome: Outcome) -> None:
    """Breaks off all connections."""
    for broker in run.brokers.values():
        broker.server.disconnect()
    outcome.done()


def add_users(
    run: Run, request: AlterUserScramCredentialsRequest, outcome: Outcome
) -> None:
    """Users of SCRAM, as a client would make them."""
    from kafkalite.coordinators.cluster.events import AlterUserScramCredentials
    from kafkalite.protocol.errors import KafkaError

    def told(answer: AlterUserScramCredentialsResponse | KafkaError) -> None:
        if isinstance(answer, KafkaError):
            outcome.fail(answer)
            return
        refused = [each.error_message or each.user for each in answer.results if each.error_code]
        outcome.told(BrokerFailed("; ".join(refused)) if refused else None)

    run.brokers[CONTROLLER].controller.submit(AlterUserScramCredentials(request)).then(told)


def create_topic(
    run: Run, name: str, partitions: int, configs: dict[str, str], outcome: Outcome
) -> None:
    controller = _controller(run, outcome)
    if controller is not None:
        controller.create_topic(name, partitions, configs).then(outcome.told)


def move_leader(run: Run, topic: str, partition: int, to: int, outcome: Outcome) -> None:
    from kafkalite.coordinators.cluster.moving_leader import MoveLeader

    controller = _controller(run, outcome)
    if controller is not None:
        controller.controller.submit(MoveLeader(topic, partition, to)).then(outcome.told)


def _controller(run: Run, outcome: Outcome) -> Broker | None:
    """The broker that decides; BrokerFailed when it does not serve. None when it has just ended,
    which who waits is told."""
    controller = run.brokers.get(CONTROLLER)
    if controller is None:
        away = BrokerFailed(f"broker {CONTROLLER}, the controller, does not serve")
        raise run.ends_for or away
    if controller.failure is not None:
        outcome.fail(controller.failure)
        return None
    controller.ended.then(outcome.told_if_failed)
    return controller


def freeze(run: Run, at_ms: int | None, outcome: Outcome) -> None:
    assert run.clock is not None
    run.clock.freeze(at_ms)
    outcome.done()


def unfreeze(run: Run, outcome: Outcome) -> None:
    assert run.clock is not None
    run.clock.unfreeze()
    outcome.done()


def reset(run: Run, outcome: Outcome) -> None:
    assert run.clock is not None
    run.clock.reset()
    outcome.done()


def advance(run: Run, duration_ms: int, outcome: Outcome, *, expire_members: bool) -> None:
    """All time is later; told when what fell due by it is done."""
    assert run.clock is not None
    if run.now_ms() + duration_ms > HIGHEST_MOMENT_MS:
        outcome.fail(ValueError("it would be beyond the year 9999"))
        return
    for node_id, broker in run.brokers.items():
        broker.server.skip(duration_ms)
        if not expire_members:
            for stage in run.stages[node_id]:
                for group_id, member_id in stage.connected_members():
                    broker.context.groups.spare(group_id, member_id, duration_ms)
    run.clock.jump(duration_ms)
    settle(run, outcome)


def run_retention(run: Run, outcome: Outcome) -> None:
    for broker in run.brokers.values():
        broker.logs.periodic.retain()
    settle(run, outcome)


def run_compaction(run: Run, outcome: Outcome) -> None:
    """Neither the last segment of a log is cleaned, nor one that may not last."""
    for broker in run.brokers.values():
        for log in broker.logs.logs:
            if log.config.is_compacted:
                if log.active.size:
                    log.roll()
                log.when_flushed(partial(broker.logs.periodic.cleaner.clean_now, log))
    settle(run, outcome)


def settle(run: Run, outcome: Outcome, left: int = QUIET_LOOKS) -> None:
    """Looks now and then until nothing has been at work for a while."""
    if left == 0 or outcome.is_there or run.loop is None:
        outcome.done()
        return
    assert run.env is not None
    assert run.background is not None
    is_busy = bool(len(run.env.slices)) or not run.background.is_idle
    again = partial(settle, run, outcome, QUIET_LOOKS if is_busy else left - 1)
    run.loop.call_later(LOOK_SECONDS, again)
