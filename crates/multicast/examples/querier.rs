//! The querier of some interfaces: prints what is wanted there, and where packets go.
//!
//! `querier [-6] [--proxy NAME] [--dvmrp NAME]… [--table NUMBER] [--quick] NAME…`; `--quick` asks every 2 s. With
//! `--dvmrp`, neighbours may be there, beside hosts or without. `-6` is of IPv6, by MLD.

use std::time::Duration;

use outflow_multicast::{Downstream, Event, Interface, Multicast, Neighbours, Options};
use outflow_routing::membership::Family;

/// What the command line says.
#[derive(Default)]
struct Arguments {
    proxy: Option<String>,
    dvmrp: Vec<String>,
    options: Options,
    is_quick: bool,
    names: Vec<String>,
}

fn arguments() -> Result<Arguments, Box<dyn std::error::Error>> {
    let mut said = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--proxy" => said.proxy = words.next(),
            "--dvmrp" => said.dvmrp.extend(words.next()),
            "--table" => said.options.table = words.next().map(|number| number.parse()).transpose()?,
            "-6" => said.options.family = Family::V6,
            "--quick" => said.is_quick = true,
            _ => said.names.push(word),
        }
    }
    if said.names.is_empty() && said.dvmrp.is_empty() {
        return Err("name the interfaces that hosts are on: querier [--proxy NAME] [--quick] NAME…".into());
    }
    Ok(said)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = arguments()?;
    let family = arguments.options.family;
    let (multicast, mut events) = Multicast::start(arguments.options, outflow_multicast::open_filter())?;
    for name in &arguments.names {
        let mut downstream = Downstream::new(Interface::find(family, name)?);
        if arguments.is_quick {
            downstream.settings.query_interval = Duration::from_secs(2);
            downstream.settings.query_response = Duration::from_secs(1);
            downstream.settings.last_member_interval = Duration::from_millis(500);
        }
        for warning in multicast.add(downstream).await? {
            eprintln!("{warning}");
        }
    }
    for name in &arguments.dvmrp {
        for warning in multicast.add_neighbours(Neighbours::new(Interface::find(family, name)?)).await? {
            eprintln!("{warning}");
        }
    }
    if let Some(name) = &arguments.proxy {
        for warning in multicast.set_upstream(Some(Interface::find(family, name)?)).await? {
            eprintln!("{warning}");
        }
    }
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => show(&event),
                None => return Ok(()),
            },
            end = tokio::signal::ctrl_c() => {
                end?;
                let snapshot = multicast.snapshot().await?;
                println!("{:?}\n{:?}", snapshot.counts, snapshot.dvmrp);
                return Ok(());
            }
        }
    }
}

fn show(event: &Event) {
    match event {
        Event::Wanted { interface, group, wanted } => println!(
            "{interface}: {group} is wanted, level {}, {:?} {:?}",
            wanted.level.number(),
            wanted.mode,
            wanted.sources
        ),
        Event::Gone { interface, group } => println!("{interface}: {group} is no longer wanted"),
        Event::Querier { interface, querier, is_self } => {
            println!("{interface}: {querier} asks{}", if *is_self { ", which is this router" } else { "" });
        }
        Event::Flow(flow) => println!(
            "{} to {} from {}: by the kernel to {:?}, in user space to {:?} whole and {:?}, by the relay to {:?}",
            flow.source, flow.group, flow.from, flow.by_kernel, flow.by_user, flow.thinned, flow.by_relay
        ),
        Event::OwnFlow(flow) => println!("{}: to be sent from {} by {:?}", flow.group, flow.source, flow.by),
        Event::FlowGone { source, group } => println!("{source} to {group} is over"),
        Event::NeighbourUp { interface, neighbour } => println!("{interface}: {neighbour} is a neighbour"),
        Event::NeighbourDown { interface, neighbour } => println!("{interface}: {neighbour} is gone"),
        Event::NeighbourRestarted { interface, neighbour } => {
            println!("{interface}: {neighbour} was restarted");
        }
        Event::InterfaceGone { interface } => println!("{interface} is gone"),
        Event::InterfaceBack { interface, address } => println!("{interface} is back as {address}"),
        Event::Missed(count) => println!("{count} events were not read in time"),
    }
}
