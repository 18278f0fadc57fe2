"""Schemas by id, of Avro, JSON or Protobuf: of a registry's URL, or files `<id>.avsc` in a folder.

Owns fetching and keeping them, with the schemas that they refer to. A registry is asked once for an
id; ids never change their meaning.
An id that the registry does not know, or that is no schema of the kind that was asked for, is the
record's fault and told in its `error`. A registry that does not answer, or is none, ends the run:
it is no record's fault.
"""

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kafkalite.pipelines.common.avro_names import UnknownName, whole
from kafkalite.pipelines.common.json_schema import bundle, fault_of_schema
from kafkalite.pipelines.common.outcomes import UNKNOWN_SCHEMA, PipelineError
from kafkalite.pipelines.common.protobuf import NotProtobuf, compiled

if TYPE_CHECKING:  # commands read schemas where there is no Spark
    from pyspark.sql import DataFrame

    from kafkalite.pipelines.common.decode import Decoding

TIMEOUT_S = 30.0
ATTEMPTS = 3
PAUSE_S = 0.5
MAX_BYTES = 16 * 1024 * 1024
_PIECE = 64 * 1024
# A topic with more schemas than this is not framed Avro, but bytes that look like it.
MAX_SCHEMAS = 1_000

# A schema refers to at most so many others, directly or not.
MAX_REFERENCES = 1_000

# What a registry says of a subject, a version or an id that it does not have; any other 404 comes
# from somebody else.
_NO_SUCH = (40401, 40402, 40403)
_TRY_AGAIN = 429
# The kinds of schemas, as a registry says them, and how their files end.
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
_ENDINGS = {AVRO: "avsc", JSON: "json", PROTOBUF: "proto"}
_CALLED = {AVRO: "Avro", JSON: "JSON Schema", PROTOBUF: "Protobuf"}
_FRAMED = {"confluent-avro": AVRO, "confluent-json": JSON, "confluent-protobuf": PROTOBUF}

Reference = tuple[str, int]  # subject and version


def of_format(decoding: "Decoding", where: str) -> "Schemas | None":
    """What finds the schemas of a format; None for one whose values do not name any."""
    kind = _FRAMED.get(decoding.format)
    return None if kind is None else Schemas(where, kind=kind)


class Schemas:
    """Schemas of one registry, as far as they were needed."""

    def __init__(self, where: str, timeout_s: float = TIMEOUT_S, kind: str = AVRO) -> None:
        if not where:
            raise ValueError("decoding framed values needs a schema registry: its URL, or a folder")
        self._kind = kind
        is_url = "://" in where
        self._source = _Registry(where, timeout_s) if is_url else _SchemaFiles(where, kind)
        self._known: dict[int, str] = {}
        self._refused: dict[int, str] = {}

    def complete(self, decoding: "Decoding", df: "DataFrame") -> "Decoding":
        """The decoding with the schemas that the values of these rows name."""
        from pyspark.sql import functions as sf

        from kafkalite.pipelines.common.decode import schema_id

        found = df.select(schema_id(sf.col("value")).alias("id")).where("id IS NOT NULL").distinct()
        for row in found.limit(MAX_SCHEMAS).collect():
            self._learn(row["id"])
        return replace(decoding, schemas=dict(self._known), refused=dict(self._refused))

    def find(self, number: int) -> tuple[str | None, str | None]:
        """The schema of an id, or why there is none."""
        self._learn(number)
        return self._known.get(number), self._refused.get(number)

    def _learn(self, number: int) -> None:
        if number in self._known or number in self._refused:
            return
        answer = self._source.get(number)
        reason = _unusable(number, answer, self._kind)
        if answer is None or reason is not None:
            self._refused[number] = reason or ""
            return
        try:
            self._known[number] = self._whole(answer)
        except UnknownName as name:
            self._refused[number] = f"schema id {number} needs {name}, which is nowhere"
        except NotProtobuf as fault:
            self._refused[number] = f"schema id {number} is no Protobuf schema: {fault}"

    def _whole(self, answer: dict[str, Any]) -> str:
        """The text of a schema with all that it refers to."""
        if self._kind == JSON:
            others = {name: _parsed_as_json(name, text) for name, text in self._referred(answer)}
            return bundle(json.loads(answer["schema"]), others)
        if self._kind == PROTOBUF:
            return compiled(answer["schema"], dict(self._referred(answer)))
        if not answer.get("references"):
            text: str = answer["schema"]
            return text
        others_of_avro = [json.loads(text) for _, text in self._referred(answer)]
        return json.dumps(whole(json.loads(answer["schema"]), others_of_avro))

    def _referred(self, answer: dict[str, Any]) -> list[tuple[str, str]]:
        """All that a schema refers to, also by others: the name it is called by, and its text."""
        found: dict[Reference, dict[str, Any]] = {}
        named: list[tuple[str, str]] = []
        waiting = _references(answer)
        while waiting:
            name, reference = waiting.pop()
            if reference in found:
                named.append((name, found[reference]["schema"]))
                continue
            if len(found) == MAX_REFERENCES:
                raise PipelineError(f"a schema refers to more than {MAX_REFERENCES} others")
            referred = self._source.referred(*reference)
            if referred is None:
                raise UnknownName(f"version {reference[1]} of subject {reference[0]}")
            found[reference] = referred
            named.append((name, referred["schema"]))
            waiting += _references(referred)
        return named


