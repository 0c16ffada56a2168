//! Loads a .wasm file as an element and says what it is: FILE [CONFIG].

#![allow(clippy::disallowed_methods, reason = "it reads a file and measures")]

use outflow_media::{Codec, Format, Track};
use outflow_relay::graph::{Item, Setting, Settings, Tally};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let code = std::fs::read(arguments.next().ok_or("say FILE [CONFIG]")?)?;
    let settings = Settings::default()
        .with("config", Setting::Text(arguments.next().unwrap_or_default()))
        .with("memory", Setting::Size(256 << 20));
    let began = std::time::Instant::now();
    let mut element = outflow_plugin::load(&settings, &code)?;
    println!("loaded in {} ms", began.elapsed().as_millis());
    let began = std::time::Instant::now();
    element.bind(&Format::Rtp(vec![Track { codec: Codec::Other { video: true }, ..Track::mp2t() }]))?;
    println!("started in {} µs", began.elapsed().as_micros());
    let mut item = Item::empty();
    item.packet.bytes = bytes::Bytes::from(vec![0x80; 1400]);
    let (mut tally, rounds) = (Tally::default(), 1000);
    let began = std::time::Instant::now();
    for _ in 0..rounds {
        element.work(outflow_media::Time::from_millis(1), &mut vec![item.clone(); 32], &mut tally);
    }
    println!("{} ns a packet in batches of 32", began.elapsed().as_nanos() / (32 * rounds));
    println!("{} bytes of memory; faults: {:?}", tally.memory_bytes, tally.fault);
    Ok(())
}
