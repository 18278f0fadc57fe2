"""Why a session cannot be had is told before a JVM starts."""

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

from kafkalite import spark
from kafkalite.jvm import jars, java


def test_every_connector_has_its_jars_in_the_table() -> None:
    pinned = {jar.artifact for jar in jars.table()["spark"]}
    for artifacts, _ in spark.CONNECTORS.values():
        assert artifacts <= pinned


def test_unknown_connector_is_named() -> None:
    with pytest.raises(spark.SparkMismatch, match="no connector 'kinesis'"):
        spark.session("kinesis")


def test_missing_pyspark_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(spark.SparkMismatch, match=r"pip install 'kafkalite\[spark\]'"):
        spark.session("kafka")


@pytest.mark.parametrize("version", ["4.3.0", "3.5.1", "4.20.0"])
def test_other_pyspark_is_explained(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    with pytest.raises(spark.SparkMismatch, match=f"pyspark {version} is installed"):
        spark.session("kafka")


def test_other_spark_home_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(spark.SparkMismatch, match=r"is Spark 3\.5\.1, but pyspark"):
        spark.session("kafka")


def test_missing_java_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    def missing() -> dict[str, str]:
        raise java.JavaMissing("Java 17 or newer is needed: install one")

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(java, "environment", missing)
    with pytest.raises(java.JavaMissing, match="Java 17 or newer is needed"):
        spark.session("kafka")
