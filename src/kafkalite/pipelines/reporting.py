"""Hands the report of an audit on: as JSON, a table, a topic, or a picture (PNG or SVG).

Owns the forms of a report; finds out nothing itself. The picture needs matplotlib, which the extra
`plot` brings.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import MARKS, Lake
from kafkalite.pipelines.common.outcomes import DIFFERENT, DONE, PipelineError
from kafkalite.pipelines.common.ownership import held
from kafkalite.pipelines.common.running import lease_of
from kafkalite.pipelines.common.source import KafkaSource

if TYPE_CHECKING:
    from kafkalite.pipelines.audit import Report

OWNER = "audit --report"
# For another audit that appends to the same table.
WAIT_S = 60.0
_SCHEMA = (
    "topic STRING, bucket TIMESTAMP, broker BIGINT, lake BIGINT, producer BIGINT, "
    "latency_p50_ms DOUBLE, latency_p95_ms DOUBLE, latency_p99_ms DOUBLE, latency_max_ms DOUBLE"
)


def as_json(report: "Report") -> dict[str, Any]:
    """The whole report; times as ISO texts."""
    rows = report.rows()
    return {
        "compared": report.compared,
        "not_compared": list(report.not_compared),
        "buckets": [{**row, "bucket": str(row["bucket"])} for row in rows],
        "findings": [asdict(each) for each in report.findings],
        "faults": report.faults,
        "not_yet_loaded": report.not_yet_loaded,
    }


def as_ledger(report: "Report") -> dict[str, Any]:
    """The account of an audit, for one line."""
    return {
        "command": "audit",
        "compared": report.compared,
        "not_yet_loaded": report.not_yet_loaded,
        "not_compared": list(report.not_compared),
        "faults": report.faults,
        "proven": not report.faults,
        "exit_code": DIFFERENT if report.faults else DONE,
    }


def table(spark: SparkSession, report: "Report") -> DataFrame:
    """One row per topic and bucket, and when it was audited."""
    rows = [tuple(row.values()) for row in report.rows()]
    return spark.createDataFrame(rows, _SCHEMA).withColumn("audited_at", sf.current_timestamp())


def to_table(spark: SparkSession, report: "Report", path: str, adopt: bool = False) -> None:
    marks = Folder(spark, f"{path}/{MARKS}")
    # Of two that make a table of Delta's at once one fails.
    with held(lease_of(spark, marks, f"{OWNER} {path}"), WAIT_S):
        Lake(spark, path, "delta").own(OWNER, adopt)
        table(spark, report).write.format("delta").mode("append").save(path)


def to_topic(spark: SparkSession, report: "Report", cluster: KafkaSource, topic: str) -> None:
    rows = table(spark, report)
    records = rows.select(
        sf.concat_ws("/", "topic", "bucket").alias("key"),
        sf.to_json(sf.struct(*rows.columns)).alias("value"),
    )
    options = {**cluster.kafka_options, "kafka.bootstrap.servers": cluster.bootstrap_servers}
    records.write.format("kafka").options(**options).option("topic", topic).save()


def plot(report: "Report", path: str) -> None:
    """Writes the picture; its kind is told by the name's end."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PipelineError("plotting needs matplotlib: pip install 'kafkalite[plot]'") from None
    figure = Figure(figsize=(10, 6), layout="constrained")
    counts, latency = figure.subplots(2, 1, sharex=True)
    for topic in sorted({each.topic for each in report.buckets}):
        buckets = [each for each in report.buckets if each.topic == topic]
        at = [each.bucket for each in buckets]
        counts.plot(at, [each.broker for each in buckets], marker="o", label=f"{topic} broker")
        counts.plot(at, [each.lake for each in buckets], marker="x", ls="--", label=f"{topic} lake")
        if any(each.producer is not None for each in buckets):
            sent = [each.producer for each in buckets]
            counts.plot(at, sent, marker="+", ls=":", label=f"{topic} producers")
        for name in ("p50", "p99"):
            took = [getattr(each, f"latency_{name}_ms") for each in buckets]
            latency.plot(at, took, marker="o", label=f"{topic} {name}")
    counts.set_ylabel("records per 10 min")
    latency.set_ylabel("ms from record to lake")
    counts.legend(fontsize="small")
    latency.legend(fontsize="small")
    figure.autofmt_xdate()
    figure.savefig(path)
