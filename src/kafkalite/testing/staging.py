"""Who stands between connections and a broker of a test: a release's versions, and the stage.

Owns their order: what is to go wrong concerns requests of the release that is spoken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from kafkalite.server.terms import Service
from kafkalite.testing.chosen import World
from kafkalite.testing.stage import Stage
from kafkalite.testing.where import Known

if TYPE_CHECKING:
    from kafkalite.broker.broker import Broker
    from kafkalite.env.clock import Clock
    from kafkalite.testing.plan import Controls, Plan


class Staged(Protocol):
    """One life of the brokers, as far as it is about who stands before them."""

    plan: Plan
    controls: Controls
    brokers: dict[int, Broker]
    stages: dict[int, list[Stage]]

    @property
    def clock(self) -> Clock | None: ...


def staged(run: Staged, node_id: int, service: Service) -> Service:
    """The service of one of a run's brokers, as its clients have it."""
    assert run.clock is not None
    controls = run.controls
    world = world_of(lambda: run.brokers.get(node_id), lambda: list(run.brokers.values()))
    knows: Callable[[memoryview], bool] | None = None
    if run.plan.profile is not None:
        from kafkalite.testing.profiled import Profiled

        service = profiled = Profiled(service, run.plan.profile)
        knows = profiled.knows
    stage = Stage(
        service, run.clock, controls.faults, controls.observers, controls.explored, world, knows
    )
    run.stages[node_id].append(stage)
    return stage


def world_of(
    broker: Callable[[], Broker | None], brokers: Callable[[], Iterable[Broker]]
) -> World:
    """Nothing is known while it makes way for another one."""

    def topic_name(topic_id: bytes) -> str | None:
        found = broker()
        return None if found is None else found.metadata.image.topic_name(topic_id)

    def in_session(session_id: int) -> list[tuple[str, int]]:
        found = broker()
        return [] if found is None else found.context.fetch_sessions.named(session_id)

    return World(Known(topic_name, in_session), broker, brokers)
