"""`kafka-console-consumer`: the records of topics, one line each."""

from __future__ import annotations

from kafkalite.client.consuming import EARLIEST, LATEST
from kafkalite.coordinators.java_hash import in_hash_order
from kafkalite.tools.client_settings import choice, client_settings, key_values, settings_of
from kafkalite.tools.failures import Failure, WrongUse, wrong_setting
from kafkalite.tools.message_formatter import ABSENT, DEFAULT, Printer, formatter
from kafkalite.tools.options import Given, Option
from kafkalite.tools.receiving import Receiving, ReceivingSettings
from kafkalite.tools.running import begin, log, tell, tell_use, wrong_words

_ABOUT = "This tool helps to read data from Kafka topics and outputs it to standard output."
_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_PROPERTIES = (
    "the message formatter. Default properties include: \n"
    " print.timestamp=true|false\n"
    " print.key=true|false\n"
    " print.offset=true|false\n"
    " print.epoch=true|false\n"
    " print.partition=true|false\n"
    " print.headers=true|false\n"
    " print.value=true|false\n"
    " key.separator=<key.separator>\n"
    " line.separator=<line.separator>\n"
    " headers.separator=<headers.separator>\n"
    " null.literal=<null.literal>\n"
    " key.deserializer=<key.deserializer>\n"
    " value.deserializer=<value.deserializer>\n"
    " header.deserializer=<header.deserializer>\n"
    "Users can also pass in customized properties for their formatter; more specifically, users "
    "can pass in properties keyed with 'key.deserializer.', 'value.deserializer.' and "
    "'headers.deserializer.' prefixes to configure their deserializers."
)

OPTIONS = [
    Option(
        "bootstrap-server",
        "REQUIRED: The server(s) to connect to.",
        "server to connect to",
    ),
    Option(
        "command-config",
        "Consumer config properties file. Note that [command-property] takes precedence "
        "over this config.",
        "config file",
    ),
    Option(
        "command-property",
        "Consumer config properties in the form key=value.",
        "consumer_prop",
    ),
    Option(
        "consumer-property",
        "(DEPRECATED) Consumer config properties in the form key=value. This option will "
        "be removed in a future version. Use --command-property instead.",
        "consumer_prop",
    ),
    Option(
        "consumer.config",
        "(DEPRECATED) Consumer config properties file. Note that [command-property] takes"
        " precedence over this config. This option will be removed in a future version. "
        "Use --command-config instead.",
        "config file",
    ),
    Option(
        "enable-systest-events",
        "Log lifecycle events of the consumer in addition to logging consumed messages. "
        "(This is specific for system tests.)",
    ),
    Option(
        "formatter",
        "The name of a class to use for formatting kafka messages for display.",
        "class", default=DEFAULT,
    ),
    Option(
        "formatter-config",
        "Config properties file to initialize the message formatter. Note that "
        "[formatter-property] takes precedence over this config.",
        "config file",
    ),
    Option(
        "formatter-property",
        f"The properties to initialize {_PROPERTIES}",
        "prop",
    ),
    Option(
        "from-beginning",
        "If the consumer does not already have an established offset to consume from, "
        "start with the earliest message present in the log rather than the latest "
        "message.",
    ),
    Option(
        "group",
        "The consumer group id of the consumer.",
        "consumer group id",
    ),
    Option(
        "include",
        "Regular expression specifying list of topics to include for consumption.",
        "Java regex (String)",
    ),
    Option(
        "isolation-level",
        "Set to read_committed in order to filter out transactional messages which are "
        "not committed. Set to read_uncommitted to read all messages.",
        "", default="read_uncommitted",
    ),
    Option(
        "key-deserializer",
        "The name of the class to use for deserializing keys.",
        "deserializer for keys",
    ),
    Option(
        "max-messages",
        "The maximum number of messages to consume before exiting. If not set, "
        "consumption is continual.",
        "num_messages", int,
    ),
    Option(
        "offset",
        "The offset to consume from (a non-negative number), or 'earliest' which means "
        "from beginning, or 'latest' which means from end",
        "consume offset", default="latest",
    ),
    Option(
        "partition",
        "The partition to consume from. Consumption starts from the end of the partition "
        "unless '--offset' is specified.",
        "partition", int,
    ),
    Option(
        "property",
        f"(DEPRECATED) The properties to initialize {_PROPERTIES}\n"
        "This option will be removed in a future version. Use --formatter-property instead.",
        "prop",
    ),
    Option(
        "skip-message-on-error",
        "If there is an error when processing a message, skip it instead of halt.",
    ),
    Option(
        "timeout-ms",
        "If specified, exit if no message is available for consumption for the specified "
        "interval.",
        "timeout_ms", int, is_long=True,
    ),
    Option(
        "topic",
        "The topic to consume from.",
        "topic",
    ),
    Option(
        "value-deserializer",
        "The name of the class to use for deserializing values.",
        "deserializer for values",
    ),
]

_RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}
_NO_TIMEOUT_MS = 0x7FFFFFFFFFFFFFFF


class Refused(Exception):
    """What is said alone."""


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        ended = _checked(given, words)
        if ended is not None:
            return ended
        properties = _properties(given)
        _refuse_absent(given, properties)
        settings, prints = _settings(given, properties), _printer(given)
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Refused as refusal:
        tell(str(refusal))
        return 1
    except Failure as failure:
        tell(f'Exception in thread "main" {failure.stack()}'.removesuffix("\n"))
        return 1
    try:
        _check(properties)
        Receiving(settings, prints).run(given.one("max-messages"))
    except Failure as failure:
        log("ERROR", "Unknown error when running consumer: ", _CONSUMER)
        tell(failure.stack().removesuffix("\n"))
        return 1
    return 0


