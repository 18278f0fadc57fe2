"""A broker of many partitions goes: decided in slices, so that others are heard meanwhile."""

from random import Random

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import brokers
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.states import BrokerState, PartitionState, Topic
from kafkalite.coordinators.cluster.view import View

MANY = 5_000
ID = b"\1" * 16


def test_no_step_decides_on_all_partitions(monkeypatch):
    image = Image()
    for number in (1, 2):
        image.brokers[number] = BrokerState(
            number, number, bytes(16), (), (), None, False, False, (bytes([number]) * 16,), None
        )
    states = {
        index: PartitionState(ID, index, (1, 2), (1, 2), 1, 0, 0, (b"\1" * 16, b"\2" * 16))
        for index in range(MANY)
    }
    image.topics["t"] = image.by_id[ID] = Topic("t", ID, states)
    decided_on: list[int] = []
    real = brokers.without

    def counting(view, state, *rest, **named):
        decided_on[-1] += 1
        return real(view, state, *rest, **named)

    monkeypatch.setattr(brokers, "without", counting)
    steps = brokers.fence_broker(View(image, BrokerConfig(), Random(1)), brokers.FenceBroker(1))
    effects = None
    while effects is None:
        decided_on.append(0)
        try:
            next(steps)
        except StopIteration as end:
            effects = end.value
    assert len(effects.records) == MANY + 1
    assert max(decided_on) <= 500
