"""Where a pipeline writes, held against where it reads: never the same topic of the same cluster.

Owns telling clusters apart, which have one id and many addresses.
"""

from collections.abc import Set

from pyspark.sql import SparkSession

from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.source import KafkaSource, resolve


def refuse_own_source(
    spark: SparkSession, source: KafkaSource, target: KafkaSource, topics: Set[str]
) -> None:
    """Refuses targets that the source takes in: each run would feed the next."""
    with KafkaAdmin(spark, source.client_options) as admin:
        read = {topic for topic, _ in resolve(source, admin)}
        if source.pattern:
            # Those that are not there yet as well: they would be, after the first run.
            read |= set(admin.fitting(source.pattern, topics))
        here = admin.cluster_id()
    both = sorted(read & topics)
    if both and here == cluster_id(spark, target):
        raise ValueError(f"{', '.join(both)} would be read and written: write to another topic")


def cluster_id(spark: SparkSession, cluster: KafkaSource) -> str:
    with KafkaAdmin(spark, cluster.client_options) as admin:
        return admin.cluster_id()
