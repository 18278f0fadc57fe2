"""Python's own libraries at old versions as a program: client.py LIBRARY BOOTSTRAP.

A line of JSON on standard input is a command, and the line that follows on standard output is its
answer: {"ok": …} or {"error": "…"}. Bytes are in base64 there, and only there. A program holds at
most one member of a group and one transactional producer; a test that needs two starts two
programs. What a library does with a command is in the module `with_LIBRARY` beside this.
"""

import importlib
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

DEADLINE_MS = 30_000


def main() -> None:
    library, bootstrap = sys.argv[1:]
    session = importlib.import_module(f"with_{library}").Session(bootstrap)
    for line in sys.stdin:
        print(json.dumps(answer(session.act, command(line)), default=text), flush=True)


def command(line: str) -> dict[str, Any]:
    """A command, with what is meant where a field is absent."""
    given = json.loads(line)
    given["records"] = [record(each) for each in given.get("records", ())]
    return {
        "partition": None, "offset": 0, "wait_ms": DEADLINE_MS, "codec": "none", "acks": "all",
        "committed": False, "strategy": "", "instance": "", "max_bytes": 0, "configs": {}, **given,
    }


def record(fields: dict[str, Any]) -> dict[str, Any]:
    headers = [(each["name"], raw(each["value"])) for each in fields["headers"]]
    return {
        "key": raw(fields["key"]), "value": raw(fields["value"]), "headers": headers,
        "timestamp": fields["timestamp"],
    }


def raw(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def text(value: bytes) -> str:
    return b64encode(value).decode()


def answer(act: Callable[[dict[str, Any]], Any], given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": act(given)}
    except Exception as error:  # noqa: BLE001 - whatever the library raises is its answer
        said = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
        return {"error": " ".join(said)}


main()
