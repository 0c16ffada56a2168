//! Links and what travels behind them, whatever the packets are and whatever tells the time: a run in virtual time
//! and an emulation in real time are driven by the same code.

use core::time::Duration;
use std::collections::VecDeque;

use outflow_link::{Departed, Dropped, FlowId, Link, Next};
use outflow_media::{Tag, Time};
use slab::Slab;

use super::impair::{Channel, Outcome};
use super::model::LinkModel;
use super::rng::{Draws, generator};
use crate::agenda::Agenda;

/// What happens at links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEvent {
    /// A link can take the next packet.
    Free(u32),
    /// What travels first behind a link arrives.
    Arrive(u32),
    /// A packet that is late arrives.
    Late(u32),
}

/// A packet that is at the end of a link then.
#[derive(Debug, Clone)]
pub struct Travelling<T> {
    /// When.
    pub at: Time,
    /// The packet.
    pub item: T,
    /// What it means.
    pub tag: Tag,
    /// Its size, as it counts on links.
    pub bytes: usize,
}

/// The owner of packets: says where they go, and is told what becomes of them.
pub trait Carrier {
    /// A packet. Duplicates are clones.
    type Item: Clone;

    /// The link that a packet comes to next, and its flow there (see [`Links::add_flow`]); none at its end.
    fn next(&self, item: &Self::Item) -> Option<(usize, Option<FlowId>)>;

    /// Whether a packet that is behind its last link may be delivered before its time: nothing follows from it.
    fn is_final(&self, item: &Self::Item) -> bool;

    /// A packet has come to a link.
    fn entered(&mut self, _link: usize, _packet: &Travelling<Self::Item>) {}

    /// A packet has left the buffer of a link.
    fn departed(&mut self) {}

    /// A packet travels behind a link: that is one more of its way.
    fn passed(&mut self, item: &mut Self::Item);

    /// A link did not let a packet through.
    fn dropped(&mut self, link: usize, dropped: Dropped<Self::Item>);

    /// A packet was lost behind a link.
    fn lost(&mut self, link: usize, packet: Travelling<Self::Item>);

    /// There are two of a packet, from this link on.
    fn copied(&mut self, link: usize, packet: &Travelling<Self::Item>);

    /// A packet is where it was to go.
    fn delivered(&mut self, packet: Travelling<Self::Item>);
}

/// A link, and the way behind it.
#[derive(Debug)]
struct Hop<T> {
    /// `None`: it takes everything at once.
    link: Option<Link<T>>,
    delay: Duration,
    channel: Option<Channel>,
    /// It is known when it can take the next packet.
    is_awaited: bool,
    /// What comes out of it in the order in which it went in. The first one is awaited.
    travelling: VecDeque<Travelling<T>>,
}

/// Links by number.
///
/// What is to happen stands in an agenda of the caller's, in which it may have other events, too:
///
/// ```
/// # use outflow_sim::network::{Agenda, Carrier, LinkEvent, Links};
/// # use outflow_media::Time;
/// # fn run<C: Carrier>(links: &mut Links<C::Item>, carrier: &mut C, agenda: &mut Agenda<LinkEvent>, now: Time) {
/// while let Some((at, event)) = agenda.take_until(now) {
///     links.handle(at, event, agenda, carrier);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Links<T> {
    hops: Vec<Hop<T>>,
    late: Slab<Travelling<T>>,
}

/// What chance brings to a link from a moment on.
fn channel(seed: u64, place: usize, begins: Time, model: &LinkModel) -> Option<Channel> {
    Channel::new(model.impairments, begins, |number| generator(seed, Draws::Impairs, place, number))
}

impl<T> Default for Links<T> {
    fn default() -> Self {
        Links { hops: Vec::new(), late: Slab::new() }
    }
}

