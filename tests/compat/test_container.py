"""The image, in a real engine: started by what other images are started by, and asked for what
their users ask of them. `make image` runs this; tests/compat/test_container_starters.py does what
needs no engine.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kafkalite.jvm import jars, java
from tests.compat import client_builds
from tests.compat.compose_files import FILES, UPDATE_RUN, Compose
from tests.compat.container_engine import IMAGE, Engine, NoEngine, build_image, engine
from tests.compat.container_secrets import Secrets, to_and_fro_as
from tests.compat.container_starters import STARTERS, Starter
from tests.compat.java_classes import compile_classes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("container")]

READY_S = 60
LIBRARY_S = 300
READY = ("[KafkaServer id=", "[KafkaRaftServer nodeId=", "Transitioning from RECOVERY to RUNNING.")


@pytest.fixture(scope="module")
def docker() -> Iterator[Engine]:
    """An engine with the image in it."""
    try:
        with engine() as found:
            build_image(found)
            yield found
    except NoEngine as reason:
        pytest.skip(str(reason))


@pytest.fixture
def testcontainers_here(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library, at this engine; its own helper to clean up is an image of a registry."""
    from testcontainers.core.config import ConnectionMode, testcontainers_config

    if docker.host is not None:
        monkeypatch.setenv("DOCKER_HOST", docker.host)
        monkeypatch.setattr(testcontainers_config, "tc_host_override", "localhost")
        here = ConnectionMode.docker_host
        monkeypatch.setattr(testcontainers_config, "connection_mode_override", here)
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)


class Container:
    """One that runs."""

    def __init__(self, docker: Engine, name: str) -> None:
        self._docker = docker
        self.name = name

    def exec(self, *words: str, check: bool = True) -> str:
        return self._docker.run("exec", self.name, *words, check=check)

    def logs(self) -> str:
        return self._docker.run("logs", self.name)

    def look(self, what: str) -> str:
        return self._docker.run("inspect", "--format", what, self.name)

    def address(self, port: int) -> str:
        return self._docker.run("port", self.name, f"{port}/tcp").splitlines()[0]

    def put(self, path: str, text: str, mode: int = 0o755) -> None:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(text.encode()), mode
            archive.addfile(entry, io.BytesIO(text.encode()))
        subprocess.run(
            ["docker", "cp", "-", f"{self.name}:/"], input=data.getvalue(), check=True,
            env=self._docker.environment, timeout=60,
        )  # fmt: skip

    def wait_for_line(self, pattern: str) -> None:
        end = time.monotonic() + READY_S
        while re.search(pattern, self.logs()) is None:
            running = self.look("{{.State.Running}}")
            assert running == "true", self.logs()
            assert time.monotonic() < end, self.logs()
            time.sleep(0.1)

    def wait_until_healthy(self) -> None:
        end = time.monotonic() + READY_S
        while (health := self.look("{{.State.Health.Status}}")) != "healthy":
            assert health == "starting", self.look("{{json .State.Health}}") + self.logs()
            assert time.monotonic() < end, self.look("{{json .State.Health}}") + self.logs()
            time.sleep(0.2)


@contextmanager
def started(docker: Engine, *words: str, options: tuple[str, ...] = ()) -> Iterator[Container]:
    container = Container(docker, f"kafkalite-{uuid.uuid4().hex[:10]}")
    docker.run("run", "--detach", "--name", container.name, *options, IMAGE, *words)
    try:
        yield container
    finally:
        docker.run("rm", "--force", "--volumes", container.name)


def variables(settings: dict[str, str]) -> tuple[str, ...]:
    return tuple(word for name, value in settings.items() for word in ("-e", f"{name}={value}"))


def to_and_fro(address: str) -> None:
    """One record, there and back, by a client outside."""
    topic = f"t-{uuid.uuid4().hex}"
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, b"there")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        record = consumer.poll(30)
        assert record is not None
        assert record.value() == b"there"
    finally:
        consumer.close()


