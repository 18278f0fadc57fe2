"""Starts and stops the brokers that are compared: kafkalite and Apache Kafka.

A running broker is a folder: its pid, address, log and data are in it, so that any process of the
run may find it and the last one may stop it.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import psutil

from kafkalite.jvm import jars, java

KAFKALITE = "kafkalite"
APACHE_KAFKA = "apache-kafka-4.3.1"
BROKERS = (KAFKALITE, APACHE_KAFKA)
# The last that serves the protocol versions which Apache Kafka 4 dropped.
APACHE_KAFKA_3 = "apache-kafka-3.9.2"
JAR_GROUPS = {APACHE_KAFKA: "reference", APACHE_KAFKA_3: "reference-3.9"}

# Names the folder of the whole test run, so that what was started is stopped in any case.
RUN_FOLDER = "KAFKALITE_TEST_RUN"
STARTED = "started"

START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20
START_ATTEMPTS = 3
CLUSTER_ID = "a2Fma2FsaXRlLXRlc3QtMQ"

# Both brokers get these: one replica of everything, no waiting for members yet to come, and a look
# for logs to compact and for transactions that timed out more often than every ten seconds.
# Changes of metadata are not gathered for 25 ms, nor changes of consumer groups for a second.
COMMON = {
    "controller.quorum.append.linger.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "500",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
}
# No pass of retention goes over what all tests of a run write, of whatever time its records are.
SHARED = {"log.retention.check.interval.ms": "1000000000"}

LOG4J_2 = """rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c %m%n
"""
_LOG4J_1 = """log4j.rootLogger=WARN, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c %m%n
"""
# A test's JVM serves little and starts often: the compiler's first tier and one collector thread.
TEST_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
# What Apache Kafka's own start scripts give it; whoever measures starts it with these.
NORMAL_JVM = (
    "-server",
    "-Xms1G",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
NORMAL_HEAP = "1G"


class BrokerFailed(RuntimeError):
    """A broker that did not start; the message ends with the end of its log."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that runs: which it is, where it listens, and its folder."""

    kind: str
    host: str
    port: int
    folder: Path

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    @property
    def is_kafkalite(self) -> bool:
        return self.kind == KAFKALITE

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Ends it in good order."""
        end(self.folder, signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would, but for the page cache."""
        end(self.folder, signal.SIGKILL)


