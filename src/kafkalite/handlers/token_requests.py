"""Who may ask for delegation tokens, or about them: whoever logged in, and not with one of them.

Owns that rule of KIP-48. On a listener that does not say who somebody is there is nobody to give a
token to, and a token may not beget others, which would live on without their owner's password.
"""

from __future__ import annotations

from kafkalite.config.listeners import PLAINTEXT, SSL
from kafkalite.handlers.call import ANONYMOUS, Call

USER = "User"  # the only kind of principal that may renew one
NO_TIME = -1


def may_ask(call: Call) -> bool:
    client = call.connection
    if client.is_by_token or client.protocol == PLAINTEXT:
        return False
    return client.protocol != SSL or client.principal != ANONYMOUS
