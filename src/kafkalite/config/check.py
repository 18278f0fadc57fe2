"""What becomes of each key of a server.properties: honoured, ignored with a reason, or refused.

Owns that judgement, and the way from a properties file to a BrokerConfig. A refused key never
reaches a broker.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from kafkalite.config.authorization import AUTHORIZER, READ_BY_AUTHORIZER
from kafkalite.config.broker import BrokerConfig
from kafkalite.config.protections import broken_promise
from kafkalite.config.setting import TRIMMED, InvalidSetting
from kafkalite.config.tables import (
    LISTENER_PREFIX,
    SLIP,
    base_name,
    broker_settings,
    foreign,
    nearest,
    removed_settings,
    topic_settings,
)
from kafkalite.config.topic import STAND_IN

JAAS = "sasl.jaas.config"
LISTENERS_JAAS = f"{LISTENER_PREFIX}LISTENER.MECHANISM.{JAAS}, in small letters"
PARTS_BEFORE_JAAS = LISTENERS_JAAS.count(".", 0, LISTENERS_JAAS.index(JAAS))
# What is looked up for one listener, before it is for all.
PER_LISTENER = re.compile(
    r"ssl\..*|sasl\..*|connections\.max\.reauth\.ms|max\.connections|max\.connection\.creation\.rate"
    r"|principal\.builder\.class"
)
HIDDEN = "[hidden]"
SECRET = re.compile("password|jaas|secret|credential|token", re.IGNORECASE)
TOGETHER = "(together)"  # in the place of a key, for a rule over several


class Verdict(Enum):
    """What becomes of a key."""

    HONOURED = "honoured"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(slots=True, frozen=True)
class Judgement:
    """A key, its text, what becomes of it, and why unless it is honoured."""

    key: str
    text: str
    verdict: Verdict
    reason: str = ""

    def __str__(self) -> str:
        return self.reason if self.key == TOGETHER else f"{self.key}: {self.reason}"


class RefusedSettings(InvalidSetting):
    """Keys that keep a broker from starting; `judgements` holds each."""

    def __init__(self, judgements: list[Judgement]) -> None:
        super().__init__("; ".join(map(str, judgements)))
        self.judgements = judgements


def judge(properties: Mapping[str, str]) -> list[Judgement]:
    """One judgement per key, as they stand; then one for a broken rule over several keys."""
    judgements = [_hidden(_judge(key, text, properties)) for key, text in properties.items()]
    if not any(each.verdict is Verdict.REFUSED for each in judgements):
        try:
            BrokerConfig(dict(properties))
        except InvalidSetting as error:
            judgements.append(Judgement(TOGETHER, "", Verdict.REFUSED, str(error)))
    return judgements


def broker_config(properties: Mapping[str, str]) -> tuple[BrokerConfig, list[Judgement]]:
    """The configuration of a broker, and the keys ignored; raises RefusedSettings."""
    judgements = judge(properties)
    refused = [each for each in judgements if each.verdict is Verdict.REFUSED]
    if refused:
        raise RefusedSettings(refused)
    ignored = [each for each in judgements if each.verdict is Verdict.IGNORED]
    return BrokerConfig(dict(properties)), ignored


def _hidden(judgement: Judgement) -> Judgement:
    return replace(judgement, text=HIDDEN) if _is_secret(judgement.key) else judgement


def _is_secret(key: str) -> bool:
    """Also by its name: that of a secret may be written with a slip of the pen."""
    setting = broker_settings().get(base_name(key))
    if setting is None and SECRET.search(key) is None:
        setting = broker_settings().get(nearest_to(key) or "")
        return setting is not None and setting.sensitive
    return setting is None or setting.sensitive


def _judge(key: str, text: str, properties: Mapping[str, str]) -> Judgement:
    if not _is_text(key + text):
        what = "its value" if _is_secret(key) else repr(text)
        return Judgement(key, text, Verdict.REFUSED, f"{what} is not UTF-8")
    setting = broker_settings().get(base_name(key))
    if setting is None:
        if key in READ_BY_AUTHORIZER and properties.get(AUTHORIZER, "").strip(TRIMMED):
            return Judgement(key, text, Verdict.HONOURED)
        return _judge_unknown(key, text)
    try:
        setting.parse(text)
    except InvalidSetting as error:
        return Judgement(key, text, Verdict.REFUSED, str(error))
    try:
        broken = broken_promise(key, properties)
    except InvalidSetting:
        broken = None  # another key is at fault, and is told of itself
    if broken is not None:
        return Judgement(key, text, Verdict.REFUSED, broken)
    if setting.ignored is not None:
        return Judgement(key, text, Verdict.IGNORED, setting.ignored)
    if setting.update.value == "dynamic-only":
        return Judgement(key, text, Verdict.IGNORED, "set it with AlterConfigs")
    unread = _unread(key)
    if unread is not None:
        return Judgement(key, text, Verdict.IGNORED, unread)
    return Judgement(key, text, Verdict.HONOURED)


def _unread(key: str) -> str | None:
    """Why nobody looks a known setting up under the prefix that it has here."""
    base = base_name(key)
    prefix = key.removesuffix(base)
    if prefix and PER_LISTENER.fullmatch(base) is None:
        return f"no broker looks it up for one listener: {base} is for all"
    if prefix != prefix.lower():
        return f"names before a setting stand in small letters: {prefix.lower()}{base}"
    if base == JAAS and prefix.count(".") < PARTS_BEFORE_JAAS:
        return "a broker reads users for one mechanism: " + LISTENERS_JAAS
    return None


def _is_text(text: str) -> bool:
    """Whether it can be told to anybody: half a character cannot, nor a byte that is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _judge_unknown(key: str, text: str) -> Judgement:
    """Refused where it is a slip of the pen; else likely a plugin's own, ignored as in Kafka."""
    removed = removed_settings().get(key)
    if removed is not None:
        return Judgement(key, text, Verdict.IGNORED, f"removed from Kafka; {removed}")
    whose = foreign(key)
    if whose is not None:
        return Judgement(key, text, Verdict.IGNORED, f"no setting of Apache Kafka's; {whose}")
    near = nearest_to(key)
    if near is None:
        return Judgement(key, text, Verdict.IGNORED, "Apache Kafka has no such setting")
    if key not in topic_settings() and not _is_slip(base_name(key), near):
        why = f"Apache Kafka has no such setting; the nearest is {near}"
        return Judgement(key, text, Verdict.IGNORED, why)
    return Judgement(key, text, Verdict.REFUSED, f"no such setting; the nearest is {near}")


def _is_slip(name: str, near: str) -> bool:
    """Whether it is the known name, but for a few letters or its end."""
    return near.startswith(f"{name}.") or nearest(name, [near], SLIP) is not None


def nearest_to(key: str) -> str | None:
    """What a key that no broker knows was most likely meant to be."""
    if key in topic_settings():
        return _broker_name_of_topic_setting(key)
    return nearest(base_name(key), broker_settings())


def _broker_name_of_topic_setting(key: str) -> str | None:
    stand_in = STAND_IN.get(key)
    return next(iter(stand_in)) if stand_in else None
