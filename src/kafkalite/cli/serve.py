"""`kafkalite serve`: one broker in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from kafkalite.broker import Broker
from kafkalite.broker.roles import Process, process_of
from kafkalite.cli import _banner, _properties
from kafkalite.cli._console_options import ConsoleWanted, console_options
from kafkalite.cli._log_lines import TEXT, begin, log_format_option, say
from kafkalite.cli._port_file import write_port
from kafkalite.cli._properties import DEFAULT_DATA, DEFAULT_LISTEN
from kafkalite.cli._properties_file import PropertiesFile
from kafkalite.cli._recovery_bar import RecoveryBar
from kafkalite.cli._signals import ENDING, SUPERVISED, hang_ups, on_signals
from kafkalite.cli._streams import leave_output
from kafkalite.config import BrokerConfig, InvalidSetting, Judgement
from kafkalite.env import collector, real_env, unix
from kafkalite.env.background import ThreadBackground
from kafkalite.env.disk import LockedByOther
from kafkalite.env.later import open_waits, watch_waits
from kafkalite.env.loop import new_loop
from kafkalite.env.sockets import SocketNetwork
from kafkalite.env.turns import run
from kafkalite.log.directory import WrongDirectory
from kafkalite.server.preparing import Preparing

if TYPE_CHECKING:
    from kafkalite.cli._console import Console
    from kafkalite.cli._metrics import Metrics
    from kafkalite.cli._secure import Secure

# For whoever looks for a reply that never came: says at the stop what is still waited for.
WATCH_WAITS = "KAFKALITE_WATCH_WAITS"
WAITS_LEFT = "nobody will ever answer"
FEATURES = "kafkalite.features"
# Connections and segments are open files.
OPEN_FILES = 1 << 16
# So long a thread that computes keeps the interpreter when the loop wants it back, which it does
# after each of its system calls: three or four times for a request.
SWITCH_SECONDS = 0.0005


@click.command()
@click.option("--listen", metavar="HOST:PORT",
              help=f"Where to listen [{DEFAULT_LISTEN}]; port 0 picks one.")
@click.option("--data-dir", metavar="DIR", help=f"Where data lies [{DEFAULT_DATA}].")
@click.option("--memory", "in_memory", is_flag=True,
              help="Keep everything in memory; it ends with the process.")
@click.option("--port-file", metavar="FILE", help="Write the port to FILE once the broker serves.")
@click.option("-c", "--config", "properties", type=PropertiesFile(),
              help="An unmodified Kafka server.properties.")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE",
              help="One more setting; may be repeated.")
@click.option("--login-file", metavar="FILE",
              help="A JAAS file, as java.security.auth.login.config names one.")
@click.option("--topic", "topics", multiple=True, metavar="NAME[:PARTITIONS[:k=v,…]]",
              help="Create a topic unless it is there; may be repeated.")
@click.option("--feature", "features", multiple=True, metavar="NAME=LEVEL",
              help="Level of a feature that a new cluster begins with; may be repeated.")
@click.option("--brokers", type=int, metavar="N",
              help="A cluster of N brokers and a controller, a process each, at ports in a row.")
@click.option("--secure", "is_secure", is_flag=True,
              help="With TLS, logins, access rules and a first admin, whose password is beside the "
                   "data.")
@click.option("--control", metavar="HOST:PORT",
              help="Let tests in other languages control it over HTTP there; port 0 picks one.")
@click.option("--control-token", metavar="TOKEN",
              help="What they have to send, off this machine; or in KAFKALITE_CONTROL_TOKEN.")
@click.option("--control-port-file", metavar="FILE", help="Write the port of --control to FILE.")
@click.option("--metrics", "metrics_address", metavar="HOST:PORT",
              help="Count, and tell Prometheus there (/metrics); port 0 picks one.")
@click.option("--metrics-port-file", metavar="FILE", help="Write the port of --metrics to FILE.")
@log_format_option
@console_options
def command(
    listen: str | None,
    data_dir: str | None,
    in_memory: bool,
    port_file: str | None,
    properties: dict[str, str] | None,
    overrides: tuple[str, ...],
    login_file: str | None,
    topics: tuple[str, ...],
    features: tuple[str, ...],
    brokers: int | None,
    is_secure: bool,
    control: str | None,
    control_token: str | None,
    control_port_file: str | None,
    metrics_address: str | None,
    metrics_port_file: str | None,
    log_format: str,
    console: ConsoleWanted | None,
) -> None:
    """Start a broker.

    Stops on SIGTERM or Ctrl-C in good order; a second signal stops it at once.
    """
    begin(log_format)
    if features:
        overrides = (*overrides, f"{FEATURES}={','.join(features)}")
    _check_together({**click.get_current_context().params, "console": console})
    if brokers is not None:
        sys.exit(_cluster(brokers, listen, data_dir, properties, overrides, topics, port_file))
    secure = None
    if is_secure:
        secure, properties, listen = _secured(listen, data_dir)
    try:
        config, ignored = _properties.broker_config(
            properties, listen, data_dir, in_memory, overrides, login_file
        )
        wanted = [_properties.topic(text) for text in topics]
    except InvalidSetting as error:
        raise click.ClickException(str(error)) from None
    _warn_of(ignored)
    _take_process()
    if control is not None:
        from kafkalite.cli import _control  # and the server of HTTP, which others do without

        texts = _properties.given_settings(
            properties, listen, data_dir, in_memory, overrides, login_file
        )
        door = _control.open_door(control, control_token, control_port_file)
        door.metrics, door.metrics_port_file = metrics_address, metrics_port_file
        sys.exit(_control.serve(door, config, texts, in_memory, port_file, wanted, _reason))
    beside = _counting(metrics_address, metrics_port_file, config), _showing(console, config)
    serving = _Serving(config, in_memory, port_file, wanted, secure, *beside)
    sys.exit(serving.run())


def _check_together(given: Mapping[str, Any]) -> None:
    """Raises for options that are nothing without another, or beside it."""
    control, metrics, console = given["control"], given["metrics_address"], given["console"]
    of_control = [given["control_token"], given["control_port_file"]]
    if control is None and of_control != [None, None]:
        raise click.UsageError("--control-token and --control-port-file need --control HOST:PORT")
    if metrics is None and given["metrics_port_file"] is not None:
        raise click.UsageError("--metrics-port-file needs --metrics HOST:PORT")
    is_alone = not (given["in_memory"] or given["is_secure"] or control or given["login_file"])
    if given["brokers"] is not None and (metrics or console or not is_alone):
        raise click.UsageError(
            "--brokers goes with no --memory, --secure, --control, --login-file, --metrics or "
            "--console: `kafkalite console` shows them all"
        )
    if given["log_format"] != TEXT and (given["brokers"] is not None or control is not None):
        raise click.UsageError("--log-format json goes with no --brokers or --control")
    if control is not None and console is not None:
        raise click.UsageError("--control goes with no --console: use `kafkalite console`")
    is_other = given["properties"] is not None or given["in_memory"] or control is not None
    if given["is_secure"] and is_other:
        raise click.UsageError("--secure goes with no --config, --memory or --control")


def _take_process() -> None:
    """What the process is to be like, before it has threads."""
    unix.raise_open_files(OPEN_FILES)
    unix.make_room_for_files(OPEN_FILES)
    sys.setswitchinterval(SWITCH_SECONDS)


def _counting(address: str | None, port_file: str | None, config: BrokerConfig) -> Metrics | None:
    """Who counts and tells Prometheus, where that is wanted."""
    if address is None:
        return None
    if not config.is_broker:
        raise click.UsageError("--metrics tells of a broker, this is a controller alone")
    from kafkalite.cli._metrics import Metrics  # and the server of HTTP

    return Metrics(address, port_file)


def _showing(wanted: ConsoleWanted | None, config: BrokerConfig) -> Console | None:
    """The page in the browser, where that is wanted."""
    if wanted is None:
        return None
    if not config.is_broker:
        raise click.UsageError("--console shows what a broker has, this is a controller alone")
    from kafkalite.cli._console import Console  # others do without

    return Console(wanted)


def _cluster(
    count: int,
    listen: str | None,
    data_dir: str | None,
    properties: dict[str, str] | None,
    overrides: tuple[str, ...],
    topics: tuple[str, ...],
    port_file: str | None,
) -> int:
    """Has a supervisor run it."""
    from kafkalite.cli import _members, _supervisor  # others do without

    host, _, port = (listen or DEFAULT_LISTEN).rpartition(":")
    try:
        if not port.isdecimal():
            raise InvalidSetting(f"--listen {listen}: expected HOST:PORT")
        given = {**(properties or {}), **_properties.pairs(overrides)}
        folder = os.path.abspath(data_dir or DEFAULT_DATA)
        members = _members.members_of(count, host.strip("[]"), int(port), folder, given)
        _members.prepare(members)
    except (InvalidSetting, OSError) as error:
        raise click.ClickException(str(error)) from None
    return _supervisor.Supervisor(members, topics, port_file).run()


def _secured(listen: str | None, data_dir: str | None) -> tuple[Secure, dict[str, str], None]:
    """Where its keys are, and what a server.properties would say."""
    from kafkalite.cli import _secure  # others do without

    where = listen or DEFAULT_LISTEN
    secure = _secure.beside(data_dir or DEFAULT_DATA)
    secure.prepare(where.rpartition(":")[0].strip("[]"))
    return secure, secure.settings(where), None


def _warn_of(ignored: list[Judgement]) -> None:
    for reason, keys in _by_reason(ignored).items():
        has = "has" if len(keys) == 1 else "have"
        logging.warning("%s %s no effect: %s", ", ".join(keys), has, reason)


def _by_reason(ignored: list[Judgement]) -> dict[str, list[str]]:
    """Keys that are ignored, so that one line names all that are for the same reason."""
    found: dict[str, list[str]] = {}
    for judgement in ignored:
        found.setdefault(judgement.reason, []).append(judgement.key)
    return found


class _Serving:
    """The life of the process: loop, broker, signals."""

    def __init__(
        self,
        config: BrokerConfig,
        in_memory: bool,
        port_file: str | None,
        topics: list[_properties.TopicWanted],
        secure: Secure | None,
        metrics: Metrics | None,
        console: Console | None,
    ) -> None:
        self._console = console
        self._config = config
        self._in_memory = in_memory
        self._port_file = port_file
        self._topics = topics
        self._secure = secure
        self._metrics = metrics
        self._loop = new_loop()
        self._background = ThreadBackground(self._loop)
        self._broker: Process | None = None
        self._preparing: Preparing | None = None
        self._is_stopping = False
        self._exit_code = 0

    def run(self) -> int:
        asyncio.set_event_loop(self._loop)
        ends = dict.fromkeys(ENDING, self._stop)
        if os.environ.get(SUPERVISED):
            self._loop.add_reader(sys.stdin.fileno(), self._is_supervised)
        on_signals(self._loop, ends | dict.fromkeys(hang_ups(), self._hung_up))
        try:
            if self._metrics is not None:
                self._metrics.start(self._loop, self._found)
            self._start()
        except (InvalidSetting, LockedByOther, WrongDirectory, OSError) as error:
            say(f"kafkalite cannot start: {_reason(error)}")
            return 1
        run(self._loop)
        if self._metrics is not None:
            self._metrics.stop()
        if self._console is not None:
            self._console.stop()
        collector.of_process.unsettle()
        self._background.close()
        return self._exit_code

    def _found(self) -> dict[int, Broker]:
        broker = self._broker
        return {broker.node_id: broker} if isinstance(broker, Broker) else {}

    def _start(self) -> None:
        watch_waits(bool(os.environ.get(WATCH_WAITS)))
        env = real_env(self._loop, in_memory=self._in_memory)
        env.background = self._background
        counts = None if self._metrics is None else self._metrics.counts
        broker = self._broker = process_of(env, SocketNetwork(self._loop), self._config, counts)
        broker.ended.then(_halt_if_failed)
        started = broker.start()
        bar = RecoveryBar(self._loop.call_later, broker.logs.loading, sys.stderr)
        started.then(lambda failure: self._started(failure, bar))

    def _started(self, failure: Exception | None, bar: RecoveryBar) -> None:
        bar.end()
        if self._is_stopping:
            return
        broker = self._broker
        assert broker is not None
        if failure is not None:
            self._fail(_reason(failure))
            return
        _properties.create(broker, self._topics).then(lambda refusal: self._open(broker, refusal))

    def _open(self, broker: Process, refusal: InvalidSetting | None) -> None:
        """To its first admin, where it has one."""
        if refusal is not None or self._secure is None or self._is_stopping:
            self._ready(broker, refusal)
        else:
            self._secure.add_admin(broker).then(lambda refused: self._ready(broker, refused))

    def _ready(self, broker: Process, refusal: InvalidSetting | None) -> None:
        if self._is_stopping:
            return
        try:
            if refusal is not None:
                raise refusal
            self._show_console(broker)
            if self._port_file is not None:
                write_port(self._port_file, next(iter(broker.server.addresses.values()))[1])
        except (InvalidSetting, OSError, click.ClickException) as error:
            reason = str(error)
            broker.stop().then(lambda _: self._fail(reason))
        else:
            collector.of_process.settle()
            self._tend()
            self._prepare(broker)
            self._show_banner(broker)

    def _show_console(self, broker: Process) -> None:
        if self._console is not None and isinstance(broker, Broker):
            secured = {} if self._secure is None else self._secure.way_in
            self._console.start(self._loop, broker, secured)

    def _tend(self) -> None:
        collector.of_process.tend()
        self._loop.call_later(collector.TEND_S, self._tend)

    def _prepare(self, broker: Process) -> None:
        kinds = dict.fromkeys(each.kind for each in broker.config.opened_listeners)
        sets = broker.context.api_sets
        self._preparing = Preparing(broker.env.clock, [sets[kind] for kind in kinds])
        self._preparing.start()

    def _show_banner(self, broker: Process) -> None:
        """Whoever cannot read it is served all the same."""
        try:
            addresses, secure = broker.server.addresses, self._secure
            examples = None if secure is None else secure.examples(next(iter(addresses.values())))
            if not broker.config.is_broker:
                examples = ""  # nobody produces to a controller
            _banner.show(
                addresses, broker.config, in_memory=self._in_memory, examples=examples,
                console=None if self._console is None else self._console.url,
            )
        except OSError as error:
            leave_output()
            logging.warning("it serves, and standard output cannot be written: %s", error.strerror)

    def _fail(self, reason: str) -> None:
        with suppress(OSError):  # nobody can be told
            say(f"kafkalite cannot start: {reason}")
        self._exit_code = 1
        self._end()

    def _stop(self) -> None:
        if self._is_stopping or self._broker is None:
            os._exit(1)
        self._is_stopping = True
        if self._preparing is not None:
            self._preparing.stop()
        with suppress(OSError):  # the terminal may have gone
            say("kafkalite is stopping; once more to stop at once")
        self._broker.stop().then(self._stopped)

    def _stopped(self, _: None) -> None:
        for place, count in open_waits().items():
            say(f"{WAITS_LEFT}: {count} made at {place}")
        self._end()

    def _is_supervised(self) -> None:
        """Whoever started it has gone, and with it the other end."""
        if not os.read(sys.stdin.fileno(), 4096):
            self._loop.remove_reader(sys.stdin.fileno())
            self._hung_up()

    def _hung_up(self) -> None:
        """The terminal has gone: a stop in good order, and nobody there to be impatient."""
        if not self._is_stopping:
            self._stop()

    def _end(self) -> None:
        self._loop.call_soon(self._loop.stop)


def _halt_if_failed(failure: OSError | None) -> None:
    """At once, as Apache Kafka does: a worker may hang on the disk that has failed."""
    if failure is not None:
        logging.shutdown()
        os._exit(1)


def _reason(error: Exception) -> str:
    if isinstance(error, LockedByOther):
        return (
            f"the data directory is in use by process {error.pid or '(unknown)'} ({error.path}); "
            "stop that one or choose another --data-dir"
        )
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"{error}; choose another --listen, or port 0 for a free one"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{error.filename} is no directory; choose another --data-dir"
    if isinstance(error, PermissionError) and error.filename is None:
        return f"{error}; ports below 1024 are the system's, choose another --listen"
    return str(error)
