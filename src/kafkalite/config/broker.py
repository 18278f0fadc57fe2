"""The settings of one broker: typed access to the value that holds right now.

Owns the layers of values (start, cluster-wide, per broker) and their order. Never reads a file and
never stores a change: dynamic layers are handed in, folded from the metadata log. Invariant: every
text in a layer has been parsed and accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kafkalite.config.layers import Given, Source, synonyms_of
from kafkalite.config.listeners import Listener, parse_listeners, protocol_map
from kafkalite.config.setting import InvalidSetting, Setting, Value
from kafkalite.config.tables import base_name, broker_settings

T = TypeVar("T")


class BrokerConfig:
    """Settings of a broker by name; values are parsed once per change and then a dict look-up."""

    __slots__ = (
        "_cluster_wide", "_derived", "_given", "_per_broker", "_static", "_values", "settings",
    )  # fmt: skip

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.settings = broker_settings()
        self._static: dict[str, str] = dict(static or {})
        self._cluster_wide: dict[str, str] = {}
        self._per_broker: dict[str, str] = {}
        self._values: dict[str, Value] = {}
        self._given: dict[str, list[Given]] = {}
        self._derived: dict[Callable[[BrokerConfig], Any], Any] = {}
        for name, text in self._static.items():
            if base_name(name) in self.settings:
                self.settings[base_name(name)].parse(text)
        check_together(self)

    def set_dynamic(self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]) -> None:
        """Takes the dynamic layers as they now are; every getter answers by them from here on."""
        self._cluster_wide, self._per_broker = dict(cluster_wide), dict(per_broker)
        self._values.clear()
        self._given.clear()
        self._derived.clear()

    def with_dynamic(
        self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]
    ) -> BrokerConfig:
        """What this configuration would be with these dynamic layers; raises InvalidSetting."""
        changed = BrokerConfig(self._static)
        changed.set_dynamic(cluster_wide, per_broker)
        check_together(changed)
        return changed

    def get(self, name: str) -> Value:
        """The value that holds, parsed."""
        if name not in self._values:
            setting = self.settings[name]
            text = self._text(name)
            self._values[name] = setting.default() if text is None else setting.parse(text)
        return self._values[name]

    def derived(self, derive: Callable[[BrokerConfig], T]) -> T:
        """What a function makes of this configuration, kept until a setting changes."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        found: T = self._derived[derive]
        return found

    def get_int(self, name: str) -> int:
        """The value of a setting that is a whole number and never null."""
        value = self.get(name)
        assert isinstance(value, int), f"{name} is not a number: {value!r}"
        return value

    def get_float(self, name: str) -> float:
        """The value of a setting that is a fraction."""
        value = self.get(name)
        assert isinstance(value, (int, float)), f"{name} is not a number: {value!r}"
        return float(value)

    def get_bool(self, name: str) -> bool:
        """The value of a setting that is true or false."""
        value = self.get(name)
        assert isinstance(value, bool), f"{name} is not true or false: {value!r}"
        return value

    def get_str(self, name: str) -> str:
        """The value of a setting that is a text and never null."""
        value = self.get(name)
        assert isinstance(value, str), f"{name} is not a text: {value!r}"
        return value

    def get_list(self, name: str) -> list[str]:
        """The value of a setting that is a list; null counts as empty."""
        value = self.get(name) or []
        assert isinstance(value, list), f"{name} is not a list: {value!r}"
        return value

    def get_optional_str(self, name: str) -> str | None:
        """The value of a setting that may be null."""
        return None if self.get(name) is None else self.get_str(name)

    def get_optional_int(self, name: str) -> int | None:
        """The value of a setting that may be null."""
        return None if self.get(name) is None else self.get_int(name)

    def is_given(self, name: str) -> bool:
        """Whether somebody set it, at start or since."""
        return self._text(name) is not None

    def given_names(self) -> list[str]:
        """The names that somebody set, also such as no table has."""
        return list(dict.fromkeys(name for _, layer in self._layers() for name in layer))

    def given(self, name: str) -> list[Given]:
        """Every value there is for a setting and its synonyms, the one that holds first."""
        if name not in self._given:
            self._given[name] = self._look_up(name)
        return self._given[name]

    def _look_up(self, name: str) -> list[Given]:
        names = synonyms_of(name)
        found = [
            Given(synonym, layer[synonym], source)
            for source, layer in self._layers()
            for synonym in names
            if synonym in layer
        ]
        defaults = ((synonym, self.settings[synonym].default_text) for synonym in names
                    if synonym in self.settings)
        found += [Given(synonym, text, Source.DEFAULT) for synonym, text in defaults
                  if text is not None]
        return _from(name, found)

    def _layers(self) -> Iterable[tuple[Source, dict[str, str]]]:
        yield Source.DYNAMIC_BROKER, self._per_broker
        yield Source.DYNAMIC_DEFAULT_BROKER, self._cluster_wide
        yield Source.STATIC_BROKER, self._static

    def _text(self, name: str) -> str | None:
        return next((layer[name] for _, layer in self._layers() if name in layer), None)

    # --- settings that mean more than their own text --------------------------------------------

    @property
    def node_id(self) -> int:
        """Number of this broker: node.id, or the older broker.id."""
        older = self.get_int("broker.id")
        return older if older >= 0 and not self.is_given("node.id") else self.get_int("node.id")

    @property
    def log_dirs(self) -> list[str]:
        """Directories of partitions."""
        return self.get_list("log.dirs") or self.get_list("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        """Directory of the metadata log."""
        return self.get_optional_str("metadata.log.dir") or self.log_dirs[0]

    @property
    def listeners(self) -> list[Listener]:
        """Listeners to open; those kept for controllers are left out."""
        return self._client_listeners("listeners")

    @property
    def advertised_listeners(self) -> dict[str, Listener]:
        """Advertised addresses by listener name; a name that is absent has none given."""
        return {each.name: each for each in self._client_listeners("advertised.listeners")}

    def _client_listeners(self, setting: str) -> list[Listener]:
        kept = {name.upper() for name in self.get_list("controller.listener.names")}
        found = parse_listeners(setting, self.get_list(setting), self.protocols)
        return [listener for listener in found if listener.name not in kept]

    @property
    def protocols(self) -> dict[str, str]:
        """Security protocol by listener name."""
        return protocol_map(self.get_str("listener.security.protocol.map"))

    @property
    def fsync_every_append(self) -> bool:
        """Whether an append is on disk before it is acknowledged."""
        return self.get_str("kafkalite.durability") == "fsync"

    def setting(self, name: str) -> Setting | None:
        """The row of a name, with or without a listener's prefix."""
        return self.settings.get(base_name(name))


def _from(name: str, found: list[Given]) -> list[Given]:
    """Values from the first that is set under the very name, as Kafka describes them."""
    start = next((i for i, given in enumerate(found) if given.name == name), len(found))
    return found[start:]


def check_together(config: BrokerConfig) -> None:
    """Rules over several settings; raises InvalidSetting for the first that is broken."""
    listeners = config.listeners
    if not listeners:
        raise InvalidSetting("listeners must name at least one listener for clients")
    for name, advertised in config.advertised_listeners.items():
        if advertised.host in ("0.0.0.0", "::"):
            raise InvalidSetting(
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
                "Use a routable IP address."
            )
        if name not in {listener.name for listener in listeners}:
            known = ", ".join(sorted(listener.name for listener in listeners))
            raise InvalidSetting(
                f"advertised.listeners names {name}, which listeners does not open ({known})"
            )
    _check_controller(config)
    if config.metadata_log_dir not in config.log_dirs:
        raise InvalidSetting(
            f"metadata.log.dir {config.metadata_log_dir} must be one of the log directories"
        )
    if config.is_given("node.id") and config.get_int("broker.id") not in (-1, config.node_id):
        raise InvalidSetting("node.id and broker.id are both given and differ")
    least, most = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    if config.get_int(least) > config.get_int(most):
        raise InvalidSetting(
            f"{least} ({config.get_int(least)}) > {most} ({config.get_int(most)})"
        )


def _check_controller(config: BrokerConfig) -> None:
    """This process is its own controller: a file that means another is no file for it."""
    if sorted(config.get_list("process.roles")) != ["broker", "controller"]:
        raise InvalidSetting(
            "process.roles must be broker,controller: a broker here is its own controller, and "
            "joins no other"
        )
    voters = config.get_list("controller.quorum.voters")
    strangers = [voter for voter in voters if voter.partition("@")[0] != str(config.node_id)]
    if strangers:
        raise InvalidSetting(
            f"controller.quorum.voters names {', '.join(strangers)}, but the only voter of this "
            f"cluster is its own node {config.node_id}"
        )
