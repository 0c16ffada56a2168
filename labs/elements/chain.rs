//! Elements at work on the same packets again and again: alone, and in a graph.

use std::hint::black_box;

use anyhow::{Context, Result, anyhow};
use outflow_graph::{CoreOnly, Element, ElementPlan, Graph, Input, Item, Make, Plan, Settings, Tally, find};
use outflow_labs::media::monotonic_nanos;
use outflow_media::{Codec, Format, Tag, Time, Track};
use outflow_packet::{Packet, Parsed};
use outflow_rtp::{HEADER, PlainHeader};

pub(crate) const BYTES: usize = 1400;

/// RTP video that nothing looks into.
pub(crate) fn format() -> Format {
    Format::Rtp(vec![Track { codec: Codec::Other { video: true }, payload_type: 96, ..Track::mp2t() }])
}

/// Packets whose bytes others hold, too.
fn packets(count: usize) -> Vec<Packet> {
    let packet = |sequence: u16| {
        let header = PlainHeader { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc: 7 };
        let mut bytes = header.emit().to_vec();
        bytes.resize(BYTES, 0x55);
        Packet { bytes: bytes.into(), tag: Tag::default(), arrived: Time::ZERO }
    };
    (0..).take(count).map(packet).collect()
}

/// An element whose function is called, without a graph.
#[derive(Debug)]
pub(crate) struct Alone {
    element: Box<dyn Element>,
    batch: Vec<Item>,
    tally: Tally,
}

impl Alone {
    /// One that the core makes.
    pub(crate) fn new(kind: &str, batch: usize) -> Result<Self> {
        let kind = find(kind).context("there is no such element")?;
        let Make::Core(make) = kind.make else { return Err(anyhow!("the core does not make it")) };
        Self::of(make(&Settings::default())?, &format(), batch_of(batch))
    }

    /// Any, on a batch that it is to leave as it is.
    pub(crate) fn of(mut element: Box<dyn Element>, format: &Format, batch: Vec<Item>) -> Result<Self> {
        element.bind(format)?;
        Ok(Alone { element, batch, tally: Tally::default() })
    }

    pub(crate) fn once(&mut self) -> usize {
        self.element.work(Time::ZERO, black_box(&mut self.batch), &mut self.tally);
        self.batch.len()
    }

    /// What went wrong.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.tally.fault.as_deref()
    }
}

/// A batch of such packets.
pub(crate) fn batch_of(count: usize) -> Vec<Item> {
    let item = |packet| {
        let mut item = Item::empty();
        item.packet = packet;
        item
    };
    packets(count).into_iter().map(item).collect()
}

/// A graph of elements one behind the other.
#[derive(Debug)]
pub(crate) struct Chain {
    graph: Graph,
    packets: Vec<Packet>,
}

impl Chain {
    pub(crate) fn new(kind: &str, elements: usize, batch: usize) -> Result<Self> {
        let mut plan = Plan::default();
        let mut from = Input::source();
        for number in 0..elements {
            let name = format!("e{number}");
            let element = ElementPlan { kind: kind.to_owned(), inputs: vec![from], ..ElementPlan::default() };
            plan.elements.insert(name.clone(), element);
            from = Input::parse(&name);
        }
        plan.branches.insert("out".to_owned(), vec![from]);
        let made = Graph::new(&plan, &mut CoreOnly);
        let mut graph = made.map_err(|(element, unfit)| anyhow!("element '{element}': {unfit}"))?;
        graph.bind(&format());
        graph.set_wanted(0, true);
        Ok(Chain { graph, packets: packets(batch) })
    }

    /// A batch goes in and comes out; timed as the relay times it.
    pub(crate) fn once(&mut self) -> usize {
        for packet in &self.packets {
            let parsed =
                Parsed { packet: packet.clone(), rtp_header: [0; HEADER], preamble: None, found: None };
            self.graph.enter(parsed);
        }
        let mut came = 0;
        self.graph.run(Time::ZERO, Some(monotonic_nanos), &mut |_, _| {}, &mut |_, parsed| {
            black_box(&parsed.packet.bytes);
            came += 1;
        });
        came
    }
}
