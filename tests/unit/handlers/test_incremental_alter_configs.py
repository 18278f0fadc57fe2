"""IncrementalAlterConfigs: steps on settings of every kind of resource."""

import logging

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import IncrementalAlterConfigsRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
NINES = "9" * 5_000
SET, DELETE, APPEND, SUBTRACT = range(4)

Request = IncrementalAlterConfigsRequest


def resource(kind, name, *steps):
    return Request.Resource(
        resource_type=kind,
        resource_name=name,
        configs=[
            Request.Config(name=key, config_operation=operation, value=value)
            for key, operation, value in steps
        ],
    )


def alter(world, *resources, version=1, validate_only=False):
    request = Request(resources=list(resources), validate_only=validate_only)
    return world.ask(request, version).responses


def one(world, kind, name, *steps, **named):
    (answer,) = alter(world, resource(kind, name, *steps), **named)
    return answer


@pytest.mark.parametrize("version", range(2))
def test_a_setting_has_its_effect_at_once(world, version):
    world.create("t")
    answer = one(world, TOPIC, "t", ("retention.ms", SET, "5"), version=version)
    assert (answer.error_code, answer.error_message) == (Error.NONE, None)
    assert world.context.logs.get("t", 0).config.retention_ms == 5
    one(world, TOPIC, "t", ("retention.ms", DELETE, None))
    assert world.context.logs.get("t", 0).config.retention_ms == 604_800_000


def test_lists_grow_and_shrink(world):
    world.create("t")

    def policy():
        return world.metadata.image.config(TOPIC, "t").get("cleanup.policy")

    one(world, TOPIC, "t", ("cleanup.policy", APPEND, "compact"))
    assert policy() == "delete,compact"
    one(world, TOPIC, "t", ("cleanup.policy", APPEND, "compact"))
    assert policy() == "delete,compact"
    one(world, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))
    assert policy() == "compact"
    assert world.context.logs.get("t", 0).config.cleanup_policy == ("compact",)


@pytest.mark.parametrize(
    ("steps", "code", "message"),
    [
        ([("nope", SET, "1")], Error.INVALID_CONFIG, "Unknown topic config name: nope"),
        ([("retention.ms", SET, "x")], Error.INVALID_CONFIG, "Not a number of type LONG"),
        (
            [("segment.ms", SET, "9"), ("retention.ms", SET, "-2")],
            Error.INVALID_CONFIG,
            "at least -1",
        ),
        ([("retention.ms", SET, None)], Error.INVALID_REQUEST, "Null value not supported for"),
        ([("retention.ms", APPEND, "1")], Error.INVALID_CONFIG, "its type is not LIST"),
        ([("retention.ms", 9, "1")], Error.INVALID_REQUEST, "Unknown operations type 9"),
        (
            [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
            Error.INVALID_REQUEST,
            "duplicate config keys",
        ),
    ],
)
def test_a_bad_step_changes_nothing_of_its_resource(world, steps, code, message):
    world.create("t", retention_ms="7")
    answer = one(world, TOPIC, "t", *steps)
    assert answer.error_code == code
    assert message in answer.error_message
    assert world.metadata.image.config(TOPIC, "t") == {"retention.ms": "7"}


def test_a_value_that_grows_too_long_is_refused(world):
    world.create("t")
    name = "leader.replication.throttled.replicas"
    for start in range(0, 6000, 1500):
        part = ",".join(f"{index}:{index}" for index in range(start, start + 1500))
        answer = one(world, TOPIC, "t", (name, APPEND, part))
    assert answer.error_code == Error.INVALID_CONFIG
    assert "exceeds the maximum value size of 32767 bytes" in answer.error_message


def test_each_resource_has_its_own_outcome(world):
    world.create("t")
    answers = alter(
        world,
        resource(TOPIC, "nix", ("retention.ms", SET, "1")),
        resource(TOPIC, "t", ("retention.ms", SET, "1")),
        resource(99, "t", ("retention.ms", SET, "1")),
        resource(TOPIC, "twice", ("retention.ms", SET, "1")),
        resource(TOPIC, "twice", ("retention.ms", SET, "2")),
    )
    assert [each.error_code for each in answers] == [
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.NONE,
        Error.INVALID_REQUEST,
        Error.INVALID_REQUEST,
        Error.INVALID_REQUEST,
    ]
    assert world.metadata.image.config(TOPIC, "t") == {"retention.ms": "1"}


def test_validate_only_changes_nothing(world):
    world.create("t")
    assert one(world, TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True).error_code == 0
    assert one(world, LOGGER, "1", ("root", SET, "TRACE"), validate_only=True).error_code == 0
    assert world.metadata.image.config(TOPIC, "t") == {}
    assert logging.getLogger().level != logging.DEBUG - 5


def test_broker_settings_reach_logs_without_a_setting_of_their_own(world):
    world.create("own", max_message_bytes="9")
    world.create("plain")
    for name, value in (("", "5"), ("1", "6")):
        assert one(world, BROKER, name, ("message.max.bytes", SET, value)).error_code == 0
        assert world.context.logs.get("plain", 0).config.max_message_bytes == int(value)
        assert world.context.logs.get("own", 0).config.max_message_bytes == 9
        assert world.context.config.get_int("message.max.bytes") == int(value)


def test_a_brokers_own_setting_leaves_the_others_alone(three):
    three.create("t", 3)
    request = Request(resources=[resource(BROKER, "2", ("message.max.bytes", SET, "5"))])
    (answer,) = three.ask(request, 1, node_id=2).responses
    assert answer.error_code == Error.NONE
    sizes = {id_: node.config.get_int("message.max.bytes") for id_, node in three.nodes.items()}
    assert sizes == {1: 1_048_588, 2: 5, 3: 1_048_588}


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("7", "log.retention.ms", "1", "Unexpected broker id, expected 1, but received 7"),
        ("x", "log.retention.ms", "1", "Node id must be an integer, but it is: x"),
        ("1", "num.partitions", "1", "Cannot update these configs dynamically: [num.partitions]"),
        ("", "listeners", "PLAINTEXT://:1", "at default cluster level, broker id must be"),
        ("", "listener.name.a.ssl.keystore.type", "PEM", "at default cluster level"),
        ("1", "ssl.keystore.type", "PEM", "only per-listener using the listener prefix"),
        ("1", "message.max.bytes", "-1", "Value must be at least 0"),
        ("1", "log.retention.ms", "x", "Not a number of type LONG"),
    ],
)
def test_refuses_broker_settings_as_kafka_does(world, name, key, value, message):
    answer = one(world, BROKER, name, (key, SET, value))
    assert answer.error_code == Error.INVALID_REQUEST
    assert message in answer.error_message
    assert world.metadata.image.config(BROKER, name).keys() <= {"min.insync.replicas"}


