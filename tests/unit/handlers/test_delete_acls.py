"""DeleteAcls: there is no authorizer, and the answer says so in every version."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteAclsRequest


@pytest.mark.parametrize("version", range(4))
def test_security_is_disabled(world, version):
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filter(resource_type_filter=2)])
    response = world.ask(request, version)
    found = (response.filter_results[0].error_code, response.filter_results[0].error_message)
    assert found == (Error.SECURITY_DISABLED, "No Authorizer is configured.")
