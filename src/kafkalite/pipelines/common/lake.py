"""A table of records on Delta or Parquet, to which a batch is written exactly once.

Owns how: Delta remembers the last batch of each query itself; for Parquet a batch is a folder
`batch=<id>`, overwritten when it comes again. Invariant: a table knows which queries write it, and
a query that would write the same records again is refused.
"""

import json
import math
from collections import Counter

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kafkalite.pipelines.common.causes import cause_of
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.ledger import Account
from kafkalite.pipelines.common.outcomes import HeldElsewhere, PipelineError
from kafkalite.pipelines.common.ownership import OWNER_FILE, claim, held
from kafkalite.pipelines.common.running import Batch, lease_of
from kafkalite.pipelines.common.written import footers, metrics, of_query

FORMATS = ("delta", "parquet")
MARKS = "_kafkalite"
WRITERS_FILE = f"{MARKS}/writers.json"
TO_LAKE = "to-lake"
# Claims are short: another's is waited for.
CLAIM_WAIT_S = 15.0
# What lies beside the rows of a table.
_BESIDE = (MARKS, "_checkpoint")


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

    def own(self, command: str, adopt: bool = False, beside: str = "") -> None:
        """Refuses a table that another command made, or nobody that is known."""
        inside = Folder(self._spark, f"{self.path}/{MARKS}")
        marks = Folder(self._spark, beside) if beside else inside
        # From before there were marks: the writers of to-lake.
        is_ours = command == TO_LAKE and self._folder.exists(WRITERS_FILE)
        is_used = self.holds_something() and not is_ours
        if marks.path != inside.path and inside.exists(OWNER_FILE):
            # Made by a command that keeps its mark within: it says who.
            marks = inside
        claim(marks, {"command": command}, is_used, adopt)

    def holds_something(self) -> bool:
        return any(name not in _BESIDE for name in self._folder.names())

    def append(self, df: DataFrame, batch: Batch, partition_by: tuple[str, ...] = ()) -> Account:
        """Writes a batch; when it was written before, changes nothing (or the same again).

        Gives what the table shows of it.
        """
        before = self.versions()
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
            cause = cause_of(str(error))
            raise PipelineError(
                f"{self.path} holds columns of other types than these rows ({cause}): "
                "say the schema that both are read by, or load into another path"
            ) from error
        return self._account(batch, where, before)

    def versions(self) -> list[str]:
        """The commits of a Delta table, oldest first."""
        names = self._folder.names("_delta_log") if self.format == "delta" else []
        return [name for name in names if name.endswith(".json") and name[:20].isdigit()]

    def metrics_since(self, before: list[str]) -> dict[str, int]:
        """What the commits since then say of their operations, added up."""
        found: Counter[str] = Counter()
        for name in set(self.versions()) - set(before):
            found.update(metrics(self._folder.read(f"_delta_log/{name}") or ""))
        return dict(found)

    def rows_since(self, before: list[str]) -> int:
        if self.format == "parquet":
            return footers(self._spark, self.path)
        return self.metrics_since(before).get("numOutputRows", 0)

    def _account(self, batch: Batch, where: str, before: list[str]) -> Account:
        if self.format == "parquet":
            return Account(footers(self._spark, where))
        commits = self.versions()
        new = len(set(commits) - set(before))
        for number, name in enumerate(reversed(commits)):
            text = self._folder.read(f"_delta_log/{name}") or ""
            rows = of_query(text, batch.query_id, batch.id)
            if rows is not None:
                # What is there is not read again.
                return Account(rows) if number < new else Account(0, rows, read=rows)
        return Account()

    def claim(self, query_id: str, topics: set[str]) -> None:
        """Refuses a second query whose records this table already has; one is asked at a time."""
        marks = Folder(self._spark, f"{self.path}/{MARKS}")
        with held(lease_of(self._spark, marks, f"{TO_LAKE} {self.path}"), CLAIM_WAIT_S):
            self._claim(query_id, topics)

    def _claim(self, query_id: str, topics: set[str]) -> None:
        writers: dict[str, list[str]] = json.loads(self._folder.read(WRITERS_FILE) or "{}")
        if query_id not in writers:
            self._refuse_overlap(writers, topics)
        if set(writers.get(query_id, ())) != topics:
            writers[query_id] = sorted(topics)
            self._folder.write(WRITERS_FILE, json.dumps(writers, indent=1))

    def _refuse_overlap(self, writers: dict[str, list[str]], topics: set[str]) -> None:
        for other, theirs in writers.items():
            if self.format == "parquet" or topics & set(theirs):
                raise HeldElsewhere(
                    f"{self.path} already holds {', '.join(theirs)}, written by query {other}: "
                    "give the checkpoint of that query, or another path"
                )


def files_for(batch_rows: int, bytes_per_row: float | None, target_bytes: int | None) -> int | None:
    """How many files a batch should become; None leaves it to Spark."""
    if not target_bytes or not bytes_per_row:
        return None
    return max(1, math.ceil(batch_rows * bytes_per_row / target_bytes))
