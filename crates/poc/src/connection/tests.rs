use core::time::Duration;

use outflow_petri::net::{Builder, Carries, Interval, Net, Place, Rule, samples};
use outflow_petri::service::Class;

use super::testing::{Pair, Weather, address, chain, data, flow};
use super::{By, Closed, Connection, SendError, Wake, Worth};
use crate::packet::{Code, ConnectionId, Frame, Mark, Writer};

const BAD: Weather = Weather { jitter: Duration::from_millis(8), lost: 50, doubled: 30, ..Weather::FAIR };

const MS: Duration = Duration::from_millis(1);

fn send_all(pair: &mut Pair, units: u64, every: Duration) {
    let mut unit = 0;
    while unit < units {
        match pair.send(unit, data(unit)) {
            Ok(()) => unit += 1,
            Err(SendError::Full) => (),
            Err(error) => panic!("{error}"),
        }
        pair.run(every);
    }
}

#[test]
fn everything_comes_in_order_whatever_happens_on_the_way() {
    for seed in 0..20 {
        let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), BAD, seed);
        send_all(&mut pair, 500, 2 * MS);
        pair.finish(Duration::from_secs(60));
        let delivered = &pair.at_server.delivered;
        assert!(delivered.iter().map(|(unit, ..)| *unit).eq(0..500), "seed {seed}: {}", delivered.len());
        assert!(delivered.iter().all(|(unit, bytes, _)| *bytes == data(*unit)));
        let done = |by| Some(Closed { by, code: Code::DONE, text: String::new() });
        assert_eq!(pair.at_client.closed, done(By::Us), "seed {seed}");
        assert!(pair.at_server.closed == done(By::Peer) || pair.weather.lost > 0, "seed {seed}");
        assert!(pair.at_client.lost.is_empty() && pair.at_server.missed.is_empty());
    }
}

#[test]
fn what_is_lost_is_not_waited_for_longer_than_the_net_says() {
    for seed in 0..20 {
        let net = chain(16, Some(250 * MS));
        let mut pair = Pair::new(&flow(net, Class::Partial, Some(240 * MS)), BAD, seed);
        send_all(&mut pair, 500, 10 * MS);
        pair.finish(Duration::from_secs(20));
        let told = &pair.at_server;
        let mut all: Vec<_> = told.delivered.iter().map(|(unit, ..)| *unit).collect();
        assert!(all.is_sorted(), "seed {seed}");
        all.extend(told.missed.iter().map(|(unit, _)| *unit));
        all.sort_unstable();
        assert!(all.into_iter().eq(0..500), "seed {seed}: all are delivered or missed");
        let mut missed: Vec<_> = told.missed.iter().map(|(unit, _)| *unit).collect();
        missed.sort_unstable();
        assert_eq!(missed, pair.at_client.lost, "seed {seed}: both know of the same");
        assert!(told.delivered.len() > 400, "seed {seed}: {} delivered", told.delivered.len());
    }
}

#[test]
fn units_that_are_left_out_do_not_exist() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), Weather::FAIR, 1);
    for unit in [3, 4, 9, 20] {
        pair.send(unit, data(unit)).expect("there is room");
    }
    pair.finish(Duration::from_secs(5));
    assert!(pair.at_server.delivered.iter().map(|(unit, ..)| *unit).eq([3, 4, 9, 20]));
    assert_eq!(pair.at_server.missed.len(), 17);
    assert_eq!(pair.at_client.lost.len(), 17);
}

#[test]
fn one_that_does_not_read_is_not_sent_more_than_was_agreed_on() {
    let mut flow = flow(chain(16, None), Class::Reliable, None);
    flow.buffer_bytes = 20_000;
    let mut pair = Pair::new(&flow, BAD, 3);
    pair.reads = false;
    let mut unit = 0;
    for _ in 0..400 {
        unit += u64::from(pair.send(unit, data(unit)).is_ok());
        pair.run(5 * MS);
    }
    assert!(unit < 100, "{unit} units were taken");
    assert!(pair.at_server.buffered_most <= 20_000 && pair.at_server.buffered_most > 12_000);
    pair.reads = true;
    pair.run(Duration::from_secs(3));
    assert!(pair.at_client.writable > 0);
    pair.finish(Duration::from_secs(20));
    assert_eq!(pair.at_server.delivered.len() as u64, unit);
}

