"""DescribeClientQuotas: filters by name, by default and by kind."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest

Alter = AlterClientQuotasRequest
Describe = DescribeClientQuotasRequest
EXACT, DEFAULT, ANY = 0, 1, 2
KEYS = {"ip": "connection_creation_rate"}
ENTITIES: list[list[tuple[str, str | None]]] = [
    [("user", "u")],
    [("user", None)],
    [("user", "u"), ("client-id", "c")],
    [("ip", "1.1.1.1")],
]


@pytest.fixture
def filled(world):
    entries = [
        Alter.Entry(
            entity=[Alter.Entity(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[
                Alter.Op(
                    key=KEYS.get(entity[0][0], "producer_byte_rate"),
                    value=float(number + 1),
                    remove=False,
                )
            ],
        )
        for number, entity in enumerate(ENTITIES)
    ]
    world.ask(Alter(entries=entries), 1)
    return world


def describe(world, *components, strict=False, version=1):
    given = [
        Describe.Component(entity_type=kind, match_type=how, match=name)
        for kind, how, name in components
    ]
    return world.ask(Describe(components=given, strict=strict), version)


@pytest.mark.parametrize(
    ("components", "strict", "numbers"),
    [
        ([], False, {1, 2, 3, 4}),
        ([], True, set()),
        ([("user", EXACT, "u")], False, {1, 3}),
        ([("user", EXACT, "u")], True, {1}),
        ([("user", DEFAULT, None)], False, {2}),
        ([("user", ANY, None)], False, {1, 2, 3}),
        ([("user", ANY, None), ("client-id", ANY, None)], True, {3}),
        ([("ip", EXACT, "1.1.1.1")], True, {4}),
        ([("client-id", EXACT, "nix")], False, set()),
    ],
)
@pytest.mark.parametrize("version", range(2))
def test_finds_what_matches(filled, components, strict, numbers, version):
    response = describe(filled, *components, strict=strict, version=version)
    assert response.error_code == Error.NONE
    assert {entry.values[0].value for entry in response.entries} == numbers


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", ANY, None)], Error.INVALID_REQUEST),
        ([("shoe", ANY, None)], Error.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], Error.INVALID_REQUEST),
        ([("user", DEFAULT, "u")], Error.INVALID_REQUEST),
        ([("user", ANY, "u")], Error.INVALID_REQUEST),
        ([("user", 9, None)], Error.INVALID_REQUEST),
        ([("user", ANY, None), ("user", ANY, None)], Error.INVALID_REQUEST),
        ([("user", ANY, None), ("ip", ANY, None)], Error.INVALID_REQUEST),
    ],
)
def test_refuses_as_kafka_does(filled, components, code):
    response = describe(filled, *components)
    assert (response.error_code, response.entries) == (code, None)
