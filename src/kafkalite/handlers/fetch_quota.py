"""What a fetch takes of its client's quota, and what it gets when that is too much.

Owns how large a reply would be, as a sum of what a reply, a topic and a partition take in each
version: nothing is encoded that may not be sent. Followers' fetches take nothing.
"""

from __future__ import annotations

from functools import cache

from kafkalite.handlers.call import Call
from kafkalite.handlers.fetch_sessions import NO_SESSION, Fetch, Wanted, replica_id
from kafkalite.protocol import codec
from kafkalite.protocol.messages import FetchRequest, FetchResponse

Answers = list[tuple[Wanted, FetchResponse.Partition, int]]  # and how many bytes of records

LENGTH_BYTES = 4  # of the frame
TOPIC_ID_VERSION = 13
ABORTED_BYTES = 16


def most_bytes(call: Call, request: FetchRequest, wanted: int) -> int:
    """No more than its client may be given at once."""
    if call.meter is None or replica_id(request) >= 0:
        return wanted
    return int(min(wanted, call.meter.most_fetched()))


def nothing_yet(
    call: Call, request: FetchRequest, asked: Fetch, answers: Answers
) -> FetchResponse | None:
    """The empty reply of who has to wait. No session begins with it, and the one that there is will
    be told all of this another time."""
    meter = call.meter
    if meter is None or replica_id(request) >= 0:
        return None
    if asked.is_incremental:
        answers = [each for each in answers if each[0].has_news(each[1], each[2])]
    if not meter.fetched(size_of(answers, call.version)):
        return None
    return FetchResponse(session_id=NO_SESSION if asked.session is None else asked.session.id)


def size_of(answers: Answers, version: int) -> int:
    """In bytes; to within a few for each partition, whose records may have a longer length."""
    reply, per_topic, per_partition = _parts(version)
    size, last = reply, None
    for wanted, answer, length in answers:
        name = wanted.topic_id if version >= TOPIC_ID_VERSION else wanted.topic
        if name != last:
            last = name
            size += per_topic + (0 if version >= TOPIC_ID_VERSION else len(wanted.topic))
        size += per_partition + length + ABORTED_BYTES * len(answer.aborted_transactions or ())
    return size


@cache
def _parts(version: int) -> tuple[int, int, int]:
    """The bytes of an empty reply, of a topic, and of a partition without records."""
    topic = FetchResponse.Response()
    response = FetchResponse()
    reply = len(codec.encode(response, version))
    response.responses = [topic]
    with_topic = len(codec.encode(response, version))
    topic.partitions = [FetchResponse.Partition(records=b"")]
    whole = len(codec.encode(response, version))
    return LENGTH_BYTES + reply, with_topic - reply, whole - with_topic