#[test]
fn silence_ends_a_connection_and_keep_alive_prevents_it() {
    let mut pair = Pair::new(&flow(chain(4, None), Class::Reliable, None), Weather::FAIR, 1);
    pair.run(Duration::from_secs(60));
    assert!(!pair.client.is_closed() && !pair.server.is_closed());
    assert!(pair.datagrams < 300, "{} datagrams", pair.datagrams);
    pair.weather.lost = 1000;
    pair.run(Duration::from_secs(15));
    let idle = pair.at_client.closed.as_ref().map(|closed| (closed.by, closed.code));
    assert_eq!(idle, Some((By::Here, Code::IDLE)));
}

#[test]
fn a_client_that_moves_is_found() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), Weather::FAIR, 1);
    send_all(&mut pair, 100, MS);
    pair.client_address = address(9);
    send_all_from(&mut pair, 100, 200);
    assert_eq!((pair.server.address(), pair.server.path_changes()), (address(9), 1));
    pair.finish(Duration::from_secs(10));
    assert_eq!(pair.at_server.delivered.len(), 200);
}

fn send_all_from(pair: &mut Pair, from: u64, to: u64) {
    for unit in from..to {
        pair.send(unit, data(unit)).expect("there is room");
        pair.run(10 * MS);
    }
}

#[test]
fn what_is_sent_again_by_somebody_else_changes_nothing() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), Weather::FAIR, 1);
    let mut heard = Vec::new();
    for unit in 0..50 {
        pair.send(unit, data(unit)).expect("there is room");
        heard.extend(pair.heard().into_iter().filter(|(to_server, _)| *to_server));
        pair.run(10 * MS);
    }
    pair.run(100 * MS);
    let before = pair.server.counts();
    for (_, datagram) in &heard {
        pair.server.handle_datagram(pair.now, address(66), crate::packet::Mark::None, &mut datagram.clone());
    }
    assert_eq!(pair.server.counts().received, before.received);
    assert_eq!((pair.server.address(), pair.server.path_changes()), (address(1), 0));
    pair.finish(Duration::from_secs(10));
    assert_eq!(pair.at_server.delivered.len(), 50);
}

#[test]
fn larger_datagrams_are_used_where_they_get_through() {
    for (carried, used) in [(1500, 1452), (1420, 1400), (1200, 1200)] {
        let weather = Weather { datagram_bytes: carried, ..Weather::FAIR };
        let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), weather, 1);
        send_all_from(&mut pair, 0, 200);
        assert_eq!(pair.client.datagram_bytes(), used);
        pair.finish(Duration::from_secs(10));
        assert_eq!(pair.at_server.delivered.len(), 200);
    }
}

#[test]
fn what_cannot_be_sent_in_time_is_given_up_before_it_is_sent() {
    let net = outflow_petri::net::of_gop(&outflow_petri::net::mpeg_gop(), &outflow_petri::net::mpeg_shape())
        .expect("a net");
    let mut flow = flow(net, Class::Partial, Some(200 * MS));
    flow.is_dependent = true;
    let mut settings = super::Settings::default();
    settings.congestion.max_bps = 1_500_000;
    let mut pair = Pair::with(&flow, Weather::FAIR, 1, settings);
    // 15 slices of 600 bytes each 40 ms: 1.8 Mbit/s.
    for unit in 0..15 * 12 * 10 {
        pair.send(unit, vec![0; 600]).expect("there is room");
        pair.run(40 * MS / 15);
    }
    pair.finish(Duration::from_secs(5));
    let (given_up, counts) = (&pair.at_client.given_up, pair.client.outgoing_counts());
    let of = |picture: fn(u64) -> bool| given_up.iter().filter(|unit| picture(**unit / 15 % 12)).count();
    let b = of(|picture| picture % 4 != 0);
    assert!(b > 150 && counts.overload > 150, "{b} slices of B pictures; {counts:?}");
    // Before the rate is known anything may go.
    assert!(
        given_up.len() - b < 60,
        "{} of {} slices of I and P pictures",
        given_up.len() - b,
        given_up.len()
    );
}

#[test]
fn one_that_does_not_read_is_told_of_no_more_units_than_a_window_has() {
    let mut flow = flow(chain(4, None), Class::Reliable, None);
    flow.rounds = 2;
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    pair.reads = false;
    for unit in 0..200 {
        pair.send(2 * unit, vec![]).expect("there is room");
        pair.run(10 * MS);
    }
    pair.reads = true;
    pair.run(MS);
    let told = &pair.at_server;
    assert_eq!((told.delivered.len(), told.missed.len()), (4, 4));
    pair.finish(Duration::from_secs(20));
    assert_eq!(pair.at_client.closed, Some(Closed { by: By::Us, code: Code::DONE, text: String::new() }));
    assert_eq!((pair.at_server.delivered.len(), pair.at_client.lost.len()), (200, 199));
}