def _checked(given: Given, words: list[str]) -> int | None:
    with wrong_words():
        ended = begin(given, words, _ABOUT)
    if ended is not None:
        return ended
    if given.has("topic") == given.has("include"):
        raise WrongUse("Exactly one of the following arguments is required: [topic], [include]")
    _check_partition(given)
    given.require("bootstrap-server")
    for new, old in (("command-property", "consumer-property"),
                     ("command-config", "consumer.config")):
        if given.has(new) and given.has(old):
            raise WrongUse(f"Options --{old} and --{new} cannot be specified together.")
    return None


def _check_partition(given: Given) -> None:
    if given.one("partition") is None:
        if given.has("offset"):
            raise WrongUse("The partition is required when offset is specified.")
        return
    if not given.has("topic"):
        raise WrongUse("The topic is required when partition is specified.")
    if given.has("from-beginning") and given.has("offset"):
        raise WrongUse("Options from-beginning and offset cannot be specified together.")


def _newer(given: Given, new: str, old: str) -> str:
    """The option that is given, of a new one and the one that it replaces."""
    if not given.has(old):
        return new
    print(
        f"Option --{old} is deprecated and will be removed in a future version. Use --{new} "
        "instead."
    )
    return old


def _refuse_absent(given: Given, properties: dict[str, str]) -> None:
    """What Apache Kafka's tool can do and this one cannot."""
    for name, value, is_absent in (
        ("--formatter", given.one("formatter"), given.one("formatter") in ABSENT),
        ("group.protocol", properties.get("group.protocol", ""),
         properties.get("group.protocol", "").lower() == "consumer" and "group.id" in properties),
        ("auto.offset.reset", properties["auto.offset.reset"],
         properties["auto.offset.reset"].startswith("by_duration:")),
    ):  # fmt: skip
        if is_absent:
            raise Refused(
                f"{name}={value} is not there yet in kafkalite's tools: leave it out, or use "
                "Apache Kafka's own tools"
            )


def _properties(given: Given) -> dict[str, str]:
    pairs = _newer(given, "command-property", "consumer-property")
    file = _newer(given, "command-config", "consumer.config")
    found = client_settings(given, file, pairs)
    groups = [given.one("group")] if given.has("group") else []
    groups += [each["group.id"] for each in (settings_of(given.one(file)),
               key_values(given.all(pairs))) if "group.id" in each]
    if len(set(groups)) > 1:
        raise WrongUse(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match. Detected group ids: "
            + ", ".join(f"'{each}'" for each in in_hash_order(groups))
        )
    if groups and given.has("partition"):
        raise WrongUse("Options group and partition cannot be specified together.")
    if groups:
        found["group.id"] = groups[0]
    if given.has("isolation-level") or "isolation.level" not in found:
        found["isolation.level"] = given.one("isolation-level")
    _set_reset(given, found)
    return found


def _set_reset(given: Given, found: dict[str, str]) -> None:
    reset = found.setdefault(
        "auto.offset.reset", "earliest" if given.has("from-beginning") else "latest"
    )
    if given.has("from-beginning") and reset != "earliest":
        raise Refused(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option"
        )


def _settings(given: Given, properties: dict[str, str]) -> ReceivingSettings:
    timeout_ms = given.one("timeout-ms")
    return ReceivingSettings(
        given.one("bootstrap-server"), given.one("topic"), given.one("include"),
        given.one("partition"), _offset(given), _RESETS.get(properties["auto.offset.reset"]),
        timeout_ms if timeout_ms is not None and timeout_ms >= 0 else _NO_TIMEOUT_MS,
        given.has("skip-message-on-error"), given.has("enable-systest-events"), properties,
    )  # fmt: skip


def _offset(given: Given) -> int:
    """At or below -1: by the end or the beginning."""
    text = given.one("offset") if given.has("offset") else (
        "earliest" if given.has("from-beginning") else "latest"
    )
    if (moment := _RESETS.get(text.lower())) is not None:
        return moment
    if not (text.isascii() and text.isdecimal()):
        raise WrongUse(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', "
            "'latest', or a non-negative long."
        )
    return int(text)


def _printer(given: Given) -> Printer:
    if given.has("property") and given.has("formatter-property"):
        raise WrongUse("Options --property and --formatter-property cannot be specified together.")
    pairs = _newer(given, "formatter-property", "property")
    with wrong_words():
        properties = settings_of(given.one("formatter-config"))
        for name in ("key", "value"):
            if given.one(f"{name}-deserializer"):
                properties[f"{name}.deserializer"] = given.one(f"{name}-deserializer")
        return formatter(given.one("formatter"), properties | key_values(given.all(pairs)))


def _check(properties: dict[str, str]) -> None:
    choice(properties, "isolation.level", ("read_committed", "read_uncommitted"), "")
    reset = properties["auto.offset.reset"]
    if reset not in _RESETS:
        raise wrong_setting(
            f"Invalid value {reset} for configuration auto.offset.reset: Invalid value `{reset}` "
            "for configuration auto.offset.reset. The value must be either 'earliest', 'latest', "
            "'none' or of the format 'by_duration:<PnDTnHnMn.nS.>'."
        )
