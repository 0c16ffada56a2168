//! What was saved of connections of the partial-order transport: restored if it can be, and made to go on.

use core::time::Duration;

use outflow_media::Time;
use outflow_poc::connection::{Connection, Settings, Worth};
use outflow_poc::endpoint;
use outflow_poc::endpoint::Endpoint;
use outflow_poc::packet::{
    Ack, Arrivals, ConnectionId, Fragment, Frame, Mark, Progress, Span, Spans, Writer,
};
use outflow_poc::protection::{Plain, Protection};
use outflow_poc::save::{SavedBytes, SavedConnection, SavedEndpoint, Services};

/// Milliseconds from one step to the next.
const STEPS_MS: [u64; 6] = [0, 1, 30, 400, 3000, 12_000];

/// Datagrams that are taken out at once: a window may be large.
const DATAGRAMS_MAX: usize = 500;

/// Anything is read as a connection, and as an endpoint.
pub(crate) fn poc_restore(data: &[u8]) {
    let mut services = Services::new();
    if let Ok(saved) = minicbor::decode::<SavedConnection>(data) {
        let restored = Connection::restore(&saved, Box::new(Plain), Settings::default(), &mut services);
        if let Ok(mut connection) = restored {
            go_on(&mut connection, Time::from_nanos(saved.now), saved.sent.next);
        }
    }
    if let Ok(saved) = minicbor::decode::<SavedEndpoint>(data) {
        let mut protect = |_: &SavedBytes| Some(Box::new(Plain) as Box<dyn Protection>);
        let settings = endpoint::Settings::default();
        if let Ok((mut endpoint, handles)) =
            Endpoint::restore(settings, None, &saved, &mut services, &mut protect)
        {
            let mut out = Vec::new();
            let now = Time::from_millis(1000);
            endpoint.handle_timeout(now);
            (0..DATAGRAMS_MAX).for_each(|_| _ = endpoint.poll_transmit(now, &mut out));
            for handle in handles {
                while endpoint.read(handle).is_some() {}
                endpoint.release(now, handle);
            }
            (0..DATAGRAMS_MAX).for_each(|_| _ = endpoint.poll_transmit(now, &mut out));
            _ = endpoint.save();
        }
    }
}

/// Time passes, its application sends and reads, and its peer answers.
fn go_on(connection: &mut Connection, mut now: Time, next: u64) {
    let mut out = Vec::new();
    for (step, ms) in (0..).zip(STEPS_MS) {
        now = now + Duration::from_millis(ms);
        connection.handle_timeout(now);
        let unit = connection.next_unit() + step % 2;
        let worth = Worth { useful_for: Some(Duration::from_millis(100 * step)), ..Worth::default() };
        _ = connection.send(now, unit, vec![7; 700].into(), worth);
        for _ in 0..DATAGRAMS_MAX {
            if connection.poll_transmit(now, &mut out).is_none() {
                break;
            }
        }
        feed(connection, now, next, step);
        while connection.poll().is_some() {}
        _ = (connection.next_timeout(), connection.buffered_bytes(), connection.room_within(Duration::MAX));
    }
    connection.finish(now);
    _ = connection.poll_transmit(now, &mut out);
    if let Ok(saved) = connection.save() {
        _ = Connection::restore(&saved, Box::new(Plain), Settings::default(), &mut Services::new());
    }
}

/// The peer acknowledges all but one packet, tells how far it is, and sends a part of a unit.
fn feed(connection: &mut Connection, now: Time, next: u64, step: u64) {
    let (local, address) = (connection.local(), connection.address());
    let mut write = |frame: &Frame<'_>, number: u64| {
        let mut datagram = Vec::new();
        Writer::new(&mut datagram, ConnectionId(local.0), number, 1200).push(frame);
        connection.handle_datagram(now, address, Mark::Ect0, &mut datagram);
    };
    // Higher than what was received, mostly.
    let number = (1 << 40) + 8 * step;
    if let Some(last) = (next + step).checked_sub(2) {
        let spans = [Span { first: 0, last }];
        let (packets, arrivals) = (Spans::new(&spans), Arrivals::NONE);
        write(&Frame::Ack(Ack { packets, delay: Duration::ZERO, arrivals, ecn: None }), number);
    }
    let lost = [Span::of(step)];
    let progress = Progress { settled_below: step, window_end: step + 9, lost: Spans::new(&lost) };
    write(&Frame::Progress(progress), number + 1);
    write(&Frame::GivenUp(Spans::new(&lost)), number + 2);
    let fragment = Fragment { unit: step, offset: 0, unit_bytes: 200, bytes: &[1; 100] };
    write(&Frame::Fragment(fragment), number + 4);
}
