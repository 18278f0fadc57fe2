"""Reads Spark's checkpoint of a streaming query: which offsets each batch holds, which are done.

Owns the knowledge of those files. Never writes one: Spark does. Beside them, in `kafkalite/`, lie
this project's own notes on the same batches.
"""

import json

from pyspark.sql import SparkSession

from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import Offsets, Range, between, parse

NOTES = "kafkalite"


class Checkpoint:
    """The checkpoint folder of a query with one Kafka source."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.folder = Folder(spark, path)

    def query_id(self) -> str | None:
        text = self.folder.read("metadata")
        return None if text is None else str(json.loads(text)["id"])

    def last_planned(self) -> int | None:
        return self._last("offsets")

    def last_done(self) -> int | None:
        return self._last("commits")

    def ends(self, batch_id: int) -> Offsets | None:
        """Where a batch ends, once it is planned."""
        text = self.folder.read(f"offsets/{batch_id}")
        return None if text is None else parse(_last_line(text))

    def starts(self, batch_id: int) -> Offsets:
        """Where a batch begins: where the one before it ended."""
        if batch_id > 0:
            before = self.ends(batch_id - 1)
            if before is not None:
                return before
        text = self.folder.read("sources/0/0")
        return {} if text is None else parse(_last_line(text))

    def ranges(self, batch_id: int) -> list[Range]:
        return between(self.starts(batch_id), self.ends(batch_id) or {})

    def done(self) -> Offsets:
        """Offsets up to which every record has been processed and committed."""
        last = self.last_done()
        return {} if last is None else self.ends(last) or {}

    def resumes_at(self) -> Offsets | None:
        """Where a restart begins to read; None when nothing was ever planned."""
        planned = self.last_planned()
        if planned is None:
            return None
        done = self.last_done()
        return self.ends(planned) if done == planned else self.starts(planned)

    def _last(self, folder: str) -> int | None:
        numbers = [int(name) for name in self.folder.names(folder) if name.isdigit()]
        return max(numbers, default=None)


def _last_line(text: str) -> str:
    # A version line, for offsets a line of metadata, then one line per source: here one.
    return text.rstrip("\n").rpartition("\n")[2]