def _parsed_as_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise UnknownName(f"{name} as JSON") from None


def _references(answer: dict[str, Any]) -> list[tuple[str, Reference]]:
    return [
        (each["name"], (each["subject"], each["version"]))
        for each in answer.get("references") or ()
    ]


def _unusable(number: int, answer: dict[str, Any] | None, wanted: str) -> str | None:
    """Why records of this schema cannot be decoded."""
    if answer is None:
        return f"{UNKNOWN_SCHEMA} {number}"
    kind = answer.get("schemaType", AVRO)
    if kind != wanted:
        return f"schema id {number} is {kind}, not {_CALLED[wanted]}"
    if kind == PROTOBUF:
        return None
    if kind == JSON:
        fault = fault_of_schema(answer["schema"])
        return None if fault is None else f"schema id {number} is no JSON Schema: {fault}"
    schema = json.loads(answer["schema"])
    if not (isinstance(schema, dict) and schema.get("type") == "record"):
        return f"schema id {number} is not an Avro record"
    return None


class _SchemaFiles:
    """A folder of `<id>.avsc`, of `<id>.json` or of `<id>.proto`."""

    def __init__(self, folder: str, kind: str) -> None:
        self._folder = Path(folder)
        self._kind = kind
        if not self._folder.is_dir():
            raise ValueError(f"no folder of schemas: {folder}")

    def get(self, number: int) -> dict[str, Any] | None:
        path = self._folder / f"{number}.{_ENDINGS[self._kind]}"
        if not path.exists():
            return None
        text = path.read_text(encoding="utf-8")
        if self._kind == PROTOBUF:
            return {"schema": text, "schemaType": PROTOBUF}
        try:
            json.loads(text)
        except ValueError as error:
            raise PipelineError(f"{path} is not JSON: {error}") from None
        return {"schema": text, "schemaType": self._kind}

    def referred(self, subject: str, version: int) -> dict[str, Any] | None:
        """A file has all in it that it needs."""
        return None


class _Registry:
    """`GET /schemas/ids/<id>` and `GET /subjects/<subject>/versions/<version>` at a URL, which may
    carry `user:password@`.

    An id is told of a deleted schema, too; a version is only to who asks for deleted ones.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        parts = urlsplit(url.rstrip("/"))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            token = base64.b64encode(login.encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        # Without the login, because it is shown in errors.
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        self._timeout_s = timeout_s

    def get(self, number: int) -> dict[str, Any] | None:
        return self._schema(f"schemas/ids/{number}", f"schema id {number}")

    def referred(self, subject: str, version: int) -> dict[str, Any] | None:
        path = f"subjects/{quote(subject, safe='')}/versions/{version}?deleted=true"
        return self._schema(path, f"version {version} of subject {subject}")

    def _schema(self, path: str, what: str) -> dict[str, Any] | None:
        status, body = self._ask(f"{self._url}/{path}")
        answer = _parsed(body)
        if status == 404 and answer.get("error_code") in _NO_SUCH:
            return None
        if status != 200:
            said = answer.get("message", "")
            raise PipelineError(
                f"the schema registry at {self._url} refused {what}: HTTP {status}"
                f"{f', {said}' if said else ''}"
            )
        schema = answer.get("schema")
        if not isinstance(schema, str) or not _is_readable(answer, schema):
            raise PipelineError(
                f"{self._url} answered the question for {what} with something else: "
                "is it a schema registry?"
            )
        return answer

    def _ask(self, url: str) -> tuple[int, bytes]:
        """Status and body; what may pass is asked again, a few times."""
        trouble = ""
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE_S * attempt)
            try:
                status, body = self._answer(url)
            except urllib.error.URLError as error:
                trouble = str(error.reason)
            except (OSError, http.client.HTTPException) as error:
                trouble = str(error) or type(error).__name__
            else:
                if status < 500 and status != _TRY_AGAIN:
                    return status, body
                trouble = f"HTTP {status}"
        raise PipelineError(
            f"the schema registry at {self._url} did not answer in {ATTEMPTS} attempts: {trouble}"
        )

    def _answer(self, url: str) -> tuple[int, bytes]:
        until = time.monotonic() + self._timeout_s
        request = urllib.request.Request(url, headers=self._headers)
        reply: Any
        try:
            reply = urllib.request.build_opener(_Elsewhere).open(request, timeout=self._timeout_s)
        except urllib.error.HTTPError as refused:  # which is an answer, too
            reply = refused
        with reply:
            body = b""
            while len(body) < MAX_BYTES and (piece := reply.read1(_PIECE)):
                body += piece
                if time.monotonic() >= until:
                    raise TimeoutError(f"it took longer than {self._timeout_s:g} s")
            if reply.length and len(body) < MAX_BYTES:
                raise http.client.HTTPException("its answer was cut off")
            return reply.status, body


class _Elsewhere(urllib.request.HTTPRedirectHandler):
    """A login is said to the registry alone, not to whom its answers name."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        there = super().redirect_request(req, fp, code, msg, headers, newurl)
        if there is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            there.remove_header("Authorization")
        return there


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _is_readable(answer: dict[str, Any], schema: str) -> bool:
    """An Avro schema is JSON; schemas of other kinds need not be."""
    if answer.get("schemaType", AVRO) != AVRO:
        return True
    try:
        json.loads(schema)
    except ValueError:
        return False
    return True
