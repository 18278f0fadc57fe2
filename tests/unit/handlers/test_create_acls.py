"""CreateAcls: there is no authorizer, and the answer says so in every version."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreateAclsRequest


@pytest.mark.parametrize("version", range(4))
def test_security_is_disabled(world, version):
    request = CreateAclsRequest(creations=[CreateAclsRequest.Creation(resource_name="t")])
    response = world.ask(request, version)
    found = (response.results[0].error_code, response.results[0].error_message)
    assert found == (Error.SECURITY_DISABLED, "No Authorizer is configured.")