#[test]
fn of_units_that_the_receiver_went_on_without_before_they_were_sent_both_know() {
    // A round is complete with its first object.
    let net = samples::pair(Rule::Or, (0, 0), (0, 0));
    let mut pair = Pair::new(&flow(Net::clone(&net), Class::Reliable, None), Weather::FAIR, 1);
    pair.send(0, data(1)).expect("there is room");
    pair.run(200 * MS);
    assert_eq!(pair.at_server.missed.len(), 1);
    pair.send(1, data(1)).expect("there is room");
    pair.run(200 * MS);
    assert_eq!((&pair.at_client.given_up[..], &pair.at_client.lost[..]), (&[1][..], &[1][..]));
    pair.send(2, data(1)).expect("there is room");
    pair.run(200 * MS);
    pair.send(4, data(1)).expect("there is room");
    pair.finish(Duration::from_secs(5));
    assert_eq!(pair.at_client.lost, [1, 3]);
}

#[test]
fn what_ends_in_the_middle_of_a_round_ends() {
    // The second object completes what the first one waits for.
    let mut builder = Builder::new();
    let ids = [builder.transition("a", Rule::And), builder.transition("b", Rule::And)];
    for (name, from, to, initial) in [("first", 0, 1, 0), ("second", 1, 0, 1)] {
        let (producer, consumer) = (ids[from], ids[to]);
        let (carries, interval) = (Carries::Object, Interval::ALWAYS);
        builder.place(Place { name: name.into(), carries, producer, consumer, interval, initial });
    }
    let net = builder.build().expect("a net");
    let mut pair = Pair::new(&flow(net, Class::Reliable, None), Weather::FAIR, 1);
    pair.send(0, data(1)).expect("there is room");
    pair.finish(Duration::from_secs(5));
    assert!(pair.at_client.closed.is_some());
    assert_eq!((pair.at_server.delivered.len(), pair.at_server.missed.len()), (1, 1));
}

#[test]
fn a_unit_far_ahead_is_taken_when_its_turn_comes() {
    let mut flow = flow(chain(64, None), Class::Reliable, None);
    flow.rounds = 64;
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    let far = 3 * crate::limits::UNITS_OUTSTANDING_MAX as u64;
    assert_eq!(pair.client.skip_to(pair.now, far), Err(SendError::Full));
    for waits in 0.. {
        assert!(waits < 1000, "it is refused for ever");
        match pair.send(far, data(1)) {
            Ok(()) => break,
            Err(error) => assert_eq!(error, SendError::Full),
        }
        pair.run(Duration::from_secs(1));
        assert!(pair.at_client.writable > 0, "somebody waits");
    }
    pair.finish(Duration::from_secs(10));
    assert_eq!((pair.at_server.delivered.len(), pair.at_server.missed.len() as u64), (1, far));
}

#[test]
fn a_path_that_carries_less_than_it_did_is_noticed_soon() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), Weather::FAIR, 1);
    send_all_from(&mut pair, 0, 200);
    assert_eq!(pair.client.datagram_bytes(), 1452);
    pair.weather.datagram_bytes = 1300;
    for unit in 200..300 {
        pair.send(unit, vec![0; 5000]).expect("there is room");
    }
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.client.datagram_bytes(), 1200);
    assert_eq!(pair.at_server.delivered.len(), 300);
}

#[test]
fn one_that_may_not_send_anything_does_not_ask_to_be_called_at_once() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), Weather::FAIR, 1);
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    // None of what the server says is acknowledged.
    for number in 0..2 * crate::limits::HISTORY_PACKETS_MAX as u64 {
        Writer::new(&mut bytes, ConnectionId([2; ConnectionId::BYTES]), number, 1200).push(&Frame::Ping);
        pair.server.handle_datagram(pair.now, address(1), Mark::None, &mut bytes);
        while pair.server.poll_transmit(pair.now, &mut out).is_some() {}
    }
    assert!(pair.server.next_timeout().is_some_and(|(at, _)| at > pair.now));
}

#[test]
fn a_wait_names_its_reason() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), Weather::FAIR, 1);
    let why = |end: &Connection| end.next_timeout().map(|(_, why)| why);
    pair.run(Duration::from_millis(1500));
    assert_eq!(why(&pair.client), Some(Wake::KeepAlive));
    pair.send(0, data(0)).expect("there is room");
    assert_eq!(why(&pair.client), Some(Wake::Recovery), "it may be lost");
    pair.run(Duration::from_millis(21));
    assert_eq!(why(&pair.server), Some(Wake::Acknowledgement));
    pair.client.close(pair.now, Code(64), "");
    assert_eq!(why(&pair.client), Some(Wake::Over));
}

