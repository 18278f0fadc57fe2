"""Bad records that are judged again before they are dead letters: by a topic, counted in a header.

Owns the headers that say how often, and where a record was read. Those of the retry topic are taken
off again when it is read, so that a record ends with its own headers and one account of its error.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

RETRY_COUNT = "retry_count"
READ_FROM = "kafkalite.dlq.from"
MAX_RETRIES = 3
# The same as columns, on the way.
COUNT, PLACE = "__retries", "__read_from"


@dataclass(frozen=True, slots=True)
class Retries:
    """The topic by which bad records come again, and how often each does at most."""

    topic: str
    at_most: int = MAX_RETRIES

    def __post_init__(self) -> None:
        if self.at_most < 1:
            raise ValueError("a retry topic is for one retry at least: leave it out for none")


def first_read(judged: DataFrame, retries: Retries, prefix: str, added: int) -> DataFrame:
    """The step: each record with the place and the headers that it had when it was read first.

    `prefix` begins the headers that tell of that place, `added` is how many are told of an error.
    """
    last = sf.try_element_at("headers", sf.lit(-1))
    # Others may write there, too: what they wrote is read first here.
    is_ours = (sf.col("topic") == retries.topic) & (last["key"] == READ_FROM)
    own = sf.slice("headers", 1, sf.greatest(sf.size("headers") - sf.lit(added + 2), sf.lit(0)))

    def before(what: str, kind: str) -> Column:
        said = sf.when(is_ours, last_of("headers", prefix + what).cast("string").cast(kind))
        return sf.coalesce(said, sf.col(what))

    return judged.withColumns(
        {
            PLACE: sf.concat_ws("/", "topic", "partition", "offset"),
            COUNT: sf.coalesce(sf.when(is_ours, _number(RETRY_COUNT)), sf.lit(0)),
            "topic": before("topic", "string"),
            "partition": before("partition", "int"),
            "offset": before("offset", "long"),
            "headers": sf.when(is_ours, own).otherwise(sf.col("headers")),
        }
    )


def again_or_dead(letters: DataFrame, retries: Retries) -> DataFrame:
    """The step: letters to the retry topic, or for the last time to their own."""
    is_dead = sf.col(COUNT) >= retries.at_most
    count = sf.when(is_dead, sf.col(COUNT)).otherwise(sf.col(COUNT) + 1)
    said = [
        sf.struct(sf.lit(name).alias("key"), sf.encode(value, "UTF-8").alias("value"))
        for name, value in ((RETRY_COUNT, count.cast("string")), (READ_FROM, sf.col(PLACE)))
    ]
    return letters.withColumns(
        {
            "topic": sf.when(is_dead, sf.col("topic")).otherwise(retries.topic),
            "headers": sf.concat("headers", sf.array(*said)),
        }
    )


def leave_out_landed(rows: DataFrame, landed: DataFrame) -> DataFrame:
    """The rows of which no letter says that it was read there."""
    places = landed.select(last_of("headers", READ_FROM).cast("string").alias(PLACE))
    return rows.join(places.where(f"{PLACE} IS NOT NULL"), PLACE, "left_anti")


def _number(name: str) -> Column:
    return last_of("headers", name).cast("string").cast("int")


def last_of(headers: str, name: str) -> Column:
    """The last header of this name: that of whoever added one last."""
    named = sf.filter(headers, lambda header: header["key"] == name)
    return sf.try_element_at(named, sf.lit(-1))["value"]
