"""Values that name their schema: a zero byte, its id in a registry, then Avro or JSON.

Owns the schemas that were read, and how long one that is not to be had is not asked for again. The
registry is asked by its HTTP routes for schemas alone; an answer has a size and a time at most.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kafkalite.console.avro import Avro, NoAvro, NotAvro

FRAME_BYTES = 5
MOST_BYTES = 1 << 20
MOST_PARSED = 1 << 20
MOST_SCHEMAS = 2_000
MOST_REFERENCES = 100
ANSWER_SECONDS = 5
AGAIN_SECONDS = 10
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"

Fetch = Callable[[str], Any]


class NoSchema(ValueError):
    """It cannot be read by a schema, and why."""


@dataclass(slots=True)
class Schema:
    kind: str
    avro: Avro | None = None


def is_framed(data: bytes) -> bool:
    return len(data) >= FRAME_BYTES and data[0] == 0


class Schemas:
    """Those of one registry."""

    def __init__(self, fetch: Fetch, now_s: Callable[[], float] = time.monotonic) -> None:
        self._fetch, self._now_s = fetch, now_s
        self._known: dict[int, Schema] = {}
        self._refused: dict[int, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def decoded(self, data: bytes) -> tuple[str, Any, str]:
        """The format, the value, and which schema it was."""
        if not is_framed(data):
            raise NoSchema("no id of a schema is before it")
        number = int.from_bytes(data[1:FRAME_BYTES], "big")
        schema = self._schema(number)
        note = f"schema {number}"
        body = data[FRAME_BYTES:]
        if len(body) > MOST_PARSED:
            raise NoSchema(f"more than {MOST_PARSED} bytes are not parsed")
        if schema.avro is not None:
            try:
                return "avro", schema.avro.value(body), note
            except NotAvro as error:
                raise NoSchema(f"it is not Avro of schema {number}: {error}") from None
        if schema.kind == JSON:
            try:
                return "json", json.loads(body), note
            except (ValueError, RecursionError):
                raise NoSchema(f"schema {number} is of JSON, and what follows is not") from None
        raise NoSchema(
            f"schema {number} is of {schema.kind.title()}, which is not decoded by schema here: "
            "choose the format Protobuf for its fields by number"
        )

    def _schema(self, number: int) -> Schema:
        with self._lock:
            if number in self._known:
                return self._known[number]
            since, why = self._refused.get(number, (0.0, ""))
            if why and self._now_s() - since < AGAIN_SECONDS:
                raise NoSchema(why)
            try:
                schema = self._read(number)
            except (KeyError, TypeError, AttributeError):
                raise NoSchema(f"what the registry says of schema {number} is no schema") from None
            except NoSchema as reason:
                self._remember(self._refused, number, (self._now_s(), str(reason)))
                raise
            self._remember(self._known, number, schema)
            return schema

    def _remember(self, where: dict[int, Any], number: int, what: Any) -> None:
        if len(where) >= MOST_SCHEMAS:
            where.pop(next(iter(where)))
        where[number] = what

    def _read(self, number: int) -> Schema:
        told = self._fetch(f"/schemas/ids/{number}")
        kind = told.get("schemaType") or AVRO
        if kind != AVRO:
            return Schema(kind)
        named: dict[str, Any] = {}
        self._add_references(told, named, set())
        return Schema(AVRO, _parsed(told["schema"], named, f"schema {number}"))

    def _add_references(self, told: Any, named: dict[str, Any], seen: set[str]) -> None:
        for each in told.get("references") or ():
            path = f"/subjects/{quote(str(each['subject']), safe='')}/versions/{each['version']}"
            if path in seen:
                continue
            seen.add(path)
            if len(seen) > MOST_REFERENCES:
                raise NoSchema(f"it refers to more than {MOST_REFERENCES} others")
            found = self._fetch(path)
            self._add_references(found, named, seen)
            _parsed(found["schema"], named, path)


def _parsed(text: str, named: dict[str, Any], what: str) -> Avro:
    try:
        return Avro(json.loads(text), named)
    except NoAvro as error:
        raise NoSchema(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise NoSchema(f"{what} cannot be used: {error}") from None


def of_registry(url: str) -> Schemas:
    """ValueError when that is no address of one; a user and password may stand in it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r}: expected http://HOST:PORT")
    headers = {"accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    host = parts.netloc.rpartition("@")[2]
    base = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    return Schemas(lambda path: _fetched(base, path, headers))


def _fetched(base: str, path: str, headers: dict[str, str]) -> Any:
    request = urllib.request.Request(base + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            data = answer.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise NoSchema(f"the registry at {base} says {error.code} to {path}") from None
    except OSError as error:
        why = getattr(error, "reason", None) or error
        raise NoSchema(f"the registry at {base} does not answer: {why}") from None
    try:
        found = json.loads(data)
        if not isinstance(found["schema"], str):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NoSchema(f"the registry at {base} gives no schema for {path}") from None
    return found
