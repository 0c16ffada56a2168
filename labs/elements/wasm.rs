//! Elements in WebAssembly: one that looks at what the relay knows of packets, one that reads all of
//! their bytes, and one that makes images gray.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use outflow_graph::{Item, Setting, Settings, Tally};
use outflow_media::image::{Cpu, Pixels, Shape, gray, ppm};
use outflow_media::{Format, Time};

use super::chain::{Alone, batch_of, format};

/// Looks at the kind of each packet, and lets all pass if there is none that nothing else needs.
const TAGS: &str = "
    (loop $next
        (if (i32.eq (i32.load8_u offset=25 (local.get $p)) (i32.const 3)) (then (unreachable)))
        (local.set $p (i32.add (local.get $p) (i32.const 32)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $next (local.get $n)))";
/// Adds up all bytes, 64 at a time as compilers do it.
const PAYLOAD: &str = "
    (local.set $n (i32.add (local.get $b) (i32.and (local.get $l) (i32.const -64))))
    (loop $next
        (local.set $sum (i64x2.add (local.get $sum) (i64x2.add
            (i64x2.add (v128.load (local.get $b)) (v128.load offset=16 (local.get $b)))
            (i64x2.add (v128.load offset=32 (local.get $b)) (v128.load offset=48 (local.get $b))))))
        (local.set $b (i32.add (local.get $b) (i32.const 64)))
        (br_if $next (i32.lt_u (local.get $b) (local.get $n))))
    (v128.store (i32.const 2048) (local.get $sum))";

/// How much of packets a plug-in sees, as its contract counts it.
const NOTHING: u32 = 0;
const ALL: u32 = 2;

/// A plug-in that does this, and lets everything pass.
fn plugin(see: u32, work: &str) -> Result<Vec<u8>> {
    let text = format!(
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
            (param $p i32) (param $n i32) (param $b i32) (param $l i32) (result i32) (local $sum v128)
            {work}
            (i32.store8 (i32.const 4096) (i32.const 0))
            (i32.const 4096)))"#
    );
    wat::parse_str(text).context("the plug-in is no WebAssembly")
}

/// A plug-in at work on such packets.
fn alone(see: u32, work: &str, batch: usize) -> Result<Alone> {
    let element = outflow_plugin::load(&Settings::default(), &plugin(see, work)?)?;
    let mut alone = Alone::of(element, &format(), batch_of(batch))?;
    let left = alone.once();
    ensure!(left == batch && alone.fault().is_none(), "it does not work: {:?}", alone.fault());
    Ok(alone)
}

/// One that looks at tags alone.
pub(crate) fn tags(batch: usize) -> Result<Alone> {
    alone(NOTHING, TAGS, batch)
}

/// One that reads everything.
pub(crate) fn payload(batch: usize) -> Result<Alone> {
    alone(ALL, PAYLOAD, batch)
}

const IMAGE: Shape = Shape { pixels: Pixels::Rgb, width: 1280, height: 720 };

fn image() -> Result<(Vec<u8>, usize)> {
    let mut image = Vec::new();
    ppm::emit(IMAGE, &mut image).context("no such format")?;
    let header = image.len();
    image.extend((0..IMAGE.bytes()).map(|at| (at * 7919 % 251) as u8));
    Ok((image, header))
}

/// Makes an image gray in place, by the relay's own function.
pub(crate) fn gray_native() -> Result<impl FnMut() -> usize> {
    let ((mut image, header), cpu) = (image()?, Cpu::detect());
    Ok(move || {
        gray(cpu, Pixels::Rgb, black_box(&mut image[header..]));
        1
    })
}

/// The same by the plug-in of the examples, as it was built beforehand.
pub(crate) fn gray_wasm() -> Result<impl FnMut() -> usize> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/plugins/prebuilt/gray.wasm");
    let code = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let settings = Settings::default().with("memory", Setting::Size(64 << 20));
    let mut element = outflow_plugin::load(&settings, &code)?;
    element.bind(&Format::Images)?;
    let ((image, header), mut tally) = (image()?, Tally::default());
    let mut expected = image.clone();
    gray(Cpu::detect(), Pixels::Rgb, &mut expected[header..]);
    let mut item = Item::empty();
    item.packet.bytes = image.into();
    let mut batch = vec![item];
    element.work(Time::ZERO, &mut batch, &mut tally);
    ensure!(tally.fault.is_none(), "it does not work: {:?}", tally.fault);
    ensure!(batch.iter().all(|item| item.packet.bytes == expected), "it makes something else");
    Ok(move || {
        element.work(Time::ZERO, black_box(&mut batch), &mut tally);
        batch.len()
    })
}
