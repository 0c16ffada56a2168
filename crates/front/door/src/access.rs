//! Which peer comes in, for what, and how often an address may show a wrong token.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use outflow_config::{AccessToken, Date, HookConfig, JwtConfig, Secret};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::admission::{Admission, Counts, Permit};
use crate::credential::{Credential, Judge, Known, Verdict};
use crate::failures::Failures;
use crate::grant::{By, Grant, Pass};
use crate::hook::{Hook, Question, Said};
use crate::jwt::{Keys, NotSigned, Signed, is_signed};
use crate::limits::GRANTS_LOOK_EVERY;
use crate::refusals::{Refusal, Refusals};
use crate::refused::Refused;
use crate::request::Request;
use crate::rules::{Asked, Right, Rules, gives};

/// What all fronts share: places for connections, tokens, and the addresses that showed wrong ones.
#[derive(Debug)]
pub struct Door {
    rules: ArcSwap<Rules>,
    /// How often the rules have changed.
    changes: watch::Sender<u64>,
    admission: Arc<Admission>,
    closed: AtomicBool,
    /// Connections that come wait meanwhile.
    holds: watch::Sender<bool>,
    failures: Mutex<Failures>,
    signed: Signed,
    hook: Hook,
    refusals: Refusals,
    wrong_tokens: AtomicU64,
    too_often: AtomicU64,
    revoked: AtomicU64,
}

/// What grants were looked at by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look(Option<(u64, Date)>);

impl Door {
    /// One with these rules.
    pub fn new(rules: Rules) -> Self {
        Door {
            rules: ArcSwap::new(Arc::new(rules)),
            changes: watch::Sender::new(0),
            admission: Arc::default(),
            closed: AtomicBool::new(false),
            holds: watch::Sender::new(false),
            failures: Mutex::new(Failures::new(Instant::now())),
            signed: Signed::new(),
            hook: Hook::new(),
            refusals: Refusals::new(Instant::now()),
            wrong_tokens: AtomicU64::new(0),
            too_often: AtomicU64::new(0),
            revoked: AtomicU64::new(0),
        }
    }

    /// These rules hold from now on; connections that are open stay so, sessions as long as their [grants](Grant) hold.
    pub fn set_rules(&self, rules: Rules) {
        let (hook, before) = (rules.hook.clone(), self.rules.swap(Arc::new(rules)));
        if hook != before.hook {
            self.hook.forget();
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// No peer is let in from now on, but to control: the relay is about to end. What is open stays so.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Lets connections wait that come, or no longer: another process may take them in.
    pub fn hold(&self, holds: bool) {
        self.holds.send_replace(holds);
    }

    /// Whether connections wait that come.
    pub(crate) fn holds_back(&self) -> watch::Receiver<bool> {
        self.holds.subscribe()
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
        let (revoked, hook_failed) = (read(&self.revoked), self.hook.failed());
        Counts { wrong_tokens, too_often, revoked, hook_failed, ..self.admission.counts() }
    }

    /// Whether a right needs no token. Control is then for this machine only.
    pub fn is_open(&self, right: Right) -> bool {
        self.rules.load().is_open(right)
    }

    /// Whether `request` comes with `right`, by its token. Without configured tokens every peer may publish, play
    /// and be a relay; control is then open to loopback addresses only. The grant is to be kept with what it is for.
    ///
    /// # Errors
    /// It does not. Wrong tokens count; beyond [`crate::limits::WRONG_TOKENS`] nothing that comes from the address is
    /// looked at for a while.
    pub async fn enter(&self, right: Right, request: &Request) -> Result<Grant, Refused> {
        self.enter_judged(right, request, None).await
    }

    /// The same where a peer may show something else beside a token: one of both is enough.
    ///
    /// # Errors
    /// As of [`Door::enter`].
    pub fn enter_judged<'a>(
        &'a self,
        right: Right,
        request: &'a Request,
        judge: Option<Judge<'_>>,
    ) -> impl Future<Output = Result<Grant, Refused>> + Send + use<'a> {
        let token = request.token.as_deref().map(Credential::Token);
        let shown: Vec<_> = token.into_iter().chain(judge.map(Credential::Answer)).collect();
        let (now, peer, stream) = (Instant::now(), request.peer.ip(), &request.stream);
        let asked = Asked { right, peer, stream: Some(stream), today: today() };
        let judged = self.judge(now, &asked, &shown);
        async move {
            let judged = match judged {
                Ok(by) => Ok(by),
                Err(no) => self.ask_hook(right, request, no).await,
            };
            let by = judged.map_err(|no| self.refuse(now, &asked, no))?;
            let grant = Grant::new(right, stream.clone(), peer, by);
            self.signed.note(grant.until());
            if let Some(token) = grant.name() {
                tracing::info!(token, ?right, %stream, %peer, "a token let a peer in");
            }
            Ok(grant)
        }
    }

