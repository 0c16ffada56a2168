//! Streams that go to a group because a player asked for that (by RTSP): one copy by each interface for all
//! players behind it, at the best level that any of them wants, while there is at least one.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod limits;
mod names;
mod saved;
mod settings;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_config::{DatagramSink, SinkProtocol, SinkUrl};
use outflow_control::{Control, Playing, PushOptions, Upgrade};
use outflow_engine::message::{ControlError, Destination};
use outflow_engine::system::source_address;
use outflow_media::Network;
use outflow_packet::Level;
use outflow_relay::Selection;
use outflow_routing::demand::{Settings, Table};
use outflow_routing::membership::Family;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use limits::GROUP_PORT;
pub use names::{number, of_path, of_tree};
pub use saved::SavedSeat;
pub use settings::{GroupSettings, add, check, check_taken};

/// Where the members of a group find a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Group and port; a track `n` goes to the port plus `2 n`.
    pub to: SocketAddr,
    /// The address that its packets come from.
    pub source: IpAddr,
    /// Hops that they may take.
    pub ttl: u8,
    interface: String,
}

/// All groups.
#[derive(Debug, Default)]
pub struct Groups {
    book: Mutex<Book>,
}

/// A stream, and how it goes: by an interface, to a group of a family.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stream: String,
    interface: String,
    family: Family,
}

#[derive(Debug, Default)]
struct Book {
    entries: BTreeMap<Key, Entry>,
    /// Seats that there ever were.
    seats: u64,
}

#[derive(Debug)]
struct Entry {
    to: SocketAddr,
    /// Players that were told of it, and may be members.
    seats: usize,
    /// What sends it is told what members want, as often as they ask by RTSP.
    sending: Option<mpsc::UnboundedSender<Want>>,
}

/// A member wants this level, or nothing any more.
type Want = (u64, Option<Level>);

impl Groups {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many groups a stream goes to, and how many are in them.
    pub fn of(&self, stream: &str) -> (u64, u64) {
        let book = self.book();
        let entries = book.entries.iter().filter(|(key, _)| key.stream == stream);
        let sent = entries.filter(|(_, entry)| entry.sending.as_ref().is_some_and(|one| !one.is_closed()));
        sent.fold((0, 0), |(groups, seats), (_, entry)| (groups + 1, seats + entry.seats as u64))
    }
}

impl Book {
    /// The group of a stream by an interface: one that no other stream has there. It follows from the name where it
    /// can, so that switches and routers see the same one again.
    fn seat(&mut self, key: &Key, range: Network) -> Option<(u64, SocketAddr)> {
        let to = match self.entries.get(key) {
            Some(entry) => entry.to,
            None => SocketAddr::new(self.free(key, range)?, GROUP_PORT),
        };
        Some((self.seat_at(key, to)?, to))
    }

    /// A seat in this group; nothing if the stream has another one by the interface, or another stream has this.
    fn seat_at(&mut self, key: &Key, to: SocketAddr) -> Option<u64> {
        if self.entries.get(key).map_or_else(|| self.is_taken(key, to.ip()), |entry| entry.to != to) {
            return None;
        }
        self.entries.entry(key.clone()).or_insert(Entry { to, seats: 0, sending: None }).seats += 1;
        self.seats += 1;
        Some(self.seats)
    }

    fn free(&self, key: &Key, range: Network) -> Option<IpAddr> {
        let first = number(&key.stream) % range.count();
        // With `entries` others, one of the next ones is free.
        let tries = range.count().min(self.entries.len() as u64 + 1);
        (0..tries).map(|n| range.nth(first.wrapping_add(n))).find(|ip| !self.is_taken(key, *ip))
    }

    /// Whether a stream has this group by the interface.
    fn is_taken(&self, key: &Key, ip: IpAddr) -> bool {
        let mut others = self.entries.iter().filter(|(other, _)| other.interface == key.interface);
        others.any(|(_, entry)| entry.to.ip() == ip)
    }

