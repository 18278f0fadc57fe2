"""What a table shows of a batch by itself: its log's own count, or the footers of its files.

Owns reading both. No row is read for it.
"""

import json
from typing import Any

from pyspark.sql import SparkSession

from kafkalite.pipelines.common.files import Folder


def of_query(commit: str, query_id: str, batch_id: int) -> int | None:
    """The rows that a commit of a Delta log added, if it is this batch of this query."""
    actions = [json.loads(line) for line in commit.splitlines() if line.strip()]
    mine = {"appId": query_id, "version": batch_id}
    if not any(mine.items() <= each["txn"].items() for each in actions if "txn" in each):
        return None
    counted = [_rows(each["add"]) for each in actions if "add" in each]
    if None in counted:
        return metrics(commit).get("numOutputRows", 0)
    return sum(rows or 0 for rows in counted)


def metrics(commit: str) -> dict[str, int]:
    """What a commit of a Delta log says of its operation, as far as it is numbers."""
    for line in commit.splitlines():
        said = json.loads(line).get("commitInfo", {}).get("operationMetrics", {})
        if said:
            return {name: int(value) for name, value in said.items() if str(value).isdigit()}
    return {}


def _rows(add: dict[str, Any]) -> int | None:
    """None where the table was told to keep no statistics."""
    found: int | None = json.loads(add.get("stats") or "{}").get("numRecords")
    return found


def footers(spark: SparkSession, where: str) -> int:
    """The rows of the Parquet files below a folder, as their footers say."""
    jvm: Any = spark.sparkContext._jvm
    context: Any = spark.sparkContext._jsc
    parquet = jvm.org.apache.parquet.hadoop
    rows = 0
    for path in Folder(spark, where).paths(".parquet"):
        file = parquet.util.HadoopInputFile.fromPath(path, context.hadoopConfiguration())
        reader = parquet.ParquetFileReader.open(file)
        try:
            rows += reader.getRecordCount()
        finally:
            reader.close()
    return rows