    /// What the hook says of a peer that shows nothing that is known here.
    async fn ask_hook(&self, right: Right, request: &Request, no: No) -> Result<By, No> {
        let is_unknown = matches!(no.refused, Refused::TokenMissing | Refused::TokenWrong);
        let config = self.hook_config().filter(|_| is_unknown && right.is_of_streams());
        let Some(config) = config else { return Err(no) };
        let question = Question {
            right,
            stream: request.stream.to_string(),
            token: request.token.clone().map(Secret::new),
            peer: request.peer.ip(),
            protocol: request.protocol.into(),
        };
        match self.hook.ask(&config, question).await {
            // The relay may have been told to end meanwhile.
            Said::Yes(_) if self.closed.load(Ordering::Relaxed) => Err(Refused::Draining.into()),
            Said::Yes(lease) => Ok(By::Asked(lease)),
            Said::No => Err(no),
            Said::Nothing => Err(No { refused: Refused::NotAnswered, wrong: 0 }),
        }
    }

    /// The same for what asks for no stream, or for one that has let the peer in before. What lets the peer in is to be
    /// kept for as long as it is here.
    ///
    /// # Errors
    /// As of [`Door::enter`].
    pub fn pass(&self, right: Right, peer: IpAddr, token: Option<&str>) -> Result<Pass, Refused> {
        let shown = token.map(Credential::Token);
        self.pass_by(Instant::now(), right, peer, shown.as_slice())
    }

    /// Whether one of `shown` gives `right` to `peer`.
    fn pass_by(
        &self,
        now: Instant,
        right: Right,
        peer: IpAddr,
        shown: &[Credential<'_>],
    ) -> Result<Pass, Refused> {
        let by = self.let_in(now, &Asked { right, peer, stream: None, today: today() }, shown)?;
        Ok(Pass::new(right, peer, by))
    }

    /// Has peers that are refused told to this, some of them in each second; the first one stays.
    pub fn tell_refusals(&self, listener: impl Fn(Refusal) + Send + Sync + 'static) {
        self.refusals.listen(listener);
    }

    fn let_in(&self, now: Instant, asked: &Asked<'_>, shown: &[Credential<'_>]) -> Result<By, Refused> {
        self.judge(now, asked, shown).map_err(|no| self.refuse(now, asked, no))
    }

    /// Counts what a peer has shown, and tells that it is not let in.
    fn refuse(&self, now: Instant, asked: &Asked<'_>, No { refused, wrong }: No) -> Refused {
        (0..wrong).for_each(|_| self.count_wrong(now, asked.right, asked.peer));
        self.refusals.tell(now, asked, &refused);
        refused
    }

