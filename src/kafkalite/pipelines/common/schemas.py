"""Avro schemas by id: from a schema registry's URL, or from files `<id>.avsc` in a folder.

Owns fetching and keeping them. A registry is asked once for an id; ids never change their meaning.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from kafkalite.pipelines.common.decode import schema_id

TIMEOUT_S = 30
# A topic with more schemas than this is not framed Avro, but bytes that look like it.
MAX_SCHEMAS = 1_000


class Schemas:
    """Schemas of one registry, as far as they were needed."""

    def __init__(self, where: str) -> None:
        self._where = where.rstrip("/")
        self._known: dict[int, str] = {}
        self._unknown: set[int] = set()

    def of(self, df: DataFrame) -> dict[int, str]:
        """The schemas that the values of these rows name; an id nobody knows is left out."""
        found = df.select(schema_id(sf.col("value")).alias("id")).where("id IS NOT NULL").distinct()
        for row in found.limit(MAX_SCHEMAS).collect():
            self._learn(row["id"])
        return dict(self._known)

    def _learn(self, number: int) -> None:
        if number in self._known or number in self._unknown:
            return
        text = self._fetch(number) if "://" in self._where else self._file(number)
        if text is None:
            self._unknown.add(number)
        else:
            self._known[number] = text

    def _file(self, number: int) -> str | None:
        path = Path(self._where, f"{number}.avsc")
        return path.read_text() if path.exists() else None

    def _fetch(self, number: int) -> str | None:
        request = f"{self._where}/schemas/ids/{number}"
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                return str(json.load(reply)["schema"])
        except urllib.error.HTTPError as refused:
            if refused.code == 404:
                return None
            raise
