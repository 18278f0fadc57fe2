"""Quotas of thousands of users and addresses, or of one that has very many: a slice per turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterClientQuotasRequest as Request
from kafkalite.protocol.messages import AlterClientQuotasResponse as Response
from kafkalite.sim.effort import CountingClock
from tests.unit.handlers.counted import counted
from tests.unit.handlers.whole_broker import WholeBroker

MANY = 5_000
RATE = Request.Op(key="connection_creation_rate", value=5.0, remove=False)


@pytest.fixture(scope="module")
def broker() -> Iterator[WholeBroker]:
    broker = WholeBroker(clock=CountingClock())
    entry = Request.Entry(entity=[Request.Entity(entity_type="ip", entity_name="::1")], ops=[RATE])
    broker.ask(Request(entries=[entry]), 1)  # the first has code generated and modules imported
    yield broker
    broker.close()


def altered(broker: WholeBroker, kind: str, names: list[str], op: Request.Op) -> dict[str, int]:
    entries = [
        Request.Entry(entity=[Request.Entity(entity_type=kind, entity_name=name)], ops=[op])
        for name in names
    ]
    found: list[Response.Entry] = counted(broker, Request(entries=entries), 1).entries
    return {each.entity[0].entity_name or "": each.error_code for each in found}


def test_addresses(broker: WholeBroker) -> None:
    names = [f"10.1.{number // 256}.{number % 256}" for number in range(MANY)]
    assert altered(broker, "ip", names, RATE) == dict.fromkeys(names, Error.NONE)
    assert broker.context.quotas.connection_rate(names[-1]) == 5


def test_names_of_hosts(broker: WholeBroker) -> None:
    names = [f"host-{number}.test" for number in range(MANY)]
    nobody = set(names[::3])

    def address_of(name: str) -> str:
        if name in nobody:
            raise OSError(name)
        number = int(name[5:-5])
        return f"10.2.{number // 256}.{number % 256}"

    broker.env.address_of = address_of
    codes = altered(broker, "ip", names, RATE)
    assert {name for name, code in codes.items() if code == Error.INVALID_REQUEST} == nobody
    assert len(codes) == MANY
    assert broker.context.quotas.connection_rate("10.2.0.1") == 5
    assert broker.context.quotas.connection_rate("10.2.0.0") is None


def test_users(broker: WholeBroker) -> None:
    names = [f"user-{number}" for number in range(MANY)]
    rate = Request.Op(key="producer_byte_rate", value=5.0, remove=False)
    codes = altered(broker, "user", [*names, names[0]], rate)
    assert codes.pop(names[0]) == Error.INVALID_REQUEST  # named a second time at the end
    assert codes == dict.fromkeys(names[1:], Error.NONE)
    assert broker.context.quotas.is_on


def test_very_many_of_one_user(broker: WholeBroker) -> None:
    ops = [Request.Op(key=f"key-{number}", value=0.0, remove=True) for number in range(20_000)]
    user = Request.Entity(entity_type="user", entity_name="u")
    for some in (ops, [*ops, ops[0]]):
        entry = Request.Entry(entity=[user], ops=some)
        [answer] = counted(broker, Request(entries=[entry]), 1).entries
        assert (answer.error_code == Error.INVALID_REQUEST) is (len(some) > len(ops))
