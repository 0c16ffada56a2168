//! The examples do what they say: as they were built beforehand, and built from their sources where
//! there are tools for it.

#![allow(clippy::disallowed_methods, reason = "it builds and reads files")]

use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use outflow_graph::{Element, Item, Setting, Settings, Tally};
use outflow_media::image::{Cpu, Pixels, Shape, gray, ppm};
use outflow_media::{Codec, Format, Kind, Tag, Time, Track};
use outflow_plugin::{Lang, scaffold};
use outflow_rtp::{PlainHeader, RtpHeader};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins")
}

fn prebuilt(name: &str) -> Vec<u8> {
    std::fs::read(folder().join("prebuilt").join(name)).expect("it is part of the sources")
}

/// Which tool that sources in this language need is not here, if one is not. With all of them here, whatever fails
/// is a failure.
fn missing(lang: Lang) -> Option<&'static str> {
    let probes: &[&str] = match lang {
        Lang::C => &["command -v make", "command -v cc", "command -v clang", "command -v wasm-ld"],
        // 1.24 or newer: elements are reactors.
        Lang::Go => &["command -v go", "GOTOOLCHAIN=local go version | grep -Eq 'go1\\.(2[4-9]|[3-9][0-9])'"],
        Lang::Js => &["command -v npm"],
        Lang::Rust => &[
            "command -v cargo",
            "command -v rustup",
            "test -d \"$(rustc --print target-libdir --target wasm32-unknown-unknown)\"",
        ],
    };
    probes.iter().copied().find(|probe| !is_true(probe))
}

fn is_true(probe: &str) -> bool {
    Command::new("sh").args(["-c", probe]).output().is_ok_and(|output| output.status.success())
}

/// Says so, if sources in this language cannot be built here.
fn is_skipped(what: &str, lang: Lang) -> bool {
    let missing = missing(lang);
    if let Some(probe) = missing {
        outflow_skip::skipped(&format!("{what} from its source"), format!("`{probe}` fails"));
    }
    missing.is_some()
}

/// What comes of a command in the folder of an example.
fn built(example: &str, program: &str, arguments: &[&str], out: &Path) -> Vec<u8> {
    let mut command = Command::new(program);
    command.current_dir(folder().join(example)).args(arguments).env("GOOS", "wasip1").env("GOARCH", "wasm");
    does(example, &mut command);
    std::fs::read(out).expect("it was built")
}

/// A command does what it should.
fn does(what: &str, command: &mut Command) {
    // Those of the package that is tested are none of its business.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    let output = command.output().unwrap_or_else(|error| panic!("{what}: {command:?}: {error}"));
    let [said, printed] = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{what}: {command:?}: {}: {said}{printed}", output.status);
}

fn element(code: &[u8], config: &str, format: &Format) -> Box<dyn Element> {
    let settings = Settings::default()
        .with("config", Setting::Text(config.to_owned()))
        .with("memory", Setting::Size(64 << 20));
    let mut element = outflow_plugin::load(&settings, code).expect("it is an element");
    assert_eq!(element.bind(format).as_ref(), Ok(format));
    element
}

fn video() -> Track {
    Track { codec: Codec::Other { video: true }, ..Track::mp2t() }
}

fn packet(track: u8, frame: u32, kind: Kind) -> Item {
    let header =
        PlainHeader { marker: true, payload_type: 96, sequence: frame as u16, timestamp: 0, ssrc: 7 };
    let mut item = Item::empty();
    item.packet.bytes = Bytes::from([&header.emit()[..], b"body"].concat());
    item.packet.tag =
        Tag { frame, track, kind, key: kind == Kind::Intra, first: true, last: true, ..Tag::default() };
    item
}

fn run(element: &mut dyn Element, mut batch: Vec<Item>) -> Vec<Item> {
    let mut tally = Tally::default();
    element.work(Time::from_millis(1), &mut batch, &mut tally);
    assert_eq!(tally.fault, None);
    batch
}

fn marks(code: &[u8]) {
    let mut element = element(code, "outflow", &Format::Rtp(vec![video()]));
    let out = run(&mut *element, vec![packet(0, 0, Kind::Intra), packet(0, 1, Kind::Predicted)]);
    let marked = RtpHeader::new_checked(&out[0].packet.bytes).expect("it is RTP");
    assert_eq!((marked.payload(), out[1].packet.bytes.len()), (&b"body"[..], 16));
    let extensions: Vec<_> = marked.extensions().map(|extension| extension.data.to_vec()).collect();
    assert_eq!(extensions, [b"outflow".to_vec()]);
}

