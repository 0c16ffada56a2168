//! Another program in the path: ffmpeg, GStreamer, anything that reads a transport stream and writes
//! one. The driver runs it, and starts it again when it ends.

use crate::graph::{Content, Contents, Contract, Form, Gives, Kind, Make, OUT, Opt};

const TS: Content = Content::Ts;

/// The element.
pub const KIND: Kind = Kind {
    name: "external",
    doc: "Another program: gets MPEG-TS on its standard input, gives MPEG-TS on its standard output.",
    contract: |_| Contract { takes: Contents::of(&[TS]), gives: Gives::Only(TS) },
    outputs: OUT,
    options: &[
        Opt::needed(
            "command",
            Form::Texts,
            "The program and its arguments, as [\"ffmpeg\", \"-i\", \"-\", …, \"-f\", \"mpegts\", \"-\"].",
        ),
        Opt::new("nice", Form::Whole(0, 19), Some("5"), "How far it stands back behind other programs."),
    ],
    make: Make::Driver,
};
