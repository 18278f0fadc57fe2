"""DescribeLogDirs, versions 0–5: what lies in each log directory, and how much.

Versions: 2 flexible, 3 an error for the whole, 4 sizes of the volumes (KIP-827), 5 directories that
take no new partitions (KIP-1066). Without a list all partitions are meant.
"""

from __future__ import annotations

from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.log.describing import DirectoryInfo
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

Response = DescribeLogDirsResponse
Wanted = set[tuple[str, int]] | None

STEP_LOGS = 25


def describe_log_dirs(
    context: Context, call: Call, request: DescribeLogDirsRequest
) -> InSteps:
    return InSteps(_answer(context, request))


def _answer(context: Context, request: DescribeLogDirsRequest) -> Steps[Response]:
    wanted: Wanted = None
    if request.topics is not None:
        wanted = {(each.topic, index) for each in request.topics for index in each.partitions}
    cordoned = set(context.config.get_list("cordoned.log.dirs"))
    response = Response(error_code=Error.NONE)
    for found in context.logs.describe():
        is_cordoned = not cordoned.isdisjoint({"*", found.path})
        directory = yield from _directory(context, found, wanted, is_cordoned=is_cordoned)
        response.results.append(directory)
    return response


def _directory(
    context: Context, found: DirectoryInfo, wanted: Wanted, *, is_cordoned: bool
) -> Steps[Response.Result]:
    if not found.is_online:
        return Response.Result(error_code=Error.KAFKA_STORAGE_ERROR, log_dir=found.path)
    topics: dict[str, list[Response.Partition]] = {}
    for number, log in enumerate(found.logs):
        if number % STEP_LOGS == STEP_LOGS - 1:
            yield
        if wanted is None or (log.topic, log.partition) in wanted:
            topics.setdefault(log.topic, []).append(_partition(context, log))
    return Response.Result(
        error_code=Error.NONE,
        log_dir=found.path,
        topics=[Response.Topic(name=name, partitions=topics[name]) for name in sorted(topics)],
        total_bytes=found.total_bytes,
        usable_bytes=found.usable_bytes,
        is_cordoned=is_cordoned,
    )


def _partition(context: Context, log: PartitionLog) -> Response.Partition:
    current = context.logs.get(log.topic, log.partition)
    behind = current.log_end_offset if log.is_future and current is not None else 0
    return Response.Partition(
        partition_index=log.partition,
        partition_size=log.size,
        offset_lag=max(0, behind - log.log_end_offset) if log.is_future else 0,
        is_future_key=log.is_future,
    )
