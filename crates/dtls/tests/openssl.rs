//! A peer of OpenSSL's agrees on the same keys as the relay's end.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test with a program beside it")]

use std::io::{ErrorKind, Write as _};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outflow_dtls::{Agreed, Clock, Fingerprint, Identity, Output, Scratch, Server, Settings};
use outflow_media::Time;
use outflow_srtp::{Halves, Opener, Profile, Sealer};

/// Serves one peer until it has gone. Answers what was agreed on.
fn serve(socket: &UdpSocket, theirs: Fingerprint) -> Option<Agreed> {
    let began = Instant::now();
    let now = || Time::ZERO + began.elapsed();
    let settings = Settings::new().expect("it works");
    let ours = Identity::generate().expect("a certificate");
    let mut server = Server::new(now(), Clock(began), &settings, &ours, vec![theirs]);
    let (mut scratch, mut bytes, mut agreed) = (Scratch::default(), [0; 2048], None);
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let mut peer = None;
    while began.elapsed() < Duration::from_secs(30) {
        match socket.recv_from(&mut bytes) {
            Ok((length, from)) => {
                peer = Some(from);
                let _ignored = server.handle_datagram(now(), &bytes[..length], &mut scratch);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                server.handle_timeout(now(), &mut scratch);
            }
            Err(error) => panic!("{error}"),
        }
        loop {
            match server.poll() {
                Output::Send(datagram) => {
                    socket.send_to(&datagram, peer.expect("peers begin")).expect("sent");
                }
                Output::Agreed(keys) => agreed = Some(keys),
                Output::Ended(_) => return agreed,
                Output::Wait(_) => break,
            }
        }
    }
    agreed
}

/// Text in which there are the lines of what OpenSSL reads.
fn pem(kind: &str, der: &[u8]) -> String {
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(der))
}

/// Behind a line of `s_client` that begins like that.
fn said<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(begin)).map(str::trim)
}

#[test]
fn a_peer_of_openssl_has_the_same_keys() {
    if outflow_skip::program("openssl").is_none() {
        return outflow_skip::skipped("DTLS of OpenSSL", "openssl is missing: scripts/setup test");
    }
    let peer = Identity::generate().expect("a certificate");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = pem("CERTIFICATE", peer.certificate()) + &pem("PRIVATE KEY", peer.key());
    file.as_file().write_all(text.as_bytes()).expect("written");
    for (name, profile) in [
        ("SRTP_AEAD_AES_128_GCM", Profile::AeadAes128Gcm),
        ("SRTP_AEAD_AES_256_GCM", Profile::AeadAes256Gcm),
        ("SRTP_AES128_CM_SHA1_80", Profile::Aes128CmSha1),
    ] {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let to = socket.local_addr().expect("an address").to_string();
        let mut program = Command::new("openssl");
        program.args(["s_client", "-dtls1_2", "-connect", &to, "-use_srtp", name, "-keymatexport"]);
        program.args(["EXTRACTOR-dtls_srtp", "-keymatexportlen", &Halves::bytes(profile).to_string()]);
        let keys = file.path().to_str().expect("a path");
        program.args(["-cert", keys, "-key", keys]).stdin(Stdio::null());
        let program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let agreed = serve(&socket, peer.fingerprint());
        let output = program.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout);
        let why = || format!("{name}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        let agreed = agreed.unwrap_or_else(|| panic!("{}", why()));
        assert_eq!(agreed.profile, profile, "{}", why());
        let material = said(&text, "Keying material:").unwrap_or_else(|| panic!("{}", why()));
        let material: Vec<_> = (0..material.len() / 2)
            .map(|at| u8::from_str_radix(&material[2 * at..2 * at + 2], 16).expect("hexadecimal"))
            .collect();
        let theirs = Halves::new(profile, &material).expect("of that length");
        let mut packet = vec![0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, b'a', b'b'];
        Sealer::new(profile, &agreed.halves.server).seal(&mut packet, 0, 0).expect("RTP");
        assert_eq!(Opener::new(profile, &theirs.server).open(&mut packet), Ok(14), "{name}");
    }
}