    /// By which of `shown` a peer has what it asks for.
    fn judge(&self, now: Instant, asked: &Asked<'_>, shown: &[Credential<'_>]) -> Result<By, No> {
        if asked.right != Right::Control && self.closed.load(Ordering::Relaxed) {
            return Err(Refused::Draining.into());
        }
        let rules = self.rules.load();
        let (right, peer) = (asked.right, asked.peer);
        if rules.is_open(right) {
            let is_open = right != Right::Control || peer.to_canonical().is_loopback();
            return if is_open { Ok(By::Nothing) } else { Err(Refused::NotLocal.into()) };
        }
        // Comparing goes on without the lock: as many more wrong tokens as threads are looked at at once.
        if let Some(wait) = self.failures().wait(now, peer) {
            self.too_often.fetch_add(1, Ordering::Relaxed);
            return Err(Refused::TooOften { wait }.into());
        }
        if shown.is_empty() {
            return Err(Refused::TokenMissing.into());
        }
        let kept: Vec<_> =
            rules.listed(right).map(Kept::Listed).chain(rules.tokens.iter().map(Kept::Named)).collect();
        let known: Vec<_> = kept.iter().map(Kept::known).collect();
        let (mut wrong, mut not_given) = (0, None);
        for credential in shown {
            let verdicts = credential.judge(&known);
            let shown = kept.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Right);
            for (kept, _) in shown {
                match kept.by(asked) {
                    Ok(by) => return Ok(by),
                    Err(refused) => not_given = Some(refused),
                }
            }
            if !verdicts.iter().all(|verdict| *verdict == Verdict::Wrong) {
                continue;
            }
            match self.judge_signed(rules.jwt.as_ref(), credential, asked) {
                Ok(by) => return Ok(by),
                Err(NotSigned::Refused(refused)) => not_given = Some(refused),
                Err(NotSigned::Wrong) => wrong += 1,
            }
        }
        Err(No { refused: not_given.unwrap_or(Refused::TokenWrong), wrong })
    }

    /// By what a credential lets in if it is a signed token.
    fn judge_signed(
        &self,
        config: Option<&Arc<JwtConfig>>,
        credential: &Credential<'_>,
        asked: &Asked<'_>,
    ) -> Result<By, NotSigned> {
        match (config, credential) {
            (Some(config), Credential::Token(token)) if is_signed(token) => {
                self.signed.judge(config, token, asked)
            }
            _ => Err(NotSigned::Wrong),
        }
    }

    fn count_wrong(&self, now: Instant, right: Right, peer: IpAddr) {
        self.wrong_tokens.fetch_add(1, Ordering::Relaxed);
        if let Some(times) = self.failures().count(now, peer) {
            tracing::warn!(%peer, ?right, times, "a wrong token was shown");
        }
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        // Numbers cannot be left half changed.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of what was granted.
impl Door {
    /// Whether a grant would still be given: the rules may have changed, its token may have expired.
    pub fn holds(&self, grant: &Grant) -> bool {
        let holds = grant.holds(&self.rules.load(), today());
        self.signed.note(grant.until().filter(|_| holds));
        holds
    }

    /// Waits until a grant no longer holds. Nothing is lost if this is cancelled.
    pub async fn over(&self, grant: &Grant) {
        self.until_not(|| self.holds(grant)).await;
    }

    /// The same of a right to the relay as a whole, which is over then: that is logged and counted.
    pub async fn revoked(&self, pass: &Pass) {
        self.until_not(|| pass.holds(None, &self.rules.load(), today())).await;
        tracing::info!(?pass, "what let a peer in is no longer good");
        self.count_revoked(1);
    }

    async fn until_not(&self, holds: impl Fn() -> bool) {
        let mut changes = self.changes.subscribe();
        while holds() {
            // Tokens expire by the time of day, which can be set: it is asked again and again.
            let _ = tokio::time::timeout(GRANTS_LOOK_EVERY, changes.changed()).await;
        }
    }

    /// Whether grants may hold no longer that held at the look before.
    pub fn may_have_lapsed(&self, look: &mut Look) -> bool {
        self.have_lapsed_at(today(), look)
    }

    fn have_lapsed_at(&self, today: Date, look: &mut Look) -> bool {
        let changes = *self.changes.borrow();
        let has_ended = self.signed.has_ended(today) | self.hook.has_ended();
        let before = std::mem::replace(look, Look(Some((changes, today))));
        let Look(Some((changes_before, day_before))) = before else { return true };
        let expires = |token: &AccessToken| token.expires.is_some_and(|at| at > day_before && at <= today);
        has_ended || changes != changes_before || self.rules.load().tokens.iter().any(expires)
    }

    /// Changes whenever the rules do.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Which signed tokens are taken, if any are.
    pub(crate) fn jwt(&self) -> Option<Arc<JwtConfig>> {
        self.rules.load().jwt.clone()
    }

    /// What is asked which other peer may come in, if anything is.
    pub(crate) fn hook_config(&self) -> Option<Arc<HookConfig>> {
        self.rules.load().hook.clone()
    }

    pub(crate) fn hook(&self) -> &Hook {
        &self.hook
    }

    /// These keys verify signed tokens from now on.
    pub(crate) fn set_keys(&self, keys: Option<Keys>) {
        self.signed.set_keys(keys);
    }

    /// Waits until a signed token comes whose key is not known. Nothing is lost if this is cancelled.
    pub(crate) async fn keys_wanted(&self) {
        self.signed.wanted.notified().await;
    }

    /// This many sessions have ended because their grants hold no longer.
    pub fn count_revoked(&self, sessions: u64) {
        self.revoked.fetch_add(sessions, Ordering::Relaxed);
    }
}

/// Why a peer is not let in by what is known here.
struct No {
    refused: Refused,
    /// How many wrong tokens it has shown.
    wrong: u32,
}

impl From<Refused> for No {
    fn from(refused: Refused) -> Self {
        No { refused, wrong: 0 }
    }
}

/// A token that the rules name.
#[derive(Clone, Copy)]
enum Kept<'a> {
    Listed(&'a Secret),
    Named(&'a AccessToken),
}

impl<'a> Kept<'a> {
    fn known(&self) -> Known<'a> {
        match *self {
            Kept::Listed(token) => token.into(),
            Kept::Named(token) => token.into(),
        }
    }

    /// It was shown: whether it gives what is asked for.
    fn by(&self, asked: &Asked<'_>) -> Result<By, Refused> {
        match self {
            Kept::Listed(token) => Ok(By::Listed((*token).clone())),
            Kept::Named(token) => {
                gives(token, asked).map(|()| By::Named(token.name.as_str().into(), token.sha256))
            }
        }
    }
}

/// The time of day.
fn today() -> Date {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Date(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
