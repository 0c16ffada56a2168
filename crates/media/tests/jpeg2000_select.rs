//! Codestreams of OpenJPEG's own encoder, cut down, and read by its decoder: what comes out must be
//! that part of what the whole codestream decodes to.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests drive real programs")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use outflow_media::image::{Pixels, Rect, Shape, ppm};
use outflow_media::jpeg2000::{Header, Selection, select};
use tempfile::TempDir;

const WIDTH: usize = 333;
const HEIGHT: usize = 257;

/// Encoder options: every progression, precincts, code-block styles, markers, tiles, tile-parts.
const CODINGS: [&str; 12] = [
    "",
    "-p RLCP -r 40,20,10,1",
    "-p RPCL -r 30,1 -c [64,64],[64,64],[32,32],[16,16] -SOP -EPH",
    "-p PCRL -r 30,1 -c [128,128],[64,64] -b 16,32",
    "-p CPRL -r 20,1 -c [32,64] -EPH",
    "-t 64,64 -r 20,1",
    "-t 128,96 -p RPCL -n 4 -SOP",
    "-t 128,128 -p CPRL -TP C -r 40,1",
    "-M 1 -r 20,1",
    "-M 4 -r 20,1",
    "-M 5 -p PCRL -r 20,1",
    "-d 13,7 -T 5,3 -t 96,96",
];

struct Bench {
    folder: TempDir,
}

