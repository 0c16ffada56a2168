//! `outflow demo` and nothing else, with the fronts that it shows. `make run` builds this first, and has it go on as all
//! of the program once that is built (`scripts/run`).

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use outflow_control::Front;
use outflow_serve::Demo;

/// Relays live media: here, its built-in clip alone.
#[derive(Debug, Parser)]
#[command(name = "outflow", version)]
enum Command {
    Demo(Demo),
}

fn main() -> ExitCode {
    outflow_serve::by_another_name().unwrap_or_else(|| {
        let Command::Demo(demo) = Command::parse();
        demo.run(fronts())
    })
}

fn fronts() -> Vec<Arc<dyn Front>> {
    vec![
        outflow_front_demo::front(),
        outflow_front_rtsp::front(),
        outflow_front_http_ts::front(),
        outflow_front_webrtc::front(),
    ]
}
