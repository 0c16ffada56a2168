//! A stream that comes from another relay by multicast: by RTSP it is asked for the group that it goes to, and which
//! level is wanted of it, among others.
//!
//! By unicast it comes first, from the newest key frame on, until the group goes on behind the very same packet
//! ([`merge`]). When the group is silent, the relay asks by unicast whether that is the source's silence; if
//! not, the stream comes by unicast, and the group is joined again later.

mod merge;
mod saved;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use outflow_client::{AskBy, Error, Lower, Options, Packet, Received, Subscription, subscribe};
use outflow_engine::system::random_u32;
use outflow_front_pull::Failure;
use outflow_media::{Backoff, Format};
use outflow_packet::gmc::Mark;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::limits::{GROUP_AGAIN, GROUP_GRACE, GROUP_MEET, GROUP_QUIET, GROUP_WAIT};
use merge::Merge;
pub(super) use saved::SavedGrouped;

/// How a stream comes, as others see it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    is_by_group: AtomicBool,
    fallbacks: AtomicU64,
}

impl Shown {
    /// Whether it comes by the group.
    pub(super) fn is_by_group(&self) -> bool {
        self.is_by_group.load(Ordering::Relaxed)
    }

    /// How often unicast had to stand in.
    pub(super) fn fallbacks(&self) -> u64 {
        self.fallbacks.load(Ordering::Relaxed)
    }
}

/// The two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Unicast,
    Group,
}

/// A stream that comes by a group, or will.
#[derive(Debug)]
pub(super) struct Grouped {
    stream: String,
    place: String,
    options: Options,
    format: Format,
    levels: Option<u8>,
    level: u8,
    unicast: Option<Subscription>,
    group: Option<Subscription>,
    opening: JoinSet<(By, Result<Subscription, Error>)>,
    is_opening: [bool; 2],
    /// What is passed on.
    carrier: By,
    /// Packets that came by unicast since the group was joined.
    stood_in: u64,
    merge: Merge,
    out: VecDeque<Received>,
    times: Times,
    /// Why the group brings nothing, as it was said last.
    why: String,
    shown: Arc<Shown>,
}

/// When what happened, or is to happen.
#[derive(Debug)]
struct Times {
    /// A group's packet came, or the group was joined.
    heard: Instant,
    /// The longest time between two packets of the group, lately.
    lull: Duration,
    /// Unicast waits for the group to come up with it, since then.
    waiting: Option<Instant>,
    /// Unicast has brought what the group has not, since then.
    news: Option<Instant>,
    /// When the group is joined next, and how much later the time after that.
    join: Instant,
    backoff: Backoff,
}

impl Grouped {
    /// Subscribes by unicast at an RTSP server, and begins to join the group.
    pub(super) async fn begin(
        (place, stream): (&str, &str),
        options: Options,
        level: u8,
        shown: Arc<Shown>,
    ) -> Result<Self, Error> {
        let mut unicast = subscribe(&url(place, stream, level), way(By::Unicast, &options)).await?;
        unicast.ask_level(level)?;
        let (format, levels) = (unicast.format().clone(), unicast.levels());
        shown.is_by_group.store(false, Ordering::Relaxed);
        let mut grouped = Grouped::new((place, stream), (options, level), format, shown);
        (grouped.levels, grouped.unicast) = (levels, Some(unicast));
        grouped.open(By::Group);
        Ok(grouped)
    }

    /// One that comes by neither way yet.
    fn new(
        (place, stream): (&str, &str),
        (options, level): (Options, u8),
        format: Format,
        shown: Arc<Shown>,
    ) -> Self {
        let now = Instant::now();
        let times = Times {
            heard: now,
            lull: Duration::ZERO,
            waiting: None,
            news: None,
            join: now,
            backoff: GROUP_AGAIN,
        };
        Grouped {
            stream: stream.to_owned(),
            place: place.to_owned(),
            options,
            merge: Merge::new(format != Format::Ts),
            format,
            levels: None,
            level,
            unicast: None,
            group: None,
            opening: JoinSet::new(),
            is_opening: [false; 2],
            carrier: By::Unicast,
            stood_in: 0,
            out: VecDeque::new(),
            times,
            why: String::new(),
            shown,
        }
    }

    pub(super) fn format(&self) -> &Format {
        &self.format
    }

    /// How many levels there are, if that was said.
    pub(super) fn levels(&self) -> Option<u8> {
        self.levels
    }

    /// Asks for this level from now on.
    pub(super) fn ask_level(&mut self, level: u8) -> Result<(), Error> {
        self.level = level;
        self.unicast.iter_mut().chain(&mut self.group).try_for_each(|one| one.ask_level(level))
    }

