//! The status line of a relay that runs.

use outflow_control::Control;
use outflow_engine::message::RelayState;
use outflow_log::Log;

/// One of these is shown before each line, in turn: it moves as long as the relay does.
const SPINNER: [char; 8] = ['⠁', '⠂', '⠄', '⡀', '⢀', '⠠', '⠐', '⠈'];

/// Where there is no terminal, one of this many lines is written.
const ONE_OF: usize = 20;

/// Keeps the status line up to date.
pub(crate) async fn show(control: Control, log: Log) {
    let mut states = control.watch();
    // The first snapshot is older than the streams.
    if states.changed().await.is_err() {
        return;
    }
    for number in 0.. {
        if states.changed().await.is_err() {
            return;
        }
        let line = line(&states.borrow_and_update().clone());
        if log.is_terminal() {
            log.show_status(&format!("{} {line}", SPINNER[number % SPINNER.len()]));
        } else if number % ONE_OF == 0 {
            log.say(&line);
        }
    }
}

/// The state in one line.
fn line(state: &RelayState) -> String {
    let streams = &state.streams;
    let up = streams.iter().filter(|stream| stream.source.up).count();
    let receivers: usize = streams.iter().map(|stream| stream.receivers.len()).sum();
    let incoming: u64 = streams.iter().map(|stream| stream.source.bps).sum();
    let outgoing: u64 = streams.iter().map(|stream| stream.out_bps).sum();
    format!(
        "{up} of {} streams up · {receivers} receivers · in {} · out {} · {} · CPU {:.1} %",
        streams.len(),
        rate(incoming),
        rate(outgoing),
        drops(state),
        state.cpu_percent
    )
}

fn drops(state: &RelayState) -> String {
    let mut sum = std::collections::BTreeMap::new();
    for stream in &state.streams {
        for (reason, packets) in stream.source.drops.iter().chain(&stream.out_drops) {
            *sum.entry(*reason).or_insert(0) += packets;
        }
    }
    if sum.is_empty() {
        return "nothing dropped".to_owned();
    }
    let parts: Vec<_> = sum.iter().map(|(reason, packets)| format!("{packets} {reason}")).collect();
    format!("dropped: {}", parts.join(", "))
}

fn rate(bps: u64) -> String {
    match bps {
        0..1_000_000 => format!("{:.0} kbit/s", bps as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} Mbit/s", bps as f64 / 1e6),
        _ => format!("{:.2} Gbit/s", bps as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use outflow_engine::message::StreamState;

    use super::*;

    #[test]
    fn the_line_sums_up_all_streams() {
        let mut stream = StreamState { out_bps: 2_500_000, ..StreamState::default() };
        stream.source.up = true;
        stream.source.bps = 850_000;
        stream.out_drops.insert("slow-sink", 3);
        let other = StreamState { out_drops: [("slow-sink", 4)].into(), ..StreamState::default() };
        let state = RelayState { streams: vec![stream, other], cpu_percent: 1.25, ..RelayState::default() };
        assert_eq!(
            line(&state),
            "1 of 2 streams up · 0 receivers · in 850 kbit/s · out 2.50 Mbit/s · dropped: 7 slow-sink · CPU 1.2 %"
        );
    }
}
