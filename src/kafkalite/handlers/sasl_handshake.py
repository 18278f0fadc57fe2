"""SaslHandshake, versions 0–1: chooses the mechanism of a login (KIP-43).

Versions: 1 has the tokens that follow in SaslAuthenticate (KIP-152). Logins are led before requests
come here; who asks for one here is at a listener without them, or has logged in for good.
"""

from __future__ import annotations

from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(
    context: Context, call: Call, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)
