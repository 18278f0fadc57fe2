"""ControllerRegistration: a controller says what it is."""

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ControllerRegistrationRequest

Listener = ControllerRegistrationRequest.Listener


def test_a_controller_is_known(desk):
    listener = Listener(name="CONTROLLER", host="h", port=9093, security_protocol=0)
    asked = ControllerRegistrationRequest(controller_id=3000, listeners=[listener])
    assert desk.world.ask(asked, 0).error_code == Error.NONE
    known = desk.world.metadata.image.controllers[3000]
    assert [(each.name, each.port) for each in known.end_points] == [("CONTROLLER", 9093)]


def test_an_old_level_has_no_record_for_it(desk):
    desk.world.metadata.image.features["metadata.version"] = 14
    answer = desk.world.ask(ControllerRegistrationRequest(controller_id=3000), 0)
    assert answer.error_code == Error.UNSUPPORTED_VERSION
