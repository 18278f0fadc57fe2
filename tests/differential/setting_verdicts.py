"""Asks a broker for one change of settings, and says what came of it in words that two can share.

A verdict is the error, and for a change that was made what DescribeConfigs tells of it afterwards.
The resource is put back as it was, so that one case says nothing of the next.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kafkalite.config import broker_settings
from kafkalite.protocol.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from tests.differential.setting_cases import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    TOPIC_NAME,
    WHOLE,
    Case,
)

DEFAULT_SOURCE = 5
# What no cluster may be without while eligible leader replicas are tracked.
KEPT = {(BROKER, ""): (("min.insync.replicas", "1"),)}
LATE_S = 0.4
NO_ANSWER = -999
# The layer of what was set for a resource.
OWN_SOURCE = {BROKER: 2, TOPIC: 1, CLIENT_METRICS: 7, GROUP: 8}

Shown = tuple[Any, ...]


class Asked(Protocol):
    """Somebody who answers requests: a broker at the end of a connection, or in memory."""

    def ask(self, request: Any, version: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a broker said to a case, and how the settings it names stand afterwards."""

    code: int
    message: str | None
    shown: tuple[Shown, ...] = ()

    @property
    def is_made(self) -> bool:
        return self.code == 0


class Judge:
    """One broker; `local` are texts of its own, by the word that stands for them in cases."""

    def __init__(self, broker: Asked, local: Mapping[str, str]) -> None:
        self.broker = broker
        self.local = local

    def make_topic(self) -> None:
        topic = CreateTopicsRequest.Topic(name=TOPIC_NAME, num_partitions=1, replication_factor=1)
        self.broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)

    def alter(self, case: Case) -> Verdict:
        """Asks, without looking at what came of it."""
        ask = _whole if case.api == WHOLE else _incremental
        request, version = ask(case, self._out)
        try:
            (answer,) = self.broker.ask(request, version).responses
        except AssertionError as error:
            return Verdict(NO_ANSWER, str(error))
        return Verdict(answer.error_code, self._in(answer.error_message))

    def shown(self, case: Case) -> tuple[Shown, ...]:
        """How the settings that a case names stand now."""
        names = sorted({name for name, _, _ in case.steps})
        resource = DescribeConfigsRequest.Resource(
            resource_type=case.kind,
            resource_name=case.resource,
            configuration_keys=[self._out(name) for name in names],
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        (result,) = self.broker.ask(request, 4).results
        return tuple(sorted(map(self._entry, result.configs)))

    def judge(self, case: Case) -> Verdict:
        """Asks, looks and puts back; for a broker whose changes show at once."""
        verdict = self.alter(case)
        if not verdict.is_made or case.validate_only:
            return verdict
        verdict = Verdict(0, None, self.shown(case))
        self.put_back(case)
        return verdict

    def put_back(self, case: Case) -> None:
        """Takes all settings from the resource."""
        configs = [
            AlterConfigsRequest.Config(name=name, value=value)
            for name, value in KEPT.get((case.kind, case.resource), ())
        ]
        resource = AlterConfigsRequest.Resource(
            resource_type=case.kind, resource_name=case.resource, configs=configs
        )
        (answer,) = self.broker.ask(AlterConfigsRequest(resources=[resource]), 2).responses
        assert answer.error_code == 0, f"after {case}: {answer}"

    def _entry(self, entry: Any) -> Shown:
        setting = broker_settings().get(entry.name)

        def text(name: str, value: str | None, source: int) -> str | None:
            known = broker_settings().get(name)
            is_ours = known is not None and source == DEFAULT_SOURCE and value == known.default_text
            if known is not None and is_ours and value != known.kafka_default_text:
                return known.kafka_default_text
            return self._in(value)

        synonyms = tuple(
            (each.name, text(each.name, each.value, each.source), each.source)
            for each in entry.synonyms
        )
        name = entry.name if setting is not None or not synonyms else synonyms[-1][0]
        value = text(name, entry.value, entry.config_source)
        flags = entry.read_only, entry.is_sensitive, entry.config_type
        return (entry.name, value or "", entry.config_source, flags, synonyms)

    def _out(self, text: str | None) -> Any:
        for word, meant in self.local.items():
            text = text if text is None else text.replace(word, meant)
        return text

    def _in(self, text: str | None) -> Any:
        for word, meant in self.local.items():
            text = text if text is None else text.replace(meant, word)
        return text and re.sub(r"\[[\w., ]+\]", _sorted, text)


def _sorted(match: re.Match[str]) -> str:
    """A set as Java writes it has no order."""
    return f"[{', '.join(sorted(match[0][1:-1].split(', ')))}]"


def _incremental(case: Case, out: Callable[[str | None], Any]) -> tuple[Any, int]:
    configs = [
        IncrementalAlterConfigsRequest.Config(
            name=out(name), config_operation=operation, value=out(value)
        )
        for name, operation, value in case.steps
    ]
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=case.kind, resource_name=case.resource, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=case.validate_only)
    return request, 1


def _whole(case: Case, out: Callable[[str | None], Any]) -> tuple[Any, int]:
    configs = [
        AlterConfigsRequest.Config(name=out(name), value=out(value))
        for name, _, value in case.steps
    ]
    resource = AlterConfigsRequest.Resource(
        resource_type=case.kind, resource_name=case.resource, configs=configs
    )
    return AlterConfigsRequest(resources=[resource], validate_only=case.validate_only), 2


class Pair:
    """Both brokers, asked the same; what Apache Kafka's learns late is waited for."""

    def __init__(self, ours: Judge, theirs: Judge) -> None:
        self.ours, self.theirs = ours, theirs
        for judge in (ours, theirs):
            judge.make_topic()

    def ask(self, case: Case) -> tuple[Verdict, Verdict]:
        ours, theirs = self.alter(case)
        if case.validate_only:
            return ours, theirs
        for judge, verdict in ((self.ours, ours), (self.theirs, theirs)):
            if verdict.is_made:
                judge.put_back(case)
        if theirs.is_made:
            self._settle(case)
        return ours, theirs

    def alter(self, case: Case) -> tuple[Verdict, Verdict]:
        """Asks both and looks, and leaves it so."""
        ours, theirs = self.ours.alter(case), self.theirs.alter(case)
        if not (ours.is_made and theirs.is_made) or case.validate_only:
            return ours, theirs
        return self.shown(case)

    def shown(self, case: Case) -> tuple[Verdict, Verdict]:
        """How the settings of a case stand, when both had the time to learn it."""
        deadline = time.monotonic() + LATE_S
        while True:
            ours, theirs = (Verdict(0, None, each.shown(case)) for each in (self.ours, self.theirs))
            if ours == theirs or time.monotonic() > deadline:
                return ours, theirs
            time.sleep(0.002)

    def put_back(self, case: Case) -> None:
        for judge in (self.ours, self.theirs):
            judge.put_back(case)
        self._settle(case)

    def _settle(self, case: Case) -> None:
        """Until the broker has taken back what it was told; bounds count from what holds."""
        own = OWN_SOURCE.get(case.kind, 0) if case.resource else 3
        deadline = time.monotonic() + LATE_S
        kept = dict(KEPT.get((case.kind, case.resource), ()))
        while time.monotonic() < deadline:
            shown = self.theirs.shown(case)
            if not any(each[2] == own for each in shown if each[0] not in kept):
                return
            time.sleep(0.002)
