"""AlterClientQuotas, versions 0–1: sets or removes quotas of users, client ids and addresses.

Version 1 is flexible (KIP-546). They hold from the next request on, also of who is connected.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import AlterClientQuotas
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


def alter_client_quotas(
    context: Context, call: Call, request: AlterClientQuotasRequest
) -> Later[AlterClientQuotasResponse | KafkaError]:
    return context.controller.submit(AlterClientQuotas(request))
