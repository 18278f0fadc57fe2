"""A request with very many of anything, in each of its arrays: no turn of the loop goes over all of
them.

What is asked for is not there, or may not be: that, too, takes a handler to the end of the array.
Time stands still, so a slice is one step here, and what a turn does is counted in lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite import handlers
from kafkalite.broker.authorizing import as_request
from kafkalite.coordinators.cluster.events import CreateAcls
from kafkalite.env import slicing
from kafkalite.env.later import Later
from kafkalite.protocol import classes, files, spec
from kafkalite.protocol.messages import DeleteAclsRequest, FetchRequest, message_class
from kafkalite.security.acl import ALLOW, ANY, LITERAL, READ, TOPIC, Acl
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.server.lines import LineClock

MANY = 1_000
# Of a turn, for each of them: ten thousand of which would take it some ten milliseconds.
LINES_EACH = 12
APIS = (
    "AlterClientQuotas", "AlterConfigs", "CreateAcls", "DeleteAcls", "DeleteShareGroupOffsets",
    "DescribeGroups", "DescribeTransactions", "IncrementalAlterConfigs", "LeaveGroup",
    "ReadShareGroupState",
)  # fmt: skip
SUPER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
Way = tuple[str, ...]  # to an array: the names of fields


def apis() -> list[spec.Api]:
    found = [spec.read(path).api for path in sorted(files.message_files())]
    return [api for api in found if api is not None and api.name in APIS]


def arrays(struct: spec.Struct, version: int, way: Way = ()) -> Iterator[Way]:
    for field in struct.fields:
        if field.is_in(version) and field.is_array:
            yield (*way, field.name)
            if field.struct is not None:
                yield from arrays(field.struct, version, (*way, field.name))


class Maker:
    """Makes requests with very many elements in one array, and one in each other."""

    def __init__(self, cls: type[Any], version: int, way: Way) -> None:
        self.cls, self.version, self.way = cls, version, way

    def request(self) -> Any:
        return self.struct(self.cls.SPEC.root, (), 0)

    def struct(self, struct: spec.Struct, way: Way, number: int) -> Any:
        cls = self.cls if struct is self.cls.SPEC.root else getattr(self.cls, struct.name)
        fields = [field for field in struct.fields if field.is_in(self.version)]
        return cls(**{each.name: self.value(each, (*way, each.name), number) for each in fields})

    def value(self, field: spec.Field, way: Way, number: int) -> Any:
        if field.is_array:
            count = MANY if way == self.way else 1
            return [self.element(field, way, each) for each in range(count)]
        return self.element(field, way, number)

    def element(self, field: spec.Field, way: Way, number: int) -> Any:
        if field.struct is not None:
            return self.struct(field.struct, way, number)
        default = classes.default_value(self.cls, field)
        if field.name == "isolation_level" or (field.default is not None and default is not None):
            return default
        return self.scalar(field, number)

    def scalar(self, field: spec.Field, number: int) -> Any:
        match field.type:
            case "string":
                return f"{field.resource or 'x'}-{number}"
            case "uuid":
                return (number + 1).to_bytes(16, "big")
            case "bytes" | "records":
                return b"x"
            case "bool":
                return False
            case "float64":
                return 1.0
            case "int8":
                return 2
            case "int16":
                return 1
        return number


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LineClock:
    for name in ("STEPS_PER_SLICE", "STEPS_PER_SHARE", "STEPS_AT_ONCE"):
        monkeypatch.setattr(slicing, name, 1)
    return LineClock()


def heaviest(broker: WholeBroker, clock: LineClock, request: Any, version: int) -> int:
    """How many lines the longest turn of an answer runs."""
    frame = broker.frame(request, version)
    answers: list[object] = []
    clock.begin()
    answer = clock.turn(lambda: broker.broker.dispatcher.answer(frame, broker.connection))
    answer.then(answers.append) if isinstance(answer, Later) else answers.append(answer)
    for _ in range(100):
        if answers:
            return clock.most
        clock.advance(1_000)
    raise AssertionError("it was never answered")


@pytest.mark.parametrize("settings", [{}, SUPER], ids=["plain", "super"])
@pytest.mark.parametrize("api", apis(), ids=lambda api: api.name)
def test_no_turn_goes_over_all_of_them(
    api: spec.Api, settings: dict[str, str], clock: LineClock
) -> None:
    cls, version = message_class(f"{api.name}Request"), max(handlers.versions(api))
    ways = list(arrays(cls.SPEC.root, version))
    broker = WholeBroker(settings, clock=clock)
    found: dict[Way, tuple[int, str]] = {}
    for way in ways[:1] + ways:  # the first time code is made
        request = Maker(cls, version, way).request()
        found[way] = heaviest(broker, clock, request, version), clock.places()
    broker.close()
    assert {way: each for way, each in found.items() if each[0] > MANY * LINES_EACH} == {}


def test_no_turn_encodes_all_of_what_a_small_request_is_told(clock: LineClock) -> None:
    broker = WholeBroker(SUPER, clock=clock)
    names = [f"t{each}" for each in range(3 * MANY)]
    rules = [Acl(TOPIC, name, LITERAL, "User:a", "*", READ, ALLOW) for name in names]
    broker.broker.controller.decide(CreateAcls(as_request(rules)))
    everything = DeleteAclsRequest.Filter(
        resource_type_filter=ANY, resource_name_filter=None, pattern_type_filter=ANY,
        principal_filter=None, host_filter=None, operation=ANY, permission_type=ANY,
    )  # fmt: skip
    request = DeleteAclsRequest(filters=[everything])
    assert heaviest(broker, clock, request, 3) <= MANY * LINES_EACH, clock.places()
    assert not broker.context.metadata.image.acls
    broker.close()


@pytest.mark.parametrize("topic", ["t", "nowhere"])
def test_no_turn_looks_for_all_of_what_is_read_at_no_known_isolation(
    clock: LineClock, topic: str
) -> None:
    broker = WholeBroker(clock=clock)
    broker.create("t")
    for _ in range(2):  # the first time code is made
        partitions = [FetchRequest.Partition(partition=each) for each in range(MANY, -1, -1)]
        topics = [FetchRequest.Topic(topic=topic, partitions=partitions)]
        request = FetchRequest(topics=topics, isolation_level=9, max_wait_ms=0)
        most = heaviest(broker, clock, request, 12)
    assert most <= MANY * LINES_EACH, clock.places()
    broker.close()
