"""SaslAuthenticate, versions 0–2: carries one token of a login (KIP-152).

Versions: 1 tells how long a login holds (KIP-368), 2 flexible. As with SaslHandshake, whoever asks
for it here does so out of turn.
"""

from __future__ import annotations

from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


def sasl_authenticate(
    context: Context, call: Call, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=Error.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
