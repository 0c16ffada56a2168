//! Which tokens give which rights, and how often an address may show a wrong one.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use outflow_config::{Config, Secret};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use crate::admission::{Admission, Counts, Permit};
use crate::failures::Failures;
use crate::refused::Refused;
use crate::request::Request;
use crate::seldom::Seldom;

/// A right that a token gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// To be a stream's source.
    Publish,
    /// To receive a stream.
    Play,
    /// To look at everything and to change it.
    Control,
    /// To be another relay that streams are shared with; it may play, too.
    Relay,
}

/// What the configuration says of those that come in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Tokens for [`Right::Publish`]; without any, it needs none.
    pub publish: Vec<Secret>,
    /// The same for [`Right::Play`].
    pub play: Vec<Secret>,
    /// Tokens for [`Right::Control`]; without any, it is for this machine.
    pub control: Vec<Secret>,
    /// Tokens for [`Right::Relay`]; without any, it needs none.
    pub relay: Vec<Secret>,
    /// Connections of all fronts together.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
}

impl From<&Config> for Rules {
    fn from(config: &Config) -> Self {
        let (access, limits) = (&config.access, &config.limits);
        Rules {
            publish: access.publish.clone(),
            play: access.play.clone(),
            control: access.control.clone(),
            relay: config.relay_tokens.clone(),
            connections: limits.connections,
            connections_per_address: limits.connections_per_address,
        }
    }
}

impl Rules {
    /// Whether the right needs no token.
    fn is_open(&self, right: Right) -> bool {
        match right {
            Right::Publish => self.publish.is_empty(),
            Right::Play => self.play.is_empty(),
            Right::Control => self.control.is_empty(),
            Right::Relay => self.relay.is_empty(),
        }
    }

    /// All tokens that give a right.
    fn tokens(&self, right: Right) -> Vec<&str> {
        let (tokens, more) = match right {
            Right::Publish => (&self.publish, None),
            Right::Play => (&self.play, Some(&self.relay)),
            Right::Control => (&self.control, None),
            Right::Relay => (&self.relay, None),
        };
        tokens.iter().chain(more.into_iter().flatten()).map(Secret::reveal).collect()
    }
}

/// What a peer shows for a right.
#[derive(Clone, Copy)]
enum Credential<'a> {
    /// A token.
    Token(&'a str),
    /// Something else.
    Answer(Judge<'a>),
}

/// Judges what is no token, in the words of the front that it came in by: whether it is made of one of these tokens.
pub type Judge<'a> = &'a dyn Fn(&[&str]) -> Verdict;

/// What a credential is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It shows knowledge of a token.
    Right,
    /// It does not.
    Wrong,
    /// It is too old to tell.
    Stale,
}

impl Credential<'_> {
    /// How long this takes does not depend on how much of a token was right.
    fn judge(&self, tokens: &[&str]) -> Verdict {
        match self {
            Credential::Token(given) => {
                let equals = |token: &&str| token.as_bytes().ct_eq(given.as_bytes()).unwrap_u8();
                let known = tokens.iter().map(equals).fold(0, |found, equal| found | equal);
                if known == 1 { Verdict::Right } else { Verdict::Wrong }
            }
            Credential::Answer(judge) => judge(tokens),
        }
    }
}

/// What all fronts share: places for connections, tokens, and the addresses that showed wrong ones.
#[derive(Debug)]
pub struct Door {
    rules: ArcSwap<Rules>,
    admission: Arc<Admission>,
    closed: AtomicBool,
    guesses: Mutex<Guesses>,
    wrong_tokens: AtomicU64,
    too_often: AtomicU64,
}

#[derive(Debug)]
struct Guesses {
    failures: Failures,
    log: Seldom,
}

