//! `outflow demo`

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use outflow_config::{Config, Log, LogLevel};
use outflow_control::Front;

use crate::failure::fail;
use crate::relay::{Loaded, Status, serve};
use crate::starter;

/// Runs a relay with a built-in live source, to look at and to play with
///
/// The stream "demo" is a short clip that plays without end; every client may publish the stream
/// "live". The addresses to open are printed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outflow demo\n  outflow demo --http 127.0.0.1:9090 --webrtc 127.0.0.1:9189"
)]
pub struct Demo {
    /// Address for HTTP: streams, status page, API, metrics
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8080")]
    http: SocketAddr,
    /// Address for RTSP
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8554")]
    rtsp: SocketAddr,
    /// Address for browsers: a port of UDP and TCP
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8189")]
    webrtc: SocketAddr,
    /// Go on with what another relay did, which is at the other end of standard input
    #[arg(long, hide = true)]
    take_over: bool,
}

/// The clip, and a stream that takes a publisher.
const STREAMS: &str = "[streams.demo]\nsource = \"demo://\"\n[streams.live]\n";

impl Demo {
    /// Runs a relay with these protocols.
    pub fn run(self, fronts: Vec<Arc<dyn Front>>) -> ExitCode {
        let from = match self.take_over.then(starter::line).transpose() {
            Ok(from) => from,
            Err(error) => return fail(error),
        };
        let protocols = outflow_control::protocols(&fronts);
        let mut config = match Config::parse(STREAMS, "outflow demo", &protocols) {
            Ok(config) => config,
            Err(mistakes) => return fail(mistakes),
        };
        config.listen.set("http", Some(self.http));
        config.listen.set("rtsp", Some(self.rtsp));
        config.listen.set("webrtc", Some(self.webrtc));
        // What happens is seen in the status line; the log tells only what is wrong.
        config.log = Log { level: LogLevel::Error, ..Log::default() };
        // Where it goes on with another, that has said it.
        let welcome = if self.take_over { String::new() } else { self.welcome() };
        let welcome = || print(&welcome).map_err(|e| format!("standard output cannot be written: {e}"));
        let loaded = Loaded { config, path: None, allow_empty: false, from };
        serve(loaded, fronts, Status::Line, welcome)
    }

    fn welcome(&self) -> String {
        let (http, rtsp) = (reachable(self.http), reachable(self.rtsp));
        format!(
            "Outflow is relaying its built-in clip. Open it in a browser, or in a player:\n\
             \n  Browser             http://{http}/play/demo\
             \n  MPEG-TS over HTTP   ffplay http://{http}/demo.ts\
             \n                      vlc http://{http}/demo.ts\
             \n  RTSP                ffplay rtsp://{rtsp}/demo\
             \n\nPublish a stream of your own, then play it as above with \"live\" for \"demo\":\n\
             \n  RTSP                ffmpeg -re -i FILE -c copy -f rtsp rtsp://{rtsp}/live\
             \n  HTTP                ffmpeg -re -i FILE -c copy -f mpegts -method PUT http://{http}/live.ts\
             \n\nStatus page           http://{http}/\nEnd it with Ctrl-C.\n"
        )
    }
}

/// The address to open on this machine: by IPv4, which `[::]` takes, too, and which is there without IPv6.
fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen.ip().is_unspecified() {
        true => SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port())),
        false => listen,
    }
}

fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_can_be_opened_here() {
        let demo = Demo {
            http: "0.0.0.0:1234".parse().expect("address"),
            rtsp: "[::]:99".parse().expect("address"),
            webrtc: "[::]:98".parse().expect("address"),
            take_over: false,
        };
        let welcome = demo.welcome();
        assert!(welcome.contains("http://127.0.0.1:1234/play/demo"), "{welcome}");
        assert!(welcome.contains("http://127.0.0.1:1234/demo.ts"), "{welcome}");
        assert!(welcome.contains("rtsp://127.0.0.1:99/demo"), "{welcome}");
        assert_eq!(reachable("[::1]:99".parse().expect("address")).to_string(), "[::1]:99");
    }
}