impl<T: Clone> Links<T> {
    /// Adds a link. Its number is how many there were before it; what chance brings to it follows from that and the
    /// seed.
    ///
    /// # Errors
    /// What its model must be.
    pub fn add(&mut self, seed: u64, model: &LinkModel) -> Result<(), &'static str> {
        let channel = channel(seed, self.hops.len(), Time::ZERO, model);
        self.hops.push(Hop {
            link: model.link()?,
            delay: model.delay,
            channel,
            is_awaited: false,
            travelling: VecDeque::new(),
        });
        Ok(())
    }

    /// What a link must be to become another one: it keeps its delay, and whether it has a rate.
    ///
    /// # Errors
    /// That.
    pub(super) fn may_become(&self, link: usize, model: &LinkModel) -> Result<(), &'static str> {
        let Some(hop) = self.hops.get(link) else { return Err("there is no such link") };
        model.check()?;
        if hop.delay != model.delay {
            return Err("a link that changes keeps its delay");
        }
        if hop.link.is_some() != model.rate.is_some() {
            return Err("a link that changes keeps its rate, if it has one, or none");
        }
        Ok(())
    }

    /// A link is another one from now on, if it may be. What waits goes on waiting. Where it impairs in another way,
    /// that begins now, with what the seed brings.
    pub(super) fn change<C>(&mut self, now: Time, place: usize, seed: u64, model: &LinkModel, carrier: &mut C)
    where
        C: Carrier<Item = T>,
    {
        if self.may_become(place, model).is_err() {
            return;
        }
        let hop = &mut self.hops[place];
        if let Some(link) = &mut hop.link {
            let _checked = model.set(now, link);
            link.dropped().for_each(|dropped| carrier.dropped(place, dropped));
        }
        if hop.channel.as_ref().map(Channel::does).copied().unwrap_or_default() != model.impairments {
            hop.channel = channel(seed, place, now, model);
        }
    }

    /// A flow that goes through a link; `None` if that takes everything at once.
    pub fn add_flow(
        &mut self,
        link: usize,
        application: outflow_link::ApplicationId,
        class: u8,
    ) -> Option<FlowId> {
        self.hops[link].link.as_mut().map(|link| link.add_flow(application, class))
    }

    /// A flow of a link is of the stream with this number, which weighs so much among streams.
    pub fn set_stream(&mut self, link: usize, flow: FlowId, number: usize, weight: u32) {
        if let Some(link) = &mut self.hops[link].link {
            link.set_stream(flow, number, weight);
        }
    }

    /// A flow ends. What waits of it goes on.
    pub fn remove_flow(&mut self, link: usize, flow: FlowId) {
        if let Some(link) = &mut self.hops[link].link {
            link.remove_flow(flow);
        }
    }

    /// A packet comes to the next link of its way, or to its end.
    pub fn enter<C, E>(&mut self, now: Time, packet: Travelling<T>, agenda: &mut Agenda<E>, carrier: &mut C)
    where
        C: Carrier<Item = T>,
        E: From<LinkEvent> + Copy,
    {
        let Some((place, flow)) = carrier.next(&packet.item) else { return carrier.delivered(packet) };
        carrier.entered(place, &packet);
        let hop = &mut self.hops[place];
        let (Some(link), Some(flow)) = (&mut hop.link, flow) else {
            return self.travel(place, packet, agenda, carrier);
        };
        let Travelling { at, item, tag, bytes } = packet;
        link.offer(at, flow, tag, bytes, item);
        tell(link, place, carrier);
        if !hop.is_awaited {
            self.serve(now, place, agenda, carrier);
        }
    }

    /// An event of the agenda happens: it is `now`.
    pub fn handle<C, E>(&mut self, now: Time, event: LinkEvent, agenda: &mut Agenda<E>, carrier: &mut C)
    where
        C: Carrier<Item = T>,
        E: From<LinkEvent> + Copy,
    {
        match event {
            LinkEvent::Free(place) => {
                self.hops[place as usize].is_awaited = false;
                self.serve(now, place as usize, agenda, carrier);
            }
            LinkEvent::Arrive(place) => {
                let queue = &mut self.hops[place as usize].travelling;
                let Some(packet) = queue.pop_front() else { return };
                if let Some(next) = queue.front() {
                    agenda.add(next.at, LinkEvent::Arrive(place).into());
                }
                self.enter(now, packet, agenda, carrier);
            }
            LinkEvent::Late(slot) => {
                let packet = self.late.remove(slot as usize);
                self.enter(now, packet, agenda, carrier);
            }
        }
    }

    /// A link sends what it can.
    fn serve<C, E>(&mut self, now: Time, place: usize, agenda: &mut Agenda<E>, carrier: &mut C)
    where
        C: Carrier<Item = T>,
        E: From<LinkEvent> + Copy,
    {
        loop {
            let Some(link) = &mut self.hops[place].link else { return };
            let next = link.depart(now);
            tell(link, place, carrier);
            match next {
                Next::Departs(Departed { packet, item, until }) => {
                    carrier.departed();
                    let packet = Travelling { at: until, item, tag: packet.tag, bytes: packet.bytes };
                    self.travel(place, packet, agenda, carrier);
                }
                Next::Later(at) => {
                    self.hops[place].is_awaited = true;
                    return agenda.add(at, LinkEvent::Free(place as u32).into());
                }
                Next::Nothing => return,
            }
        }
    }

    /// A packet has left a link, and travels behind it.
    fn travel<C, E>(
        &mut self,
        place: usize,
        mut packet: Travelling<T>,
        agenda: &mut Agenda<E>,
        carrier: &mut C,
    ) where
        C: Carrier<Item = T>,
        E: From<LinkEvent> + Copy,
    {
        let hop = &mut self.hops[place];
        let left = packet.at;
        packet.at = left + hop.delay;
        carrier.passed(&mut packet.item);
        let Some(channel) = &mut hop.channel else { return self.follow(place, packet, agenda, carrier) };
        match channel.pass(left) {
            Outcome::Lost => carrier.lost(place, packet),
            Outcome::Arrives { late_by, twice } => {
                if twice {
                    carrier.copied(place, &packet);
                    self.follow(place, packet.clone(), agenda, carrier);
                }
                if late_by.is_zero() {
                    return self.follow(place, packet, agenda, carrier);
                }
                packet.at = packet.at + late_by;
                let at = packet.at;
                let slot = self.late.insert(packet);
                agenda.add(at, LinkEvent::Late(slot as u32).into());
            }
        }
    }

    /// It arrives behind those that left before it.
    fn follow<C, E>(&mut self, place: usize, packet: Travelling<T>, agenda: &mut Agenda<E>, carrier: &mut C)
    where
        C: Carrier<Item = T>,
        E: From<LinkEvent> + Copy,
    {
        // Nothing behind the last link depends on when it is told.
        if carrier.is_final(&packet.item) {
            return carrier.delivered(packet);
        }
        let queue = &mut self.hops[place].travelling;
        if queue.is_empty() {
            agenda.add(packet.at, LinkEvent::Arrive(place as u32).into());
        }
        queue.push_back(packet);
    }
}

/// Tells the owner of packets what a link did not let through; mostly that is nothing.
fn tell<C: Carrier>(link: &mut Link<C::Item>, place: usize, carrier: &mut C) {
    if link.has_dropped() {
        link.dropped().for_each(|dropped| carrier.dropped(place, dropped));
    }
}
