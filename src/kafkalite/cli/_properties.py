"""From the options of `kafkalite serve` to a broker's configuration and its first topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkalite import config as settings
from kafkalite.broker.roles import Process
from kafkalite.config import BrokerConfig, InvalidSetting, Judgement
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.security.login_file import read, settings_in
from kafkalite.security.login_settings import login_settings

DEFAULT_LISTEN = "localhost:9092"
DEFAULT_DATA = "./kafkalite-data"
# Where an in-memory broker's directories are said to be; nothing is there.
MEMORY = "/memory"


@dataclass(slots=True)
class TopicWanted:
    """A topic that is to be there when the broker serves."""

    name: str
    partitions: int = -1
    configs: dict[str, str] = field(default_factory=dict)


def broker_config(
    properties: Mapping[str, str] | None,
    listen: str | None,
    data_dir: str | None,
    in_memory: bool,
    overrides: tuple[str, ...],
    login_file: str | None = None,
) -> tuple[BrokerConfig, list[Judgement]]:
    """The configuration, and the keys of the file that have no effect."""
    given = given_settings(properties, listen, data_dir, in_memory, overrides, login_file)
    config, ignored = settings.broker_config(given)
    login_settings(config)
    return config, ignored


def given_settings(
    properties: Mapping[str, str] | None,
    listen: str | None,
    data_dir: str | None,
    in_memory: bool,
    overrides: tuple[str, ...],
    login_file: str | None = None,
) -> dict[str, str]:
    """What the file, the options and the overrides say together, and where they name no users a
    file of these."""
    given = dict(properties or {})
    changes = pairs(overrides)
    if in_memory and (data_dir is not None or changes.keys() & {"log.dirs", "log.dir"}):
        raise InvalidSetting("--memory keeps nothing in a directory: leave it or the directory out")
    if listen is not None:
        given["listeners"] = f"PLAINTEXT://{listen}"
        given.pop("advertised.listeners", None)
    elif "listeners" not in given:
        given["listeners"] = f"PLAINTEXT://{DEFAULT_LISTEN}"
    if in_memory:
        data_dir = MEMORY
    if data_dir is not None:
        given["log.dirs"] = data_dir
    elif "log.dirs" not in given and "log.dir" not in given:
        given["log.dirs"] = DEFAULT_DATA
    found = given | changes
    if login_file is None:
        return found
    config, _ = settings.broker_config(found)
    return {**settings_in(read(login_file), config), **found}


def pairs(overrides: tuple[str, ...]) -> dict[str, str]:
    """What --override says; raises InvalidSetting."""
    return dict(_pair(text) for text in overrides)


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise InvalidSetting(f"--override {text}: expected KEY=VALUE")
    return key.strip(), value.strip()


def topic(text: str) -> TopicWanted:
    """NAME[:PARTITIONS[:k=v,…]]; a value may hold commas when the next item has no `=`."""
    name, _, rest = text.partition(":")
    count, _, configs = rest.partition(":")
    if count and not count.isdecimal():
        raise InvalidSetting(f"--topic {text}: {count!r} is no number of partitions")
    wanted = TopicWanted(name, int(count) if count else -1)
    last = ""
    for item in filter(None, configs.split(",")):
        key, separator, value = item.partition("=")
        if separator:
            last = key.strip()
            wanted.configs[last] = value.strip()
        elif last:
            wanted.configs[last] += f",{item.strip()}"
        else:
            raise InvalidSetting(f"--topic {text}: {item!r} is not KEY=VALUE")
    return wanted


def create(broker: Process, topics: list[TopicWanted]) -> Later[InvalidSetting | None]:
    """Creates topics unless they are there; filled when all of them last as is configured, or with
    why one is refused."""
    created: Later[InvalidSetting | None] = Later()
    waiting = list(topics)

    def create_next() -> None:
        if not waiting:
            created.resolve(None)
            return
        wanted = waiting.pop(0)
        answer = broker.create_topic(wanted.name, wanted.partitions, wanted.configs)
        answer.then(lambda refusal: answered(wanted, refusal))

    def answered(wanted: TopicWanted, refusal: KafkaError | None) -> None:
        if refusal is None or refusal.code == Error.TOPIC_ALREADY_EXISTS:
            create_next()
        else:
            created.resolve(InvalidSetting(f"--topic {wanted.name}: {refusal.message}"))

    create_next()
    return created
