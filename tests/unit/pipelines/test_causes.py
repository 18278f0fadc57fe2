"""The one line of an error that says what is wrong."""

import pytest

from kafkalite.pipelines.common.causes import CURES, cause_of, cure_of

SAVE = """An error occurred while calling o390.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
\tat org.apache.spark.scheduler.DAGScheduler.run(DAGScheduler.scala:1)
Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is 3000102 bytes
\tat org.apache.kafka.clients.producer.KafkaProducer.send(KafkaProducer.java:1)
\t... 12 more
Caused by: java.util.concurrent.ExecutionException
\tat java.base/java.util.concurrent.Future.get(Future.java:1)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SAVE, "RecordTooLargeException: The message is 3000102 bytes"),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:/x.\n\nJVM stacktrace:",
            "[PATH_NOT_FOUND] Path does not exist: file:/x.",
        ),
        ("An error occurred while calling o1.load.\n: java.io.IOException: null\n", "IOException"),
        (
            "An error occurred while calling o1.get.\n: java.util.concurrent.TimeoutException\n",
            "TimeoutException",
        ),
        ("one line", "one line"),
        ("\n\n", ""),
    ],
    ids=["deepest-with-words", "spark", "no-words", "no-colon", "plain", "nothing"],
)
def test_the_deepest_line_with_words_is_told(text: str, said: str) -> None:
    assert cause_of(text) == said


@pytest.mark.parametrize(
    ("cause", "cure"),
    [
        (SAVE, "max.message.bytes"),
        ("org.apache.kafka.common.errors.TimeoutException: Call(callName=listTopics)", "listens"),
        ("GroupAuthorizationException: Not authorized to access group: g", "grant"),
        ("SaslAuthenticationException: Authentication failed", "kafka.sasl.*"),
        ("ConfigException: No resolvable bootstrap urls given in bootstrap.servers", "the name"),
        ("IOException: No space left on device", "make room"),
        ("OutOfMemoryError: Java heap space", "maxOffsetsPerTrigger"),
        ("FileNotFoundException: /lake/part (Permission denied)", "write there"),
    ],
)
def test_a_cause_that_is_known_has_its_cure(cause: str, cure: str) -> None:
    assert cure in cure_of(cause_of(cause))


def test_each_cure_is_of_some_cause_and_others_have_none() -> None:
    assert len({cure for _, cure in CURES}) == len(CURES) == 8
    assert cure_of("IllegalStateException: x") == ""
