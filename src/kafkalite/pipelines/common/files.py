"""Small files beside a checkpoint or a table, on whatever file system Spark writes to.

Owns reading and replacing whole small texts through Hadoop's file system, so that `s3a://` and
`hdfs://` work as a local path does. A text is there whole or not at all.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


class Folder:
    """A folder on Spark's file system."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        assert spark.sparkContext._jvm is not None
        self.path = path
        self._jvm: Any = spark.sparkContext._jvm
        root = self._jvm.org.apache.hadoop.fs.Path(path)
        self._gateway: Any = spark.sparkContext._gateway
        java_context: Any = spark.sparkContext._jsc
        self._configuration = java_context.hadoopConfiguration()
        self._system = root.getFileSystem(self._configuration)
        self._root = self._system.makeQualified(root)

    @property
    def url(self) -> str:
        """The whole path, with its file system."""
        return str(self._root.toString())

    def exists(self, name: str = "") -> bool:
        return bool(self._system.exists(self._at(name)))

    def read(self, name: str) -> str | None:
        """The text of a file, None without one."""
        if not self.exists(name):
            return None
        stream = self._system.open(self._at(name))
        try:
            data = self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)
        finally:
            stream.close()
        return bytes(data).decode()

    def write(self, name: str, text: str) -> None:
        """Written aside, then renamed over, so a reader never sees half of it."""
        aside = self._at(f"{name}.writing")
        stream = self._system.create(aside, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        how = self._gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._root.toUri(), self._configuration
        )
        context.rename(aside, self._at(name), how)

    def create(self, name: str, text: str) -> bool:
        """Writes a file that is not there yet; False when it is. Of two that try one does."""
        if self._root.toUri().getScheme() == "file":
            return create_here(Path(self._root.toUri().getPath(), name), text)
        try:
            stream = self._system.create(self._at(name), False)
        except Py4JJavaError:
            if self.exists(name):
                return False
            raise
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        return True

    def names(self, name: str = "") -> list[str]:
        """What lies in a folder here, sorted; nothing when it is not there."""
        if not self.exists(name):
            return []
        return sorted(
            status.getPath().getName() for status in self._system.listStatus(self._at(name))
        )

    def paths(self, ending: str) -> list[Any]:
        """Hadoop's paths of the files below whose names end so."""
        found = []
        if self.exists():
            files = self._system.listFiles(self._root, True)
            while files.hasNext():
                path = files.next().getPath()
                if path.getName().endswith(ending):
                    found.append(path)
        return found

    def delete(self, name: str) -> None:
        self._system.delete(self._at(name), True)

    def size(self, name: str = "") -> int:
        """Bytes of all files below."""
        return int(self._system.getContentSummary(self._at(name)).getLength())

    def _at(self, name: str) -> Any:
        path = self._jvm.org.apache.hadoop.fs.Path
        return path(self._root, name) if name else self._root


def create_here(path: Path, text: str) -> bool:
    """Hadoop's local file system looks, then writes; a link is there whole, for one alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(prefix=".creating-", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(aside)
    return True
