"""UnregisterBroker: a broker that is gone for good."""

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import UnregisterBrokerRequest


def test_forgets_a_broker_and_what_it_led(three):
    three.create("t", 3, 1)
    assert three.ask(UnregisterBrokerRequest(broker_id=3), 0).error_code == Error.NONE
    assert sorted(three.metadata.image.brokers) == [1, 2]
    leaders = [each.leader for each in three.metadata.image.topics["t"].partitions.values()]
    assert sorted(leaders) == [-1, 1, 2]


def test_an_unknown_broker_is_refused(world):
    response = world.ask(UnregisterBrokerRequest(broker_id=9), 0)
    assert response.error_code == Error.BROKER_ID_NOT_REGISTERED
    assert response.error_message == "Broker ID 9 is not currently registered"
