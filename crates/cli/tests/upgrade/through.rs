//! What goes on through the old process: it decrypts and encrypts, until that is over.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use super::{Folder, PROGRAM, ask, end, free_address, relays_of, wait_until};

/// What a client has to get to show that it goes on; a second or two of the demo.
const SOME: u64 = 100_000;

/// The length of a packet of a transport stream, and its first byte.
const PACKET: (usize, u8) = (188, 0x47);

/// A certificate and its key, and what the configuration says of them.
fn make_certificate(folder: &Folder) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.of("cert.pem"), folder.of("key.pem"));
    fs::write(&certificate, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n")
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

#[test]
fn a_download_by_https_goes_on_through_the_old_process_which_ends_with_it() {
    if Command::new("curl").arg("-V").output().is_err() {
        return outflow_skip::skipped("a download by HTTPS goes on", "curl is missing");
    }
    let (folder, https) = (Folder::new(), free_address());
    let listen = format!("rtp_ports = \"47300-47399\"\nhttps = \"{https}\"");
    let streams = "[streams.demo]\nsource = \"demo://\"\n".to_owned();
    let http = folder.configure(&listen, &(streams + &make_certificate(&folder)));
    let mut relay = folder.relay(PROGRAM).spawn().expect("it can be run");
    wait_until("it does not listen", || TcpStream::connect(&https).is_ok());
    wait_until("it is not ready", || ask(&http, "GET /readyz") == Some(200));
    let got = folder.of("got.ts");
    let mut client = Command::new("curl");
    client.args(["--insecure", "--silent", "--no-buffer", "--output"]).arg(&got);
    let mut client = client.arg(format!("https://{https}/demo.ts")).spawn().expect("it can be run");
    wait_until("nothing comes", || length(&got) > SOME);

    assert_eq!(ask(&http, "POST /api/v1/upgrade"), Some(200));
    let before = length(&got);
    wait_until("nothing comes any more", || length(&got) > before + SOME);
    assert!(relay.try_wait().expect("it is this one's child").is_none(), "it has ended too soon");
    assert_eq!(relays_of(&folder.file()).len(), 2);

    client.kill().expect("it is this one's child");
    client.wait().expect("it ends");
    assert!(relay.wait().expect("it ends").success());
    let bytes = fs::read(&got).expect("written");
    assert!(bytes.chunks(PACKET.0).all(|packet| packet[0] == PACKET.1), "packets are cut");
    end(&folder.file());
}