#[test]
fn a_client_that_says_next_to_nothing_is_found_when_it_moves() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Reliable, None), Weather::FAIR, 1);
    pair.run(Duration::from_secs(1));
    pair.client_address = address(9);
    // A ping.
    pair.run(Duration::from_millis(2200));
    assert_eq!(pair.server.address(), address(9));
}

#[test]
fn one_that_waits_for_room_is_told_as_soon_as_what_waits_was_sent() {
    let mut flow = flow(chain(16, None), Class::Reliable, None);
    flow.buffer_bytes = 2000;
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    let send =
        |pair: &mut Pair, unit| pair.client.send(pair.now, unit, vec![0; 900].into(), Worth::default());
    assert_eq!([0, 1, 2].map(|unit| send(&mut pair, unit)), [Ok(()), Ok(()), Err(SendError::Full)]);
    pair.flush();
    assert_eq!(pair.at_client.writable, 1);
}

#[test]
fn what_is_short_lived_is_sent_before_the_path_is_known() {
    let mut pair = Pair::new(&flow(chain(16, None), Class::Partial, Some(60 * MS)), Weather::FAIR, 1);
    pair.send(0, data(1)).expect("there is room");
    pair.run(100 * MS);
    assert_eq!((pair.at_server.delivered.len(), pair.at_client.given_up.len()), (1, 0));
}

/// 100 units of 1000 bytes a second and half a second to send them, on a path of so much.
fn with_worths(max_bps: u64, seconds: u64, repair: Class, worth: fn(u64) -> Worth) -> Pair {
    let mut settings = super::Settings::default();
    settings.congestion.max_bps = max_bps;
    let mut pair = Pair::with(&flow(chain(16, None), repair, Some(500 * MS)), Weather::FAIR, 1, settings);
    for unit in 0..100 * seconds {
        pair.send_worth(unit, vec![0; 1000], worth(unit)).expect("there is room");
        pair.run(10 * MS);
    }
    pair.finish(Duration::from_secs(5));
    pair
}

#[test]
fn of_more_than_can_be_sent_in_time_the_lowest_rank_is_left_out() {
    let rank = |unit: u64| [2, 0, 1, 0][(unit % 4) as usize];
    let worth = |unit: u64| Worth { rank: [2, 0, 1, 0][(unit % 4) as usize], ..Worth::default() };
    let pair = with_worths(500_000, 20, Class::Partial, worth);
    let of = |wanted: u8| pair.at_client.given_up.iter().filter(|unit| rank(**unit) == wanted).count();
    // 800 kbit/s, half of them of the lowest rank.
    assert!(of(0) > 600, "{} of the lowest", of(0));
    assert!(of(1) < 60 && of(2) == 0, "{} and {} of the others", of(1), of(2));
}

#[test]
fn what_is_reliable_for_all_others_may_be_left_out_where_its_sender_says_so() {
    let worth = |unit: u64| Worth { class: (unit % 2 == 1).then_some(Class::Partial), ..Worth::default() };
    let pair = with_worths(500_000, 10, Class::Reliable, worth);
    let given_up = &pair.at_client.given_up;
    assert!(given_up.len() > 300 && given_up.iter().all(|unit| unit % 2 == 1), "{given_up:?}");
}

#[test]
fn what_is_to_be_sent_once_is_sent_once() {
    let flow = flow(chain(16, None), Class::Partial, None);
    let weather = Weather { lost: 100, ..Weather::FAIR };
    let mut pair = Pair::new(&flow, weather, 1);
    for unit in 0..400 {
        // What is more than was agreed on is not had.
        let class = Some(if unit % 2 == 0 { Class::Reliable } else { Class::Unreliable });
        pair.send_worth(unit, vec![0; 1100], Worth { class, ..Worth::default() }).expect("there is room");
        pair.run(10 * MS);
    }
    pair.finish(Duration::from_secs(5));
    let counts = pair.client.outgoing_counts().repairs;
    let odd = pair.at_client.given_up.iter().filter(|unit| **unit % 2 == 1).count();
    assert_eq!((counts.unreliable, odd > 10), (odd as u64, true), "{counts:?}");
    assert!(counts.again > 10 && pair.at_client.given_up.len() - odd <= 2, "{counts:?}");
}