impl Door {
    /// One with these rules.
    pub fn new(rules: Rules) -> Self {
        Door {
            rules: ArcSwap::new(Arc::new(rules)),
            admission: Arc::default(),
            closed: AtomicBool::new(false),
            guesses: Mutex::new(Guesses { failures: Failures::new(Instant::now()), log: Seldom::default() }),
            wrong_tokens: AtomicU64::new(0),
            too_often: AtomicU64::new(0),
        }
    }

    /// These rules hold from now on; connections that are open stay so.
    pub fn set_rules(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
    }

    /// No peer is let in from now on, but to control: the relay is about to end. What is open stays so.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// A place for a connection from `peer`.
    ///
    /// # Errors
    /// There are too many already; that is counted.
    pub fn admit(&self, peer: IpAddr) -> Result<Permit, Refused> {
        let rules = self.rules.load();
        self.admission.admit(peer, rules.connections, rules.connections_per_address)
    }

    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// What became of connections and requests so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (wrong_tokens, too_often) = (read(&self.wrong_tokens), read(&self.too_often));
        Counts { wrong_tokens, too_often, ..self.admission.counts() }
    }

    /// Whether `request` comes with `right`, by its token. Without configured tokens every peer may publish, play
    /// and be a relay; control is then open to loopback addresses only.
    ///
    /// # Errors
    /// It does not. Wrong tokens count; beyond [`crate::limits::WRONG_TOKENS`] nothing that comes from the address is
    /// looked at for a while.
    pub fn enter(&self, right: Right, request: &Request) -> Result<(), Refused> {
        self.enter_judged(right, request, None)
    }

    /// The same where a peer may show something else beside a token: one of both is enough.
    ///
    /// # Errors
    /// As of [`Door::enter`].
    pub fn enter_judged(
        &self,
        right: Right,
        request: &Request,
        judge: Option<Judge<'_>>,
    ) -> Result<(), Refused> {
        let token = request.token.as_deref().map(Credential::Token);
        let shown: Vec<_> = token.into_iter().chain(judge.map(Credential::Answer)).collect();
        self.enter_by(Instant::now(), right, request.peer.ip(), &shown)
    }

    /// The same for what asks for no stream.
    ///
    /// # Errors
    /// As of [`Door::enter`].
    pub fn check(&self, right: Right, peer: IpAddr, token: Option<&str>) -> Result<(), Refused> {
        self.enter_by(Instant::now(), right, peer, token.map(Credential::Token).as_slice())
    }

    /// Whether one of `shown` gives `right` to `peer`.
    fn enter_by(
        &self,
        now: Instant,
        right: Right,
        peer: IpAddr,
        shown: &[Credential<'_>],
    ) -> Result<(), Refused> {
        if right != Right::Control && self.closed.load(Ordering::Relaxed) {
            return Err(Refused::Draining);
        }
        let rules = self.rules.load();
        if rules.is_open(right) {
            let is_open = right != Right::Control || peer.to_canonical().is_loopback();
            return if is_open { Ok(()) } else { Err(Refused::NotLocal) };
        }
        // One lock from the look at the failures to the count of another: requests that come together count together.
        let mut guesses = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = guesses.failures.wait(now, peer) {
            self.too_often.fetch_add(1, Ordering::Relaxed);
            return Err(Refused::TooOften { wait });
        }
        if shown.is_empty() {
            return Err(Refused::TokenMissing);
        }
        let tokens = rules.tokens(right);
        let verdicts: Vec<_> = shown.iter().map(|credential| credential.judge(&tokens)).collect();
        if verdicts.contains(&Verdict::Right) {
            return Ok(());
        }
        for _ in verdicts.iter().filter(|verdict| **verdict == Verdict::Wrong) {
            self.wrong_tokens.fetch_add(1, Ordering::Relaxed);
            guesses.failures.count(now, peer);
            if let Some(times) = guesses.log.happened(now) {
                tracing::warn!(%peer, ?right, times, "a wrong token was shown");
            }
        }
        Err(Refused::TokenWrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{FORGIVEN_EVERY, WRONG_TOKENS};

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn door() -> Door {
        let secrets = |texts: &[&str]| texts.iter().map(|text| Secret::new(*text)).collect();
        Door::new(Rules {
            publish: secrets(&["in"]),
            play: secrets(&["out", "out2"]),
            control: secrets(&["ctl"]),
            relay: secrets(&["tree"]),
            ..Rules::default()
        })
    }

    fn enter(door: &Door, right: Right, token: &str) -> Result<(), Refused> {
        door.check(right, PEER, Some(token))
    }

    #[test]
    fn each_right_has_its_tokens_and_relays_may_play() {
        let door = door();
        for (right, tokens) in [
            (Right::Publish, &["in"][..]),
            (Right::Play, &["out", "out2", "tree"]),
            (Right::Control, &["ctl"]),
            (Right::Relay, &["tree"]),
        ] {
            for token in ["in", "out", "out2", "ctl", "tree"] {
                let expected = if tokens.contains(&token) { Ok(()) } else { Err(Refused::TokenWrong) };
                assert_eq!(enter(&door, right, token), expected, "{right:?} {token}");
            }
            assert_eq!(door.check(right, PEER, None), Err(Refused::TokenMissing));
        }
    }

    #[test]
    fn without_tokens_everybody_may_do_all_but_control() {
        let (door, now) = (Door::new(Rules::default()), Instant::now());
        for right in [Right::Publish, Right::Play, Right::Relay] {
            assert_eq!(door.enter_by(now, right, PEER, &[]), Ok(()));
        }
        assert_eq!(enter(&door, Right::Control, "x"), Err(Refused::NotLocal));
        let local = IpAddr::V6("::ffff:127.0.0.1".parse().expect("an address"));
        assert_eq!(door.enter_by(now, Right::Control, local, &[]), Ok(()));
    }

    #[test]
    fn guesses_count_whatever_they_are_for_and_right_tokens_do_not() {
        let (door, now) = (door(), Instant::now());
        let rights = [Right::Publish, Right::Play, Right::Control, Right::Relay];
        for n in 0..WRONG_TOKENS as usize {
            let shown = [Credential::Token("x")];
            assert_eq!(door.enter_by(now, rights[n % 4], PEER, &shown), Err(Refused::TokenWrong));
            let stale = [Credential::Answer(&|_| Verdict::Stale)];
            if n + 1 < WRONG_TOKENS as usize {
                assert_eq!(door.enter_by(now, Right::Play, PEER, &[Credential::Token("out")]), Ok(()));
                assert_eq!(door.enter_by(now, Right::Play, PEER, &stale), Err(Refused::TokenWrong));
            }
        }
        let right = [Credential::Token("out")];
        let refused = door.enter_by(now, Right::Play, PEER, &right).expect_err("it has to wait");
        assert_eq!(
            (&refused, refused.retry_after_s()),
            (&Refused::TooOften { wait: FORGIVEN_EVERY }, Some(3))
        );
        assert_eq!(door.enter_by(now, Right::Play, IpAddr::from([10, 0, 0, 2]), &right), Ok(()));
        assert_eq!(door.enter_by(now + FORGIVEN_EVERY, Right::Play, PEER, &right), Ok(()));
        let counts = door.counts();
        assert_eq!((counts.wrong_tokens, counts.too_often), (u64::from(WRONG_TOKENS), 1));
    }

    #[test]
    fn one_right_credential_is_enough() {
        let (door, now) = (door(), Instant::now());
        let answers =
            |tokens: &[&str]| if tokens.contains(&"out2") { Verdict::Right } else { Verdict::Wrong };
        let shown = [Credential::Token("x"), Credential::Answer(&answers)];
        assert_eq!(door.enter_by(now, Right::Play, PEER, &shown), Ok(()));
        assert_eq!(door.counts().wrong_tokens, 0);
        assert_eq!(door.enter_by(now, Right::Publish, PEER, &shown), Err(Refused::TokenWrong));
        assert_eq!(door.counts().wrong_tokens, 2, "each is a guess");
    }
}
