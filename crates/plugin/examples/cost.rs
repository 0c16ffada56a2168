//! What plug-ins cost: nanoseconds a packet of 1400 bytes of a plug-in that does nothing, and images
//! made gray by one in C and by the relay itself. Prints what it finds; say a .wasm file of the
//! latter as its argument.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use outflow_media::image::{Cpu, Pixels, Shape, gray, ppm};
use outflow_media::{Codec, Format, Track};
use outflow_relay::graph::{Item, Setting, Settings, Tally};

/// A plug-in that wants to see `see` (0 nothing, 2 all) and answers "pass", or names every packet.
fn empty(see: u32, names: bool) -> String {
    let answer = if names { NAMES } else { "(i32.store8 (i32.const 4096) (i32.const 0)) (i32.const 4096)" };
    format!(
        r#"(module
        (memory (export "memory") 16)
        (global $top (mut i32) (i32.const 65536))
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
            (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
            (global.set $top (i32.add (local.get $at) (local.get 3)))
            (local.get $at))
        (func (export "outflow:plugin/element@1.0.0#init") (param i32 i32 i32 i32 i32) (result i32)
            (i32.store8 (i32.const 1024) (i32.const 0))
            (i32.store8 (i32.const 1028) (i32.const {see}))
            (i32.const 1024))
        (func (export "cabi_post_outflow:plugin/element@1.0.0#work") (param i32)
            (global.set $top (i32.const 65536)))
        (func (export "outflow:plugin/element@1.0.0#work")
            (param $p i32) (param $n i32) (param $b i32) (param $l i32) (result i32)
            (local $i i32) (local $at i32) {answer}))"#
    )
}

const NAMES: &str = "
    (loop $next
        (local.set $at (i32.add (i32.const 8192) (i32.mul (local.get $i) (i32.const 24))))
        (i32.store (local.get $at) (local.get $i))
        (i32.store8 offset=4 (local.get $at) (i32.const 1))
        (i32.store8 offset=8 (local.get $at) (i32.const 0))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
    (i32.store8 (i32.const 4096) (i32.const 1))
    (i32.store (i32.const 4100) (i32.const 8192))
    (i32.store (i32.const 4104) (local.get $n))
    (i32.store (i32.const 4108) (i32.const 0))
    (i32.store (i32.const 4112) (i32.const 0))
    (i32.const 4096)";

fn packet(bytes: Bytes) -> Item {
    let mut item = Item::empty();
    item.packet.bytes = bytes;
    item
}

/// Nanoseconds a run, the least of several goes.
fn least(mut run: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..20 {
        let (began, mut runs) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_millis(50) {
            run();
            runs += 1;
        }
        best = best.min(began.elapsed().as_nanos() as f64 / f64::from(runs));
    }
    best
}

fn packets() -> Result<(), Box<dyn core::error::Error>> {
    let mut body = vec![0x55; 1400];
    body[0] = 0x80;
    let format = Format::Rtp(vec![Track { codec: Codec::Other { video: true }, ..Track::mp2t() }]);
    for (words, see, names) in
        [("sees nothing, passes", 0, false), ("sees all, passes", 2, false), ("sees all, names", 2, true)]
    {
        for size in [1_usize, 8, 32, 64] {
            let code = wat::parse_str(empty(see, names))?;
            let mut element = outflow_plugin::load(&Settings::default(), &code)?;
            element.bind(&format)?;
            let mut tally = Tally::default();
            let mut batch: Vec<Item> = (0..size).map(|_| packet(Bytes::from(body.clone()))).collect();
            let nanos = least(|| element.work(outflow_media::Time::ZERO, &mut batch, &mut tally));
            assert!(batch.len() == size && tally.faults == 0, "{:?}", tally.fault);
            println!("{words}: batches of {size}: {:.0} ns a packet", nanos / size as f64);
        }
    }
    Ok(())
}

fn images(code: &[u8]) -> Result<(), Box<dyn core::error::Error>> {
    let cpu = Cpu::detect();
    for (width, height) in [(640, 360), (1280, 720), (1920, 1080)] {
        let shape = Shape { pixels: Pixels::Rgb, width, height };
        let mut image = Vec::new();
        ppm::emit(shape, &mut image).ok_or("no PPM")?;
        let header = image.len();
        image.extend((0..shape.bytes()).map(|index| (index * 7919 % 251) as u8));
        let mut native = image.clone();
        let native_ns = least(|| gray(cpu, Pixels::Rgb, &mut native[header..]));
        let settings = Settings::default().with("memory", Setting::Size(64 << 20));
        let mut element = outflow_plugin::load(&settings, code)?;
        element.bind(&Format::Images)?;
        let (mut tally, mut batch) = (Tally::default(), vec![packet(Bytes::from(image))]);
        let plugin_ns = least(|| element.work(outflow_media::Time::ZERO, &mut batch, &mut tally));
        assert!(tally.faults == 0, "{:?}", tally.fault);
        assert!(batch[0].packet.bytes[..] == native[..], "both make the same");
        println!(
            "{width}x{height}: native {:.0} µs, plug-in {:.0} µs: {:.2} times",
            native_ns / 1000.0,
            plugin_ns / 1000.0,
            plugin_ns / native_ns
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    packets()?;
    match std::env::args().nth(1) {
        Some(file) => images(&std::fs::read(file)?),
        None => Ok(()),
    }
}
