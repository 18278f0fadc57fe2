"""A table of records on Delta or Parquet, to which a batch is written exactly once.

Owns how: Delta remembers the last batch of each query itself; for Parquet a batch is a folder
`batch=<id>`, overwritten when it comes again. Invariant: a table knows which queries write it, and
a query that would write the same records again is refused.
"""

import json
import math

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.running import Batch, PipelineError, first_line

FORMATS = ("delta", "parquet")
WRITERS_FILE = "_kafkalite/writers.json"


class Lake:
    """The table at `path`."""

    def __init__(self, spark: SparkSession, path: str, table_format: str) -> None:
        if table_format not in FORMATS:
            raise ValueError(f"no table format {table_format!r}; there are {', '.join(FORMATS)}")
        self.path = path
        self.format = table_format
        self._spark = spark
        self._folder = Folder(spark, path)

    def exists(self) -> bool:
        if self.format == "delta":
            return self._folder.exists("_delta_log")
        return any(name.startswith("batch=") for name in self._folder.names())

    def read(self) -> DataFrame:
        return self._spark.read.format(self.format).load(self.path)

    def append(self, df: DataFrame, batch: Batch, partition_by: tuple[str, ...] = ()) -> None:
        """Writes a batch; when it was written before, changes nothing (or the same again)."""
        if self.format == "delta":
            writer = df.write.format("delta").mode("append").option("mergeSchema", "true")
            # Delta skips a version of this application that its log already has.
            writer = writer.option("txnAppId", batch.query_id).option("txnVersion", str(batch.id))
            where = self.path
        else:
            writer = df.write.format("parquet").mode("overwrite")
            where = f"{self.path}/batch={batch.id}"
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        try:
            writer.save(where)
        except AnalysisException as error:
            if "FAILED_TO_MERGE" not in str(error):
                raise
            raise PipelineError(
                f"{self.path} holds columns of other types than these rows ({first_line(error)}): "
                "say the schema that both are read by, or load into another path"
            ) from error

    def claim(self, query_id: str, topics: set[str]) -> None:
        """Refuses a second query whose records this table already has."""
        writers: dict[str, list[str]] = json.loads(self._folder.read(WRITERS_FILE) or "{}")
        if query_id not in writers:
            self._refuse_overlap(writers, topics)
        if set(writers.get(query_id, ())) != topics:
            writers[query_id] = sorted(topics)
            self._folder.write(WRITERS_FILE, json.dumps(writers, indent=1))

    def _refuse_overlap(self, writers: dict[str, list[str]], topics: set[str]) -> None:
        for other, theirs in writers.items():
            if self.format == "parquet" or topics & set(theirs):
                raise PipelineError(
                    f"{self.path} already holds {', '.join(theirs)}, written by query {other}: "
                    "give the checkpoint of that query, or another path"
                )


def files_for(batch_rows: int, bytes_per_row: float | None, target_bytes: int | None) -> int | None:
    """How many files a batch should become; None leaves it to Spark."""
    if not target_bytes or not bytes_per_row:
        return None
    return max(1, math.ceil(batch_rows * bytes_per_row / target_bytes))
