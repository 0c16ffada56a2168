//! A client that goes on in another process, on the same connection, while it plays or publishes: what was agreed on
//! with the server. CBOR in maps with numbered fields, as everything that is handed over. Credentials are not in it:
//! the other process has those that it is configured with.

use core::time::Duration;

use minicbor::{Decode, Encode};
use outflow_media::Time;
use url::Url;

use super::flow::Step;
use super::request::can_be_asked;
use super::{ClientOptions, Pending, RtspClient};
use crate::Transport;
use crate::auth::Challenge;
use crate::header::Session;
use crate::limits::TRACKS;

/// A client. Times are nanoseconds since the zero of the driver that saved it. The session's name is a secret, and is
/// never shown.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedClient {
    /// What is asked for, after redirections.
    #[n(0)]
    url: String,
    /// What keep-alives and TEARDOWN are about.
    #[n(1)]
    aggregate: String,
    /// The session's name, and after how many seconds without a sign of life it ends.
    #[n(2)]
    session: (String, u64),
    /// The `Transport` of each track.
    #[n(3)]
    carried: Vec<String>,
    /// What the server was answered that asked for a password, and how often.
    #[n(4)]
    challenge: Option<(String, u32)>,
    /// Whether the password may go to this server.
    #[n(5)]
    may_answer: bool,
    /// Whether a sign of life is GET_PARAMETER.
    #[n(6)]
    gets_parameters: bool,
    /// A sign of life that was not answered yet: its number, until when, and how often it was answered to a challenge.
    #[n(7)]
    pending: Option<(u32, u64, u32)>,
    /// When the next sign of life is due.
    #[n(8)]
    keep_alive_at_ns: Option<u64>,
    /// The number of the last request.
    #[n(9)]
    cseq: u32,
    #[n(10)]
    cnonces: u64,
    #[n(11)]
    strays: u64,
}

impl RtspClient {
    /// What another process needs to go on with it; nothing before it plays, while anything but a sign of life is being
    /// asked, or while [`RtspClient::poll`] has something to tell.
    pub fn save(&self) -> Option<SavedClient> {
        let session = self.session.as_ref()?;
        let pending = match &self.pending {
            None => None,
            Some(Pending { step: Step::KeepAlive, cseq, deadline, answers }) => {
                Some((*cseq, deadline.as_nanos(), *answers))
            }
            Some(_) => return None,
        };
        let plays = pending.is_some() || self.keep_alive_at.is_some();
        if self.closed || !plays || !self.out.is_empty() || self.parameter_next.is_some() {
            return None;
        }
        Some(SavedClient {
            url: self.url.to_string(),
            aggregate: self.aggregate.to_string(),
            session: (session.id.clone(), session.timeout.as_secs()),
            carried: self.carried.iter().map(Transport::to_string).collect(),
            challenge: self.challenge.as_ref().map(|(challenge, count)| (challenge.emit(), *count)),
            may_answer: self.credentials.is_some(),
            gets_parameters: self.gets_parameters,
            pending,
            keep_alive_at_ns: self.keep_alive_at.map(Time::as_nanos),
            cseq: self.cseq,
            cnonces: self.cnonces,
            strays: self.strays,
        })
    }

    /// Goes on from what another process has saved that was begun with this URL, too. The bytes that were received and
    /// are no whole message yet are the driver's.
    ///
    /// None if what was saved cannot be read: a client has to begin again then.
    pub fn restore(url: &str, options: ClientOptions, saved: SavedClient) -> Option<Self> {
        let mut client = RtspClient::begin(url, options).ok()?;
        let (id, seconds) = saved.session;
        let carried = saved.carried.iter().map(|text| Transport::parse(text));
        client.carried = carried.collect::<Option<Vec<_>>>().filter(|all| all.len() <= TRACKS)?;
        (client.url, client.aggregate) = (asked(&saved.url)?, asked(&saved.aggregate)?);
        client.session = Some(Session { id, timeout: Duration::from_secs(seconds) });
        client.challenge = match saved.challenge {
            Some((text, count)) => Some((Challenge::strongest(Challenge::parse_all(&text))?, count)),
            None => None,
        };
        client.credentials = client.credentials.filter(|_| saved.may_answer);
        client.gets_parameters = saved.gets_parameters;
        client.pending = saved.pending.map(|(cseq, deadline, answers)| Pending {
            step: Step::KeepAlive,
            cseq,
            deadline: Time::from_nanos(deadline),
            answers,
        });
        client.keep_alive_at = saved.keep_alive_at_ns.map(Time::from_nanos);
        (client.cseq, client.cnonces, client.strays) = (saved.cseq, saved.cnonces, saved.strays);
        Some(client)
    }
}

fn asked(url: &str) -> Option<Url> {
    Url::parse(url).ok().filter(can_be_asked)
}
