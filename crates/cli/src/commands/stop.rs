//! `outflow stop`

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use outflow_config::{Invalid, Written, parse_duration};
use outflow_serve::fail;
use serde::{Deserialize, Serialize};

use super::api::Api;
use super::progress;

/// How often the relay is asked how far it is.
const LOOK: Duration = Duration::from_millis(250);

/// How long a relay whose time is over may take to be gone: longer than it takes to abort itself.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Ends a running relay, once its receivers have left or had their time, and waits until it has ended
///
/// From the first moment on it takes no more receivers and publishers, and /readyz says so: load balancers and trees
/// of relays go elsewhere. Receivers that are there go on, for as long as --drain says. Those that are left then are
/// told that the relay ends: by RTCP, RTSP or their own transport.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow stop --drain 30s\n  \
                        outflow stop http://edge:8080 --drain 10min --token \"$TOKEN\"")]
pub(crate) struct Stop {
    /// HTTP address of the relay
    #[arg(value_name = "URL", default_value = "http://localhost:8080")]
    url: String,
    /// How long its receivers have to leave: "30s"
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    drain: Duration,
    /// A token of that relay with the right to control
    #[arg(long, env = "OUTFLOW_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

#[derive(Debug, Serialize)]
struct Wish {
    drain: String,
}

/// How far the relay is.
#[derive(Debug, Deserialize)]
struct Drain {
    left_ms: u64,
    receivers: usize,
}

fn duration(text: &str) -> Result<Duration, Invalid> {
    parse_duration(text)
}

impl Stop {
    pub(crate) fn run(self) -> ExitCode {
        match self.stop() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => fail(why),
        }
    }

    fn stop(&self) -> Result<(), String> {
        let api = Api { url: &self.url, token: self.token.as_deref() };
        let wish = Wish { drain: Written(self.drain).to_string() };
        let (bar, mut has_answered) = (progress::line(), false);
        let until = Instant::now() + self.drain + GONE_WITHIN;
        while Instant::now() < until {
            // Said again, it changes nothing, and the answer says how far the relay is.
            match api.tell::<Drain>("stop", &wish)? {
                Some(Drain { left_ms, receivers }) => {
                    has_answered = true;
                    bar.set_message(format!(
                        "{receivers} receivers are left, for {} s",
                        left_ms.div_ceil(1000)
                    ));
                }
                None if has_answered => return Ok(()),
                None => return Err(format!("no relay answers at {}: give its HTTP address", self.url)),
            }
            sleep(LOOK);
        }
        Err(format!("the relay at {} was told to end, and still answers: see its log", self.url))
    }
}
