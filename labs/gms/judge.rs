//! What came over each link, next to what was wanted below.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use outflow_labs::figures::progress;
use outflow_labs::svc::{Coding, Encoded, FIRST_TIMESTAMP, TICKS_PER_PICTURE, Wanted, decode, frames};
use outflow_wavelet::rtp::Assembler;

use super::source::{AV1, LEVELS, STREAMS, Sent, WAVELET};
use super::tree::{HOSTS, LINKS, Tree, behind, name, way};
use super::witness::Seen;

/// What each host wants of each stream; nothing where it is no member.
pub(crate) type Wants = [[Option<u8>; STREAMS]; HOSTS];

/// From this moment on, this is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) at: Instant,
    /// The host whose wishes are other ones than before.
    pub(crate) host: usize,
    pub(crate) wants: Wants,
}

/// Behind a change: two routers, one after the other, wait for 2 s each before they ask for less, and a last member is
/// asked for 0.6 s whether it has left. (More can be had sooner: pictures from which the second stream can be decoded at
/// another level come every 2.1 s.)
pub(crate) const SETTLE: Duration = Duration::from_millis(5500);
/// What is sent this shortly before a change may come behind it.
const IN_FLIGHT: Duration = Duration::from_millis(100);
/// Pictures of the second stream from one key picture to the next.
const KEYS_EVERY: u32 = 64;

/// All that was seen.
pub(crate) struct Run<'t> {
    tree: &'t Tree,
    pub(crate) sent: Vec<Sent>,
    /// By link.
    pub(crate) seen: Vec<Vec<Seen>>,
    /// The last one is the end.
    pub(crate) changes: Vec<Change>,
    by_identity: HashMap<(usize, u64), usize>,
}

/// What was found of links, while nothing changed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    pub(crate) rate_error_pct: f64,
    pub(crate) unwanted: u64,
    pub(crate) missing: u64,
    pub(crate) packets: u64,
}

fn is_wanted(level: Option<u8>, sent: &Sent) -> bool {
    level.is_some_and(|level| sent.layer <= LEVELS[sent.stream] - level)
}

impl<'t> Run<'t> {
    pub(crate) fn new(tree: &'t Tree, sent: Vec<Sent>, seen: Vec<Vec<Seen>>, changes: Vec<Change>) -> Self {
        let key = |(at, one): (usize, &Sent)| ((one.stream, one.identity), at);
        let by_identity = sent.iter().enumerate().map(key).collect();
        Run { tree, sent, seen, changes, by_identity }
    }

    /// The best level that goes over a link: that which is wanted behind it.
    fn best(&self, wants: &Wants, link: usize, stream: usize) -> Option<u8> {
        let wanted = behind(link).filter_map(|host| wants[host][stream]).min();
        if self.tree.carries_all(link) { wanted.map(|_| 1) } else { wanted }
    }

    fn sent_as(&self, seen: &Seen) -> Option<&Sent> {
        self.by_identity.get(&(seen.stream, seen.identity)).map(|at| &self.sent[*at])
    }

    /// While nothing changed: from, to, and what was wanted.
    fn steady(&self) -> impl Iterator<Item = (Instant, Instant, &Wants)> {
        let pairs = self.changes.iter().zip(self.changes.iter().skip(1));
        pairs.map(|(one, next)| (one.at + SETTLE, next.at - IN_FLIGHT, &one.wants))
    }

