//! Sources that the relay pulls: the camera's session goes on, on the same connection and sockets.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use outflow_rtp::PlainHeader;
use outflow_rtsp::{
    Decoder, HeaderName, Item, Method, Pair, Request, StatusCode, Transport, encode_response, headers,
    interleaved_prefix, response,
};

use super::{Folder, PROGRAM, Sink, ask, end, wait_until};

/// One audio track, whose packets can be told apart.
const SDP: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=camera\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n\
                   m=audio 0 RTP/AVP 96\r\na=rtpmap:96 opus/48000/2\r\na=control:track\r\n";

const METHODS: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER";

/// The session ends without a sign of life for so long; the relay shows one after half of it.
const TIMEOUT_S: u64 = 2;

/// How far packets are apart.
const EVERY: Duration = Duration::from_millis(5);

/// What a camera was asked: the method and the URL, for each connection.
type Asked = Arc<Mutex<Vec<Vec<(String, String)>>>>;

/// A camera, which knows RTSP as far as the relay asks. Its packets are numbered from 0 in each session.
pub(super) struct Camera {
    pub(super) at: SocketAddr,
    asked: Asked,
}

impl Camera {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (at, asked) = (listener.local_addr().expect("bound"), Asked::default());
        let all = Arc::clone(&asked);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let asked = Arc::clone(&all);
                asked.lock().expect("no panic").push(Vec::new());
                // A relay that has ended is no failure of the camera.
                thread::spawn(move || serve(&connection, &asked));
            }
        });
        Camera { at, asked }
    }

    /// How often it was asked this, in all connections.
    fn times(&self, what: impl Fn(&str, &str) -> bool) -> usize {
        let asked = self.asked.lock().expect("no panic");
        asked.iter().flatten().filter(|(method, url)| what(method, url)).count()
    }

    fn connections(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }
}

fn serve(mut connection: &TcpStream, asked: &Asked) -> io::Result<()> {
    let number = asked.lock().expect("no panic").len() - 1;
    let (mut decoder, mut buffer, mut read) = (Decoder::new(), BytesMut::new(), [0; 4096]);
    let mut to = None;
    loop {
        let request = match decoder.decode(&mut buffer).map_err(io::Error::other)? {
            Some(Item::Request(request)) => request,
            // Reports of the relay stand between its requests.
            Some(_) => continue,
            None => match connection.read(&mut read)? {
                0 => return Ok(()),
                length => {
                    buffer.extend_from_slice(&read[..length]);
                    continue;
                }
            },
        };
        let mut answer = response(StatusCode::Ok)
            .header(headers::CSEQ, header(&request, &headers::CSEQ))
            .header(headers::SESSION, format!("s;timeout={TIMEOUT_S}"));
        let mut body = "";
        match request.method() {
            Method::Options => answer = answer.header(headers::PUBLIC, METHODS),
            Method::Describe => body = SDP,
            Method::Setup => {
                let (way, transport) = set_up(header(&request, &headers::TRANSPORT), connection)?;
                to = Some(way);
                answer = answer.header(headers::TRANSPORT, transport.to_string());
            }
            _ => {}
        }
        let (method, url) = (<&str>::from(request.method()), request.request_uri());
        let url = url.map_or_else(String::new, ToString::to_string);
        asked.lock().expect("no panic")[number].push((method.to_owned(), url));
        let mut bytes = BytesMut::new();
        encode_response(&answer.build(body), &mut bytes);
        // In one piece: packets stand between answers.
        connection.write_all(&bytes)?;
        if *request.method() == Method::Play
            && let Some(to) = to.take()
        {
            thread::spawn(move || send(&to));
        }
    }
}

/// A header of a request; nothing if it has none.
fn header<'a>(request: &'a Request, name: &HeaderName) -> &'a str {
    request.header(name).map_or("", |value| value.as_str())
}

/// How packets get to the relay.
enum Way {
    Udp(UdpSocket, SocketAddr),
    Tcp(TcpStream),
}

