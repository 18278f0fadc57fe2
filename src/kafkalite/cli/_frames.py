"""Reads captured frames, as bytes or as hexadecimal digits, into plain values.

A request says in its header what it is. A response does not: its API and version are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkalite.cli._log_files import describe_batches
from kafkalite.client.internal_records import raw_record
from kafkalite.client.rendering import Plain, plain_message
from kafkalite.client.secrets import without_secrets
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.framing import MAX_FRAME_BYTES, SIZE_BYTES, FrameCutter
from kafkalite.protocol.messages import ResponseHeader, message_class

_HEXADECIMAL = re.compile(rb"[0-9a-fA-F\s:]*")


def read_capture(data: bytes) -> bytes:
    """The bytes meant: hexadecimal digits, with spaces or colons between, stand for theirs."""
    if _HEXADECIMAL.fullmatch(data):
        return bytes.fromhex(re.sub(rb"[\s:]", b"", data).decode())
    return data


def split(data: bytes) -> Iterator[bytes]:
    """The frames of a capture: behind their sizes if the sizes fit, else all of it is one."""
    cutter = FrameCutter(MAX_FRAME_BYTES)
    if len(data) < SIZE_BYTES or not _sizes_fit(data):
        yield data
        return
    cutter.feed(data)
    while (frame := cutter.take()) is not None:
        yield bytes(frame)


def describe_request(frame: bytes) -> dict[str, Plain]:
    header, position = headers.decode_request_header(frame)
    api = spec.api(header.request_api_key)
    version = header.request_api_version
    body = codec.decode(message_class(f"{api.name}Request"), version, frame, position)
    without_secrets(body)
    return {
        "request": api.name,
        "version": version,
        "correlation_id": header.correlation_id,
        "client_id": header.client_id,
        "body": plain_message(body, version, describe_records),
    }


def describe_response(frame: bytes, api: spec.Api, version: int) -> dict[str, Plain]:
    header_version = headers.response_header_version(api.key, version)
    header, position = codec.decode_prefix(ResponseHeader, header_version, frame)
    body = codec.decode(message_class(f"{api.name}Response"), version, frame, position)
    without_secrets(body)
    return {
        "response": api.name,
        "version": version,
        "correlation_id": header.correlation_id,
        "body": plain_message(body, version, describe_records),
    }


def describe_records(records: memoryview) -> Plain:
    """Every batch and record; of a batch that is corrupt, the reason."""
    return list(describe_batches(records, raw_record, deep=True))


def _sizes_fit(data: bytes) -> bool:
    position = 0
    while position + SIZE_BYTES <= len(data):
        size = int.from_bytes(data[position : position + SIZE_BYTES], "big", signed=True)
        if size < 0:
            return False
        position += SIZE_BYTES + size
    return position == len(data)
