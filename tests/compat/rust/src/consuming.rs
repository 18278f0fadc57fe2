//! Consumers, with a partition of their own or as members of a group.

use crate::{config, security, text, Answer, Command};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{Headers, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts how many partitions were ever assigned, again after each loss.
#[derive(Default)]
pub struct Assigned(AtomicUsize);

impl Assigned {
    fn count(&self, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            self.0.fetch_add(partitions.count(), Ordering::SeqCst);
        }
    }
}

impl ClientContext for Assigned {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn error(&self, error: KafkaError, reason: &str) {
        security::heard(&error, reason);
    }

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        security::token()
    }
}

impl ConsumerContext for Assigned {
    #[cfg(not(feature = "old"))]
    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        self.count(rebalance);
    }

    #[cfg(feature = "old")]
    fn post_rebalance(&self, rebalance: &Rebalance<'_>) {
        self.count(rebalance);
    }
}

pub type Member = BaseConsumer<Assigned>;

fn consumer(bootstrap: &str, group: &str, c: &Command) -> KafkaResult<Member> {
    let isolation = if c.flag("committed") {
        "read_committed"
    } else {
        "read_uncommitted"
    };
    let mut config = config(bootstrap);
    config
        .set("group.id", group)
        .set("isolation.level", isolation);
    config
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false");
    match c.text("strategy") {
        "server" => config.set("group.protocol", "consumer"),
        "cooperative" => config
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("heartbeat.interval.ms", "200"),
        _ => config.set("heartbeat.interval.ms", "200"),
    };
    if !c.text("instance").is_empty() {
        config.set("group.instance.id", c.text("instance"));
    }
    if c.number("max_bytes", 0) > 0 {
        config.set(
            "max.partition.fetch.bytes",
            c.number("max_bytes", 0).to_string(),
        );
    }
    config.create_with_context(Assigned::default())
}

pub fn read(bootstrap: &str, c: &Command) -> Answer {
    let reader = consumer(bootstrap, "none", c)?;
    let mut start = TopicPartitionList::new();
    start.add_partition_offset(
        c.text("topic"),
        c.partition(),
        Offset::Offset(c.number("offset", 0)),
    )?;
    reader.assign(&start)?;
    take(&reader, c)
}

pub fn join(bootstrap: &str, c: &Command) -> Result<Member, KafkaError> {
    let member = consumer(bootstrap, c.text("group"), c)?;
    member.subscribe(&[c.text("topic")])?;
    Ok(member)
}

pub fn ask(member: &Member, c: &Command) -> Answer {
    match c.text("do") {
        "poll" => take(member, c),
        "commit" => {
            member.commit_consumer_state(CommitMode::Sync)?;
            Ok(Value::Null)
        }
        _ => {
            let owned = member.assignment()?;
            let partitions: Vec<i32> = owned
                .elements_for_topic(c.text("topic"))
                .iter()
                .map(|one| one.partition())
                .collect();
            let assigned = member.context().0.load(Ordering::SeqCst);
            Ok(json!({ "partitions": partitions, "assigned": assigned }))
        }
    }
}

/// Polls until so many records came or the time is over.
fn take(consumer: &Member, c: &Command) -> Answer {
    let end = Instant::now() + c.wait();
    let mut taken = Vec::new();
    while (taken.len() as i64) < c.number("count", 0) && Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now());
        if let Some(found) = consumer.poll(left.min(Duration::from_millis(200))) {
            taken.push(record(&found?));
        }
        if let Some(told) = security::refused() {
            return Err(told.into());
        }
    }
    Ok(Value::Array(taken))
}

fn record(m: &impl Message) -> Value {
    let headers: Vec<Value> = m
        .headers()
        .map(|all| {
            all.iter()
                .map(|one| json!({ "name": one.key, "value": text(one.value) }))
                .collect()
        })
        .unwrap_or_default();
    json!({
        "partition": m.partition(), "offset": m.offset(), "timestamp": m.timestamp().to_millis(),
        "key": text(m.key()), "value": text(m.payload()), "headers": headers,
    })
}
