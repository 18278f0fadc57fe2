"""`session(*connectors)`: a SparkSession with the jars that fit the installed pyspark.

Owns which jars make which connector, and the sentences that explain why they do not fit. Never
touches the broker. Invariant: a session returned here can load every connector asked for.
"""

import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from kafkalite.jvm import jars, java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's minor version for which the `spark` group of kafkalite/jvm/jars.toml is resolved.
SUPPORTED = "4.2"
INSTALL = "pip install 'kafkalite[spark]'"

# Connector: artifacts of the jar group (without Scala suffix and version), and a class as proof.
CONNECTORS: dict[str, tuple[frozenset[str], str]] = {
    "kafka": (
        frozenset(
            {
                "spark-sql-kafka-0-10_2.13",
                "spark-token-provider-kafka-0-10_2.13",
                "commons-pool2",
                "kafka-clients",
            }
        ),
        "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    ),
    "delta": (
        frozenset({"delta-spark_4.2_2.13", "delta-storage"}),
        "io.delta.sql.DeltaSparkSessionExtension",
    ),
    "avro": (frozenset({"spark-avro_2.13"}), "org.apache.spark.sql.avro.AvroFileFormat"),
}

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_COMMON = {
    # Buckets and dates are cut in one zone, wherever the driver stands.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # A repeated task would write its records to a topic twice; a repeated batch does not.
    "spark.task.maxFailures": "1",
    "spark.speculation": "false",
}
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
}


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


class SparkMismatch(RuntimeError):
    """pyspark, Spark and the connectors do not fit together; the message says what to do."""


def session(
    *connectors: str,
    app: str = "kafkalite",
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    log: Callable[[], Path] | None = None,
) -> "SparkSession":
    """A SparkSession that can load `connectors`: any of kafka, delta and avro; all by default.

    `master` defaults to what `spark-submit` or the environment says, else to `local[*]`.
    Settings in `config` win over those made here. An active session is taken if it can load them.
    One that is started here says what it has to say into the file that `log` gives, if any.
    """
    wanted = connectors or tuple(CONNECTORS)
    unknown = sorted(set(wanted) - set(CONNECTORS))
    if unknown:
        raise SparkMismatch(f"no connector {unknown[0]!r}; there are {', '.join(CONNECTORS)}")
    _check_versions()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        # Also over a JAVA_HOME that is too old, with which Spark would fail in its own words.
        os.environ["JAVA_HOME"] = java.environment()["JAVA_HOME"]
        active = _build(wanted, app, master, dict(config or {}), log() if log else None)
    _check_loadable(active, wanted)
    return active


def jar_paths(*connectors: str) -> list[Path]:
    """The jars of these connectors, fetched if they are not in the cache yet."""
    artifacts = frozenset[str]().union(*(CONNECTORS[name][0] for name in connectors))
    found = [path for path in jars.paths("spark") if _artifact(path) in artifacts]
    missing = artifacts - {_artifact(path) for path in found}
    assert not missing, f"jars.toml lacks {sorted(missing)}"
    return found


def _artifact(path: Path) -> str:
    """`commons-pool2` of `commons-pool2-2.12.1.jar`."""
    return re.sub(r"-\d+(\.\d+)*\.jar$", "", path.name)


def _build(
    connectors: tuple[str, ...],
    app: str,
    master: str | None,
    config: dict[str, str],
    log: Path | None,
) -> "SparkSession":
    from pyspark.sql import SparkSession

    where = master or config.get("spark.master") or os.environ.get("SPARK_MASTER")
    # Under spark-submit the master is already decided; naming one here would override it.
    where = where or (None if "PYSPARK_GATEWAY_PORT" in os.environ else "local[*]")
    paths = ",".join(str(path) for path in jar_paths(*connectors))
    settings = dict(_COMMON)
    if where is not None and where.startswith("local"):
        settings |= _LOCAL
        # Tasks would run with the `python3` of the path, which knows nothing of this environment.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings |= _DELTA if "delta" in connectors else {}
    settings |= config
    # What the caller adds to these two comes beside ours, not in their place.
    settings[_JAVA_OPTIONS] = f"{_logging(log)} {config.get(_JAVA_OPTIONS, '')}".strip()
    settings["spark.jars"] = ",".join(filter(None, [paths, config.get("spark.jars")]))
    builder: SparkSession.Builder = SparkSession.builder.appName(app)
    if where is not None:
        builder = builder.master(where)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _saying_into(log):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR" if log is None else "WARN")
    return spark


def _logging(log: Path | None) -> str:
    """Spark's log4j would print its banner and warnings before anyone can set a level."""
    name = "log4j2.properties" if log is None else "log4j2-file.properties"
    path = files("kafkalite.pipelines.common").joinpath(f"java/{name}")
    where = "" if log is None else f' "-Dkafkalite.spark.log={log}"'
    return f"-Dlog4j2.configurationFile={path}{where}"


@contextmanager
def _saying_into(log: Path | None) -> Iterator[None]:
    """A JVM that is started within inherits a file in the place of the terminal."""
    if log is None:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    with log.open("ab") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)


def _check_versions() -> None:
    """Before a JVM starts: pyspark there, of a version with connectors, and not mixed."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkMismatch(f"pyspark is not installed: {INSTALL}")
    installed = importlib.metadata.version("pyspark")
    if not installed.startswith(f"{SUPPORTED}."):
        raise SparkMismatch(
            f"pyspark {installed} is installed, and the Kafka connector that kafkalite fetches is "
            f"for Spark {SUPPORTED} (not every Spark has one on Maven Central): "
            f"pip install 'pyspark=={SUPPORTED}.0'"
        )
    home = os.environ.get("SPARK_HOME")
    spark = _version_at(Path(home)) if home else None
    if spark is not None and not spark.startswith(f"{SUPPORTED}."):
        raise SparkMismatch(
            f"SPARK_HOME={home} is Spark {spark}, but pyspark {installed} is installed: "
            "unset SPARK_HOME, or point it at the same version"
        )


def _version_at(home: Path) -> str | None:
    for jar in (home / "jars").glob("spark-core_*.jar"):
        return jar.stem.rpartition("-")[2]
    return None


def _check_loadable(spark: "SparkSession", connectors: tuple[str, ...]) -> None:
    """An active session keeps the jars that it was started with: say so, not "data source"."""
    lacking = [name for name in connectors if not _has_class(spark, CONNECTORS[name][1])]
    if lacking:
        listed = ",".join(str(path) for path in jar_paths(*lacking))
        raise SparkMismatch(
            f"the running SparkSession was started without the connector {', '.join(lacking)}, "
            "and a running one cannot take it: call kafkalite.spark.session before any other "
            f"SparkSession is built, or start Spark with --jars {listed}"
        )
    if "kafka" in connectors:
        _check_kafka_clients(spark)


def _check_kafka_clients(spark: "SparkSession") -> None:
    """Another kafka-clients earlier on the class path fails later, as a NoSuchMethodError."""
    assert spark.sparkContext._jvm is not None
    found = spark.sparkContext._jvm.org.apache.kafka.common.utils.AppInfoParser.getVersion()
    if int(found.partition(".")[0]) < 3:
        raise SparkMismatch(
            f"kafka-clients {found} is on Spark's class path before the 3.9 that its connector "
            "needs: remove that jar from SPARK_HOME/jars or spark.driver.extraClassPath"
        )


def _has_class(spark: "SparkSession", name: str) -> bool:
    from py4j.protocol import Py4JError

    assert spark.sparkContext._jvm is not None
    loader = spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass(name)
    except Py4JError:
        return False
    return True
