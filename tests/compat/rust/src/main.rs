//! rdkafka as a program: client LIBRARY BOOTSTRAP.
//!
//! A line of JSON on standard input is a command, and the line that follows on standard output is
//! its answer: {"ok": …} or {"error": "…"}. Bytes are in base64. A program holds at most one member
//! of a group and one transactional producer; a test that needs two starts two programs.

mod admin;
mod consuming;
mod producing;
mod security;

use base64::{engine::general_purpose::STANDARD, Engine};
use rdkafka::config::ClientConfig;
use serde_json::{json, Value};
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Duration;

pub type Answer = Result<Value, Box<dyn Error>>;

pub const DEADLINE: Duration = Duration::from_secs(30);

/// The fields of a command, with what is meant where one is absent.
pub struct Command(Value);

impl Command {
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    pub fn number(&self, name: &str, otherwise: i64) -> i64 {
        self.0[name].as_i64().unwrap_or(otherwise)
    }

    pub fn partition(&self) -> i32 {
        self.number("partition", -1) as i32
    }

    pub fn flag(&self, name: &str) -> bool {
        self.0[name].as_bool().unwrap_or(false)
    }

    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.number("wait_ms", DEADLINE.as_millis() as i64) as u64)
    }

    pub fn records(&self) -> &[Value] {
        self.0["records"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    pub fn pairs(&self, name: &str) -> Vec<(&str, &str)> {
        let pairs = self.0[name].as_object().into_iter().flatten();
        pairs
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
            .collect()
    }
}

pub fn bytes(text: &Value) -> Option<Vec<u8>> {
    text.as_str()
        .map(|text| STANDARD.decode(text).expect("base64"))
}

pub fn text(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| json!(STANDARD.encode(bytes)))
}

pub fn config(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("log_level", "0");
    security::apply(&mut config);
    config
}

struct Session {
    bootstrap: String,
    member: Option<consuming::Member>,
    producer: Option<producing::Writer>,
}

impl Session {
    fn act(&mut self, c: &Command) -> Answer {
        match c.text("do") {
            "secure" => {
                self.bootstrap = c.text("bootstrap").to_string();
                security::secure(c)
            }
            "produce" => producing::produce(&self.bootstrap, c),
            "init" => {
                self.producer = Some(producing::transactional(&self.bootstrap, c)?);
                Ok(Value::Null)
            }
            "read" => consuming::read(&self.bootstrap, c),
            "join" => {
                self.member = Some(consuming::join(&self.bootstrap, c)?);
                Ok(Value::Null)
            }
            "leave" => {
                self.member = None;
                Ok(Value::Null)
            }
            "poll" | "assignment" | "commit" => {
                consuming::ask(self.member.as_ref().ok_or("no member")?, c)
            }
            "begin" | "send" | "end" | "abort" | "offsets" => producing::ask(
                &self.bootstrap,
                self.producer.as_ref().ok_or("no producer")?,
                c,
            ),
            _ => admin::ask(&self.bootstrap, c),
        }
    }
}

fn main() {
    let bootstrap = std::env::args().nth(2).expect("LIBRARY BOOTSTRAP");
    let mut session = Session {
        bootstrap,
        member: None,
        producer: None,
    };
    let mut answers = io::stdout();
    for line in io::stdin().lock().lines() {
        let command = Command(serde_json::from_str(&line.expect("a line")).expect("JSON"));
        let answer = match session.act(&command) {
            Ok(value) => json!({ "ok": value }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        writeln!(answers, "{answer}")
            .and_then(|()| answers.flush())
            .expect("a reader");
    }
}
