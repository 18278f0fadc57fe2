//! Administration.

use crate::{config, Answer, Command, DEADLINE};
use futures_executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Map, Value};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

pub fn ask(bootstrap: &str, c: &Command) -> Answer {
    match c.text("do") {
        "topics" | "partitions" | "look_up" | "groups" | "group" => look(bootstrap, c),
        "offset" | "move" => offset(bootstrap, c),
        _ => change(bootstrap, c),
    }
}

fn change(bootstrap: &str, c: &Command) -> Answer {
    let admin: AdminClient<DefaultClientContext> = config(bootstrap).create()?;
    let options = AdminOptions::new().operation_timeout(Some(DEADLINE));
    let (topic, count) = (c.text("topic"), c.number("partitions", 0));
    let configs = c.pairs("configs");
    match c.text("do") {
        "create" => {
            let mut new = NewTopic::new(topic, count as i32, TopicReplication::Fixed(1));
            for (name, value) in configs {
                new = new.set(name, value);
            }
            one(block_on(admin.create_topics(&[new], &options))?)
        }
        "delete" => one(block_on(admin.delete_topics(&[topic], &options))?),
        "grow" => {
            let new = NewPartitions::new(topic, count as usize);
            one(block_on(admin.create_partitions(&[new], &options))?)
        }
        "alter" => {
            let mut new = AlterConfig::new(ResourceSpecifier::Topic(topic));
            for (name, value) in configs {
                new = new.set(name, value);
            }
            one(block_on(admin.alter_configs(&[new], &options))?)
        }
        "configs" => {
            let asked = [ResourceSpecifier::Topic(topic)];
            let mut described = block_on(admin.describe_configs(&asked, &options))?;
            let found = described.pop().ok_or("no answer")??;
            let values = found
                .entries
                .iter()
                .map(|one| (one.name.clone(), json!(one.value)));
            Ok(Value::Object(values.collect::<Map<_, _>>()))
        }
        #[cfg(not(feature = "old"))]
        "forget" => one(block_on(admin.delete_groups(&[c.text("group")], &options))?),
        #[cfg(not(feature = "old"))]
        "trim" => {
            let mut offsets = TopicPartitionList::new();
            offsets.add_partition_offset(
                topic,
                c.partition(),
                Offset::Offset(c.number("offset", 0)),
            )?;
            let deleted = block_on(admin.delete_records(&offsets, &options))?;
            for each in deleted.elements() {
                each.error()?;
            }
            Ok(Value::Null)
        }
        other => Err(format!("this library has no {other}").into()),
    }
}

trait IntoResult {
    fn into_result(self) -> Result<(), String>;
}

impl<T, N> IntoResult for Result<T, (N, rdkafka::types::RDKafkaErrorCode)> {
    fn into_result(self) -> Result<(), String> {
        self.map(|_| ()).map_err(|(_, code)| format!("{code:?}"))
    }
}

fn one(results: Vec<impl IntoResult>) -> Answer {
    for result in results {
        result.into_result()?;
    }
    Ok(Value::Null)
}

fn look(bootstrap: &str, c: &Command) -> Answer {
    let client: BaseConsumer = config(bootstrap).create()?;
    let topic = c.text("topic");
    match c.text("do") {
        "topics" => {
            let known = client.fetch_metadata(None, DEADLINE)?;
            Ok(known.topics().iter().map(|one| json!(one.name())).collect())
        }
        "partitions" => {
            let known = client.fetch_metadata(Some(topic), DEADLINE)?;
            Ok(known.topics()[0]
                .partitions()
                .iter()
                .map(|one| json!(one.id()))
                .collect())
        }
        "groups" => {
            let known = client.fetch_group_list(None, DEADLINE)?;
            Ok(known.groups().iter().map(|one| json!(one.name())).collect())
        }
        "group" => {
            let known = client.fetch_group_list(Some(c.text("group")), DEADLINE)?;
            let group = &known.groups()[0];
            Ok(json!({ "state": group.state(), "members": group.members().len() }))
        }
        _ => {
            let (low, high) = client.fetch_watermarks(topic, c.partition(), DEADLINE)?;
            match c.number("timestamp", LATEST) {
                LATEST => Ok(json!(high)),
                EARLIEST => Ok(json!(low)),
                timestamp => {
                    let mut asked = TopicPartitionList::new();
                    asked.add_partition_offset(topic, c.partition(), Offset::Offset(timestamp))?;
                    let found = client.offsets_for_times(asked, DEADLINE)?;
                    Ok(json!(found.elements()[0].offset().to_raw()))
                }
            }
        }
    }
}

/// The offset of a group: tells it, or commits another as nobody in particular.
fn offset(bootstrap: &str, c: &Command) -> Answer {
    let client: BaseConsumer = config(bootstrap)
        .set("group.id", c.text("group"))
        .create()?;
    let mut offsets = TopicPartitionList::new();
    if c.text("do") == "move" {
        let to = Offset::Offset(c.number("offset", 0));
        offsets.add_partition_offset(c.text("topic"), c.partition(), to)?;
        client.commit(&offsets, rdkafka::consumer::CommitMode::Sync)?;
        return Ok(Value::Null);
    }
    offsets.add_partition(c.text("topic"), c.partition());
    let found = client.committed_offsets(offsets, DEADLINE)?;
    Ok(json!(found.elements()[0].offset().to_raw()))
}
