//! A stream whose services run in other threads.

use core::time::Duration;
use std::sync::Arc;

use bytes::BytesMut;
use outflow_context::Contexts;
use outflow_graph::{CoreOnly, ElementPlan, Graph, Input, Plan};
use outflow_media::{Codec, Format, Track};
use outflow_relay::control::Stages;
use outflow_relay::{
    Driver, Encapsulation, Event, Order, SinkKey, SinkSpec, StreamOptions, Transport, drive,
};
use outflow_rtp::PlainHeader;
use tokio::sync::oneshot;

use super::*;
use crate::bell::Bell;
use crate::calls::{Callers, calls};
use crate::worker::stream::LiveStream;

/// A worker's stream, and what it sent.
struct Owner {
    stream: LiveStream,
    clock: Clock,
    contexts: Contexts,
    callers: Callers,
    sent: u64,
    got: Vec<u16>,
}

fn video() -> Format {
    let codec = Codec::Other { video: true };
    Format::Rtp(vec![Track { codec, payload_type: 96, ..Track::mp2t() }])
}

/// A chain of elements, each in a context, of which "x*3" has three lanes, and a branch behind it.
fn plan(chain: &[(&str, Option<&str>)]) -> Plan {
    let mut from = Input::source();
    let mut plan = Plan::default();
    for (name, context) in chain {
        let (context, lanes) = match context.map(|context| context.split_once('*').unwrap_or((context, "1")))
        {
            Some((context, lanes)) => (Some(context.to_owned()), lanes.parse().expect("a number")),
            None => (None, 1),
        };
        let (kind, inputs) = ("pass".to_owned(), vec![from]);
        let element = ElementPlan { kind, inputs, context, lanes, ..ElementPlan::default() };
        plan.elements.insert((*name).to_owned(), element);
        from = Input::parse(name);
    }
    plan.branches.insert("b".to_owned(), vec![from]);
    plan
}

/// The stream is served at this time.
struct Turn<'a> {
    owner: &'a mut Owner,
    now: Time,
}

impl Driver for Turn<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn stream(&mut self) -> Option<&mut Stream> {
        Some(&mut self.owner.stream.core)
    }

    fn send(&mut self, _: Time, order: &Order) {
        for (_, entry, _) in self.owner.stream.core.packets(order, outflow_relay::Share::WHOLE) {
            let bytes = &entry.packet.bytes;
            self.owner.got.push(u16::from_be_bytes([bytes[2], bytes[3]]));
        }
    }

    fn event(&mut self, _: Event) {}

    fn stages(&mut self, now: Time, what: Stages) {
        self.owner.stream.see_to_stages(now, what);
    }
}

impl Owner {
    fn new() -> Self {
        let (told, _) = crate::message::demands(0);
        let mut stream =
            LiveStream::new((1, 1), "live".to_owned(), String::new(), StreamOptions::default(), vec![], told);
        let clock = Clock::start();
        stream.core.handle_source(clock.now(), video());
        let (callers, _) = calls(Arc::new(Bell::new().expect("an eventfd")));
        Owner { stream, clock, contexts: Contexts::default(), callers, sent: 0, got: Vec::new() }
    }

    /// Puts services in place, as a worker does when it is told.
    fn put(&mut self, plan: &Plan) -> oneshot::Receiver<Result<Swapped, ControlError>> {
        let mut graph = Graph::new(plan, &mut CoreOnly).expect("it fits");
        graph.bind(&video());
        let names: Vec<_> = graph.contexts().map(|(name, lanes)| (name.to_owned(), lanes)).collect();
        let line = (!names.is_empty())
            .then(|| self.contexts.line(&names, Arc::new(self.callers.to(1))).expect("threads"));
        let (reply, answer) = oneshot::channel();
        let services = Services { graph: Some(Box::new(graph)), line, note: None };
        self.stream.put_services(services, reply, &self.clock);
        answer
    }

    fn join(&mut self) -> SinkKey {
        let branch = Some(self.stream.core.branch_named("b").expect("declared"));
        let spec = SinkSpec { branch, ..SinkSpec::new(Encapsulation::Rtp, Transport::Stream) };
        self.stream.core.handle_join(self.clock.now(), 1, spec)
    }

    fn send(&mut self, count: usize) {
        for _ in 0..count {
            let (sequence, timestamp) = (self.sent as u16, self.sent as u32 * 3000);
            let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 7 };
            let packet = BytesMut::from(&header.emit()[..]);
            self.stream.core.handle_media(self.clock.now(), 0, packet.into());
            self.sent += 1;
        }
        self.serve();
    }

    fn serve(&mut self) {
        let now = self.clock.now();
        self.stream.take_near(now, &self.clock);
        drive(&mut Turn { owner: self, now }, None);
    }

    /// Serves until all that was sent is there.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            self.serve();
            if self.got.len() as u64 >= self.sent && self.stream.services.next.is_none() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{} of {} came", self.got.len(), self.sent);
    }
}

#[test]
fn packets_go_through_other_threads_and_come_back_in_order() {
    let mut owner = Owner::new();
    owner
        .put(&plan(&[("a", None), ("b", Some("x*3")), ("c", Some("y")), ("d", Some("z*2"))]))
        .try_recv()
        .expect("at once")
        .expect("ok");
    owner.join();
    for _ in 0..100 {
        owner.send(30);
    }
    owner.settle();
    assert_eq!(owner.got, (0..3000).collect::<Vec<u16>>());
}

#[test]
fn services_change_across_threads_and_nothing_is_lost_or_out_of_order() {
    let mut owner = Owner::new();
    let plans = [
        plan(&[("a", None), ("b", Some("x"))]),
        plan(&[("a", Some("x")), ("b", Some("y")), ("c", Some("z"))]),
        plan(&[("a", None)]),
        plan(&[("b", Some("y*2")), ("a", Some("z"))]),
        plan(&[("b", Some("y*3")), ("a", Some("z*2"))]),
    ];
    owner.put(&plans[0]);
    owner.join();
    let mut answers = Vec::new();
    for round in 0..200 {
        owner.send(10);
        answers.push(owner.put(&plans[round % plans.len()]));
        owner.send(10);
        if round % 3 == 0 {
            owner.settle();
        }
    }
    owner.settle();
    assert_eq!(owner.got, (0..4000).collect::<Vec<u16>>());
    assert!(answers.last_mut().is_some_and(|answer| matches!(answer.try_recv(), Ok(Ok(_)))));
}

#[test]
fn another_format_is_bound_in_all_threads() {
    let mut owner = Owner::new();
    owner.put(&plan(&[("a", Some("x"))]));
    owner.join();
    owner.send(5);
    owner.settle();
    let audio = Format::Rtp(vec![Track { payload_type: 97, ..Track::mp2t() }]);
    owner.stream.core.handle_source(owner.clock.now(), audio.clone());
    for _ in 0..1000 {
        owner.serve();
        if owner.stream.services.next.is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let branch = owner.stream.core.branch_named("b").expect("declared");
    assert_eq!(owner.stream.core.carries(Some(branch)), Ok(owner.stream.core.format().cloned()));
}