    /// Asks for a key frame of a track. A group has no way to say that: only what comes by unicast is asked.
    pub(super) fn ask_key_frame(&mut self, track: u8) {
        if let Some(unicast) = &mut self.unicast {
            unicast.ask_key_frame(track);
        }
    }

    /// The next packet or report. Nothing is lost if this is cancelled.
    pub(super) async fn recv(&mut self) -> Result<Received, Failure> {
        loop {
            if let Some(received) = self.out.pop_front() {
                return Ok(received);
            }
            let due = self.due();
            let (carrier, is_waiting) = (self.carrier, self.times.waiting.is_some());
            tokio::select! {
                biased;
                Some(opened) = self.opening.join_next() => {
                    // What panics ends the relay; nothing else ends these tasks.
                    if let Ok((by, opened)) = opened {
                        self.opened(by, opened)?;
                    }
                }
                received = next(&mut self.group, false) => match received {
                    Ok(received) => self.hear_group(received),
                    Err(error) => self.group_ended(&error),
                },
                received = next(&mut self.unicast, is_waiting) => match received {
                    Ok(received) => self.hear_unicast(received),
                    Err(error) if carrier == By::Unicast || self.group.is_none() => return Err(error.into()),
                    Err(_) => self.close_unicast(),
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.look(),
            }
        }
    }

    fn open(&mut self, by: By) {
        if !std::mem::replace(&mut self.is_opening[by as usize], true) {
            let url = url(&self.place, &self.stream, self.level);
            let mut options = way(by, &self.options);
            options.seed = u64::from(random_u32());
            self.opening.spawn(async move { (by, subscribe(&url, options).await) });
        }
    }

    fn opened(&mut self, by: By, opened: Result<Subscription, Error>) -> Result<(), Failure> {
        self.is_opening[by as usize] = false;
        let opened = opened.and_then(|mut one| match *one.format() == self.format {
            true => one.ask_level(self.level).map(|()| one),
            false => Err(Error::Peer("the stream's format changed".to_owned())),
        });
        match (by, opened) {
            (By::Group, Ok(group)) => {
                (self.times.heard, self.stood_in) = (Instant::now(), 0);
                self.group = Some(group);
            }
            (By::Group, Err(error)) => self.group_ended(&error),
            // The group has spoken meanwhile.
            (By::Unicast, Ok(_)) if self.carrier == By::Group && !self.is_quiet() => {}
            (By::Unicast, Ok(unicast)) => self.unicast = Some(unicast),
            (By::Unicast, Err(error)) if self.group.is_none() => return Err(error.into()),
            // It is tried again when the group has been silent for as long again.
            (By::Unicast, Err(_)) => self.times.heard = Instant::now(),
        }
        Ok(())
    }

    fn hear_unicast(&mut self, received: Received) {
        let packet = match received {
            Received::Packet(packet) => packet,
            Received::SenderReport { .. } if self.carrier == By::Group => return,
            other => return self.out.push_back(other),
        };
        if self.carrier == By::Group {
            let is_known = self.merge.hold(packet);
            if !is_known {
                self.times.news.get_or_insert_with(Instant::now);
            }
            return;
        }
        self.out.extend(self.merge.carry(packet).map(Received::Packet));
        self.stood_in += 1;
        if self.group.is_some() && self.merge.meets() {
            self.group_carries();
        }
    }

    fn hear_group(&mut self, received: Received) {
        let packet = match received {
            Received::Packet(packet) => unmarked(packet, &self.format),
            Received::SenderReport { .. } if self.carrier == By::Unicast => return,
            other => return self.out.push_back(other),
        };
        let now = Instant::now();
        if self.carrier == By::Unicast {
            let is_known = self.merge.hold(packet);
            if is_known {
                self.times.waiting.get_or_insert(now);
            }
            if self.merge.meets() {
                self.group_carries();
            }
            return;
        }
        let Times { heard, lull, .. } = &mut self.times;
        *lull = now.duration_since(*heard).max(*lull - *lull / 256);
        *heard = now;
        if self.unicast.is_some() {
            self.close_unicast();
        }
        self.out.extend(self.merge.carry(packet).map(Received::Packet));
    }

    /// The group goes on from here.
    fn group_carries(&mut self) {
        self.merge.change(&mut self.out);
        self.carrier = By::Group;
        self.times.heard = Instant::now();
        self.times.backoff.reset();
        self.why.clear();
        self.close_unicast();
        self.shown.is_by_group.store(true, Ordering::Relaxed);
        tracing::info!(stream = self.stream, "the stream comes by multicast");
    }

    /// Unicast goes on from here.
    fn unicast_carries(&mut self) {
        self.merge.change(&mut self.out);
        self.carrier = By::Unicast;
        (self.times.news, self.times.waiting) = (None, None);
        self.shown.is_by_group.store(false, Ordering::Relaxed);
    }

    fn close_unicast(&mut self) {
        self.unicast = None;
        self.merge.forget_held();
        (self.times.news, self.times.waiting) = (None, None);
    }

    /// The group cannot be joined, is over, or brings nothing: unicast does, and it is joined again later.
    fn group_ended(&mut self, error: &dyn std::fmt::Display) {
        let why = error.to_string();
        if self.why != why {
            let stream = &self.stream;
            tracing::warn!(stream, why, "the stream does not come by multicast, but by unicast");
            self.why = why;
        }
        self.shown.fallbacks.fetch_add(1, Ordering::Relaxed);
        self.group = None;
        self.times.waiting = None;
        if self.carrier == By::Unicast {
            self.merge.forget_held();
        } else if self.unicast.is_none() {
            self.open(By::Unicast);
        }
        self.times.join = Instant::now() + self.times.backoff.wait();
    }

    /// Whether the group is silent for longer than is usual.
    fn is_quiet(&self) -> bool {
        self.group.is_none() || self.times.heard.elapsed() >= self.quiet()
    }

    fn quiet(&self) -> Duration {
        GROUP_QUIET.max(self.times.lull * 3)
    }

    /// When something is to be looked at.
    fn due(&self) -> Option<Instant> {
        let is_carried = self.carrier == By::Group;
        let Times { heard, waiting, news, join, .. } = self.times;
        let has_group = self.group.is_some();
        let idle = self.unicast.is_none() && !self.is_opening[By::Unicast as usize];
        let all = [
            (has_group && is_carried && idle).then(|| heard + self.quiet()),
            (has_group && !is_carried && waiting.is_none()).then(|| heard + GROUP_WAIT),
            (!has_group && !self.is_opening[By::Group as usize]).then_some(join),
            waiting.map(|since| since + GROUP_MEET),
            news.map(|since| since + GROUP_GRACE),
        ];
        all.into_iter().flatten().min()
    }

    fn look(&mut self) {
        let now = Instant::now();
        let Times { heard, waiting, news, join, .. } = self.times;
        let has_group = self.group.is_some();
        if waiting.is_some_and(|since| since + GROUP_MEET <= now) {
            return self.group_carries();
        }
        if news.is_some_and(|since| since + GROUP_GRACE <= now) {
            return self.look_at_news();
        }
        if !has_group && join <= now {
            self.open(By::Group);
        }
        match self.carrier {
            By::Group if has_group && self.unicast.is_none() && self.is_quiet() => self.open(By::Unicast),
            By::Unicast if has_group && heard + GROUP_WAIT <= now => self.look_at_group(now),
            _ => {}
        }
    }

    /// Unicast has brought what is new, and the group has not.
    fn look_at_news(&mut self) {
        self.times.news = None;
        if !self.merge.has_news() {
            return;
        }
        let was_there = self.group.is_some();
        self.unicast_carries();
        if was_there {
            self.group_ended(&"the group is silent, and unicast is not: is multicast let through?");
        }
    }

    /// The group was joined long ago, and unicast carries still.
    fn look_at_group(&mut self, now: Instant) {
        if self.merge.has_held() {
            // What it brings fits nowhere: another level of a transport stream. It goes on all the same.
            return self.group_carries();
        }
        if self.stood_in == 0 {
            self.times.heard = now;
            return;
        }
        let why = "nothing comes to the group: is multicast let through, and is there an IGMP querier where \
                   switches snoop?";
        self.group_ended(&why);
    }
}

/// What comes next of a subscription; nothing ever, if there is none, or it is not looked at.
async fn next(subscription: &mut Option<Subscription>, is_passed_over: bool) -> Result<Received, Error> {
    match subscription {
        Some(subscription) if !is_passed_over => subscription.recv().await,
        _ => pending().await,
    }
}

/// A packet of a group as it is by unicast: without what it says to routers on its way.
fn unmarked(packet: Packet, format: &Format) -> Packet {
    if *format == Format::Ts || Mark::read(&packet.bytes).is_none() {
        return packet;
    }
    let mut own = packet.bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    let out = Mark::take_out(&mut own);
    own.advance(out);
    Packet { bytes: own.freeze(), ..packet }
}

/// What a parent is asked for.
fn url(place: &str, stream: &str, level: u8) -> String {
    let query = if level > 1 { format!("?level={level}") } else { String::new() };
    format!("rtsp://{place}/{stream}{query}")
}

/// How a way is asked for.
fn way(by: By, options: &Options) -> Options {
    let multicast = by == By::Group;
    let ask_by = if multicast { AskBy::Rtsp } else { AskBy::Rtcp };
    Options { transport: Lower::Tcp, multicast, ask_by, ..options.clone() }
}
