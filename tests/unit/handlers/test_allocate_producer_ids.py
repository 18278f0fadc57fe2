"""AllocateProducerIds: blocks for broker processes."""

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AllocateProducerIdsRequest


def test_no_id_is_given_twice(desk):
    desk.enter(7)
    asked = AllocateProducerIdsRequest(broker_id=7, broker_epoch=desk.broker(7).epoch)
    first, second = (desk.world.ask(asked, 0) for _ in range(2))
    assert first.producer_id_len == second.producer_id_len == 1000
    assert second.producer_id_start == first.producer_id_start + 1000


def test_another_life_gets_none(desk):
    desk.enter(7)
    asked = AllocateProducerIdsRequest(broker_id=7, broker_epoch=0)
    assert desk.world.ask(asked, 0).error_code == Error.STALE_BROKER_EPOCH
    asked.broker_id = 9
    assert desk.world.ask(asked, 0).error_code == Error.BROKER_ID_NOT_REGISTERED
