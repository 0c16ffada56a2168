//! Images in RTP from GStreamer's payloaders, worked on, and read by its depayloaders: what comes out
//! must be what the same work on the whole image gives.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests drive real programs")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use outflow_graph::{CoreOnly, ElementPlan, Graph, Input, Plan, Setting, Settings};
use outflow_media::image::{Cpu, Pixels, Rect, Shape, ppm};
use outflow_media::jpeg2000::{Header, Selection, select};
use outflow_media::{Codec, Format, Time, Track, image};
use outflow_packet::{Packet, Parsed};
use outflow_rtp::payload::RtpReader;
use tempfile::TempDir;

const WIDTH: usize = 320;
const HEIGHT: usize = 240;
const PART: Rect = Rect { left: 130, top: 70, width: 64, height: 50 };

struct Bench {
    folder: TempDir,
}

impl Bench {
    /// `None`, and a line that says why, if a program is missing.
    fn new(programs: &[&str]) -> Option<Self> {
        for program in programs {
            let found = Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
            if found.is_err() {
                outflow_skip::skipped(
                    "images of GStreamer",
                    format!("{program} is missing: scripts/setup test"),
                );
                return None;
            }
        }
        Some(Bench { folder: tempfile::tempdir().expect("a folder") })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("written");
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let done = Command::new(program).args(arguments).current_dir(self.folder.path()).output();
        let done = done.expect("it starts");
        let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{program} {arguments:?}: {said}");
    }

    /// Runs a pipeline that writes the file `out`, and gives what is in it.
    fn gstreamer(&self, pipeline: &str) -> Vec<u8> {
        let words: Vec<&str> = pipeline.split_whitespace().collect();
        let end = ["!", "filesink", "location=out"];
        // A pipeline that stalls must not stall the test.
        let start = ["20", "gst-launch-1.0", "-q"];
        self.run("timeout", &[&start[..], &words, &end].concat());
        std::fs::read(self.path("out")).expect("written")
    }

    /// Packets of a payloader, each with its length in front (RFC 4571).
    fn packets(&self, pipeline: &str) -> Vec<Vec<u8>> {
        let stream = self.gstreamer(&format!("{pipeline} ! rtpstreampay"));
        let (mut rest, mut packets) = (&stream[..], Vec::new());
        while let Some((length, behind)) = rest.split_first_chunk() {
            let (packet, next) = behind.split_at(u16::from_be_bytes(*length).into());
            packets.push(packet.to_vec());
            rest = next;
        }
        packets
    }

    /// What a depayloader makes of packets that are described like this.
    fn depayloaded(&self, packets: &[Vec<u8>], caps: &str, pipeline: &str) -> Vec<u8> {
        let framed = packets.iter().flat_map(|packet| {
            let length = (packet.len() as u16).to_be_bytes();
            length.into_iter().chain(packet.iter().copied())
        });
        self.write("in.rtp", &framed.collect::<Vec<u8>>());
        let caps = format!("application/x-rtp-stream,media=video,clock-rate=90000,payload=96,{caps}");
        self.gstreamer(&format!("filesrc location=in.rtp ! {caps} ! rtpstreamdepay ! {pipeline}"))
    }

    /// A codestream without loss, of an image with edges and slopes.
    fn codestream(&self) -> Vec<u8> {
        let mut image = Vec::new();
        let shape = Shape { pixels: Pixels::Rgb, width: WIDTH, height: HEIGHT };
        ppm::emit(shape, &mut image).expect("it has such a format");
        for at in 0..WIDTH * HEIGHT {
            let (x, y) = (at % WIDTH, at / WIDTH);
            let edge = if (x / 29 + y / 17) % 2 == 0 { 40 } else { 0 };
            image.extend([x / 2 + edge, y / 2 + edge, (x * y / 97) % 200].map(|value| value as u8));
        }
        self.write("in.ppm", &image);
        let coding = ["-i", "in.ppm", "-o", "in.j2k", "-t", "64,64", "-n", "4", "-r", "20,5,1", "-SOP"];
        self.run("opj_compress", &coding);
        std::fs::read(self.path("in.j2k")).expect("written")
    }
}

/// Sends packets through an element. Returns them and what they are.
fn worked(kind: &str, settings: Settings, track: &Track, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, Track) {
    let element = ElementPlan { kind: kind.to_owned(), settings, ..ElementPlan::default() };
    let plan = Plan {
        elements: [("it".to_owned(), element)].into(),
        branches: [("out".to_owned(), vec![Input::parse("it")])].into(),
    };
    let mut graph = Graph::new(&plan, &mut CoreOnly).expect("it can be made");
    graph.bind(&Format::Rtp(vec![track.clone()]));
    graph.set_wanted(0, true);
    let mut reader = RtpReader::new(0, track);
    for packet in packets {
        let tag = reader.read(packet).expect("RTP");
        let packet = Packet { bytes: packet.clone().into(), tag, arrived: Time::ZERO };
        graph.enter(Parsed { packet, rtp_header: [0; 12], preamble: None, found: None });
    }
    let mut out = Vec::new();
    graph.run(Time::ZERO, None, &mut |_, _| panic!("all is here"), &mut |_, Parsed { packet, .. }| {
        out.push(packet.bytes.to_vec());
    });
    let Ok(Format::Rtp(tracks)) = graph.exit_format(0) else { panic!("{:?}", graph.exit_format(0)) };
    (out, tracks[0].clone())
}

