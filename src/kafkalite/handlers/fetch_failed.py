"""A fetch that fails as a whole: what Apache Kafka says when it fails at what a request asks for.

Owns that answer, which names all that was asked for.
"""

from __future__ import annotations

from kafkalite.env.slicing import Steps, in_steps
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, FetchResponse

TOPIC_ID_VERSION = 13


def failed(request: FetchRequest, version: int) -> Steps[FetchResponse]:
    """All of it in vain; with topic ids nothing is named."""
    code = Error.UNKNOWN_SERVER_ERROR
    response = FetchResponse(error_code=code, session_id=request.session_id)
    for topic in request.topics if version < TOPIC_ID_VERSION else ():
        partitions = yield from in_steps(
            FetchResponse.Partition(
                partition_index=asked.partition, error_code=code, high_watermark=-1, records=b""
            )
            for asked in topic.partitions
        )
        response.responses.append(FetchResponse.Response(topic=topic.topic, partitions=partitions))
        yield
    return response
