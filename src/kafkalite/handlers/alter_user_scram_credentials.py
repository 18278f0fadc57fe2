"""AlterUserScramCredentials, version 0: sets or removes users' SCRAM credentials (KIP-554).

Flexible. Clients send passwords salted and hashed; only what checks them is kept.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import AlterUserScramCredentials
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


def alter_user_scram_credentials(
    context: Context, call: Call, request: AlterUserScramCredentialsRequest
) -> Later[AlterUserScramCredentialsResponse | KafkaError]:
    return context.controller.submit(AlterUserScramCredentials(request))