fn track(codec: Codec, encoding: &str, fmtp: String) -> Track {
    Track { codec, encoding: encoding.to_owned(), fmtp, payload_type: 96, ..Track::mp2t() }
}

#[test]
fn codestreams_go_through_from_payloader_to_depayloader() {
    let Some(bench) = Bench::new(&["gst-launch-1.0", "opj_compress"]) else { return };
    let whole = bench.codestream();
    let pay = "filesrc location=in.j2k blocksize=10000000 \
               ! image/x-jpc,width=320,height=240,framerate=1/1,num-components=3,sampling=RGB,\
               colorspace=sRGB,alignment=frame,fields=1 ! rtpj2kpay mtu=1000";
    let packets = bench.packets(&pay.replace(",  ", ","));
    let track = track(Codec::Jpeg2000, "JPEG2000", "sampling=RGB".to_owned());
    let none = Settings::default;
    let all = Selection::default();
    let cases = [
        ("gray", none(), Selection { gray: true, ..all }),
        ("crop", none().with("part", Setting::Part(PART)), Selection { part: Some(PART), ..all }),
        ("shrink", none().with("to", Setting::Dimensions(160, 999)), Selection { halved: 1, ..all }),
    ];
    for (kind, settings, selection) in cases {
        let mut expected = Vec::new();
        let header = select(&whole, &selection, &mut expected).expect("valid");
        let (out, _) = worked(kind, settings, &track, &packets);
        assert!(out.len() < packets.len() && out.iter().all(|packet| packet.len() <= 1000), "{kind}");
        let sampling = if kind == "gray" { "GRAYSCALE" } else { "RGB" };
        let caps = format!("encoding-name=JPEG2000,sampling=(string){sampling}");
        let again = bench.depayloaded(&out, &caps, "rtpj2kdepay");
        assert!(again == expected, "{kind}: {} bytes are not the {} expected", again.len(), expected.len());
        if kind == "crop" {
            // Images that do not begin at 0 of the reference grid stall GStreamer 1.22's decoder;
            // OpenJPEG's own takes them (crates/media/tests/jpeg2000_select.rs).
            continue;
        }
        let decoder = "rtpj2kdepay ! jpeg2000parse ! openjpegdec";
        let pixels = bench.depayloaded(&out, &caps, decoder);
        let (width, height) = all.size(&Header::parse(&expected).expect("valid"));
        let least = width as usize * height as usize * header.components.len();
        assert!(pixels.len() >= least, "{kind}: {} bytes of {width}x{height}", pixels.len());
    }
}

#[test]
fn raw_video_goes_through_from_payloader_to_depayloader() {
    let Some(bench) = Bench::new(&["gst-launch-1.0"]) else { return };
    let cpu = Cpu::detect();
    for (format, pixels, sampling) in [("RGB", Pixels::Rgb, "RGB"), ("UYVY", Pixels::Uyvy, "YCbCr-4:2:2")] {
        let shape = Shape { pixels, width: WIDTH, height: HEIGHT };
        let source = format!(
            "videotestsrc num-buffers=2 pattern=smpte ! \
             video/x-raw,format={format},width={WIDTH},height={HEIGHT},framerate=25/1"
        );
        let frames = bench.gstreamer(&source);
        let packets = bench.packets(&format!("{source} ! rtpvrawpay mtu=1300"));
        let fmtp = format!("sampling={sampling}; depth=8; width={WIDTH}; height={HEIGHT}");
        let track = track(Codec::RawVideo(Some(shape)), "RAW", fmtp);
        for (kind, memory) in ["gray", "crop", "shrink"].iter().flat_map(|k| [(k, "auto"), (k, "gather")]) {
            let mut expected = Vec::new();
            for frame in frames.chunks_exact(shape.bytes()) {
                match *kind {
                    "gray" => {
                        let mut frame = frame.to_vec();
                        image::gray(cpu, pixels, &mut frame);
                        expected.extend(frame);
                    }
                    "crop" => image::crop(shape, frame, PART, &mut expected),
                    _ => drop(image::shrink(cpu, shape, frame, 2, &mut expected)),
                }
            }
            let mut settings = Settings::default().with("memory", Setting::Text(memory.to_owned()));
            match *kind {
                "crop" => settings.set("part", Setting::Part(PART)),
                "shrink" => settings.set("factor", Setting::Whole(2)),
                _ => {}
            }
            let (out, given) = worked(kind, settings, &track, &packets);
            let Codec::RawVideo(Some(Shape { width, height, .. })) = given.codec else { panic!("{given:?}") };
            let caps = format!(
                "encoding-name=RAW,sampling=(string){sampling},depth=(string)8,\
                 width=(string){width},height=(string){height}"
            );
            let again = bench.depayloaded(&out, &caps, "rtpvrawdepay");
            assert!(again == expected, "{kind} {format} {memory}: {} {}", again.len(), expected.len());
        }
    }
}
