"""Stands before a handler and asks what its API's rows in `security.asks` say.

Owns the two ways that need no handler: a request is refused as a whole, or the entries of it that
name what its sender may not touch are taken out, answered with the error, and put to what the
handler answers to the others. Exists only where there is an authorizer. Invariant: a handler never
sees an entry that was refused.
"""

from __future__ import annotations

from typing import Any

from kafkalite import handlers
from kafkalite.config.listeners import CONTROLLER
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, begun, outcome_of
from kafkalite.handlers.afterwards import afterwards
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import NAMES_PER_STEP, REFUSALS, may, refusal
from kafkalite.protocol import spec
from kafkalite.protocol.errors import KafkaError
from kafkalite.security.acl import CLUSTER, CLUSTER_NAME, TOPIC
from kafkalite.security.asks import ALL, EACH, Ask, asks_at
from kafkalite.server.error_reply import answered_array, refused_entries
from kafkalite.server.whole_refusals import whole_refusal

ZERO_UUID = bytes(16)


def guarded(handler: handlers.Handler, api: spec.Api, version: int, kind: str) -> handlers.Handler:
    """The handler as it is where its API asks nothing that can be asked before it."""
    is_controller = kind == CONTROLLER
    asked = spec.message(f"{api.name}Request")
    wholes = [
        (ask, _naming(asked.root, ask, version))
        for ask in asks_at(api.name, ALL, version, is_controller=is_controller)
    ]
    parts = [
        _Part(ask, asked, version)
        for ask in asks_at(api.name, EACH, version, is_controller=is_controller)
    ]
    if not wholes and not parts:
        return handler
    assert len(parts) < 2, f"{api.name} asks for two kinds of entries"

    def guard(context: Context, call: Call, request: Any) -> Any:
        for ask, field in wholes:
            name = CLUSTER_NAME if field is None else getattr(request, field.name)
            if not may(context, call, ask.operation, ask.kind, name):
                error = refusal(ask.operation, ask.kind, call)
                return begun(whole_refusal(request, version, error))
        if not parts:
            return handler(context, call, request)
        return parts[0].answered(context, call, request, handler)

    return guard


def _naming(struct: spec.Struct, ask: Ask, version: int) -> spec.Field | None:
    """The field that names what is asked about; None for the cluster."""
    if ask.kind == CLUSTER:
        return None
    fields = (each for each in struct.fields if each.is_in(version))
    return next(each for each in fields if each.resource == ask.resource)


class _Part:
    """The entries of a request that are asked about one by one."""

    def __init__(self, ask: Ask, asked: spec.Message, version: int) -> None:
        self.ask = ask
        self.array, self.name = self._find(asked, ask, version)
        self.is_merged = ask.api != "ListOffsets"  # which answers what was refused as it was asked
        fields = self.array.struct.fields if self.array.struct is not None else ()
        self.has_ids = any(each.name == "topic_id" and each.is_in(version) for each in fields)

    @staticmethod
    def _find(
        asked: spec.Message, ask: Ask, version: int
    ) -> tuple[spec.Field, spec.Field | None]:
        """The array, and the field of its entries that names one; None where they are names."""
        for array in asked.root.fields:
            if not array.is_array or not array.is_in(version):
                continue
            if array.struct is None and array.resource == ask.resource:
                return array, None
            if array.struct is not None:
                for field in array.struct.fields:
                    if field.resource == ask.resource and field.type == "string":
                        return array, field
        raise AssertionError(f"{asked.name} has no entries that name a {ask.resource}")

    def answered(
        self, context: Context, call: Call, request: Any, handler: handlers.Handler
    ) -> Any:
        return begun(self._answered(context, call, request, handler))

    def _answered(
        self, context: Context, call: Call, request: Any, handler: handlers.Handler
    ) -> Steps[Any]:
        refused: list[Any] = []
        kept: list[Any] = []
        for number, entry in enumerate(getattr(request, self.array.name), 1):
            name = self._name_of(context, entry)
            is_refused = name is not None and not may(
                context, call, self.ask.operation, self.ask.kind, name
            )
            (refused if is_refused else kept).append(entry)
            if number % NAMES_PER_STEP == 0:
                yield
        if not refused:
            return handler(context, call, request)
        if self.ask.api == "DeleteGroups":  # which answers a group once
            refused = list(dict.fromkeys(refused))
        setattr(request, self.array.name, refused)
        answers = yield from refused_entries(request, call.version, REFUSALS[self.ask.kind])
        setattr(request, self.array.name, kept)
        try:
            answer = yield from outcome_of(handler(context, call, request))
        except KafkaError:  # all of it is answered with that
            setattr(request, self.array.name, [*refused, *kept])
            raise
        both = afterwards(
            answer, lambda response: begun(self._with_refused(call, response, answers))
        )
        return (yield from outcome_of(both))

    def _with_refused(self, call: Call, response: Any, refused: list[Any]) -> Steps[Any]:
        if getattr(response, "error_code", 0) == 0:  # else the others are not told of either
            told = answered_array(type(response), call.version)
            both = [*refused, *getattr(response, told)]
            setattr(response, told, (yield from _once_each(both)) if self.is_merged else both)
        return response

    def _name_of(self, context: Context, entry: Any) -> str | None:
        """None of an unknown id: what has none is nobody's to ask for."""
        if self.name is None:
            return str(entry)
        if self.has_ids and self.ask.kind == TOPIC:
            return context.metadata.image.topic_name(entry.topic_id)
        return str(getattr(entry, self.name.name))


def _once_each(answers: list[Any]) -> Steps[list[Any]]:
    """A topic that was named twice is answered once, for all its partitions."""
    if not hasattr(answers[0], "partitions"):
        return answers
    found: dict[tuple[str, bytes], Any] = {}
    for number, each in enumerate(answers, 1):
        first = found.setdefault((each.name, getattr(each, "topic_id", ZERO_UUID)), each)
        if first is not each:
            first.partitions += each.partitions
        if number % ELEMENTS_PER_STEP == 0:
            yield
    return list(found.values())