impl Bench {
    /// `None`, and a line that says why, without OpenJPEG.
    fn new() -> Option<Self> {
        if Command::new("opj_compress").arg("-h").stdout(Stdio::null()).status().is_err() {
            let _nobody_reads = writeln!(
                std::io::stderr(),
                "SKIPPED: codestreams of OpenJPEG (opj_compress is missing: scripts/setup test)"
            );
            return None;
        }
        Some(Bench { folder: tempfile::tempdir().expect("a folder") })
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let done = Command::new(program).args(arguments).current_dir(self.folder.path()).output();
        let done = done.expect("it starts");
        let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{program} {arguments:?}: {said}");
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    /// A codestream without loss of an image with edges and slopes, coded so.
    fn encode(&self, coding: &str) -> Vec<u8> {
        let shape = Shape { pixels: Pixels::Rgb, width: WIDTH, height: HEIGHT };
        let mut image = Vec::new();
        ppm::emit(shape, &mut image).expect("it has such a format");
        for at in 0..WIDTH * HEIGHT {
            let (x, y) = (at % WIDTH, at / WIDTH);
            let edge = if (x / 29 + y / 17) % 2 == 0 { 40 } else { 0 };
            image.extend([x / 2 + edge, y / 2 + edge, (x * y / 97) % 200].map(|value| value as u8));
        }
        std::fs::write(self.path("in.ppm"), image).expect("written");
        let mut arguments = vec!["-i", "in.ppm", "-o", "out.j2k"];
        arguments.extend(coding.split_whitespace());
        self.run("opj_compress", &arguments);
        std::fs::read(self.path("out.j2k")).expect("written")
    }

    fn decode(&self, codestream: &[u8], options: &[&str], result: &str) -> (Shape, Vec<u8>) {
        std::fs::write(self.path("in.j2k"), codestream).expect("written");
        self.run("opj_decompress", &[&["-i", "in.j2k", "-o", result][..], options].concat());
        let image = std::fs::read(self.path(result)).expect("written");
        let header = ppm::Header::parse(&image).expect("valid").expect("whole");
        (header.shape, image[header.bytes..].to_vec())
    }
}

fn selected(codestream: &[u8], selection: Selection) -> (Header, Vec<u8>) {
    let mut out = Vec::new();
    let header = select(codestream, &selection, &mut out).unwrap_or_else(|e| panic!("{selection:?}: {e}"));
    (header, out)
}

#[test]
fn with_everything_wanted_everything_is_left() {
    let Some(bench) = Bench::new() else { return };
    for coding in CODINGS {
        let whole = bench.encode(coding);
        let (_, again) = selected(&whole, Selection::default());
        assert!(bench.decode(&again, &[], "a.ppm") == bench.decode(&whole, &[], "b.ppm"), "{coding}");
        assert!(again.len() <= whole.len(), "{coding}: {} of {} bytes", again.len(), whole.len());
    }
}

#[test]
fn fewer_resolutions_are_the_decoder_s_own() {
    let Some(bench) = Bench::new() else { return };
    for coding in CODINGS {
        let whole = bench.encode(coding);
        for halved in [1, 2, 9] {
            let (header, smaller) = selected(&whole, Selection { halved, ..Selection::default() });
            let times = 5.min(Header::parse(&whole).expect("valid").components[0].levels)
                - header.components[0].levels;
            let reduced = bench.decode(&whole, &["-r", &times.to_string()], "b.ppm");
            assert!(bench.decode(&smaller, &[], "a.ppm") == reduced, "{coding}, halved {times} times");
            assert!(times == 0 || smaller.len() < whole.len(), "{coding}");
        }
    }
}

#[test]
fn fewer_layers_are_the_decoder_s_own() {
    let Some(bench) = Bench::new() else { return };
    for coding in CODINGS {
        let whole = bench.encode(coding);
        for layers in [0, 1, 2] {
            let (header, thinner) =
                selected(&whole, Selection { layers: Some(layers), ..Selection::default() });
            let kept = header.layers.to_string();
            let decoded = bench.decode(&whole, &["-l", &kept], "b.ppm");
            assert!(bench.decode(&thinner, &[], "a.ppm") == decoded, "{coding}, {kept} layers");
        }
    }
}

#[test]
fn gray_is_the_luma_of_the_transform() {
    let Some(bench) = Bench::new() else { return };
    for coding in CODINGS {
        let whole = bench.encode(coding);
        let (_, colours) = bench.decode(&whole, &[], "b.ppm");
        let (_, gray) = selected(&whole, Selection { gray: true, ..Selection::default() });
        let (shape, luma) = bench.decode(&gray, &[], "a.pgm");
        assert_eq!((shape.pixels, shape.width, shape.height), (Pixels::Gray, WIDTH, HEIGHT), "{coding}");
        // The reversible transform (T.800, G.2).
        let of = |[r, g, b]: &[u8; 3]| ((u32::from(*r) + 2 * u32::from(*g) + u32::from(*b)) / 4) as u8;
        let expected: Vec<u8> = colours.as_chunks().0.iter().map(of).collect();
        assert!(luma == expected, "{coding}");
    }
}

#[test]
fn a_part_is_that_part_of_the_whole() {
    let Some(bench) = Bench::new() else { return };
    for coding in CODINGS {
        let whole = bench.encode(coding);
        let (shape, all) = bench.decode(&whole, &[], "b.ppm");
        let part = Rect { left: 100, top: 70, width: 120, height: 90 };
        let (_, cut) = selected(&whole, Selection { part: Some(part), ..Selection::default() });
        let (small, pixels) = bench.decode(&cut, &[], "a.ppm");
        let found = (0..=shape.height - small.height)
            .flat_map(|top| (0..=shape.width - small.width).map(move |left| (left, top)))
            .filter(|(left, top)| {
                let covers = *left <= part.left && *top <= part.top;
                covers
                    && left + small.width >= part.left + part.width
                    && top + small.height >= part.top + part.height
            })
            .any(|(left, top)| {
                let rect = Rect { left, top, width: small.width, height: small.height };
                let mut cropped = Vec::new();
                outflow_media::image::crop(shape, &all, rect, &mut cropped);
                cropped == pixels
            });
        assert!(found, "{coding}: {small:?} is no part of it");
        let tiled = coding.contains("-t");
        assert_eq!(cut.len() < whole.len(), tiled, "{coding}: {} of {}", cut.len(), whole.len());
    }
}

#[test]
fn what_is_cut_off_leaves_what_was_there_before() {
    let Some(bench) = Bench::new() else { return };
    let whole = bench.encode("-p LRCP -r 40,20,10,1");
    for part in [3, 5, 9] {
        let (_, rest) = selected(&whole[..whole.len() * part / 10], Selection::default());
        let (shape, _) = bench.decode(&rest, &[], "a.ppm");
        assert_eq!((shape.width, shape.height), (WIDTH, HEIGHT), "{part} tenths");
    }
}

#[test]
fn code_blocks_of_high_throughput_are_refused() {
    let Some(bench) = Bench::new() else { return };
    let mut codestream = bench.encode("");
    let coding = codestream.windows(2).position(|marker| marker == [0xff, 0x52]).expect("a COD marker");
    // Behind the marker, the length, Scod, SGcod, levels and the size of code-blocks (T.800, A.6.1).
    codestream[coding + 12] |= 0x40;
    let refused = Header::parse(&codestream).expect_err("another way to tell lengths");
    assert!(refused.reason.contains("high throughput"), "{refused}");
}
