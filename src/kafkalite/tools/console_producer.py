"""`kafka-console-producer`: lines of standard input become records of a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing

from kafkalite.client.cluster import ClientFailed
from kafkalite.client.typed import pieces_of_input, split
from kafkalite.tools.asking import BOOTSTRAP
from kafkalite.tools.client_settings import (
    Number,
    choice,
    client_settings,
    key_values,
    numbers,
    settings_of,
)
from kafkalite.tools.failures import Failure, WrongUse, kafka
from kafkalite.tools.line_reader import LineReader
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import begin, tell, tell_use, wrong_words
from kafkalite.tools.sending import Sending, SendingSettings

_ABOUT = "This tool helps to read data from standard input and publish it to Kafka."
_READER = "org.apache.kafka.tools.LineMessageReader"
_READER_PROPERTIES = (
    "Default properties include:\n"
    " parse.key=false\n"
    " parse.headers=false\n"
    " ignore.error=false\n"
    " key.separator=\\t\n"
    " headers.delimiter=\\t\n"
    " headers.separator=,\n"
    " headers.key.separator=:\n"
    " null.marker=   When set, any fields (key, value and headers) equal to this will be replaced "
    "by null\n"
    "Default parsing pattern when:\n"
    " parse.headers=true and parse.key=true:\n"
    "  \"h1:v1,h2:v2...\\tkey\\tvalue\"\n"
    " parse.key=true:\n"
    "  \"key\\tvalue\"\n"
    " parse.headers=true:\n"
    "  \"h1:v1,h2:v2...\\tvalue\""
)

OPTIONS = [
    Option(
        "batch-size",
        "The buffer size in bytes allocated for a partition. When records are received "
        "which are smaller than this size the producer will attempt to optimistically "
        "group them together until this size is reached. This is the option to control "
        "batch.size in producer configs. Please note that this option will be replaced if"
        " max-partition-memory-bytes is also set.",
        "size", int, default=16384,
    ),
    Option(
        "bootstrap-server",
        "REQUIRED: The server(s) to connect to. The broker list string in the form "
        "HOST1:PORT1,HOST2:PORT2.",
        "server to connect to",
    ),
    Option(
        "command-config",
        "Producer config properties file. Note that [command-property] takes precedence "
        "over this config.",
        "config file",
    ),
    Option(
        "command-property",
        "Producer config properties in the form key=value.",
        "producer_prop",
    ),
    Option(
        "compression-codec",
        "The compression codec: either 'none', 'gzip', 'snappy', 'lz4', or 'zstd'. If "
        "specified without value, then it defaults to 'gzip'",
        "compression-codec", may_lack_argument=True,
    ),
    Option(
        "line-reader",
        "The class name of the class to use for reading lines from standard in. By "
        "default each line is read as a separate message.",
        "reader_class", default=_READER,
    ),
    Option(
        "max-block-ms",
        "The max time that the producer will block for during a send request.",
        "max block on send", int, default=60000, is_long=True,
    ),
    Option(
        "max-memory-bytes",
        "The total memory used by the producer to buffer records waiting to be sent to "
        "the server. This is the option to control `buffer.memory` in producer configs.",
        "total memory in bytes", int, default=33554432, is_long=True,
    ),
    Option(
        "max-partition-memory-bytes",
        "(Deprecated) The buffer size in bytes allocated for a partition. When records "
        "are received which are smaller than this size the producer will attempt to "
        "optimistically group them together until this size is reached. This is the "
        "option to control batch.size in producer configs. This option will be removed in"
        " Apache Kafka 5.0. Use --batch-size instead.",
        "memory in bytes per partition", int, default=16384,
    ),
    Option(
        "message-send-max-retries",
        "Brokers can fail receiving the message for multiple reasons, and being "
        "unavailable transiently is just one of them. This property specifies the number "
        "of retries before the producer give up and drop this message. This is the option"
        " to control `retries` in producer configs.",
        "", int, default=3,
    ),
    Option(
        "metadata-expiry-ms",
        "The period of time in milliseconds after which we force a refresh of metadata "
        "even if we haven't seen any leadership changes. This is the option to control "
        "`metadata.max.age.ms` in producer configs.",
        "metadata expiration interval", int, default=300000, is_long=True,
    ),
    Option(
        "producer-property",
        "(DEPRECATED) Producer config properties in the form key=value. This option will "
        "be removed in a future version. Use --command-property instead.",
        "producer_prop",
    ),
    Option(
        "producer.config",
        "(DEPRECATED) Producer config properties file. Note that [command-property] takes"
        " precedence over this config. This option will be removed in a future version. "
        "Use --command-config instead.",
        "config file",
    ),
    Option(
        "property",
        "(DEPRECATED) A mechanism to pass user-defined properties in the form key=value to the "
        "message reader. This allows custom configuration for a user-defined message reader.\n"
        f"{_READER_PROPERTIES}\n"
        " This option will be removed in a future version. Use --reader-property instead.",
        "prop",
    ),
    Option(
        "reader-config",
        "Config properties file for the message reader. Note that [reader-property] takes"
        " precedence over this config.",
        "config file",
    ),
    Option(
        "reader-property",
        "A mechanism to pass user-defined properties in the form key=value to the message reader. "
        "This allows custom configuration for a user-defined message reader.\n"
        f"{_READER_PROPERTIES}",
        "prop",
    ),
    Option(
        "request-required-acks",
        "The required `acks` of the producer requests",
        "request required acks", default="-1",
    ),
    Option(
        "request-timeout-ms",
        "The ack timeout of the producer requests. Value must be non-negative and "
        "non-zero.",
        "request timeout ms", int, default=1500,
    ),
    Option(
        "retry-backoff-ms",
        "Before each retry, the producer refreshes the metadata of relevant topics. Since"
        " leader election takes a bit of time, this property specifies the amount of time"
        " that the producer waits before refreshing the metadata. This is the option to "
        "control `retry.backoff.ms` in producer configs.",
        "", int, default=100, is_long=True,
    ),
    Option(
        "socket-buffer-size",
        "The size of the tcp RECV size. This is the option to control `send.buffer.bytes`"
        " in producer configs.",
        "size", int, default=102400,
    ),
    Option(
        "sync",
        "If set message send requests to the brokers are synchronously, one at a time as "
        "they arrive.",
    ),
    Option(
        "timeout",
        "If set and the producer is running in asynchronous mode, this gives the maximum "
        "amount of time a message will queue awaiting sufficient batch size. The value is"
        " given in ms. This is the option to control `linger.ms` in producer configs.",
        "timeout_ms", int, default=1000, is_long=True,
    ),
    Option(
        "topic",
        "REQUIRED: The topic name to produce messages to.",
        "topic",
    ),
]

_OLD = (
    ("command-property", "producer-property"), ("command-config", "producer.config"),
    ("reader-property", "property"),
)  # fmt: skip
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_ACKS = {"all": -1, "-1": -1, "0": 1, "1": 1}  # where none is asked for, one does no harm
# The settings of a producer that are numbers, as Apache Kafka looks at them.
_NUMBERS = (
    Number("buffer.memory", 1 << 25),
    Number("retries", 3, is_long=False),
    Number("batch.size", 1 << 14, is_long=False),
    Number("linger.ms", 1000),
    Number("delivery.timeout.ms", 120_000, is_long=False),
    Number("send.buffer.bytes", 102_400, -1, is_long=False),
    Number("max.request.size", 1 << 20, is_long=False),
    Number("retry.backoff.ms", 100),
    Number("max.block.ms", 60_000),
    Number("request.timeout.ms", 1500, is_long=False),
    Number("metadata.max.age.ms", 300_000),
)
# The options that are settings; what is not given is not said over a setting.
_SETTINGS = {
    "batch-size": "batch.size", "max-block-ms": "max.block.ms",
    "max-memory-bytes": "buffer.memory", "max-partition-memory-bytes": "batch.size",
    "message-send-max-retries": "retries", "metadata-expiry-ms": "metadata.max.age.ms",
    "request-required-acks": "acks", "request-timeout-ms": "request.timeout.ms",
    "retry-backoff-ms": "retry.backoff.ms", "socket-buffer-size": "send.buffer.bytes",
    "timeout": "linger.ms",
}  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        ended = _checked(given, words)
        return _run(given) if ended is None else ended
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        is_of_words = failure.java.startswith("joptsimple.")
        tell(failure.message if is_of_words else failure.stack().removesuffix("\n"))
    return 1


def _checked(given: Given, words: list[str]) -> int | None:
    with wrong_words():
        ended = begin(given, words, _ABOUT)
    if ended is not None:
        return ended
    given.require("topic")
    for new, old in _OLD:
        if given.has(new) and given.has(old):
            raise WrongUse(f"Options --{new} and --{old} cannot be specified together.")
    for new, old in _OLD:
        if given.has(old):
            print(
                f"Warning: --{old} is deprecated and will be removed in a future version. Use "
                f"--{new} instead."
            )
    if given.has("max-partition-memory-bytes"):
        print(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache "
            "Kafka 5.0. Use --batch-size instead."
        )
    bootstrap = given.one("bootstrap-server")
    if not bootstrap:
        raise WrongUse("Error while validating the bootstrap address\n")
    if not BOOTSTRAP.fullmatch(bootstrap):
        raise WrongUse("Please provide valid host:port like host1:9091,host2:9092\n")
    return None


def _run(given: Given) -> int:
    settings = _settings(given)
    reader = _reader(given)
    with closing(Sending(settings)) as sending:
        for line in _lines():
            if line is None:
                sending.flush()
            else:
                sending.send(reader.record(line))
    return 0


def _used(given: Given, new: str) -> str:
    """The option that is given, of a new one and the one that it replaces."""
    old = dict(_OLD)[new]
    return old if given.has(old) else new


def _settings(given: Given) -> SendingSettings:
    found = client_settings(
        given, _used(given, "command-config"), _used(given, "command-property")
    )
    for option, setting in _SETTINGS.items():
        value = given.one(option)
        if given.has(option):
            found[setting] = str(value)
    codec = given.one("compression-codec") or "gzip"
    found["compression.type"] = codec if given.has("compression-codec") else "none"
    acks = _ACKS[choice(found, "acks", _ACKS, "-1")]
    codec = choice(found, "compression.type", _CODECS, "none")
    return SendingSettings(
        given.one("bootstrap-server"), given.one("topic"),
        found.get("client.id", "console-producer"), acks, _CODECS.index(codec),
        given.has("sync"), numbers(found, _NUMBERS), found,
    )  # fmt: skip


def _reader(given: Given) -> LineReader:
    name = given.one("line-reader")
    if name != _READER:
        raise Failure("java.lang.ClassNotFoundException", name)
    return LineReader(
        settings_of(given.one("reader-config"))
        | key_values(given.all(_used(given, "reader-property")))
    )


def _lines() -> Iterator[str | None]:
    """Lines as Java reads them; None where nothing waits to be read."""
    prompt = ">" if sys.stdin.isatty() and sys.stdout.isatty() else ""
    print(prompt, end="", flush=True)
    try:
        for line in split(pieces_of_input(), b"\n"):
            if line is None:
                yield None
                continue
            for part in line.removesuffix(b"\r").split(b"\r"):
                yield part.decode(errors="replace")
                print(prompt, end="", flush=True)
    except ClientFailed as failure:
        raise kafka(str(failure)) from failure
