//! How clients come to brokers, and what is told of that they are kept out.

use crate::{Answer, Command};
use rdkafka::client::OAuthToken;
use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use serde_json::Value;
use std::error::Error;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LIFETIME: Duration = Duration::from_secs(3600);

/// The settings, the token, and the first error that was heard since they were given.
static SETTINGS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
static TOKEN: Mutex<String> = Mutex::new(String::new());
static HEARD: Mutex<Option<String>> = Mutex::new(None);

/// Has all that follows come in this way.
pub fn secure(c: &Command) -> Answer {
    let told = c.pairs("security");
    let of = |name: &str| {
        let found = told.iter().find(|(each, _)| *each == name);
        found.map(|(_, value)| value.to_string()).unwrap_or_default()
    };
    let settings = [
        ("security.protocol", "protocol"),
        ("ssl.ca.location", "ca"),
        ("ssl.certificate.location", "certificate"),
        ("ssl.key.location", "certificate"),
        ("sasl.mechanism", "mechanism"),
        ("sasl.username", "user"),
        ("sasl.password", "password"),
    ];
    let given = settings.map(|(setting, name)| (setting.to_string(), of(name)));
    *SETTINGS.lock().unwrap() = given
        .into_iter()
        .filter(|(setting, value)| !value.is_empty() && is_meant(setting, &of("mechanism")))
        .collect();
    *TOKEN.lock().unwrap() = of("token");
    *HEARD.lock().unwrap() = None;
    Ok(Value::Null)
}

fn is_meant(setting: &str, mechanism: &str) -> bool {
    match setting {
        "sasl.username" | "sasl.password" => !mechanism.is_empty() && mechanism != "OAUTHBEARER",
        _ => true,
    }
}

pub fn apply(config: &mut ClientConfig) {
    for (setting, value) in SETTINGS.lock().unwrap().iter() {
        config.set(setting, value);
    }
}

pub fn heard(error: &KafkaError, reason: &str) {
    let code = error.rdkafka_error_code();
    let said = code.map_or(error.to_string(), |code| format!("{code:?}"));
    let mut first = HEARD.lock().unwrap();
    first.get_or_insert(format!("{said}: {reason}"));
}

/// What keeps a client out that was told how to come in; others go on trying.
pub fn refused() -> Option<String> {
    if SETTINGS.lock().unwrap().is_empty() {
        return None;
    }
    HEARD.lock().unwrap().clone()
}

pub fn token() -> Result<OAuthToken, Box<dyn Error>> {
    let until = SystemTime::now().duration_since(UNIX_EPOCH)? + LIFETIME;
    Ok(OAuthToken {
        token: TOKEN.lock().unwrap().clone(),
        principal_name: "alice".to_string(),
        lifetime_ms: until.as_millis() as i64,
    })
}
