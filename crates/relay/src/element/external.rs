//! Another program in the path: ffmpeg, GStreamer, anything that reads a transport stream and writes
//! one. The driver runs it, and starts it again when it ends.

use crate::graph::{Content, Contents, Contract, Control, Form, Gives, Kind, Make, OUT, Opt, Signals};

const TS: Content = Content::Ts;

/// The element.
pub const KIND: Kind = Kind {
    name: "external",
    doc: "Another program: gets MPEG-TS on its standard input, gives MPEG-TS on its standard output.",
    contract: |_| {
        let control = Control { ends: Signals::ALL, ..Control::NONE };
        Contract::new(Contents::of(&[TS]), Gives::Only(TS)).with(control)
    },
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
