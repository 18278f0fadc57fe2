"""ListConfigResources: names of what can have settings."""

from kafkalite.coordinators.cluster.configs import AlterConfigs, ResourceChange, Step
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ListConfigResourcesRequest


def listed(world, *types, version=1):
    response = world.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
    assert response.error_code == Error.NONE
    return {(each.resource_type, each.resource_name) for each in response.config_resources}


def test_every_kind(world):
    world.create("t")
    step = Step("interval.ms", 0, "100")
    world.controller.decide(AlterConfigs([ResourceChange(16, "s", [step])]))
    assert listed(world, 2) == {(2, "t")}
    assert listed(world, 4, 8) == {(4, "1"), (8, "1")}
    assert listed(world) == {(2, "t"), (4, "1"), (8, "1"), (16, "s")}


def test_version_0_knows_subscriptions_alone(world):
    world.create("t")
    assert listed(world, version=0) == set()


def test_an_unknown_kind_is_refused(world):
    response = world.ask(ListConfigResourcesRequest(resource_types=[2, 99]), 1)
    assert (response.error_code, response.config_resources) == (Error.UNSUPPORTED_VERSION, [])
