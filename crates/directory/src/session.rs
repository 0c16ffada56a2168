//! One connection with NATS, from the handshake until it is lost.

use std::time::{Duration, Instant};

use async_nats::connection::State as Connection;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::context::{ContextBuilder, PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{Context, Message};
use async_nats::{Client, ConnectErrorKind, HeaderMap};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::warn;

use crate::key::Key;
use crate::limits::{ANSWER_WAIT, CONNECT_WAIT, MESSAGE_BYTES_MAX};
use crate::options::{Access, Options, Server, Storage};
use crate::own::Value;

/// What NATS's clients write above a value that is none any more (ADR-8).
const OPERATION: &str = "KV-Operation";

/// A connection, and the bucket behind it.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    context: Context,
    store: Store,
    /// The server, to be shown.
    pub(crate) server: String,
}

/// What a connection says of itself; of many at once some are lost.
pub(crate) type News = mpsc::Receiver<async_nats::Event>;

/// Values as they come.
pub(crate) struct Reading {
    pub(crate) messages: Ordered,
    /// How many there are at first.
    pub(crate) pending: u64,
    /// When it began, by the server's clock and by ours.
    began: (i128, Instant),
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Found {
    /// `None` if it is not one of ours.
    pub(crate) key: Option<Key>,
    /// `None` if it is none any more.
    pub(crate) value: Value,
    /// For how long it has been there.
    pub(crate) age: Duration,
    /// Whether all that were there at first have come.
    pub(crate) is_last: bool,
}

/// Connects to the servers in turn until one has the bucket, or makes it.
///
/// # Errors
/// Why the last one did not.
pub(crate) async fn connect(access: &Access) -> Result<(Session, News), String> {
    let mut why = String::new();
    for server in &access.servers {
        let attempt = timeout(2 * CONNECT_WAIT + 2 * ANSWER_WAIT, connect_to(access, server)).await;
        match attempt.unwrap_or_else(|_late| Err("no answer".to_owned())) {
            Ok(connected) => return Ok(connected),
            Err(error) => why = format!("{}: {error}", server.shown),
        }
    }
    Err(why)
}

async fn connect_to(access: &Access, server: &Server) -> Result<(Session, News), String> {
    let (tell, news) = mpsc::channel(32);
    let options = access.connect_options(server).map_err(|error| error.to_string())?;
    let options = options.event_callback(move |event| {
        let _full = tell.try_send(event);
        async {}
    });
    let client = options.connect(server.address.clone()).await.map_err(|error| match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            "the server refuses this relay: check its user, password, token or credentials".to_owned()
        }
        ConnectErrorKind::Tls => format!("{error}: check the certificates at both ends"),
        _ => error.to_string(),
    })?;
    let context = ContextBuilder::new().timeout(ANSWER_WAIT).build(client.clone());
    let store = bucket(&context, &access.options).await?;
    Ok((Session { client, context, store, server: server.shown.clone() }, news))
}

/// The bucket, which is made if it is not there.
async fn bucket(context: &Context, options: &Options) -> Result<Store, String> {
    let name = &options.bucket;
    if let Ok(store) = context.get_key_value(name).await {
        let config = &store.stream.cached_info().config;
        let has = (config.max_age, config.max_messages_per_subject);
        if has != (options.max_age, 1) {
            warn!(
                "the directory's bucket '{name}' keeps {} values for {:?}, not 1 for {:?}; it is used as it is, and \
                 `nats kv del {name}` has it created again",
                has.1, has.0, options.max_age
            );
        }
        return Ok(store);
    }
    // A stream as ADR-8 has it. `create_key_value` asks for the account before, whose state it cannot read from
    // servers as old as Debian's.
    let config = Config {
        name: format!("KV_{name}"),
        subjects: vec![format!("$KV.{name}.>")],
        description: Some("Outflow: which relay has which stream".to_owned()),
        max_messages_per_subject: 1,
        max_message_size: MESSAGE_BYTES_MAX,
        max_age: options.max_age,
        duplicate_window: options.max_age.min(Duration::from_secs(120)),
        discard: DiscardPolicy::New,
        storage: match options.storage {
            Storage::Memory => StorageType::Memory,
            Storage::File => StorageType::File,
        },
        num_replicas: options.replicas,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..Config::default()
    };
    let why = |error: &dyn core::fmt::Display| {
        format!(
            "the bucket '{name}' is not there and cannot be made ({error}): is JetStream on (`nats-server -js`), \
             may this relay use it, and are there enough servers for {} replicas?",
            options.replicas
        )
    };
    context.create_stream(config).await.map_err(|error| why(&error))?;
    context.get_key_value(name).await.map_err(|error| why(&error))
}

