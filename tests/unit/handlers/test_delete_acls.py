"""DeleteAcls: there is no authorizer, and the answer says so in every version."""

import pytest

from kafkalite.protocol.errors import Error, MalformedFrame
from kafkalite.protocol.messages import DeleteAclsRequest


def asked(permission_type: int) -> DeleteAclsRequest:
    one = DeleteAclsRequest.Filter(
        resource_type_filter=2, operation=1, permission_type=permission_type
    )
    return DeleteAclsRequest(filters=[one])


@pytest.mark.parametrize("version", range(4))
def test_security_is_disabled(world, version):
    response = world.ask(asked(permission_type=3), version)
    found = (response.filter_results[0].error_code, response.filter_results[0].error_message)
    assert found == (Error.SECURITY_DISABLED, "No Authorizer is configured.")


def test_an_unknown_kind_is_no_request(world):
    with pytest.raises(MalformedFrame):
        world.ask(asked(permission_type=0), 3)
