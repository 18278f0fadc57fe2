"""SaslHandshake where nobody logs in: it is out of turn, in every version."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import SaslHandshakeRequest


@pytest.mark.parametrize("version", range(2))
def test_it_is_out_of_turn(world, version):
    response = world.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (response.error_code, response.mechanisms) == (Error.ILLEGAL_SASL_STATE, [])
