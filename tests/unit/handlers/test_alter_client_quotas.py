"""AlterClientQuotas: entities and values that are taken, and those that are not."""

import pytest

from kafkalite.broker.limiting import follow
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterClientQuotasRequest
from tests.unit.handlers.whole_broker import WholeBroker

Request = AlterClientQuotasRequest


def alter(world, entity, *ops, version=1, validate_only=False):
    entry = Request.Entry(
        entity=[Request.Entity(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[Request.Op(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )
    (answer,) = world.ask(Request(entries=[entry], validate_only=validate_only), version).entries
    return answer


@pytest.mark.parametrize("version", range(2))
def test_quotas_are_kept_and_removed(world, version):
    entity = [("user", "u"), ("client-id", None)]
    answer = alter(world, entity, ("producer_byte_rate", 100.0), version=version)
    assert (answer.error_code, answer.error_message) == (Error.NONE, None)
    quotas = world.metadata.image.quotas
    assert quotas == {(("client-id", None), ("user", "u")): {"producer_byte_rate": 100.0}}
    alter(world, entity[::-1], ("producer_byte_rate", None), version=version)
    assert quotas == {}


def test_removing_what_is_not_there_is_no_error(world):
    end_offset = world.controller.log.end_offset
    assert alter(world, [("user", "u")], ("producer_byte_rate", None)).error_code == Error.NONE
    assert world.controller.log.end_offset == end_offset


@pytest.mark.parametrize(
    ("entity", "ops", "message"),
    [
        ([], [("producer_byte_rate", 1.0)], "Invalid empty client quota entity"),
        ([("shoe", "x")], [("producer_byte_rate", 1.0)], "Unhandled client quota entity type"),
        ([("user", "")], [("producer_byte_rate", 1.0)], "Empty user not supported"),
        ([("ip", "1.1.1.1"), ("user", "u")], [("connection_creation_rate", 1.0)], "combination"),
        ([("ip", "no ip")], [("connection_creation_rate", 1.0)], "not a valid IP"),
        ([("ip", "nobody.test")], [("connection_creation_rate", 1.0)], "not a valid IP"),
        ([("ip", "")], [("connection_creation_rate", 1.0)], "Empty ip not supported"),
        ([("ip", "1.1.1.1")], [("producer_byte_rate", 1.0)], "Invalid configuration key"),
        ([("user", "u")], [("producer_byte_rate", -1.0)], "must be greater than 0"),
        ([("ip", "256.1.1.1")], [("connection_creation_rate", 1.0)], "not a valid IP"),
        ([("ip", "1.2.65536")], [("connection_creation_rate", 1.0)], "not a valid IP"),
        ([("ip", "1" * 5_000)], [("connection_creation_rate", 1.0)], "not a valid IP"),
        ([("user", "u")], [("producer_byte_rate", 1.5)], "cannot be a fractional value"),
        ([("user", "u")], [("producer_byte_rate", 1e30)], "too large for a LONG"),
        ([("ip", "1.1.1.1")], [("connection_creation_rate", 1e12)], "too large for an INT"),
        (
            [("user", "u")],
            [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)],
            "Ignoring duplicate entity ClientQuotaEntity(entries={user=u})",
        ),
        (
            [("user", "u")],
            [("consumer_byte_rate", 1.0), ("producer_byte_rate", 0.5)],
            "cannot be a fractional value",
        ),
    ],
)
def test_refuses_as_kafka_does_and_changes_nothing(world, entity, ops, message):
    answer = alter(world, entity, *ops)
    assert answer.error_code == Error.INVALID_REQUEST
    assert message in answer.error_message
    assert world.metadata.image.quotas == {}


def test_validate_only_changes_nothing(world):
    answer = alter(world, [("user", "u")], ("producer_byte_rate", 1.0), validate_only=True)
    assert answer.error_code == Error.NONE
    assert world.metadata.image.quotas == {}


@pytest.mark.parametrize(
    ("entity", "op"),
    [
        (("user", "u"), ("producer_byte_rate", 2.0**63)),
        (("user", "u"), ("request_percentage", float("nan"))),
        (("ip", "1.2.3"), ("connection_creation_rate", 2.0**31 - 1)),
        (("ip", "localhost"), ("connection_creation_rate", 1.0)),
    ],
)
def test_takes_the_odd_values_that_kafka_takes(world, entity, op):
    assert alter(world, [entity], op).error_code == Error.NONE


def test_a_name_holds_for_its_address_until_it_is_taken_back():
    broker = WholeBroker()
    quotas = broker.context.quotas
    alter(broker, [("ip", "localhost")], ("connection_creation_rate", 5.0))
    assert quotas.connection_rate("127.0.0.1") == 5
    alter(broker, [("ip", "localhost")], ("connection_creation_rate", None))
    assert quotas.connection_rate("127.0.0.1") is None


def test_a_name_that_moves_leaves_what_is_said_of_its_new_address():
    broker, places = WholeBroker(), {"host.test": "10.0.0.1"}
    broker.env.address_of = places.__getitem__
    alter(broker, [("ip", "10.0.0.2")], ("connection_creation_rate", 3.0))
    alter(broker, [("ip", "host.test")], ("connection_creation_rate", 5.0))
    places["host.test"] = "10.0.0.2"
    alter(broker, [("ip", "host.test")], ("connection_creation_rate", 6.0))
    rate_of = broker.context.quotas.connection_rate
    assert (rate_of("10.0.0.1"), rate_of("10.0.0.2")) == (None, 3)


def test_a_name_that_is_nobodys_any_more_is_told(caplog):
    broker = WholeBroker()
    alter(broker, [("ip", "localhost")], ("connection_creation_rate", 5.0))
    context = broker.context
    broker.env.address_of = nobody
    follow(context.quotas, context.host_names, context.metadata, broker.env.slices)()
    assert "from localhost holds for nobody" in caplog.text


def nobody(name):
    raise OSError(f"{name} is a name of nobody")