impl Session {
    /// Whether there is a connection now.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == Connection::Connected
    }

    /// Sends a value; the answer comes later.
    pub(crate) async fn put(&self, key: &str, value: Value) -> Result<PublishAckFuture, PublishError> {
        let subject = format!("{}{key}", self.store.prefix);
        let sent = async {
            match value {
                Some(value) => self.context.publish(subject, value).await,
                None => {
                    let mut headers = HeaderMap::new();
                    headers.insert(OPERATION, "DEL");
                    self.context.publish_with_headers(subject, headers, Bytes::new()).await
                }
            }
        };
        let late = |_| Err(PublishError::new(PublishErrorKind::TimedOut));
        timeout(ANSWER_WAIT, sent).await.unwrap_or_else(late)
    }

    /// Sends a message that is no value, to those that listen now.
    pub(crate) async fn tell(&self, subject: String, message: Bytes) -> Result<(), String> {
        match timeout(ANSWER_WAIT, self.client.publish(subject, message)).await {
            Ok(told) => told.map_err(|error| error.to_string()),
            Err(_late) => Err("no room for another message".to_owned()),
        }
    }

    /// Reads all values whose keys are like that, the newest of each, and those that come.
    pub(crate) async fn read(&self, keys: &str) -> Result<Reading, String> {
        let config = OrderedConfig {
            deliver_subject: self.client.new_inbox(),
            description: Some("Outflow".to_owned()),
            filter_subject: format!("{}{keys}", self.store.prefix),
            replay_policy: ReplayPolicy::Instant,
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..OrderedConfig::default()
        };
        let asked = Instant::now();
        let consumer = self.store.stream.create_consumer(config).await.map_err(|error| error.to_string())?;
        let info = consumer.cached_info();
        let (pending, began) = (info.num_pending, (info.created.unix_timestamp_nanos(), asked));
        let messages = consumer.messages().await.map_err(|error| error.to_string())?;
        Ok(Reading { messages, pending, began })
    }

    /// What a message is about.
    pub(crate) fn found(&self, message: &Message, reading: &Reading) -> Option<Found> {
        let info = message.info().ok()?;
        let key = message.subject.strip_prefix(&self.store.prefix).and_then(Key::parse);
        let is_gone = message.headers.as_ref().is_some_and(|headers| headers.get(OPERATION).is_some());
        let value = (!is_gone).then(|| message.payload.clone());
        Some(Found {
            key,
            value,
            age: reading.age(info.published.unix_timestamp_nanos()),
            is_last: info.pending == 0,
        })
    }
}

impl Reading {
    /// The age of what was written at that time by the server's clock. Clocks of a cluster's servers may
    /// differ: what is from the future is new.
    fn age(&self, written: i128) -> Duration {
        let before = u64::try_from(self.began.0.saturating_sub(written).max(0)).unwrap_or(u64::MAX);
        if before == 0 { Duration::ZERO } else { Duration::from_nanos(before) + self.began.1.elapsed() }
    }
}

/// Whether NATS is away, as this happened to a value; else it refused this value, and may take others.
pub(crate) fn is_away(error: &PublishError) -> bool {
    match error.kind() {
        PublishErrorKind::StreamNotFound
        | PublishErrorKind::TimedOut
        | PublishErrorKind::BrokenPipe
        | PublishErrorKind::MaxAckPending => true,
        PublishErrorKind::WrongLastMessageId
        | PublishErrorKind::WrongLastSequence
        | PublishErrorKind::MaxPayloadExceeded
        | PublishErrorKind::Other => false,
    }
}
