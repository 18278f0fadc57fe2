"""A broker of many partitions goes, or its directories do: decided in slices, so that others are
heard meanwhile."""

from collections.abc import Callable
from random import Random

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import brokers
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.states import BrokerState, PartitionState, Topic
from kafkalite.coordinators.cluster.view import View
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import Steps

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
