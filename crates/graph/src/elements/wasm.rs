//! A plug-in: an element in WebAssembly, which the driver keeps in a sandbox (`outflow-plugin`).

use crate::{Contents, Contract, Control, Form, Gives, Kind, Make, Opt, Settings, Signal, Signals, Unit};

/// The element.
///
/// It has four outputs because what parts a stream parts it by its layers, of which there are three in
/// practice, and the rest.
pub const KIND: Kind = Kind {
    name: "wasm",
    doc: "A plug-in in WebAssembly: does what its file says, and can do no harm.",
    contract,
    outputs: OUTPUTS,
    options: &[
        Opt::needed("file", Form::File, "The plug-in; `outflow element new` begins one."),
        Opt::new(
            "config",
            Form::Text,
            None,
            "What the plug-in is told; what it understands is its business.",
        ),
        Opt::new("memory", Form::Size, Some("16 MiB"), "What it may have; what wants more is stopped."),
        Opt::new(
            "budget",
            Form::Duration,
            None,
            "What a call may take, counted in instructions, one a nanosecond: 5 ms if not given, and 0.1 µs for \
             each byte of the call. A longer call is stopped.",
        ),
        Opt::new(
            "on_fault",
            Form::Word(&["restart", "bypass", "drop"]),
            Some("restart"),
            "When it went wrong: start it again, let everything pass from then on, or nothing.",
        ),
        Opt::new(
            "unit",
            Form::Word(&["packets", FRAMES]),
            Some("packets"),
            "What it is given at once: packets as they come, or all that came of a frame together.",
        ),
        Opt::new(
            "needs",
            Form::Words(Signal::NAMES),
            None,
            "Messages without which it cannot work; it is an error if something before it ends them.",
        ),
    ],
    make: Make::Driver,
};

const FRAMES: &str = "frames";

fn contract(settings: &Settings) -> Contract {
    let (takes, unit) = match settings.text("unit") {
        Some(FRAMES) => (Contents::FRAMES, Unit::Frames),
        _ => (Contents::ANY, Unit::Packets),
    };
    let needs = settings.texts("needs").unwrap_or_default().iter().map(String::as_str);
    let control = Control { changes: Signals::ALL, needs: Signals::named(needs), ..Control::NONE };
    Contract::new(takes, Gives::Same).each(unit).with(control).parallel(Contents::FRAMES)
}

/// Its outputs.
pub const OUTPUTS: &[&str] = &["out", "second", "third", "fourth"];
