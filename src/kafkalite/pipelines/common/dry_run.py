"""What a pipeline would do: the plan, the schema, the offsets and how many rows, reading nothing.

Owns the look ahead. Never reads a record and never writes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.checkpoint import Checkpoint
from kafkalite.pipelines.common.offsets import Range, between, count
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.source import (
    KafkaSource,
    refuse_missing,
    resolve,
    starting_offsets,
)


@dataclass(frozen=True, slots=True)
class DryRun:
    """`rows` is an upper bound: compaction and transaction markers take offsets too."""

    schema: str
    plan: str
    ranges: list[Range]
    resumes: bool

    @property
    def rows(self) -> int:
        return count(self.ranges)


def dry_run(
    spark: SparkSession,
    source: KafkaSource,
    step: Callable[[DataFrame], DataFrame],
    checkpoint: str = "",
) -> DryRun:
    with KafkaAdmin(spark, source.client_options) as admin:
        refuse_missing(source, admin)
        partitions = resolve(source, admin)
        if not partitions:
            raise PipelineError(f"no topic to read: the cluster has none for {source}")
        planned = Checkpoint(spark, checkpoint).resumes_at() if checkpoint else None
        starts = starting_offsets(source, admin) if planned is None else planned
        ends = admin.ends(partitions)
    output = step(source.between({}, dict.fromkeys(partitions, 0)).batch(spark))
    return DryRun(tree(output), plan(output), between(starts, ends), planned is not None)


def tree(df: DataFrame) -> str:
    return str(df.schema.treeString())


def plan(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().simpleString())
