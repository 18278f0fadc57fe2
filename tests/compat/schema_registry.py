"""A small schema registry for tests: schemas by id and by a subject's version, and whatever else it
is told to say.

It speaks as Confluent's does, error codes included; each id may be given another answer.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

PATH = "/schemas/ids/"
POLL_S = 0.01


@dataclass(slots=True)
class SchemaRegistry:
    """What it has, what it was asked, and how it behaves."""

    url: str
    answers: dict[int, Any] = field(default_factory=dict)
    subjects: dict[tuple[str, int], Any] = field(default_factory=dict)
    # Versions that were deleted, and not for good: told to who asks for such.
    deleted: set[tuple[str, int]] = field(default_factory=set)
    asked: Counter[int] = field(default_factory=Counter)
    logins: list[str | None] = field(default_factory=list)
    # Called before each answer: gives (status, body) to say that instead, or None.
    trouble: Callable[[], tuple[int, bytes] | None] = lambda: None

    def has(self, number: int, schema: Any, **more: Any) -> None:
        """A schema, and what else its answer says: `schemaType`, `references`."""
        self.answers[number] = {"schema": json.dumps(schema), **more}

    def has_subject(self, subject: str, version: int, schema: Any, **more: Any) -> dict[str, Any]:
        """A version of a subject; returns a reference to it."""
        self.subjects[subject, version] = {"schema": json.dumps(schema), **more}
        return {"name": "any", "subject": subject, "version": version}


@contextmanager
def schema_registry(port: int = 0) -> Iterator[SchemaRegistry]:
    """Listens on 127.0.0.1 until the end of the block."""
    registry = SchemaRegistry("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.logins.append(self.headers["Authorization"])
            status, body = registry.trouble() or _answer(registry, self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(registry: SchemaRegistry, path: str) -> tuple[int, bytes]:
    path, _, query = path.partition("?")
    if found := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+)", path):
        version = unquote(found[1]), int(found[2])
        answer = registry.subjects.get(version)
        if answer is None or (version in registry.deleted and query != "deleted=true"):
            return 404, b'{"error_code":40401,"message":"Subject not found"}'
        return 200, json.dumps(answer).encode()
    if not path.startswith(PATH):
        return 404, b'{"error_code":404,"message":"HTTP 404 Not Found"}'
    number = int(path.removeprefix(PATH))
    registry.asked[number] += 1
    if number not in registry.answers:
        return 404, b'{"error_code":40403,"message":"Schema not found"}'
    return 200, json.dumps(registry.answers[number]).encode()
