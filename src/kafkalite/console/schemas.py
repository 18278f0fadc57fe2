"""Values that name their schema: a zero byte, its id in a registry, then Avro or JSON.

Owns the schemas that were read, and how long one that is not to be had is not asked for again, nor
a registry that is away. That is asked by its HTTP routes for schemas alone; an answer has a size
and a time at most, and so has a schema with all that it refers to. Invariant: who waits for a
schema keeps nobody waiting who wants another.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from kafkalite.console.avro import Avro, NoAvro, NotAvro
from kafkalite.env.fetching import fetched
from kafkalite.env.tls import Offer, client_context

FRAME_BYTES = 5
MOST_BYTES = 1 << 20
MOST_PARSED = 1 << 20
MOST_SCHEMAS = 2_000
MOST_REFERENCES = 100
ANSWER_SECONDS = 5.0
MOST_SECONDS = 10.0  # of a schema with all that it refers to
AGAIN_SECONDS = 10.0
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"

Fetch = Callable[[str], Any]


class NoSchema(ValueError):
    """It cannot be read by a schema, and why."""


class Away(NoSchema):
    """The registry does not answer, whatever it is asked for."""


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
        self._reading: dict[int, Future[Schema]] = {}
        self._refused: dict[int, tuple[float, str]] = {}
        self._away: tuple[float, str] | None = None
        self._lock = threading.Lock()  # of these; never while the registry is asked

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
            self._check_refused(number)
            is_asked = number in self._reading
            reading = self._reading.setdefault(number, Future())
        if not is_asked:
            self._ask(number, reading)
        return reading.result()

    def _check_refused(self, number: int) -> None:
        for since_s, why in filter(None, (self._away, self._refused.get(number))):
            if self._now_s() - since_s < AGAIN_SECONDS:
                raise NoSchema(why)

    def _ask(self, number: int, reading: Future[Schema]) -> None:
        """Whoever wants it meanwhile waits for what comes of it, too."""
        found: Schema | Exception
        try:
            found = self._read(number)
        except Exception as failure:  # noqa: BLE001 - told to all who wait
            found = failure
        with self._lock:
            del self._reading[number]
            if isinstance(found, Schema):
                self._remember(self._known, number, found)
            elif isinstance(found, Away):
                self._away = self._now_s(), str(found)
            elif isinstance(found, NoSchema):
                self._remember(self._refused, number, (self._now_s(), str(found)))
        if isinstance(found, Schema):
            reading.set_result(found)
        else:
            reading.set_exception(found)

    def _remember(self, where: dict[int, Any], number: int, what: Any) -> None:
        if len(where) >= MOST_SCHEMAS:
            where.pop(next(iter(where)))
        where[number] = what

    def _read(self, number: int) -> Schema:
        until_s = self._now_s() + MOST_SECONDS
        try:
            told = self._fetch(f"/schemas/ids/{number}")
            kind = told.get("schemaType") or AVRO
            if kind != AVRO:
                return Schema(kind)
            named: dict[str, Any] = {}
            self._add_references(told, named, set(), until_s)
            return Schema(AVRO, _parsed(told["schema"], named, f"schema {number}"))
        except (KeyError, TypeError, AttributeError, UnicodeError):
            raise NoSchema(f"what the registry says of schema {number} is no schema") from None

    def _add_references(
        self, told: Any, named: dict[str, Any], seen: set[str], until_s: float
    ) -> None:
        for each in told.get("references") or ():
            subject, version = (quote(str(each[one]), safe="") for one in ("subject", "version"))
            path = f"/subjects/{subject}/versions/{version}"
            if path in seen:
                continue
            seen.add(path)
            if len(seen) > MOST_REFERENCES:
                raise NoSchema(f"it refers to more than {MOST_REFERENCES} others")
            if self._now_s() >= until_s:
                raise NoSchema(f"with what it refers to it takes longer than {MOST_SECONDS:.0f} s")
            found = self._fetch(path)
            self._add_references(found, named, seen, until_s)
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
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r}: expected http://HOST:PORT")
    headers = {"accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    host = parts.netloc.rpartition("@")[2]
    base = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    context = client_context(Offer()) if parts.scheme == "https" else None
    return Schemas(lambda path: _fetched(base, path, context, headers))


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return None if parts.port == 0 else parts
    except ValueError:
        return None


def _fetched(
    base: str, path: str, context: ssl.SSLContext | None, headers: dict[str, str]
) -> Any:
    try:
        data = fetched(base + path, context, ANSWER_SECONDS, MOST_BYTES, headers)
    except (OSError, HTTPException) as error:
        why = str(error) or type(error).__name__
        raise Away(f"the registry at {base} does not answer: {why.strip()}") from None
    except ValueError as error:
        raise NoSchema(f"the registry at {base}, asked for {path}: {error}") from None
    try:
        found = json.loads(data)
        if not isinstance(found["schema"], str):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NoSchema(f"the registry at {base} gives no schema for {path}") from None
    return found
