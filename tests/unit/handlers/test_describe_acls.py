"""DescribeAcls: there is no authorizer, and the answer says so in every version."""

import pytest

from kafkalite.protocol.errors import Error, MalformedFrame
from kafkalite.protocol.messages import DescribeAclsRequest


@pytest.mark.parametrize("version", range(4))
def test_security_is_disabled(world, version):
    request = DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)
    response = world.ask(request, version)
    found = (response.error_code, response.error_message)
    assert found == (Error.SECURITY_DISABLED, "No Authorizer is configured on the broker")


def test_an_unknown_kind_is_no_request(world):
    with pytest.raises(MalformedFrame):
        world.ask(DescribeAclsRequest(resource_type_filter=1, permission_type=1), 3)
