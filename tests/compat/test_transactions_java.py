"""Apache Kafka's own Java clients in transactions: 2.8 and 3.9 by the old flow, 4.3 by KIP-890's.

Which flow a client of 4.3 takes is the broker's choice: the level of the feature
`transaction.version`, which is 2 unless somebody lowers it.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.raw_client import RawClient
from kafkalite.jvm import jars, java
from kafkalite.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.compat.brokers import Broker
from tests.compat.java_classes import compile_classes

VERSIONS = ["2.8.2", pytest.param("3.9.2", marks=pytest.mark.full), "4.3.1"]
CALL_TIMEOUT_S = 90
SCENARIOS = ("outcomes", "open", "fence", "timeout", "recover", "transform")
SAFE_DOWNGRADE = 2

EXPECTED = f"""\
committed: kept-0 kept-1 kept-2
uncommitted: aborted-0 kept-0 aborted-1 kept-1 aborted-2 kept-2
ends while open: 0 1
seen while open:
seen after: a
ends after: 2 2
send: InvalidProducerEpochException
commit: ProducerFencedException
abort: ProducerFencedException
offsets: ProducerFencedException
committed: kept-send kept-commit kept-abort kept-offsets
commit: {{timed_out}}
committed:
too old: InvalidTimestampException
commit: refused
too old: InvalidTimestampException
commit: refused
too old: InvalidTimestampException
commit: refused
committed: kept-0 kept-1 kept-2
transformed: {" ".join(f"r{number}!" for number in range(40))}
offset: 40
"""

pytestmark = pytest.mark.xdist_group("java-clients")


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    source = Path(__file__).parent / "java" / "Transactions.java"
    compile_classes([source], folder, ["kafka-clients-2.8.2"])
    return folder


def run(classes: Path, version: str, broker: Broker, prefix: str) -> str:
    class_path = f"{classes}:{jars.class_path(f'kafka-clients-{version}')}"
    words = (broker.bootstrap, prefix, *SCENARIOS)
    call = java.command(class_path, "Transactions", *words, heap="128M")
    call[1:1] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=CALL_TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


@pytest.mark.parametrize("version", VERSIONS)
def test_scenarios(version: str, classes: Path, broker: Broker, unique: Callable[..., str]) -> None:
    # With the old flow the end of a transaction that timed out has a stale epoch; with the new one
    # it reads as a repetition of the abort, which it is not: a commit is asked for.
    timed_out = "InvalidTxnStateException" if version[0] == "4" else "ProducerFencedException"
    said = run(classes, version, broker, unique("java"))
    assert said == EXPECTED.format(timed_out=timed_out)


@pytest.mark.full
@pytest.mark.parametrize("level", [0, 1])
def test_scenarios_with_the_feature_lowered(level: int, classes: Path, start_broker) -> None:
    broker = start_broker()
    update = UpdateFeaturesRequest.FeatureUpdate(
        feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE
    )
    client = RawClient(broker.host, broker.port)
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update])
    answer = client.call(request, 1, UpdateFeaturesResponse)
    client.close()
    assert answer.error_code == 0, answer
    said = run(classes, "4.3.1", broker, "lowered")
    assert said == EXPECTED.format(timed_out="ProducerFencedException")
