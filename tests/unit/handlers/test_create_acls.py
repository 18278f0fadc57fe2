"""CreateAcls: there is no authorizer, and the answer says so in every version."""

import pytest

from kafkalite.protocol.errors import Error, MalformedFrame
from kafkalite.protocol.messages import CreateAclsRequest


def asked(permission_type: int) -> CreateAclsRequest:
    one = CreateAclsRequest.Creation(
        resource_type=2, resource_name="t", operation=3, permission_type=permission_type
    )
    return CreateAclsRequest(creations=[one])


@pytest.mark.parametrize("version", range(4))
def test_security_is_disabled(world, version):
    response = world.ask(asked(permission_type=3), version)
    found = (response.results[0].error_code, response.results[0].error_message)
    assert found == (Error.SECURITY_DISABLED, "No Authorizer is configured.")


def test_an_unknown_kind_is_no_request(world):
    with pytest.raises(MalformedFrame):
        world.ask(asked(permission_type=0), 3)