def test_least_in_sync_replicas_are_the_clusters_while_eligible_replicas_are_tracked(world):
    assert one(world, BROKER, "1", ("min.insync.replicas", SET, "1")).error_code == 40
    assert one(world, BROKER, "", ("min.insync.replicas", DELETE, None)).error_code == 40
    assert one(world, BROKER, "", ("min.insync.replicas", SET, "2")).error_code == 0
    world.create("t")
    assert world.context.logs.get("t", 0).config.min_insync_replicas == 2


def test_levels_of_loggers_can_be_set_and_unset(world):
    name = "kafkalite.coordinators.cluster.local_controller"
    logger = logging.getLogger(name)
    before = logger.level
    try:
        assert one(world, LOGGER, "1", (name, SET, "ERROR")).error_code == 0
        assert logger.level == logging.ERROR
        assert one(world, LOGGER, "1", (name, DELETE, None)).error_code == 0
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize(
    ("step", "code", "message"),
    [
        (("nope", SET, "INFO"), Error.INVALID_CONFIG, "Logger nope does not exist!"),
        (("root", SET, "LOUD"), Error.INVALID_CONFIG, "Valid log levels are DEBUG, ERROR, FATAL"),
        (("root", DELETE, None), Error.INVALID_REQUEST, "root logger is not allowed"),
        (("root", APPEND, "INFO"), Error.INVALID_REQUEST, "APPEND operation is not allowed"),
    ],
)
def test_refuses_levels_as_kafka_does(world, step, code, message):
    answer = one(world, LOGGER, "1", step)
    assert answer.error_code == code
    assert message in answer.error_message


@pytest.mark.parametrize(
    ("kind", "name", "step", "code"),
    [
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"), Error.NONE),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "1"), Error.INVALID_CONFIG),
        (GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "16000"), Error.INVALID_CONFIG),
        (GROUP, "g", ("nope", SET, "1"), Error.INVALID_CONFIG),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "50000"), Error.INVALID_REQUEST),
        (CLIENT_METRICS, "s", ("interval.ms", SET, "100"), Error.NONE),
        (CLIENT_METRICS, "s", ("interval.ms", SET, "99"), Error.INVALID_REQUEST),
        (CLIENT_METRICS, "s", ("match", SET, "client_id=a.*"), Error.NONE),
        (CLIENT_METRICS, "s", ("match", SET, "shoe_size=9"), Error.INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("match", SET, "client_id=("), Error.INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("match", SET, "client_id=a{99999999999}"), Error.INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("match", SET, f"client_id=a{{{NINES}}}"), Error.INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("match", SET, f"client_id={'(' * 2_000}"), Error.INVALID_CONFIG),
        (CLIENT_METRICS, "s", ("match", SET, f"client_id={'a|' * 2_100}"), Error.INVALID_CONFIG),
        (BROKER, NINES, ("log.retention.ms", SET, "5"), Error.INVALID_REQUEST),
        (LOGGER, NINES, ("kafka", SET, "INFO"), Error.INVALID_REQUEST),
        (CLIENT_METRICS, "s", ("nope", SET, "1"), Error.INVALID_REQUEST),
        (CLIENT_METRICS, "", ("interval.ms", SET, "100"), Error.INVALID_REQUEST),
    ],
)
def test_groups_and_subscriptions(world, kind, name, step, code):
    assert one(world, kind, name, step).error_code == code
    assert (world.metadata.image.config(kind, name) != {}) == (code == Error.NONE)
