"""GetTelemetrySubscriptions: which metrics are wanted of which client."""

import time

import pytest

from kafkalite.coordinators.cluster.configs import AlterConfigs, ResourceChange, Step
from kafkalite.env.slicing import finish
from kafkalite.handlers import telemetry
from kafkalite.handlers.call import Call
from kafkalite.handlers.telemetry import Telemetry
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ZERO_UUID, GetTelemetrySubscriptionsRequest

TOPIC, CLIENT_METRICS = 2, 16
INSTANCE = b"\7" * 16


def subscribe(world, name, **settings):
    steps = [Step(key.replace("_", "."), 0, value) for key, value in settings.items()]
    change = ResourceChange(CLIENT_METRICS, name, steps)
    assert world.controller.decide(AlterConfigs([change])) == [None]


def ask(world, instance_id=INSTANCE):
    return world.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


def test_nothing_is_wanted_without_a_subscription(world):
    response = ask(world, ZERO_UUID)
    assert response.client_instance_id != ZERO_UUID
    assert (response.error_code, response.requested_metrics) == (Error.NONE, [])
    assert (response.push_interval_ms, response.telemetry_max_bytes) == (300_000, 1_048_576)
    assert response.accepted_compression_types == [4, 3, 1, 2]


def test_the_union_of_all_that_match(world):
    subscribe(world, "mine", metrics="b,a", interval_ms="1000", match="client_id=a-cl.*")
    subscribe(world, "all", metrics="c", interval_ms="2000")
    subscribe(world, "others", metrics="d", match="client_id=other")
    response = ask(world)
    assert response.requested_metrics == ["a", "b", "c"]
    assert response.push_interval_ms == 1000


def test_the_settings_of_topics_are_not_put_in_order_for_it(world, monkeypatch):
    subscribe(world, "s", metrics="a")
    for number in range(50):
        change = ResourceChange(TOPIC, f"t{number}", [Step("retention.ms", 0, "5")])
        world.create(change.name)
        assert world.controller.decide(AlterConfigs([change])) == [None]
    sizes = []

    def counted(items, **how):
        found = sorted(items, **how)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(telemetry, "sorted", counted, raising=False)
    assert ask(world).requested_metrics == ["a"]
    assert max(sizes) == 1


def test_everything_is_asked_for_by_a_star(world):
    subscribe(world, "s", metrics="a,*")
    assert ask(world).requested_metrics == ["*"]


def test_a_client_without_an_id_is_matched_by_no_expression_for_it(world):
    subscribe(world, "any", metrics="a", match="client_id=.*")
    subscribe(world, "unnamed", metrics="b", match="client_software_name=unknown")
    assert ask(world).requested_metrics == ["a", "b"]
    call = Call(71, 0, 1, None, world.connection)
    asked = world.context.telemetry.ask(world.metadata.image, call, b"\1" * 16, 0)
    assert finish(asked).metrics == ("b",)


def test_whose_connection_has_ended_asks_as_if_for_the_first_time(world):
    ask(world)
    assert ask(world).error_code == Error.THROTTLING_QUOTA_EXCEEDED
    assert world.context.telemetry.throttled == 1
    world.connection.has_gone()
    assert len(world.context.telemetry) == 0
    assert ask(world).error_code == Error.NONE


def test_asking_again_too_early_is_throttled_unless_something_changed(world):
    first = ask(world)
    assert ask(world).error_code == Error.THROTTLING_QUOTA_EXCEEDED
    subscribe(world, "s", metrics="a")
    second = ask(world)
    assert second.error_code == Error.NONE
    assert second.subscription_id != first.subscription_id
    world.env.clock.advance(300_000)
    assert ask(world).error_code == Error.NONE


def test_a_flood_of_clients_leaves_a_bounded_memory(world):
    world.context.telemetry = Telemetry(max_instances=10)
    for number in range(50):
        ask(world, number.to_bytes(16, "big") if number > 1 else INSTANCE)
    assert len(world.context.telemetry) == 10


def test_a_pattern_that_would_explode_is_matched_in_no_time(world):
    subscribe(world, "s", metrics="a", match="client_software_name=((.|..)*)*!")
    assert ask(world).requested_metrics == []


@pytest.mark.parametrize("before", ["(?!x)", r"(x)?(?:\1y)?", "a{900}|" * 7])
def test_nor_is_one_that_only_an_engine_that_backtracks_can_match(world, before):
    pattern = f"client_instance_id={before}(\\w(\\w)?(\\w)?)+!"
    subscribe(world, "s", metrics="a", match=pattern)
    began_s = time.thread_time()
    assert ask(world).requested_metrics == []
    assert time.thread_time() - began_s < 0.5  # Python's own: twice that for each character more


def test_what_looks_ahead_or_back_is_matched(world):
    subscribe(world, "ahead", metrics="a", match="client_instance_id=(?!8)Bwc.*")
    subscribe(world, "back", metrics="b", match=r"client_instance_id=Bw(cHBw)\1*")
    subscribe(world, "neither", metrics="c", match="client_instance_id=(?!B)B.*")
    assert ask(world).requested_metrics == ["a", "b"]