    fn sent_between(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |one| (from..to).contains(&one.at))
    }

    /// Each link, while nothing changed.
    pub(crate) fn links(&self) -> Found {
        let mut found = Found::default();
        for link in 0..LINKS {
            let mut times: HashMap<(usize, u64), u64> = HashMap::new();
            self.seen[link].iter().for_each(|one| *times.entry((one.stream, one.identity)).or_default() += 1);
            let (mut expected, mut came) = ([0_u64; STREAMS], [0_u64; STREAMS]);
            let (mut unwanted, mut missing) = (0, 0);
            for (from, to, wants) in self.steady() {
                for sent in self.sent_between(from, to) {
                    let wanted = u64::from(is_wanted(self.best(wants, link, sent.stream), sent));
                    let times = times.get(&(sent.stream, sent.identity)).copied().unwrap_or(0);
                    unwanted += times.saturating_sub(wanted);
                    missing += wanted.saturating_sub(times);
                    expected[sent.stream] += wanted * sent.bytes as u64;
                    came[sent.stream] += times * sent.bytes as u64;
                    found.packets += wanted;
                }
            }
            if (unwanted, missing) != (0, 0) {
                progress(format!("{}: {unwanted} unwanted, {missing} missing", name(link)));
            }
            found.unwanted += unwanted;
            found.missing += missing;
            for (expected, came) in expected.into_iter().zip(came) {
                let error = (came as f64 - expected as f64).abs() / (expected as f64).max(1.0) * 100.0;
                found.rate_error_pct = found.rate_error_pct.max(error);
            }
        }
        found
    }

    /// Of each change to a better level of the first stream, milliseconds for each router that had to give more: from the
    /// wish to the first packet of a layer that was not taken before, less the time until the source began its next
    /// frame, and less that from the begin of the packet's frame to it.
    pub(crate) fn changes_ms(&self) -> Vec<f64> {
        let mut all = Vec::new();
        for (before, change) in self.changes.iter().zip(self.changes.iter().skip(1)) {
            let host = change.host;
            let (Some(old), Some(new)) = (before.wants[host][WAVELET], change.wants[host][WAVELET]) else {
                continue;
            };
            let is_changed = |link: &usize| {
                self.best(&before.wants, *link, WAVELET) != self.best(&change.wants, *link, WAVELET)
            };
            let hops = way(host).filter(is_changed).count();
            if new >= old || hops == 0 {
                continue;
            }
            let is_new = |sent: &&Sent| sent.layer > LEVELS[WAVELET] - old;
            let mut came = self.at_host(host, WAVELET).filter(|(seen, _)| seen.at > change.at);
            let next = self.sent.iter().find(|one| one.stream == WAVELET && one.frame_at >= change.at);
            if let (Some((seen, sent)), Some(next)) = (came.find(|(_, sent)| is_new(sent)), next) {
                let apart = (next.frame_at - change.at) + (sent.at - sent.frame_at);
                all.push((seen.at - change.at).saturating_sub(apart).as_secs_f64() * 1e3 / hops as f64);
            }
        }
        all
    }

    fn at_host(&self, host: usize, stream: usize) -> impl Iterator<Item = (&Seen, &Sent)> {
        let link = LINKS - HOSTS + host;
        let seen = self.seen[link].iter().filter(move |one| one.stream == stream);
        seen.filter_map(|one| Some((one, self.sent_as(one)?)))
    }

    /// Milliseconds from joining to the end of the first whole picture, and from leaving to the last packet at the last
    /// router, of the first stream.
    pub(crate) fn joins_and_leaves_ms(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut joins, mut leaves) = (Vec::new(), Vec::new());
        for (before, change) in self.changes.iter().zip(self.changes.iter().skip(1)) {
            let host = change.host;
            let since = |at: Instant| (at - change.at).as_secs_f64() * 1e3;
            match (before.wants[host][WAVELET], change.wants[host][WAVELET]) {
                (None, Some(_)) => {
                    let mut came = self.at_host(host, WAVELET).filter(|(seen, _)| seen.at > change.at);
                    let began = came.find(|(_, sent)| sent.at == sent.frame_at);
                    let ended = began.and_then(|_| came.find(|(seen, _)| seen.ends()));
                    joins.extend(ended.map(|(seen, _)| since(seen.at)));
                }
                (Some(_), None) => {
                    let next = self.changes.iter().find(|next| next.at > change.at && next.host == host);
                    let until = next.map_or(change.at + SETTLE, |next| next.at);
                    let up = way(host).nth(1).unwrap_or(0);
                    let mut here = self.seen[up].iter().filter(|one| one.stream == WAVELET);
                    let last = here.rfind(|one| one.at > change.at && one.at < until);
                    leaves.extend(last.map(|seen| since(seen.at)));
                }
                _ => {}
            }
        }
        (joins, leaves)
    }

    /// Frames of the first stream that a host has not, or with other layers than its level has, while nothing changed; and
    /// how many there were.
    pub(crate) fn wavelet_undecodable(&self) -> (u64, u64) {
        let (mut bad, mut count) = (0, 0);
        for host in 0..HOSTS {
            let mut layers: HashMap<u32, usize> = HashMap::new();
            let mut assembler = Assembler::default();
            let mut tell = |frame: outflow_wavelet::rtp::Assembled| {
                let coded = frame.codestream.map_or(0, |codestream| codestream.layers());
                layers.insert(frame.timestamp, coded);
            };
            for (seen, _) in self.at_host(host, WAVELET) {
                assembler.handle(Bytes::copy_from_slice(&seen.packet), &mut tell);
            }
            assembler.flush(&mut tell);
            for (from, to, wants) in self.steady() {
                let Some(level) = wants[host][WAVELET] else { continue };
                // Frames that lie in it from begin to end.
                let is_it = |one: &&Sent| one.stream == WAVELET;
                let ends = self.sent_between(from, to).filter(is_it).last().map(|one| one.timestamp);
                let first = |one: &&Sent| one.at == one.frame_at && Some(one.timestamp) != ends;
                let mut last = None;
                let begun = self.sent_between(from, to).filter(is_it).filter(first);
                for frame in begun.filter(|one| last.replace(one.timestamp) != Some(one.timestamp)) {
                    count += 1;
                    let expected = usize::from(LEVELS[WAVELET] + 1 - level);
                    bad += u64::from(layers.get(&frame.timestamp) != Some(&expected));
                }
            }
        }
        (bad, count)
    }

    /// Frames of the second stream that are not, bit for bit, what they are with nothing left out: of each host, from the
    /// first key picture a second after it has joined to when it left, over all changes of its level. What cannot be
    /// put together at all counts as one.
    pub(crate) fn av1_undecodable(&self, av1: &Encoded) -> (u64, u64) {
        let (mut bad, mut count) = (0, 0);
        for host in 0..HOSTS {
            for (from, to) in self.sessions(host) {
                match self.decoded(host, (from, to), av1) {
                    Ok((wrong, all)) => (bad, count) = (bad + wrong, count + all),
                    Err(error) => {
                        progress(format!("host {host}, AV1: {error:#}"));
                        bad += 1;
                    }
                }
            }
        }
        (bad, count)
    }

    /// From when to when a host is a member of the second stream.
    fn sessions(&self, host: usize) -> Vec<(Instant, Instant)> {
        let (mut all, mut since) = (Vec::new(), None);
        for change in &self.changes {
            match (since, change.wants[host][AV1]) {
                (None, Some(_)) => since = Some(change.at),
                (Some(from), None) => {
                    all.push((from, change.at));
                    since = None;
                }
                _ => {}
            }
        }
        all.extend(since.zip(self.changes.last()).map(|(from, end)| (from, end.at)));
        all
    }

    fn decoded(&self, host: usize, (from, to): (Instant, Instant), av1: &Encoded) -> Result<(u64, u64)> {
        let from = from + Duration::from_secs(1);
        let is_key = |sent: &Sent| {
            (sent.timestamp.wrapping_sub(FIRST_TIMESTAMP) / TICKS_PER_PICTURE).is_multiple_of(KEYS_EVERY)
        };
        let mut came = self
            .at_host(host, AV1)
            .filter(|(_, sent)| sent.at > from && sent.at < to - 2 * IN_FLIGHT)
            .skip_while(|(_, sent)| !(is_key(sent) && sent.frame_at > from))
            .map(|(seen, _)| seen)
            .collect::<Vec<_>>();
        while came.pop_if(|seen| !seen.ends()).is_some() {}
        let packets = came.iter().map(|seen| seen.packet.clone()).collect::<Vec<_>>();
        let carried = frames(Coding::Av1, &av1.plan, &packets)?;
        let numbered = carried.iter().map(|one| (one.number, &one.bytes[..])).collect::<Vec<_>>();
        let pictures = decode(Coding::Av1, &av1.plan, &numbered, Wanted::Every)?;
        let wrong = pictures.iter().filter(|(number, picture)| av1.pictures[*number] != *picture).count();
        Ok((wrong as u64, pictures.len() as u64))
    }
}
