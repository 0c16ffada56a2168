//! Catches what programs send as RTP on loopback.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use outflow_media::{Time, Track};
use outflow_rtp::sdp;

/// A datagram as it came.
pub(crate) struct Received {
    pub(crate) track: u8,
    pub(crate) control: bool,
    pub(crate) at: Time,
    pub(crate) data: Bytes,
}

/// Sockets on loopback for the RTP and RTCP of one track.
pub(crate) struct Ports {
    rtp: UdpSocket,
    rtcp: UdpSocket,
}

impl Ports {
    pub(crate) fn bind() -> Ports {
        for _ in 0..100 {
            let rtp = UdpSocket::bind("127.0.0.1:0").expect("a port");
            let port = rtp.local_addr().expect("its address").port();
            if let Some(next) = port.checked_add(1).filter(|_| port.is_multiple_of(2))
                && let Ok(rtcp) = UdpSocket::bind(("127.0.0.1", next))
            {
                rtp.set_nonblocking(true).expect("non-blocking");
                rtcp.set_nonblocking(true).expect("non-blocking");
                return Ports { rtp, rtcp };
            }
        }
        panic!("no pair of ports is free");
    }

    pub(crate) fn port(&self) -> u16 {
        self.rtp.local_addr().expect("its address").port()
    }
}

/// Whether ffmpeg is there; says so if it is not.
pub(crate) fn has_ffmpeg() -> bool {
    let found = Command::new("ffmpeg").arg("-version").output().is_ok();
    if !found {
        outflow_skip::skipped("a test with RTP of ffmpeg", "ffmpeg is missing");
    }
    found
}

/// Runs ffmpeg with these inputs, as fast as they are played, and one RTP output for each of
/// `codecs`; gives what it described and sent.
pub(crate) fn send(inputs: &[&str], codecs: &[&[&str]]) -> (Vec<Track>, Vec<Received>) {
    let ports: Vec<Ports> = codecs.iter().map(|_| Ports::bind()).collect();
    let mut command = Command::new("ffmpeg");
    command.args(["-loglevel", "error"]).args(inputs);
    for (codec, ports) in codecs.iter().zip(&ports) {
        command.args(*codec).args(["-f", "rtp", &format!("rtp://127.0.0.1:{}", ports.port())]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut ffmpeg = command.spawn().expect("ffmpeg starts");
    let received = receive(&mut ffmpeg, &ports);
    let mut described = String::new();
    let mut stdout = ffmpeg.stdout.take().expect("piped");
    stdout.read_to_string(&mut described).expect("what ffmpeg described");
    let start = described.find("v=0").expect("a description");
    let description = sdp::parse(&described.as_bytes()[start..]).expect("a description that can be read");
    (description.media.into_iter().map(|media| media.track).collect(), received)
}

/// What comes until the program ends.
pub(crate) fn receive(program: &mut Child, ports: &[Ports]) -> Vec<Received> {
    let began = Instant::now();
    let mut received = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let ended = program.try_wait().expect("its state").is_some();
        for (track, ports) in (0..).zip(ports) {
            for (socket, control) in [(&ports.rtp, false), (&ports.rtcp, true)] {
                while let Ok(length) = socket.recv(&mut buffer) {
                    let at = Time::from_micros(began.elapsed().as_micros() as u64);
                    let data = Bytes::copy_from_slice(&buffer[..length]);
                    received.push(Received { track, control, at, data });
                }
            }
        }
        if ended {
            return received;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Gives the stream to a program, and returns what it says on standard output and error.
pub(crate) fn run(program: &str, arguments: &[&str], stream: &[u8]) -> (String, String) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let stream = stream.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&stream));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends").expect("all is read");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    assert!(output.status.success(), "{}", text(output.stderr));
    (text(output.stdout), text(output.stderr))
}
