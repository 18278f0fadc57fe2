"""A broker of many partitions goes, or its directories do: decided in slices, so that others are
heard meanwhile."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import brokers
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.lifecycle import BrokerHeartbeat, Standing, heartbeat
from kafkalite.coordinators.cluster.sessions import Sessions
from kafkalite.coordinators.cluster.states import BrokerState, PartitionState, Topic
from kafkalite.coordinators.cluster.view import View
from kafkalite.coordinators.effects import Effects
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.env.slicing import LOOKS_PER_STEP, Steps
from kafkalite.protocol.messages import BrokerHeartbeatRequest

MANY = 5_000
ID = b"\1" * 16
GONE, LEFT = b"\1" * 16, b"\3" * 16

ASKED: dict[str, tuple[Callable[[View], Steps[Effects]], str]] = {
    "gone": (lambda view: brokers.fence_broker(view, brokers.FenceBroker(1)), "without"),
    "disk": (
        lambda view: brokers.directories_offline(view, brokers.DirectoriesOffline(1, [GONE])),
        "without",
    ),
    "moved": (
        lambda view: brokers.assign_directories(
            view, brokers.AssignDirectories(1, {(ID, index): LEFT for index in range(MANY)})
        ),
        "_placed",
    ),
}


@pytest.mark.parametrize("event", ASKED)
def test_no_step_decides_on_all_partitions(monkeypatch, event):
    ask, decides = ASKED[event]
    image = Image()
    image.features["metadata.version"] = 30
    for number, directories in ((1, (GONE, LEFT)), (2, (b"\2" * 16,))):
        image.brokers[number] = BrokerState(
            number, number, bytes(16), (), (), None, False, False, directories, None
        )
    states = {
        index: PartitionState(ID, index, (1, 2), (1, 2), 1, 0, 0, (GONE, b"\2" * 16))
        for index in range(MANY)
    }
    image.topics["t"] = image.by_id[ID] = Topic("t", ID, states)
    decided_on: list[int] = []
    real = getattr(brokers, decides)

    def counting(view, state, *rest, **named):
        decided_on[-1] += 1
        return real(view, state, *rest, **named)

    monkeypatch.setattr(brokers, decides, counting)
    steps = ask(View(image, BrokerConfig(), Random(1)))
    effects = None
    while effects is None:
        decided_on.append(0)
        try:
            next(steps)
        except StopIteration as end:
            effects = end.value
    assert len(effects.records) == MANY + (event != "moved")
    assert sum(decided_on) == MANY
    assert max(decided_on) <= 64


# --- of what others hold --------------------------------------------------------------------------


class Looked(dict[int, PartitionState]):
    """Partitions, and how many of them were looked at, step by step."""

    def __init__(self) -> None:
        super().__init__({
            index: PartitionState(ID, index, (2, 3), (2, 3), 2, 0, 0, (GONE, LEFT))
            for index in range(MANY)
        })
        self.looks = [0]

    def values(self) -> Iterator[PartitionState]:  # type: ignore[override]
        for each in super().values():
            self.looks[-1] += 1
            yield each


def of_others() -> tuple[View, Looked]:
    """Broker 1 holds none of all that there is, and is about to go."""
    image, states = Image(), Looked()
    image.features["metadata.version"] = 30
    for number, is_going in ((1, True), (2, False), (3, False)):
        image.brokers[number] = BrokerState(
            number, number, bytes(16), (), (), None, False, is_going, (GONE, LEFT), None
        )
    image.topics["t"] = image.by_id[ID] = Topic("t", ID, states)
    return View(image, BrokerConfig(), Random(1)), states


REGISTERED = brokers.RegisterBroker(1, [], None, [GONE, LEFT], was_clean=True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda view: brokers.fence_broker(view, brokers.FenceBroker(1)),
        lambda view: brokers.unregister_broker(view, brokers.UnregisterBroker(1)),
        lambda view: brokers.register_broker(view, REGISTERED),
        lambda view: brokers.directories_offline(view, brokers.DirectoriesOffline(1, [GONE])),
    ],
)
def test_no_step_looks_at_all_partitions_for_those_of_one_broker(
    ask: Callable[[View], Steps[Effects]],
) -> None:
    view, states = of_others()
    for _ in ask(view):
        states.looks.append(0)
    assert sum(states.looks) == MANY
    assert max(states.looks) <= LOOKS_PER_STEP


def test_a_heartbeat_looks_at_no_partition() -> None:
    view, states = of_others()
    sessions = Sessions(ManualClock(), 9_000, lambda event: Later.of(None))
    sessions.start([1, 2, 3])
    sessions.begin_shut_down(1, 0)
    asked = BrokerHeartbeatRequest(broker_id=1, broker_epoch=1, want_shut_down=True)
    effects = heartbeat(view, BrokerHeartbeat(asked, sessions))
    assert isinstance(effects, Effects)
    assert effects.reply is Standing.CONTROLLED_SHUTDOWN  # nobody else has heard of it yet
    assert states.looks == [0]
