//! A plug-in: an element in WebAssembly, which the driver keeps in a sandbox (`outflow-plugin`).

use crate::graph::{Contents, Contract, Form, Gives, Kind, Make, Opt};

/// The element.
///
/// It has four outputs because what parts a stream parts it by its layers, of which there are three in
/// practice, and the rest.
pub const KIND: Kind = Kind {
    name: "wasm",
    doc: "A plug-in in WebAssembly: does what its file says, and can do no harm.",
    contract: |_| Contract { takes: Contents::ANY, gives: Gives::Same },
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
            Some("50 ms"),
            "What a call may take, counted in instructions, one a nanosecond; a longer call is stopped.",
        ),
        Opt::new(
            "on_fault",
            Form::Word(&["restart", "bypass", "drop"]),
            Some("restart"),
            "When it went wrong: start it again, let everything pass from then on, or nothing.",
        ),
    ],
    make: Make::Driver,
};

/// Its outputs.
pub const OUTPUTS: &[&str] = &["out", "second", "third", "fourth"];
