"""SaslAuthenticate where nobody logs in: it is out of turn, in every version."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import SaslAuthenticateRequest


@pytest.mark.parametrize("version", range(3))
def test_it_is_out_of_turn(world, version):
    response = world.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), version)
    assert response.error_code == Error.ILLEGAL_SASL_STATE
    assert response.error_message == (
        "SaslAuthenticate request received after successful authentication"
    )
    assert response.session_lifetime_ms == 0
