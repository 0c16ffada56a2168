//! Another program in the path: ffmpeg, GStreamer, anything that reads a transport stream and writes
//! one, or images. The driver runs it, and starts it again when it ends.

use crate::{Content, Contents, Contract, Control, Form, Gives, Kind, Make, OUT, Opt, Settings, Signals};

const TS: Contents = Contents::of(&[Content::Ts]);

/// The element.
pub const KIND: Kind = Kind {
    name: "external",
    doc: "Another program: gets MPEG-TS on standard input, gives MPEG-TS or images on standard output.",
    contract: |settings| {
        let control = Control { ends: Signals::ALL, ..Control::NONE };
        let gives = if gives_images(settings) { Contents::PNM } else { TS };
        Contract::new(TS, Gives::OneOf(gives)).with(control)
    },
    outputs: OUT,
    options: &[
        Opt::needed(
            "command",
            Form::Texts,
            "The program and its arguments, as [\"ffmpeg\", \"-i\", \"-\", …, \"-f\", \"mpegts\", \"-\"].",
        ),
        Opt::new(
            "gives",
            Form::Word(&["mpegts", "ppm"]),
            Some("mpegts"),
            "What it writes: MPEG-TS; or PPM and PGM images one behind the other, each a packet.",
        ),
        Opt::new(
            "memory",
            Form::Size,
            Some("4 GiB"),
            "What each process of it may have; it is refused more.",
        ),
        Opt::new(
            "env",
            Form::Texts,
            None,
            "Variables of its environment besides PATH, HOME and LANG: \"NAME\", as the relay has it, or \
             \"NAME=VALUE\".",
        ),
        Opt::new("nice", Form::Whole(0, 19), Some("5"), "How far it stands back behind other programs."),
    ],
    make: Make::Driver,
};

/// Whether the program writes images.
pub fn gives_images(settings: &Settings) -> bool {
    settings.text("gives") == Some("ppm")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setting;

    #[test]
    fn what_comes_out_is_what_the_program_is_said_to_write() {
        let through = |settings: &Settings| (KIND.contract)(settings).through(Contents::ANY);
        assert_eq!(through(&Settings::default()), TS);
        let ppm = Settings::default().with("gives", Setting::Text("ppm".to_owned()));
        assert_eq!(through(&ppm), Contents::PNM);
    }
}
