"""The settings of one broker: typed access to the value that holds right now.

Owns the layers of values (start, cluster-wide, per broker) and their order. Never reads a file and
never stores a change: dynamic layers are handed in, folded from the metadata log. Invariant: every
text in a layer has been parsed and accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kafkalite.config import dynamic
from kafkalite.config.layers import Given, Source, synonyms_of
from kafkalite.config.listeners import (
    BROKER,
    CONTROLLER,
    Listener,
    parse_listeners,
    protocol_map,
)
from kafkalite.config.quorum import QuorumAddress, controller_address
from kafkalite.config.setting import InvalidSetting, Setting, Value
from kafkalite.config.tables import base_name, broker_settings
from kafkalite.config.together import check_together

T = TypeVar("T")


class BrokerConfig:
    """Settings of a broker by name; values are parsed once per change and then a dict look-up."""

    __slots__ = (
        "_cluster_wide", "_derived", "_given", "_per_broker", "_static", "_told", "_values",
        "settings",
    )  # fmt: skip

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.settings = broker_settings()
        self._static: dict[str, str] = dict(static or {})
        self._cluster_wide: dict[str, str] = {}
        self._per_broker: dict[str, str] = {}
        self._values: dict[str, Value] = {}
        self._given: dict[str, list[Given]] = {}
        self._told: set[tuple[str, str]] = set()  # stored values that were named in the log
        self._derived: dict[Callable[[BrokerConfig], Any], Any] = {}
        for name, text in self._static.items():
            if base_name(name) in self.settings:
                self.settings[base_name(name)].parse(text)
        check_together(self)

    def set_dynamic(self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]) -> None:
        """Takes the dynamic layers as they now are; every getter answers by them from here on.

        A stored value that no longer holds is left out, and named in the log.
        """
        self._take(
            dynamic.kept(cluster_wide, is_per_broker=False, told=self._told),
            dynamic.kept(per_broker, is_per_broker=True, told=self._told),
        )
        try:
            dynamic.check_stored(self)
        except InvalidSetting:
            self._take_one_by_one()

    def _take(self, cluster_wide: dict[str, str], per_broker: dict[str, str]) -> None:
        self._cluster_wide, self._per_broker = cluster_wide, per_broker
        self._values.clear()
        self._given.clear()
        self._derived.clear()

    def _take_one_by_one(self) -> None:
        """Leaves out each dynamic value that breaks a rule together with those before it."""
        layers = self._cluster_wide, self._per_broker
        held: tuple[dict[str, str], dict[str, str]] = {}, {}
        for layer, held_layer in zip(layers, held, strict=True):
            for name, text in layer.items():
                held_layer[name] = text
                self._take(*held)
                try:
                    dynamic.check_stored(self)
                except InvalidSetting as error:
                    del held_layer[name]
                    dynamic.name_ignored(name, text, error, self._told)
        self._take(*held)

    def with_layer(self, layer: Mapping[str, str], *, is_per_broker: bool) -> BrokerConfig:
        """What this configuration would be with another dynamic layer."""
        changed = BrokerConfig(self._static)
        layers = [self._cluster_wide, self._per_broker]
        layers[is_per_broker] = dict(layer)
        changed._take(*layers)
        return changed

    def dynamic_layer(self, *, is_per_broker: bool) -> dict[str, str]:
        """What was set for this broker, or for all, and holds."""
        return dict(self._per_broker if is_per_broker else self._cluster_wide)

    def dynamic_names(self) -> set[str]:
        """The names that were set since the start."""
        return {*self._cluster_wide, *self._per_broker}

    def get(self, name: str) -> Value:
        """The value that holds, parsed."""
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._parse(name)
            return value

    def _parse(self, name: str) -> Value:
        setting = self.settings[name]
        for source, layer in self._layers():
            if name in layer:
                try:
                    return setting.parse(layer[name])
                except InvalidSetting:
                    # Kafka takes some values unseen, and they must not stop what asks for others.
                    if source is Source.STATIC_BROKER:
                        raise
        return setting.default()

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
        return self.text(name) is not None

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
        defaults = (
            (synonym, self.settings[synonym].default_text)
            for synonym in names
            if synonym in self.settings and self.settings[synonym].has_static
        )
        found += [
            Given(synonym, text, Source.DEFAULT) for synonym, text in defaults if text is not None
        ]
        return _from(name, found)

    def _layers(self) -> Iterable[tuple[Source, dict[str, str]]]:
        yield Source.DYNAMIC_BROKER, self._per_broker
        yield Source.DYNAMIC_DEFAULT_BROKER, self._cluster_wide
        yield Source.STATIC_BROKER, self._static

    def text(self, name: str) -> str | None:
        """What somebody set, as it was written."""
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
        """Listeners for clients, as they were configured at the start; a change that only a client
        asked for could leave nobody a way in. A controller alone has none."""
        return self._listeners_of("listeners", BROKER) if self.is_broker else []

    @property
    def controller_listeners(self) -> list[Listener]:
        """Those at which brokers and tools find this controller, if it is one."""
        return self._listeners_of("listeners", CONTROLLER) if self.is_controller else []

    @property
    def opened_listeners(self) -> list[Listener]:
        """All that this process opens, those for clients first."""
        return [*self.listeners, *self.controller_listeners]

    @property
    def is_broker(self) -> bool:
        return BROKER in self.get_list("process.roles")

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.get_list("process.roles")

    @property
    def controller_address(self) -> QuorumAddress | None:
        """Where a broker that is no controller finds it."""
        return self.derived(controller_address)

    @property
    def advertised_listeners(self) -> dict[str, Listener]:
        """Advertised addresses by listener name; a name that is absent has none given."""
        return self._advertised(BROKER)

    @property
    def advertised_controllers(self) -> dict[str, Listener]:
        """The same of listeners for controllers."""
        return self._advertised(CONTROLLER)

    def _advertised(self, kind: str) -> dict[str, Listener]:
        found = self._listeners_of("advertised.listeners", kind)
        return {each.name: each for each in found}

    @property
    def inter_broker_listener(self) -> str:
        """Name of the listener that brokers use among each other: that which is set, that of its
        security protocol, or the first."""
        return self.derived(_inter_broker_listener)

    def _listeners_of(self, setting: str, kind: str) -> list[Listener]:
        kept = {name.upper() for name in self.get_list("controller.listener.names")}
        found = parse_listeners(setting, self.at_start(setting), self.protocols, kept)
        return [listener for listener in found if listener.kind == kind]

    @property
    def protocols(self) -> dict[str, str]:
        """Security protocol by listener name, as configured at the start."""
        name = "listener.security.protocol.map"
        return protocol_map(self._static.get(name, self.settings[name].default_text or ""))

    def at_start(self, name: str) -> list[str]:
        """The value of a list as it was configured, whatever was asked for since."""
        text = self._static.get(name)
        setting = self.settings[name]
        value = setting.default() if text is None else setting.parse(text)
        return value if isinstance(value, list) else []

    def text_at_start(self, name: str) -> str | None:
        """What a file says, whatever was asked for since."""
        return self._static.get(name)

    @property
    def fsync_every_append(self) -> bool:
        """Whether an append is on disk before it is acknowledged."""
        return self.get_str("kafkalite.durability") == "fsync"

    def setting(self, name: str) -> Setting | None:
        """The row of a name, with or without a listener's prefix."""
        return self.settings.get(base_name(name))


def _inter_broker_listener(config: BrokerConfig) -> str:
    named = config.get_optional_str("inter.broker.listener.name")
    if named is not None:
        return named.upper()
    names = [listener.name for listener in config.listeners]
    usual = config.get_str("security.inter.broker.protocol")
    return usual if usual in names or not names else names[0]


def _from(name: str, found: list[Given]) -> list[Given]:
    """Values from the first that is set under the very name, as Kafka describes them."""
    start = next((i for i, given in enumerate(found) if given.name == name), len(found))
    return found[start:]