def start(
    kind: str,
    folder: Path,
    overrides: Mapping[str, str] | None = None,
    heap: str = "512M",
    port: int = 0,
    jvm: Sequence[str] = TEST_JVM,
) -> Broker:
    """Starts a broker on 127.0.0.1 with its data in `folder`, again on what is there already.

    One that is to come back under its old address is given its port. `jvm` are the options of
    Apache Kafka's JVM: those for tests would not be fair in a measurement.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**COMMON, **(overrides or {})}
    is_kafkalite = kind == KAFKALITE
    launch = (
        _launch_kafkalite
        if is_kafkalite
        else partial(_launch_apache_kafka, JAR_GROUPS[kind], tuple(jvm))
    )
    for attempt in range(START_ATTEMPTS):
        process, port_of = launch(folder, settings, heap, port)
        if _answers(process, port_of):
            (folder / "address").write_text(f"{kind} 127.0.0.1 {port_of()}")
            return Broker(kind, "127.0.0.1", port_of(), folder)
        end(folder, signal.SIGKILL)
        log = (folder / "log").read_text(errors="replace")
        if "Address already in use" not in log or attempt == START_ATTEMPTS - 1:
            break
    raise BrokerFailed(f"{kind} did not start:\n{log[-3000:]}")


def shared(kind: str, folder: Path) -> Broker:
    """The one broker of this kind that all processes of a test run share; the first starts it."""
    home = folder / kind
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / "lock"):
        failed, address = home / "failed", home / "address"
        if failed.exists():
            raise BrokerFailed(failed.read_text())
        if address.exists():
            _, host, port = address.read_text().split()
            return Broker(kind, host, int(port), home)
        try:
            broker = start(kind, home, SHARED)
        except BrokerFailed as failure:
            failed.write_text(str(failure))
            raise
        _running.pop(broker.pid).returncode = 0  # the keeper sees to its end
        return broker


def stop_all(run_folder: Path) -> None:
    """Ends every broker that was started in this run and still runs."""
    for row in (run_folder / STARTED).glob("*"):
        end(Path(row.read_text()), signal.SIGTERM)


def _register(folder: Path) -> None:
    """Notes with the run, if there is one, that a broker may live in this folder."""
    if RUN_FOLDER in os.environ:
        started = Path(os.environ[RUN_FOLDER], STARTED)
        started.mkdir(exist_ok=True)
        name = sha256(str(folder).encode()).hexdigest()
        (started / name).write_text(str(folder.absolute()))


def end(folder: Path, how: signal.Signals) -> None:
    """Ends the broker of a folder, if one runs, and waits until it has gone."""
    pid_file = folder / "pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    for unknown in (pid_file, folder / "address"):
        unknown.unlink(missing_ok=True)
    with suppress(ProcessLookupError):
        os.kill(pid, how)
        if not gone(pid, STOP_TIMEOUT_S):
            os.kill(pid, signal.SIGKILL)
            gone(pid, STOP_TIMEOUT_S)
    if pid in _running:
        _running.pop(pid).wait(STOP_TIMEOUT_S)


# Children of this process, kept so that they can be reaped when they end.
_running: dict[int, subprocess.Popen[bytes]] = {}


def _launch_kafkalite(
    folder: Path, settings: Mapping[str, str], heap: str, wanted_port: int
) -> tuple[subprocess.Popen[bytes], Callable[[], int]]:
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    call = [sys.executable, "-m", "kafkalite", "serve", "--listen", f"127.0.0.1:{wanted_port}"]
    call += ["--data-dir", str(folder / "data"), "--port-file", str(port_file)]
    for name, value in settings.items():
        call += ["--override", f"{name}={value}"]

    def port() -> int:
        text = port_file.read_text().strip() if port_file.exists() else ""
        return int(text) if text else 0

    return spawn(call, folder), port


def _launch_apache_kafka(
    jar_group: str,
    jvm: Sequence[str],
    folder: Path,
    settings: Mapping[str, str],
    heap: str,
    wanted_port: int,
) -> tuple[subprocess.Popen[bytes], Callable[[], int]]:
    port, controller_port = free_ports(2)
    port = wanted_port or port
    node_id = settings.get("node.id", "1")
    properties = {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "controller.quorum.voters": f"{node_id}@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        **settings,
    }
    features = properties.pop("kafkalite.features", "")
    lines = (f"{name}={value}\n" for name, value in properties.items())
    (folder / "server.properties").write_text("".join(lines))
    (folder / "log4j2.properties").write_text(LOG4J_2)
    (folder / "log4j.properties").write_text(_LOG4J_1)
    kafka = partial(_kafka_command, jars.class_path(jar_group), folder)
    if not (folder / "data" / "meta.properties").exists():
        wanted = [word for each in features.split(",") if each for word in ("--feature", each)]
        tool = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, *wanted, "-c")
        format_directory(kafka(TEST_JVM, "128M", *tool))
    return spawn(kafka(jvm, heap, "kafka.Kafka"), folder), lambda: port


def format_directory(call: list[str]) -> None:
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise BrokerFailed(f"formatting failed:\n{done.stdout}{done.stderr}")


def _kafka_command(
    class_path: str,
    folder: Path,
    jvm: Sequence[str],
    heap: str,
    main_class: str,
    *arguments: str,
) -> list[str]:
    """The command line of a class of Apache Kafka that is given the folder's settings."""
    settings = str(folder / "server.properties")
    call = java.command(class_path, main_class, *arguments, settings, heap=heap)
    logging = [
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}",
    ]
    return [call[0], *jvm, *logging, *call[1:]]


def spawn(call: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Starts a program whose folder this is; `end` ends it, the end of the run at the latest.

    In a process group of its own, so that a Ctrl-C reaches only the tests.
    """
    _register(folder)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            call, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )
    (folder / "pid").write_text(str(process.pid))
    _running[process.pid] = process
    return process


def _answers(process: subprocess.Popen[bytes], port: Callable[[], int]) -> bool:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if port():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port()), 1):
                return True
        time.sleep(0.02)
    return False


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on at this moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def ports_in_a_row(count: int, among: range) -> int:
    """The first of so many that are free now, and this process's as long as it lives: what is
    started at them listens later, and again."""
    for first in among[::count]:
        ports = range(first, first + count)
        if _are_free(ports) and _claimed(ports):
            return first
    raise AssertionError("no ports are free")


def _are_free(ports: range) -> bool:
    probes = [socket.socket() for _ in ports]
    try:
        for port, probe in zip(ports, probes, strict=True):
            probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    finally:
        for probe in probes:
            probe.close()
    return True


def _claimed(ports: range) -> bool:
    """A lock for each, which other test runs of this machine look at, too."""
    folder = Path(tempfile.gettempdir()) / f"kafkalite-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    claims = [os.open(folder / str(port), os.O_CREAT | os.O_WRONLY) for port in ports]
    try:
        for each in claims:
            fcntl.flock(each, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        for each in claims:
            os.close(each)
        return False
    return True  # they stay open


def gone(pid: int, timeout_s: float) -> bool:
    """Waits for the end of a process; one that ended and was not reaped by its parent has gone."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if pid in _running:
            _running[pid].poll()
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def forget(broker: Broker) -> None:
    """Removes a stopped broker's folder."""
    shutil.rmtree(broker.folder, ignore_errors=True)