def inside(container: Container, name: str) -> None:
    """The same, by a client in the container, which resolves the names of its network."""
    topic = f"t-{uuid.uuid4().hex}"
    write = f"echo there | kafkalite produce -b {name} {topic}"
    container.exec("sh", "-c", write)
    assert "there" in container.exec("kafkalite", "consume", "-b", name, topic, "--count", "1")


# --- testcontainers -------------------------------------------------------------------------------


@pytest.mark.parametrize("kraft", [False, True], ids=["zookeeper", "kraft"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_stock_container_of_python_starts_it(testcontainers_here, kraft: bool) -> None:
    from testcontainers.kafka import KafkaContainer

    kafka = KafkaContainer(IMAGE)
    with kafka.with_kraft() if kraft else kafka as running:
        to_and_fro(running.get_bootstrap_server())


def test_our_own_container_is_reached_from_both_sides(docker: Engine, testcontainers_here) -> None:
    from testcontainers.core.network import Network

    from kafkalite.testing import KafkaliteContainer

    topics = {"orders": 3}
    with (
        Network() as network,
        KafkaliteContainer(IMAGE, topics=topics, settings={"num.partitions": "4"})
        .with_network(network)
        .with_network_aliases("broker") as kafka,
    ):
        to_and_fro(kafka.get_bootstrap_server())
        there = kafka.get_network_bootstrap_server()
        assert there == "broker:9093"
        inside(Container(docker, kafka.get_container_id()), there)
        described = Producer({"bootstrap.servers": kafka.get_bootstrap_server()}).list_topics()
        counts = {name: len(topic.partitions) for name, topic in described.topics.items()}
        assert counts["orders"] == 3
        assert 4 in counts.values()


@pytest.mark.parametrize("version", ["1.21.4", "2.0.5"])
def test_the_stock_containers_of_java_start_it(
    docker: Engine, version: str, tmp_path: Path
) -> None:
    groups = (f"testcontainers-{version}", "kafka-clients-4.3.1")
    source = Path(__file__).parent / "java" / "Containers.java"
    compile_classes([source], tmp_path, groups)
    class_path = f"{tmp_path}:{jars.class_path(*groups)}"
    said = library_says(docker, java.command(class_path, "Containers", IMAGE))
    kinds = ("apache", "confluent", "old", "old-kraft")
    assert said == [f"{where}: {kind}" for kind in kinds for where in ("outside", "inside")]


@pytest.mark.parametrize("tag", ["8.0.0", "7.6.0"], ids=["kraft", "zookeeper"])
def test_the_stock_container_of_node_starts_it(docker: Engine, tag: str) -> None:
    image = f"{IMAGE.partition(':')[0]}:{tag}"
    docker.run("tag", IMAGE, image)
    said = library_says(docker, [*client_builds.containers_js(), image])
    assert said == ["outside: there", "inside: there"]


def test_the_stock_module_of_go_starts_it(docker: Engine) -> None:
    said = library_says(docker, [*client_builds.containers_go(), IMAGE])
    assert said == ["cluster: 4L6g3nShT-eMCtK--X86sw", "outside: there", "inside: there"]


def library_says(docker: Engine, call: list[str]) -> list[str]:
    """What a program prints that has its library start containers, and leaves none of them. The
    library's own helper to clean up is an image of a registry."""
    here = {"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "localhost"}
    before = docker.run("ps", "--all", "--quiet")
    done = subprocess.run(
        call, env={**docker.environment, **here}, capture_output=True, text=True,
        timeout=LIBRARY_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert docker.run("ps", "--all", "--quiet") == before
    return done.stdout.splitlines()


@pytest.mark.parametrize("starter", STARTERS, ids=lambda starter: starter.name)
def test_the_starters_of_each_language_start_it(docker: Engine, starter: Starter) -> None:
    command = starter.command.format(path=starter.path, call=starter.call)
    network = docker.run("network", "create", f"n-{uuid.uuid4().hex[:8]}")[:12]
    aliases = (word for alias in starter.aliases for word in ("--network-alias", alias))
    options = ("--entrypoint", "sh", "-p", f"127.0.0.1::{starter.port}", "--network", network,
               *aliases, *variables(starter.variables))  # fmt: skip
    try:
        with started(docker, "-c", command, options=options) as container:
            address = container.address(starter.port)
            script = starter.script.replace("{address}", address)
            container.put(starter.path, script, starter.mode)
            container.wait_for_line(starter.ready)
            assert [container.logs().count(line) for line in READY] == [1, 1, 1]
            to_and_fro(address)
            for alias in starter.aliases:
                inside(container, f"{alias}:19092")
            if starter.zookeeper:
                container.exec("nc", "-vz", "-w", "1", "localhost", "2181")
                ruok = "echo ruok | nc -w 2 localhost 2181"
                assert container.exec("sh", "-c", ruok) == "imok"
    finally:
        docker.run("network", "rm", network)


# --- files of compose -----------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_of_compose_bring_it_up(
    docker: Engine, file: Compose, tmp_path: Path
) -> None:
    network = docker.run("network", "create", f"n-{uuid.uuid4().hex[:8]}")[:12]
    volume = f"v-{uuid.uuid4().hex[:8]}"
    options = ["--network", network, "--network-alias", file.host, *variables(file.variables),
               "--health-interval", "1s", "--health-retries", "30"]  # fmt: skip
    options += ["--hostname", file.host] if "_" not in file.host else []
    options += ["--health-cmd", file.health] if file.health else []
    options += ["--volume", f"{volume}:{file.mount}"] if file.mount else []
    secrets = Secrets(tmp_path)
    options += secrets.mounts if file.secured else []
    command = ("sh", "-c", _waiting_for_update(file)) if "update_run" in str(file.command) else ()
    try:
        with started(docker, *(command or file.command), options=tuple(options)) as container:
            if command:
                container.put("/tmp/update_run.sh", UPDATE_RUN)
            if file.refused is not None:
                docker.run("wait", container.name)
                assert container.look("{{.State.ExitCode}}") == "1"
                assert file.refused in container.logs()
                return
            container.wait_until_healthy()
            for name in file.names:
                inside(container, name)
            for name, protocol in file.secured.items():
                address = container.exec("hostname", "-i").split()[0]
                to_and_fro_as(secrets.client(protocol), name, address)
            _has_topics(container, file)
            is_kept = "goes with this container" not in container.logs()
            assert is_kept == (file.mount is not None)
    finally:
        docker.run("network", "rm", network)
        docker.run("volume", "rm", "--force", volume)


def _waiting_for_update(file: Compose) -> str:
    """The file is mounted by compose; here it is put in, once there is something to put it into."""
    words = " ".join(f"'{word}'" for word in file.command)
    return f"while [ ! -f /tmp/update_run.sh ]; do sleep 0.1; done; exec {words}"


def _has_topics(container: Container, file: Compose) -> None:
    for topic, count in file.topics.items():
        folders = container.exec("sh", "-c", f"ls -d /var/lib/kafka/data/{topic}-*").split()
        assert len(folders) == count


# --- the image itself -----------------------------------------------------------------------------


def test_users_whose_id_an_engine_makes_up_may_run_it(docker: Engine) -> None:
    options = ("--user", "1234567:0", "-p", "127.0.0.1::9092")
    with started(docker, options=options) as container:
        container.wait_for_line("RUNNING")
        inside(container, "localhost:9092")


def test_it_runs_where_nothing_but_its_data_can_be_written(docker: Engine) -> None:
    options = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
               "--security-opt", "no-new-privileges")  # fmt: skip
    with started(docker, options=options) as container:
        container.wait_for_line("RUNNING")
        inside(container, "localhost:9092")
        container.exec("kafkalite-healthy")


def test_arguments_stand_for_variables(docker: Engine) -> None:
    words = ("/etc/kafka/docker/run", "KAFKA_CREATE_TOPICS=orders:3:1", "KAFKA_NODE_ID=7")
    with started(docker, *words) as container:
        container.wait_for_line(re.escape("[KafkaServer id=7] started"))
        assert len(container.exec("sh", "-c", "ls -d /var/lib/kafka/data/orders-*").split()) == 3


def test_a_mounted_file_of_settings_counts_below_the_variables(docker: Engine) -> None:
    words = ("sh", "-c", "while [ ! -f /mnt/shared/config/server.properties ]; do sleep 0.1; done;"
             "exec /etc/kafka/docker/run")  # fmt: skip
    options = ("-e", "KAFKA_NODE_ID=5")
    with started(docker, *words, options=options) as container:
        text = "node.id=4\nlisteners=PLAINTEXT://:7777\nno.such.thing=1\n"
        container.put("/mnt/shared/config/server.properties", text)
        container.wait_for_line(re.escape("[KafkaServer id=5] started"))
        inside(container, "localhost:7777")
        assert "no.such.thing" in container.logs()


def test_data_outlives_the_container_in_a_volume(docker: Engine) -> None:
    volume = f"v-{uuid.uuid4().hex[:8]}"
    options = ("--volume", f"{volume}:/bitnami/kafka", "-e", "KAFKA_CREATE_TOPICS=kept:2:1",
               "-e", "CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk")  # fmt: skip
    seen = []
    try:
        for _ in range(2):
            with started(docker, options=options) as container:
                container.wait_for_line("RUNNING")
                container.exec("sh", "-c", "echo one | kafkalite produce kept:0 || true")
                seen.append(container.exec("cat", "/bitnami/kafka/data/meta.properties"))
                docker.run("stop", container.name)
                assert container.look("{{.State.ExitCode}}") == "0"
        assert seen[0] == seen[1]
        assert "cluster.id=MkU3OEVBNTcwNTJENDM2Qk" in seen[0]
    finally:
        docker.run("volume", "rm", "--force", volume)


def test_scripts_of_users_run_first(docker: Engine) -> None:
    words = ("/opt/bitnami/scripts/kafka/entrypoint.sh", "/opt/bitnami/scripts/kafka/run.sh")
    waiting = "while [ ! -f /tmp/go ]; do sleep 0.1; done; exec " + " ".join(words)
    with started(docker, "sh", "-c", waiting) as container:
        container.put("/docker-entrypoint-initdb.d/first.sh", "echo I was first\n")
        container.put("/tmp/go", "")
        container.wait_for_line("RUNNING")
        assert container.logs().index("I was first") < container.logs().index("RUNNING")


def test_cub_waits_for_it_from_another_container(docker: Engine) -> None:
    with started(docker) as container:
        join = ("run", "--rm", "--network", f"container:{container.name}", IMAGE)
        docker.run(*join, "cub", "kafka-ready", "-b", "localhost:9092", "1", "30")
        docker.run(*join, "ub", "kafka-ready", "-b", "localhost:9092", "1", "30")
        late = docker.run(*join, "cub", "kafka-ready", "-b", "localhost:9", "1", "0", check=False)
        assert "cannot be reached" in late


def test_the_health_check_is_quick(docker: Engine) -> None:
    with started(docker, options=("--health-interval", "1s")) as container:
        container.wait_until_healthy()
        timed = (
            "import subprocess, time; t = time.process_time(); b = time.monotonic();"
            "subprocess.run(['kafkalite-healthy'], check=True); import resource;"
            "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime)"
        )
        spent = min(float(container.exec("python", "-c", timed)) for _ in range(5))
        assert spent < 0.1


def test_what_the_image_says_of_itself(docker: Engine) -> None:
    said = json.loads(docker.run("image", "inspect", IMAGE))[0]["Config"]
    assert not said["Entrypoint"]
    assert said["Cmd"] == ["/etc/kafka/docker/run"]
    assert sorted(said["Volumes"]) == [
        "/etc/kafka/secrets", "/mnt/shared/config", "/var/lib/kafka/data",
    ]  # fmt: skip
    assert said["User"] == "1000"
    words = "bash hostname sed cut nc curl start-kafka.sh zookeeper-server-start cub ub"
    look = f"for each in {words}; do command -v $each || echo no $each; done; hostname -i; id -g"
    found = docker.run("run", "--rm", IMAGE, "sh", "-c", look)
    assert "no " not in found
    assert found.splitlines()[-1] == "0"
