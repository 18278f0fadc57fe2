"""Spark's Kafka connector as a client of the matrix of secured brokers.

Owns the session's side: what is asked of the connector, and the exception of Apache Kafka's client
that lies at the bottom of Spark's own.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from kafkalite.security.client_settings import jaas_line, module_of
from kafkalite.security.mechanisms import OAUTHBEARER
from tests.compat.other_clients import Refused
from tests.compat.secured_clients import java_settings
from tests.compat.secured_lab import ALLOWED_URLS, Security

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With the clients of 3.9, which the connector brings: it asks an issuer for its token.
LOGIN = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
CAUSE = re.compile(r"org\.apache\.kafka\.common\.(?:errors\.)?(\w+Exception: [^\n]*)")


class InSpark:
    """Batches of one row."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def write(self, at: str, how: Security, topic: str, value: str, wait_ms: int) -> None:
        rows = self._spark.createDataFrame([(value,)], "value string").coalesce(1)
        told = self._options(at, how, wait_ms)
        _asked(rows.write.format("kafka").options(**told, topic=topic).save)

    def read(self, at: str, how: Security, topic: str, offset: int, wait_ms: int) -> str:
        told = {
            **self._options(at, how, wait_ms), "assign": json.dumps({topic: [0]}),
            "startingOffsets": json.dumps({topic: {"0": offset}}),
        }  # fmt: skip
        found: list[str] = []

        def collect() -> None:
            rows = self._spark.read.format("kafka").options(**told).load().collect()
            found.extend(row["value"].decode() for row in rows)

        _asked(collect)
        return found[0]

    def _options(self, at: str, how: Security, wait_ms: int) -> dict[str, str]:
        told = java_settings(at, how)
        if how.mechanism == OAUTHBEARER:
            endpoint = f"{how.issuer}/token"
            named = {"clientId": how.user, "clientSecret": how.password}
            told |= {
                "sasl.jaas.config": jaas_line(module_of(OAUTHBEARER), named),
                "sasl.login.callback.handler.class": LOGIN,
                "sasl.oauthbearer.token.endpoint.url": endpoint,
            }
            name = ALLOWED_URLS.removeprefix("-D").removesuffix("=")
            machine: Any = self._spark._jvm
            machine.java.lang.System.setProperty(name, endpoint)
        for name in ("max.block.ms", "request.timeout.ms", "default.api.timeout.ms"):
            told[name] = str(wait_ms)
        return {f"kafka.{name}": value for name, value in told.items()}

    def close(self) -> None: ...


def _asked(act: object) -> None:
    assert callable(act)
    try:
        act()
    except Exception as error:
        causes = CAUSE.findall(_stack_of(error))
        if not causes:
            raise
        raise Refused(causes[-1]) from error


def _stack_of(error: BaseException) -> str:
    """What Java says of it, with all that is behind it."""
    beneath = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    return f"{error}\n{getattr(error, '_stackTrace', '')}\n{beneath}"
