"""How many partitions the sender of a request may have come or go.

Owns from which version on a client understands that it has had its quota; an older one gets what it
asked for, and is made to wait.
"""

from __future__ import annotations

from kafkalite.handlers.call import Call
from kafkalite.quotas.permits import Permits


def permits_of(call: Call, strict_version: int) -> Permits | None:
    """None: as many as it likes."""
    if call.meter is None:
        return None
    return call.meter.permits(is_strict=call.version >= strict_version)


def permits_unasked(call: Call) -> Permits | None:
    """For topics that come with another request, whose sender does not wait for them."""
    return None if call.meter is None else call.meter.permits(is_strict=True, is_told=False)