    fn leave(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.seats -= 1;
            if entry.seats == 0 {
                self.entries.remove(key);
            }
        }
    }
}

/// A player's place in a group; it is given up when this is dropped.
#[derive(Debug)]
pub struct Seat {
    control: Control,
    key: Key,
    number: u64,
    group: Group,
    /// While it is a member.
    sending: Option<mpsc::UnboundedSender<Want>>,
}

impl Seat {
    /// The group by which a stream goes to the player here. Nothing is sent before [`Seat::begin`].
    ///
    /// # Errors
    /// Nothing goes to groups here, or not that way.
    pub fn take(control: &Control, stream: &str, peer: IpAddr) -> Result<Seat, ControlError> {
        let settings = control.config().section::<GroupSettings>();
        let unfit = |text: &str| ControlError::Unsupported(text.to_owned());
        if settings.groups.is_empty() {
            return Err(unfit("nothing is sent by multicast here: set [tree] groups, or ask for unicast"));
        }
        let peer = peer.to_canonical();
        let family = Family::of(peer);
        let range = settings.of(family).ok_or_else(|| {
            let [has, other] = if peer.is_ipv4() { ["IPv6", "IPv4"] } else { ["IPv4", "IPv6"] };
            unfit(&format!(
                "only {has} groups are sent to: connect by {has}, add some of {other} to [tree] groups, or ask \
                 for unicast"
            ))
        })?;
        let failed = |error| ControlError::system(format!("looking for the way to {peer}"), &error);
        let interface = interface_to(peer).map_err(failed)?.ok_or_else(|| {
            unfit("multicast goes out by interfaces, and there is none between: ask for unicast")
        })?;
        let key = Key { stream: stream.to_owned(), interface, family };
        let (number, to) =
            control.shared::<Groups>().book().seat(&key, range).ok_or(ControlError::Limit {
                what: "streams that go to groups",
                limit: usize::try_from(range.count()).unwrap_or(usize::MAX),
                key: "[tree] groups",
            })?;
        Seat::at(control, key, number, to)
    }

    /// It is given up where there is no way out by its interface.
    fn at(control: &Control, key: Key, number: u64, to: SocketAddr) -> Result<Seat, ControlError> {
        let ttl = u8::try_from(control.config().section::<GroupSettings>().ttl).unwrap_or(u8::MAX);
        let interface = key.interface.clone();
        let unspecified = match key.family {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        let group = Group { to, source: unspecified, ttl, interface };
        let mut seat = Seat { control: control.clone(), key, number, group, sending: None };
        seat.group.source = seat.group.source()?;
        Ok(seat)
    }
}

impl Group {
    /// The address that packets go out with. What sends them has a socket like this one.
    fn source(&self) -> Result<IpAddr, ControlError> {
        let (to, interface) = (self.to, Some(self.interface.clone()));
        let socket = outflow_engine::open_push(&Destination {
            to,
            from: None,
            ttl: Some(self.ttl),
            interface,
            loops: false,
        })?;
        let address = socket.connect(to).and_then(|()| socket.local_addr());
        let doing = || format!("looking for the address of {}", self.interface);
        Ok(address.map_err(|error| ControlError::system(doing(), &error))?.ip())
    }

    fn sink(&self) -> SinkUrl {
        let (to, ttl, interface) = (self.to, Some(self.ttl), Some(self.interface.clone()));
        // What is looped back the kernel would take for packets to be forwarded, where it routes multicast.
        let loops = false;
        SinkUrl::Datagrams(DatagramSink { protocol: SinkProtocol::Rtp, to, ttl, interface, loops })
    }
}

impl Seat {
    /// Where the stream goes.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Becomes a member that wants this level: the stream goes to the group now, if it did not yet.
    ///
    /// # Errors
    /// It cannot be sent.
    pub async fn begin(&mut self, level: Level) -> Result<(), ControlError> {
        let begun = self.join(level);
        match begun {
            Some(begun) => begun.await.map_err(|_| ControlError::ShuttingDown)?,
            None => Ok(()),
        }
    }

