"""Folders, settings and topics as people write them in Python, and the texts that they stand for.

Owns what is understood of them. Raises TypeError or ValueError, which names the argument, for what
is not; that a setting takes its value is for the broker to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, SupportsFloat

if TYPE_CHECKING:
    from kafkalite.security.acl import Acl
    from kafkalite.testing.profiles import Profile

# Of settings and of topic configs; None leaves a setting as it is.
SettingValue = str | int | float | bool | os.PathLike[str] | list[Any] | tuple[Any, ...] | None
Settings = Mapping[str, Any]  # each a SettingValue
Topics = Mapping[str, int] | Mapping[str, tuple[int, Settings]] | Iterable[str]

MAX_BROKERS = 100
_DIRECTORIES = {"log.dirs", "log.dir", "metadata.log.dir"}
_HIGHEST_PORT = 65_535
HIGHEST_MS = 2**31 - 1
# What a datetime can show.
HIGHEST_MOMENT_MS = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1000)


def folder(data_dir: str | os.PathLike[str] | None) -> str | None:
    """The path of a directory, wherever the program goes from here; None where there is none."""
    if data_dir is None:
        return None
    path = os.fspath(data_dir)
    if not isinstance(path, str):
        raise TypeError(f"data_dir={data_dir!r}: expected a str or a pathlib.Path")
    if not path:
        raise ValueError(
            "data_dir is empty: name a directory, or leave it out to keep all in memory"
        )
    path = os.path.abspath(path)
    if "," in path or path != path.strip():
        raise ValueError(
            f"data_dir={path!r}: a broker's directory has no comma, and ends in no blank"
        )
    return path


def settings(given: Settings | None) -> dict[str, str]:
    """Settings as a server.properties has them; directories wherever the program goes from here."""
    found = texts("settings", given)
    for name in found.keys() & _DIRECTORIES:
        paths = [each.strip() for each in found[name].split(",")]
        found[name] = ",".join(os.path.abspath(each) for each in paths if each)
    return found


def host(name: str) -> str:
    """Where to listen; "" is every address of the machine. One of IPv6 in brackets or not."""
    if not isinstance(name, str):
        raise TypeError(f"host={name!r}: expected a name or an address")
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name.strip()


def check_ids(texts: Mapping[str, str], brokers: int) -> None:
    """That each broker has an id of its own."""
    named = [name for name in ("node.id", "broker.id") if name in texts]
    if named and brokers > 1:
        raise ValueError(
            f"settings[{named[0]!r}] would be the id of all {brokers} brokers: theirs are 1 to "
            f"{brokers}"
        )


def check_directories(
    data_dir: str | os.PathLike[str] | None, settings: Mapping[str, str], brokers: int
) -> None:
    """That data is in one place, and each broker's in its own."""
    named = [name for name in ("log.dirs", "log.dir") if name in settings]
    if named and data_dir is not None:
        raise ValueError(f"data_dir and settings[{named[0]!r}] both say where data lies: give one")
    if named and brokers > 1:
        raise ValueError(
            f"settings[{named[0]!r}] would be the directory of all {brokers} brokers: give "
            "data_dir, in which each has its own"
        )


def texts(what: str, values: Settings | None) -> dict[str, str]:
    """Settings as a server.properties has them."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise TypeError(f"{what}={values!r}: expected a mapping of names to values")
    found = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise TypeError(f"{what}: {name!r} is no name of a setting")
        if value is not None:
            found[name] = _text(f"{what}[{name!r}]", value)
    return found


def _text(what: str, value: SettingValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return ",".join(_text(what, each) for each in value)
    raise TypeError(f"{what}={value!r}: expected a str, a number, True or False, a path or a list")


def acls(
    wanted: Iterable[str | Acl], given: Mapping[str, str], *, is_secured: bool
) -> tuple[Acl, ...]:
    """Rules as they are, or as people write them."""
    from kafkalite.config.authorization import AUTHORIZER
    from kafkalite.security.acl import acl_of

    found = tuple(acl_of(each) if isinstance(each, str) else each for each in wanted)
    if found and not is_secured and not given.get(AUTHORIZER):
        raise ValueError(f"acls are kept by an authorizer: settings={{{AUTHORIZER!r}: …}}")
    return found


def topics(wanted: Topics | None) -> dict[str, tuple[int, dict[str, str]]]:
    """Partitions and configs by the names of topics; -1 is the broker's own num.partitions."""
    if wanted is None:
        return {}
    if isinstance(wanted, str | bytes):
        raise TypeError(f"topics={wanted!r}: expected {{{wanted!r}: 1}} or [{wanted!r}]")
    pairs = wanted.items() if isinstance(wanted, Mapping) else ((name, -1) for name in wanted)
    found = {}
    for name, described in pairs:
        what = f"topics[{name!r}]"
        count: Any = described
        configs: Any = None
        if isinstance(described, tuple) and len(described) == 2:
            count, configs = described
        found[topic("topics", name)] = partitions(what, count), texts(f"{what}[1]", configs)
    return found


