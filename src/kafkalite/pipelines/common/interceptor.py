"""What Spark's Kafka sink lacks, done by the producer it uses: timestamps of records, and a rate.

Owns one small Java class, compiled by the compiler that Spark brings along and handed to the
executors as a jar. Nothing of it stays in a record that was written.
"""

import tempfile
import threading
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

CLASS = "kafkalite.pipelines.RecordShaper"
TIMESTAMP_HEADER = "__kafkalite.timestamp"
RATE_OPTION = "kafka.kafkalite.records.per.second"

_contexts: WeakKeyDictionary[SparkContext, bool] = WeakKeyDictionary()
_handing_out = threading.Lock()


def options(spark: SparkSession, rate: int | None) -> dict[str, str]:
    """Options of Spark's sink that put the interceptor in place."""
    # Pipelines may run beside each other in one session, which takes a jar of a name once.
    with _handing_out:
        if spark.sparkContext not in _contexts:
            _hand_out(spark)
            _contexts[spark.sparkContext] = True
    chosen = {"kafka.interceptor.classes": CLASS}
    if rate is not None:
        chosen[RATE_OPTION] = str(rate)
    return chosen


def with_timestamp(headers: Column, timestamp: Column) -> Column:
    """Headers with the record's timestamp among them; none for a record that had none (-1)."""
    millis = sf.unix_millis(timestamp)
    stamp = sf.struct(
        sf.lit(TIMESTAMP_HEADER).alias("key"),
        sf.unhex(sf.lpad(sf.hex(millis), 16, "0")).alias("value"),
    )
    present = sf.coalesce(headers, sf.array().cast("array<struct<key:string,value:binary>>"))
    return sf.when(millis >= 0, sf.concat(present, sf.array(stamp))).otherwise(headers)


def _hand_out(spark: SparkSession) -> None:
    """Compiles the class and adds it to the jars of every executor, the driver's included."""
    context: Any = spark.sparkContext
    source = files("kafkalite.pipelines.common").joinpath("java/RecordShaper.java").read_text()
    compiler = context._jvm.org.codehaus.janino.SimpleCompiler()
    loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler.setParentClassLoader(loader)
    compiler.cook("RecordShaper.java", context._jvm.java.io.StringReader(source))
    # The folder lives as long as the context serves the jar to executors.
    jar = Path(tempfile.mkdtemp(prefix="kafkalite-")) / "kafkalite-record-shaper.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, code in compiler.getBytecodes().items():
            archive.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    context._jsc.sc().addJar(str(jar))