    fn join(&mut self, level: Level) -> Option<oneshot::Receiver<Result<(), ControlError>>> {
        let groups = self.control.shared::<Groups>();
        let mut book = groups.book();
        let entry = book.entries.get_mut(&self.key)?;
        let want = (self.number, Some(level));
        if let Some(sending) = entry.sending.as_ref().filter(|sending| sending.send(want).is_ok()) {
            self.sending = Some(sending.clone());
            return None;
        }
        // bounded: a request of RTSP adds one, at the pace at which they are read, and they are taken at once.
        let (sending, wants) = mpsc::unbounded_channel();
        // `wants` is there.
        let _ = sending.send(want);
        (entry.sending, self.sending) = (Some(sending.clone()), Some(sending));
        let (begun, is_begun) = oneshot::channel();
        let options = self.options(level);
        let kept = self.control.shared::<Upgrade>().named(&options.stream, &options.receiver);
        tokio::spawn(send(self.control.clone(), options, kept, wants, begun));
        Some(is_begun)
    }

    /// Another level is wanted.
    pub fn set_level(&self, level: Level) {
        self.tell(Some(level));
    }

    /// Is no member any more.
    pub fn end(&mut self) {
        self.tell(None);
        self.sending = None;
    }

    /// Waits until a member is sent nothing any more; for ever if it is none.
    pub async fn ended(&self) {
        match &self.sending {
            Some(sending) => sending.closed().await,
            None => std::future::pending().await,
        }
    }

    fn tell(&self, level: Option<Level>) {
        if let Some(sending) = &self.sending {
            // What has ended needs not know.
            let _ = sending.send((self.number, level));
        }
    }