def topic(what: str, name: str) -> str:
    """A topic's name; that it may be one is for the broker to say."""
    if not isinstance(name, str):
        raise TypeError(f"{what}: {name!r} is no name of a topic")
    return name


def partitions(what: str, count: int) -> int:
    """A number of partitions, -1 for the broker's own."""
    number = _whole(what, count)
    if number < 1 and number != -1:
        raise ValueError(f"{what}={count!r}: a topic has at least one partition")
    return number


def broker_count(brokers: int) -> int:
    """How many brokers there are to be."""
    number = _whole("brokers", brokers)
    if not 1 <= number <= MAX_BROKERS:
        raise ValueError(f"brokers={brokers!r}: expected 1 to {MAX_BROKERS}")
    return number


def racks(names: Iterable[str], given: Mapping[str, str], brokers: int) -> tuple[str, ...]:
    """The rack of each broker; none where none are named."""
    found = tuple(names)
    if isinstance(names, str) or not all(isinstance(each, str) for each in found):
        raise TypeError(f"racks={names!r}: expected a list with a name for each broker")
    if found and len(found) != brokers:
        raise ValueError(f"racks={names!r}: {brokers} brokers have {brokers} racks")
    if found and "broker.rack" in given:
        raise ValueError("racks and settings['broker.rack'] both say where brokers are: give one")
    return found


def port_number(port: int) -> int:
    """A port, 0 for one that is free."""
    number = _whole("port", port)
    if not 0 <= number <= _HIGHEST_PORT:
        raise ValueError(f"port={port!r}: expected 0 (one that is free) to {_HIGHEST_PORT}")
    return number


def metrics_address(metrics: str | bool | None) -> tuple[str, int] | None:
    """Where numbers are told: HOST:PORT, True for a free port of this machine; None for nowhere."""
    if metrics is None or metrics is False:
        return None
    if metrics is True:
        return "127.0.0.1", 0
    if not isinstance(metrics, str):
        raise TypeError(f"metrics={metrics!r}: expected True or HOST:PORT")
    name, _, port = metrics.rpartition(":")
    if not (name and port.isascii() and port.isdecimal() and int(port[:6]) <= _HIGHEST_PORT):
        raise ValueError(f"metrics={metrics!r}: expected HOST:PORT, the port 0 for a free one")
    return host(name), int(port)


def ms(duration: SupportsFloat) -> int:
    """Milliseconds as a reply has a place for."""
    number = _real("ms", duration)
    if not 0 <= number <= HIGHEST_MS:
        raise ValueError(f"ms={duration!r}: expected 0 to {HIGHEST_MS}")
    return round(number)


def duration_ms(**parts: SupportsFloat) -> int:
    """How long days, hours … are together, in milliseconds."""
    numbers = {name: _real(name, value) for name, value in parts.items()}
    try:
        found = round(timedelta(**numbers) / timedelta(milliseconds=1))
    except (ValueError, OverflowError) as error:
        told = ", ".join(f"{name}={value!r}" for name, value in parts.items() if value)
        raise ValueError(f"{told} is no length of time: {error}") from None
    if found < 0:
        raise ValueError(f"time never goes back: {timedelta(**numbers)} is no way forward")
    return found


def moment_ms(at: datetime | SupportsFloat) -> int:
    """A moment in milliseconds since 1970; a datetime says of which time zone it is."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise ValueError(f"at={at!r}: of which time zone? datetime(..., tzinfo=UTC) says it")
        number = at.timestamp() * 1000
    else:
        if isinstance(at, bool) or not isinstance(at, SupportsFloat):
            raise TypeError(f"at={at!r}: expected a datetime, or milliseconds since 1970")
        number = float(at)
    if not 0 <= number <= HIGHEST_MOMENT_MS:
        raise ValueError(f"at={at!r}: expected a moment from 1970 to the end of the year 9999")
    return round(number)


def _real(what: str, value: SupportsFloat) -> float:
    """A number of any kind that is one."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{what}={value!r}: expected a number")
    return float(value)


def profile(name: str | None) -> Profile | None:
    """Of which release brokers speak the versions; None for all that there are."""
    if name is None:
        return None
    from kafkalite.testing import profiles

    return profiles.named(name)


def _whole(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what}={value!r}: expected a whole number")
    return value