#[test]
fn a_watermark_in_rust_is_found_again() {
    marks(&prebuilt("watermark.wasm"));
    if is_skipped("watermark", Lang::Rust) {
        return;
    }
    let target = folder().join("watermark/target/wasm32-unknown-unknown/release/watermark.wasm");
    let arguments = ["build", "--release", "--locked", "--target", "wasm32-unknown-unknown"];
    marks(&built("watermark", "cargo", &arguments, &target));
}

#[test]
fn a_thinner_in_go_lets_key_frames_through() {
    if is_skipped("thinner", Lang::Go) {
        return;
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    let name = file.path().to_str().expect("a name");
    let arguments = ["build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", name, "./plugin"];
    let code = built("thinner", "go", &arguments, file.path());
    let sound = Track { codec: Codec::Opus, ..video() };
    let mut element = element(&code, "key-frames every=2", &Format::Rtp(vec![video(), sound]));
    let frames = (0..12_u32).flat_map(|frame| {
        let kind = if frame % 3 == 0 { Kind::Intra } else { Kind::Predicted };
        [packet(0, frame, kind), packet(1, frame, Kind::Data)]
    });
    let out = run(&mut *element, frames.collect());
    let of = |track| {
        let track = out.iter().filter(move |item| item.packet.tag.track == track);
        track.map(|item| item.packet.tag.frame).collect::<Vec<_>>()
    };
    assert_eq!((of(0), of(1)), (vec![0, 6], (0..12).collect()));
    // Go collects its garbage now and then; that must not be the end of it.
    for frame in 0..20_000 {
        run(&mut *element, vec![packet(1, frame, Kind::Data)]);
    }
}

fn makes_gray(code: &[u8]) {
    let mut element = element(code, "", &Format::Images);
    for (width, height) in [(1, 1), (17, 3), (160, 120), (641, 361)] {
        let shape = Shape { pixels: Pixels::Rgb, width, height };
        let mut image = Vec::new();
        ppm::emit(shape, &mut image).expect("it is a PPM");
        let header = image.len();
        image.extend((0..shape.bytes()).map(|index| (index * 7919 % 251) as u8));
        let mut item = Item::empty();
        item.packet.bytes = Bytes::from(image.clone());
        let out = run(&mut *element, vec![item]);
        gray(Cpu::detect(), Pixels::Rgb, &mut image[header..]);
        assert!(out[0].packet.bytes[..] == image[..], "{width}x{height}");
    }
}

#[test]
fn gray_in_c_is_the_relays_own() {
    makes_gray(&prebuilt("gray.wasm"));
    if !is_skipped("gray", Lang::C) {
        makes_gray(&built("gray", "make", &["-s", "-B"], &folder().join("gray/gray.wasm")));
    }
}

/// What its README says, and what comes of that; JavaScript's tools are more than a test should download.
#[test]
fn a_project_that_was_begun_builds_passes_its_test_and_runs() {
    for lang in [Lang::C, Lang::Go, Lang::Rust] {
        let what = format!("a project in {}", lang.as_str());
        if is_skipped(&what, lang) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        scaffold("my-element", lang, folder.path()).expect("it can be written");
        let readme = std::fs::read_to_string(folder.path().join("README.md")).expect("it was written");
        let commands: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        assert!(commands.len() > 1, "{readme}");
        for line in commands {
            does(&what, Command::new("sh").current_dir(folder.path()).args(["-c", line]));
        }
        let place = match lang {
            Lang::Rust => "target/wasm32-unknown-unknown/release/my_element.wasm",
            _ => "my-element.wasm",
        };
        let code = std::fs::read(folder.path().join(place)).expect("it was built");
        let mut element = element(&code, "", &Format::Rtp(vec![video()]));
        let kinds = [Kind::Intra, Kind::Bidirectional, Kind::Predicted];
        let frames = (0..).zip(kinds).map(|(frame, kind)| packet(0, frame, kind)).collect();
        let out = run(&mut *element, frames);
        let left: Vec<u32> = out.iter().map(|item| item.packet.tag.frame).collect();
        assert_eq!(left, [0, 2], "{lang:?}");
    }
}