    fn options(&self, level: Level) -> PushOptions {
        let Key { stream, interface, .. } = &self.key;
        let name = format!("tree:{interface}:{}", self.group.to);
        let selection = Selection { level, ..Selection::default() };
        PushOptions::new(stream, self.group.sink(), name, selection)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.end();
        self.control.shared::<Groups>().book().leave(&self.key);
    }
}

/// Sends while a member wants it.
async fn send(
    control: Control,
    options: PushOptions,
    kept: Option<Playing>,
    mut wants: mpsc::UnboundedReceiver<Want>,
    begun: oneshot::Sender<Result<(), ControlError>>,
) {
    let (stream, name) = (options.stream.clone(), options.name().to_owned());
    let hold = control.config().section::<GroupSettings>().hold;
    let mut table = Table::<(), u64>::new(Settings { hold, linger: hold });
    match kept {
        Some(_) => tracing::info!(stream, name, "the stream goes to a group, as from the process before"),
        None => tracing::info!(stream, name, "the stream goes to a group: it is wanted there"),
    }
    let sending = control.push_once(options, kept, begun);
    tokio::pin!(sending);
    loop {
        let due = table.next_timeout().map(|at| Instant::now() + at.since(control.now()));
        tokio::select! {
            () = &mut sending => break,
            want = wants.recv() => match want {
                Some(want) => note(&control, &mut table, want),
                None => break,
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        table.handle_timeout(control.now());
        let Some(change) = table.poll() else { continue };
        let Some(level) = change.demand else { break };
        // If it is not there any more, this ends.
        let _ = control.set_push_level(&stream, &name, of_path(level));
    }
    tracing::info!(stream, name, "the stream no longer goes to a group");
}

fn note(control: &Control, table: &mut Table<(), u64>, (member, level): Want) {
    let now = control.now();
    let Some(level) = level else { return table.handle_leave(now, (), &member) };
    if let Err(full) = table.handle_want(now, (), member, of_tree(level), None) {
        tracing::warn!(%full, "what a member of a group wants is not looked at");
    }
}

/// The interface by which packets go to an address; none if it is this machine's.
fn interface_to(peer: IpAddr) -> std::io::Result<Option<String>> {
    // The port is that of `discard`.
    let local = source_address(SocketAddr::from((peer, 9)))?;
    let all = if_addrs::get_if_addrs()?;
    let found = all.into_iter().find(|one| one.ip() == local && !one.is_loopback());
    Ok(found.filter(|_| local != peer).map(|one| one.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(stream: &str, interface: &str) -> Key {
        Key { stream: stream.to_owned(), interface: interface.to_owned(), family: Family::V4 }
    }

    #[test]
    fn a_stream_has_one_group_by_an_interface_while_there_is_a_seat() {
        let mut book = Book::default();
        let range: Network = "232.1.1.0/30".parse().expect("a range");
        let all: Vec<_> =
            ["a", "b", "c", "d"].iter().map(|name| book.seat(&key(name, "eth0"), range)).collect();
        let mut ips: Vec<_> = all.iter().flatten().map(|(_, to)| to.ip()).collect();
        let again = book.seat(&key("a", "eth0"), range).expect("it has one");
        assert_eq!(again.1, all[0].expect("the same").1);
        assert!(all.iter().flatten().all(|(number, _)| *number != again.0), "another seat");
        ips.sort();
        ips.dedup();
        assert_eq!(ips.len(), 4, "all have groups of their own");
        assert_eq!(book.seat(&key("e", "eth0"), range), None, "there are no more");
        assert!(book.seat(&key("e", "eth1"), range).is_some(), "but by another interface");
        book.leave(&key("a", "eth0"));
        assert_eq!(book.seat(&key("e", "eth0"), range), None, "one is there still");
        book.leave(&key("a", "eth0"));
        let (_, to) = book.seat(&key("e", "eth0"), range).expect("one is free");
        assert_eq!(to, again.1);
    }

    #[test]
    fn a_stream_has_a_group_of_each_family_and_ranges_may_be_large() {
        let mut book = Book::default();
        let range: Network = "ff35::/64".parse().expect("a range");
        let v6 = |stream| Key { family: Family::V6, ..key(stream, "eth0") };
        let (_, to) = book.seat(&v6("a"), range).expect("there are many");
        assert!(range.contains(to.ip()), "{to}");
        let (_, other) = book.seat(&v6("b"), range).expect("there are many");
        assert_ne!(to, other);
        let (_, v4) = book.seat(&key("a", "eth0"), "232.1.1.0/30".parse().expect("a range")).expect("one");
        assert!(v4.is_ipv4() && book.seat(&v6("a"), range).map(|(_, to)| to) == Some(to));
    }

    #[test]
    fn a_group_that_another_process_gave_out_is_that_of_the_same_stream() {
        let mut book = Book::default();
        let to = |last: u8| SocketAddr::new(IpAddr::from([232, 1, 1, last]), GROUP_PORT);
        let first = book.seat_at(&key("a", "eth0"), to(7)).expect("it is free");
        let second = book.seat_at(&key("a", "eth0"), to(7)).expect("another member");
        assert_ne!(first, second);
        assert_eq!(book.seat_at(&key("a", "eth0"), to(8)), None, "it has one");
        assert_eq!(book.seat_at(&key("b", "eth0"), to(7)), None, "it is another stream's");
        assert!(book.seat_at(&key("b", "eth1"), to(7)).is_some(), "not by this interface");
        let range: Network = "232.1.1.7/32".parse().expect("a range");
        assert_eq!(book.seat(&key("a", "eth0"), range).map(|(_, to)| to), Some(to(7)));
        assert_eq!(book.seat(&key("c", "eth0"), range), None);
    }

    #[test]
    fn there_is_no_interface_to_this_machine() {
        assert_eq!(interface_to(Ipv4Addr::LOCALHOST.into()).expect("there is a way"), None);
    }
}
