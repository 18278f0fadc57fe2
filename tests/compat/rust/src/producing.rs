//! Producers, plain and transactional.

use crate::{bytes, config, security, text, Answer, Command, DEADLINE};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::error::Error;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Collects what became of each record, by its place in the command.
#[derive(Default)]
pub struct Reports(Mutex<Vec<(usize, Result<Value, KafkaError>)>>);

impl ClientContext for Reports {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn error(&self, error: KafkaError, reason: &str) {
        security::heard(&error, reason);
    }

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        security::token()
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, place: Box<usize>) {
        let report = match result {
            Ok(m) => Ok(json!({
                "partition": m.partition(), "offset": m.offset(), "key": text(m.key()),
            })),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().unwrap().push((*place, report));
    }
}

pub type Writer = BaseProducer<Reports>;

pub fn produce(bootstrap: &str, c: &Command) -> Answer {
    let mut config = config(bootstrap);
    config
        .set("partitioner", "murmur2_random")
        .set("linger.ms", "20");
    for (setting, field) in [("compression.type", "codec"), ("acks", "acks")] {
        if !c.text(field).is_empty() {
            config.set(setting, c.text(field));
        }
    }
    if c.number("max_bytes", 0) > 0 {
        config.set("message.max.bytes", c.number("max_bytes", 0).to_string());
    }
    let producer = Writer::from_config_and_context(&config, Reports::default())?;
    send(&producer, c)
}

pub fn transactional(bootstrap: &str, c: &Command) -> Result<Writer, KafkaError> {
    let timeout_ms = c.number("timeout_ms", 60_000).to_string();
    let mut config = config(bootstrap);
    config.set("transactional.id", c.text("id"));
    config
        .set("transaction.timeout.ms", &timeout_ms)
        .set("message.timeout.ms", &timeout_ms);
    let producer = Writer::from_config_and_context(&config, Reports::default())?;
    producer.init_transactions(DEADLINE)?;
    Ok(producer)
}

pub fn ask(bootstrap: &str, producer: &Writer, c: &Command) -> Answer {
    match c.text("do") {
        "begin" => producer.begin_transaction()?,
        "end" => producer.commit_transaction(DEADLINE)?,
        "abort" => producer.abort_transaction(DEADLINE)?,
        "offsets" => add_offsets(bootstrap, producer, c)?,
        _ => return send(producer, c),
    }
    Ok(Value::Null)
}

fn add_offsets(bootstrap: &str, producer: &Writer, c: &Command) -> Result<(), KafkaError> {
    let mut offsets = TopicPartitionList::new();
    let offset = Offset::Offset(c.number("offset", 0));
    offsets.add_partition_offset(c.text("topic"), c.partition(), offset)?;
    // Of the group alone: no member, so that the coordinator has none to check.
    let outside: BaseConsumer = config(bootstrap)
        .set("group.id", c.text("group"))
        .create()?;
    let group = outside.group_metadata().expect("a group");
    producer.send_offsets_to_transaction(&offsets, &group, DEADLINE)
}

fn send(producer: &Writer, c: &Command) -> Answer {
    producer.context().0.lock().unwrap().clear();
    for (place, record) in c.records().iter().enumerate() {
        let (key, value) = (bytes(&record["key"]), bytes(&record["value"]));
        let mut one: BaseRecord<'_, [u8], [u8], Box<usize>> =
            BaseRecord::with_opaque_to(c.text("topic"), Box::new(place)).headers(headers(record));
        if let Some(key) = &key {
            one = one.key(key.as_slice());
        }
        if let Some(value) = &value {
            one = one.payload(value.as_slice());
        }
        if c.partition() >= 0 {
            one = one.partition(c.partition());
        }
        if record["timestamp"].as_i64().unwrap_or(0) > 0 {
            one = one.timestamp(record["timestamp"].as_i64().unwrap());
        }
        producer.send(one).map_err(|(error, _)| error)?;
    }
    let end = Instant::now() + c.wait();
    while producer.in_flight_count() > 0 && Instant::now() < end {
        producer.poll(Duration::from_millis(50));
        if let Some(told) = security::refused() {
            return Err(told.into());
        }
    }
    producer.flush(DEADLINE)?;
    let mut reports = producer.context().0.lock().unwrap();
    reports.sort_by_key(|(place, _)| *place);
    let placed: Result<Vec<Value>, KafkaError> =
        reports.drain(..).map(|(_, report)| report).collect();
    Ok(Value::Array(placed?))
}

fn headers(record: &Value) -> OwnedHeaders {
    let all = record["headers"].as_array().into_iter().flatten();
    all.fold(OwnedHeaders::new(), |headers, one| {
        let value = bytes(&one["value"]);
        headers.insert(Header {
            key: one["name"].as_str().unwrap(),
            value: value.as_ref(),
        })
    })
}
