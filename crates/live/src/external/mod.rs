//! Another program as an element: what comes in goes to its standard input, what it writes on its
//! standard output goes on. It runs beside the path: nobody waits for it.

mod process;

use std::any::Any;

use outflow_media::{Format, Time};
use outflow_relay::DropReason;
use outflow_relay::element::ts_bytes::TsBytes;
use outflow_relay::graph::{Element, Item, Settings, Tally, Unfit};
use process::{Process, Words};

/// The element. Its program is started with the first packet.
#[derive(Debug)]
pub(crate) struct External {
    words: Words,
    running: Option<Running>,
    made: Vec<Item>,
}

/// The program at work.
#[derive(Debug)]
struct Running {
    words: Words,
    process: Process,
    bytes: TsBytes,
}

impl External {
    /// What the options say.
    ///
    /// # Errors
    /// They name no program.
    pub(crate) fn new(settings: &Settings) -> Result<Self, Unfit> {
        let command = settings.texts("command").unwrap_or_default().to_vec();
        if command.first().is_none_or(String::is_empty) {
            let help = "write the program and its arguments, as command = [\"ffmpeg\", …]";
            return Err(Unfit::new("the command names no program", help));
        }
        let nice = settings.whole("nice").unwrap_or(5);
        Ok(External { words: Words { command, nice }, running: None, made: Vec::new() })
    }
}

impl Element for External {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        match input {
            Format::Ts => Ok(Format::Ts),
            _ => Err(Unfit::new("another program gets MPEG-TS", "put \"to-ts\" before it")),
        }
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        let Self { words, running, made } = self;
        let Running { process, bytes, .. } = running.get_or_insert_with(|| Running {
            words: words.clone(),
            process: Process::start(words),
            bytes: TsBytes::default(),
        });
        for item in batch.iter() {
            if !process.give(&item.packet.bytes) {
                tally.drop(DropReason::ContextFull);
            }
        }
        if let Some(like) = batch.last() {
            while let Some(chunk) = process.take() {
                bytes.push(chunk, like, made);
            }
        }
        while let Some(what) = process.trouble() {
            tally.fail(what);
        }
        batch.clear();
        core::mem::swap(batch, made);
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        self.running.take().map(|running| Box::new(running) as Box<dyn Any + Send>)
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        // Another command is another program: that of before ends.
        self.running = state.downcast::<Running>().ok().map(|r| *r).filter(|r| r.words == self.words);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bytes::Bytes;
    use outflow_relay::graph::Setting;

    use super::*;

    fn element(command: &[&str]) -> External {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        External::new(&Settings::default().with("command", Setting::Texts(command))).expect("a program")
    }

    /// Gives null packets until `enough` says so; what came out of it.
    fn run(element: &mut External, enough: impl Fn(&[Item], &Tally) -> bool) -> (Vec<Item>, Tally) {
        let mut null = [0xff; 188];
        null[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
        let (mut out, mut tally) = (Vec::new(), Tally::default());
        let until = Instant::now() + Duration::from_secs(30);
        while !enough(&out, &tally) && Instant::now() < until {
            let mut item = Item::empty();
            item.packet.bytes = Bytes::from(null.repeat(7));
            let mut batch = vec![item];
            element.work(Time::ZERO, &mut batch, &mut tally);
            out.extend(batch);
            std::thread::sleep(Duration::from_millis(1));
        }
        (out, tally)
    }

    #[test]
    fn what_a_program_writes_goes_on() {
        let mut cat = element(&["cat"]);
        assert_eq!(cat.bind(&Format::Ts), Ok(Format::Ts));
        let (out, tally) = run(&mut cat, |out, _| out.len() > 20);
        assert!(out.len() > 20 && tally.faults == 0, "{} came out, {tally:?}", out.len());
        assert!(out.iter().all(|item| item.packet.bytes[0] == 0x47));
        // Another element of that name goes on with the same program.
        let state = cat.state().expect("it runs");
        let mut next = element(&["cat"]);
        next.resume(state);
        assert!(next.running.is_some());
        let mut other = element(&["cat", "-u"]);
        other.resume(next.state().expect("it runs"));
        assert!(other.running.is_none());
    }

    #[test]
    fn a_program_that_ends_is_a_fault_and_one_that_is_missing_too() {
        let (_, tally) = run(&mut element(&["false"]), |_, tally| tally.faults > 0);
        assert!(tally.fault.is_some_and(|fault| fault.contains("ended")));
        let (_, tally) = run(&mut element(&["/no/such/program"]), |_, tally| tally.faults > 0);
        assert!(tally.fault.is_some_and(|fault| fault.contains("cannot be started")));
        let error = External::new(&Settings::default()).expect_err("nothing to run");
        assert!(error.to_string().contains("command ="), "{error}");
    }
}