/// As the relay asks for it.
fn set_up(transport: &str, connection: &TcpStream) -> io::Result<(Way, Transport)> {
    let mut transport = Transport::parse(transport).ok_or(io::ErrorKind::InvalidData)?;
    let Some(ports) = transport.client_port else {
        return Ok((Way::Tcp(connection.try_clone()?), transport));
    };
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let port = socket.local_addr()?.port();
    transport.server_port = Some(Pair { rtp: port, rtcp: port.wrapping_add(1) });
    let to = SocketAddr::new(connection.peer_addr()?.ip(), ports.rtp);
    Ok((Way::Udp(socket, to), transport))
}

/// Sends packets until the relay has left.
fn send(way: &Way) -> io::Result<()> {
    for number in 0_u32.. {
        let (sequence, timestamp) = (number as u16, 240 * number);
        let header = PlainHeader { marker: false, payload_type: 96, sequence, timestamp, ssrc: 7 };
        // A frame of Opus that is as long as its packet, and its number in it.
        let packet = [&header.emit()[..], &[0x78], &number.to_be_bytes()].concat();
        match way {
            Way::Udp(socket, to) => drop(socket.send_to(&packet, to)?),
            Way::Tcp(connection) => {
                let prefix = interleaved_prefix(0, packet.len() as u16);
                (&*connection).write_all(&[&prefix[..], &packet].concat())?;
            }
        }
        thread::sleep(EVERY);
    }
    Ok(())
}

/// A relay that pulls from a camera, and what its sink gets.
struct Scene {
    relay: Child,
    http: String,
    sink: Sink,
    camera: Camera,
    folder: Folder,
    transport: &'static str,
}

impl Scene {
    fn new(transport: &'static str, ports: &str) -> Self {
        let (sink, camera, folder) = (Sink::new(), Camera::start(), Folder::new());
        let http = configure(&folder, (ports, transport), camera.at, &sink, "yard");
        let relay = folder.relay(PROGRAM).spawn().expect("it can be run");
        wait_until("it does not listen", || TcpStream::connect(&http).is_ok());
        Scene { relay, http, sink, camera, folder, transport }
    }
}

/// Writes the relay's file. Answers where it will listen for HTTP.
fn configure(
    folder: &Folder,
    (ports, transport): (&str, &str),
    camera: SocketAddr,
    sink: &Sink,
    path: &str,
) -> String {
    let to = sink.at();
    let source = format!("source = \"rtsp://{camera}/{path}\"\ntransport = \"{transport}\"");
    let sinks = format!("[[sinks]]\nstream = \"cam\"\nto = \"rtp://{to}\"\n");
    folder.configure(&format!("rtp_ports = \"{ports}\""), &format!("[streams.cam]\n{source}\n{sinks}"))
}

#[test]
fn a_camera_notices_nothing_of_an_upgrade_and_no_packet_of_it_is_missing() {
    for (transport, ports) in [("tcp", "47400-47449"), ("udp", "47450-47499")] {
        let mut scene = Scene::new(transport, ports);
        scene.sink.go_on("the start");
        for upgrade in ["an upgrade", "another one"] {
            assert_eq!(ask(&scene.http, "POST /api/v1/upgrade"), Some(200));
            scene.sink.go_on(&format!("{upgrade}, by {transport}"));
        }
        assert!(scene.relay.wait().expect("it ends").success());
        let sign = |method: &str, _: &str| method == "GET_PARAMETER";
        let before = scene.camera.times(sign);
        wait_until("it shows no sign of life", || scene.camera.times(sign) > before);
        assert_eq!(scene.camera.connections(), 1, "{transport}");
        assert_eq!(scene.camera.times(|method, _| method == "TEARDOWN"), 0, "{transport}");
        end(&scene.folder.file());
    }
}

#[test]
fn a_source_that_is_another_one_since_begins_again() {
    let mut scene = Scene::new("tcp", "47500-47549");
    scene.sink.go_on("the start");
    let ports = ("47500-47549", scene.transport);
    let http = configure(&scene.folder, ports, scene.camera.at, &scene.sink, "gate");
    assert_eq!(ask(&scene.http, "POST /api/v1/upgrade"), Some(200));
    wait_until("it is not pulled", || {
        scene.camera.times(|method, url| method == "PLAY" && url.contains("/gate")) == 1
    });
    assert_eq!(scene.camera.connections(), 2);
    wait_until("it does not listen", || ask(&http, "GET /readyz") == Some(200));
    end(&scene.folder.file());
}
