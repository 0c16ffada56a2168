//! A link that is shared by weight, with more offered than it carries.

use super::*;

/// A millisecond of 8 Mbit/s.
const BYTES_A_MS: usize = 1000;

fn shared(policy: Policy) -> Link<usize> {
    let slack = Duration::from_millis(2);
    Link::new(LinkOptions { scheduling: Scheduling::Shares, slack, ..options(policy, 20_000) })
}

/// For so long, `bytes` bytes of each flow come each millisecond, in packets of different sizes. The bytes of each
/// that went.
fn run(link: &mut Link<usize>, from_ms: u64, ms: u64, flows: &[(FlowId, usize)]) -> Vec<usize> {
    let mut sent = vec![0; flows.len()];
    for at in from_ms..from_ms + ms {
        let now = Time::from_millis(at);
        for (place, (flow, bytes)) in flows.iter().enumerate() {
            let packet = 300 + 400 * (place % 3);
            (0..bytes.div_ceil(packet)).for_each(|_| link.offer(now, *flow, frame(0), packet, place));
        }
        while let Next::Departs(departed) = link.depart(now) {
            sent[departed.item] += departed.packet.bytes;
        }
        link.dropped().for_each(drop);
    }
    sent
}

#[track_caller]
fn assert_shares(sent: &[usize], ms: u64, wanted: &[f64]) {
    for (sent, wanted) in sent.iter().zip(wanted) {
        let share = *sent as f64 / (ms as usize * BYTES_A_MS) as f64;
        assert!((share - wanted).abs() <= 0.01 * wanted, "{share} instead of {wanted}: {sent:?}");
    }
}

#[test]
fn each_application_and_in_it_each_stream_has_its_share_of_the_rate() {
    for policy in [Policy::Pfb, Policy::PfbAd] {
        let mut link = shared(policy);
        link.set_weight_of(Medium::Video, 3);
        let flows = [VIDEO, VIDEO, VIDEO, DATA].map(|application| link.add_flow(application, 0));
        link.set_stream(flows[0], 7, 4);
        link.set_stream(flows[1], 8, 1);
        link.set_stream(flows[2], 8, 1);
        let all = flows.map(|flow| (flow, BYTES_A_MS));
        let sent = run(&mut link, 0, 20_000, &all);
        let data = link.application(flows[3]).expect("it is there").medium();
        assert_eq!(data, Medium::Audio, "DATA of these tests");
        assert_shares(&sent, 20_000, &[0.6, 0.075, 0.075, 0.25]);
    }
}

#[test]
fn the_flows_of_a_stream_have_its_share_by_their_weights() {
    for policy in [Policy::Pfb, Policy::PfbAd] {
        let mut link = shared(policy);
        let flows = [VIDEO; 5].map(|application| link.add_flow(application, 0));
        flows.iter().zip([0, 0, 0, 1, 1]).for_each(|(flow, stream)| link.set_stream(*flow, stream, 1));
        flows.iter().zip([3, 1, 1, 1, 7]).for_each(|(flow, weight)| link.set_flow_weight(*flow, weight));
        let all = flows.map(|flow| (flow, BYTES_A_MS));
        let sent = run(&mut link, 0, 20_000, &all);
        assert_shares(&sent, 20_000, &[0.3, 0.1, 0.1, 0.0625, 0.4375]);
        link.set_flow_weight(flows[0], 2);
        for policy in [Policy::Marked, policy] {
            let other = LinkOptions { policy, ..*link.options() };
            link.set_options(Time::from_millis(20_000), other);
        }
        let sent = run(&mut link, 20_000, 20_000, &all);
        assert_shares(&sent, 20_000, &[0.25, 0.125, 0.125, 0.0625, 0.4375]);
    }
}

#[test]
fn a_buffer_that_streams_share_weighs_what_they_weigh_together() {
    let mut link = shared(Policy::Marked);
    let small = ApplicationId::of(Medium::Video, 1);
    let flows = [VIDEO, VIDEO, small, DATA].map(|application| link.add_flow(application, 0));
    for (number, (flow, weight)) in flows.iter().zip([2, 1, 1, 1]).enumerate() {
        link.set_stream(*flow, number, weight);
    }
    let sent = run(&mut link, 0, 20_000, &flows.map(|flow| (flow, BYTES_A_MS)));
    assert_shares(&[sent[0] + sent[1], sent[2], sent[3]], 20_000, &[0.375, 0.125, 0.5]);
    link.remove_flow(flows[0]);
    let sent = run(&mut link, 20_000, 20_000, &flows.map(|flow| (flow, BYTES_A_MS)));
    assert_shares(&sent[1..], 20_000, &[0.25, 0.25, 0.5]);
}

#[test]
fn what_an_application_does_not_need_others_get_and_it_has_its_share_back_at_once() {
    let mut link = shared(Policy::Pfb);
    link.set_weight_of(Medium::Video, 9);
    let flows = [VIDEO, DATA].map(|application| link.add_flow(application, 0));
    let little = [(flows[0], 300), (flows[1], BYTES_A_MS)];
    assert_shares(&run(&mut link, 0, 10_000, &little), 10_000, &[0.3, 0.7]);
    let none = [(flows[0], 0), (flows[1], BYTES_A_MS)];
    assert_shares(&run(&mut link, 10_000, 10_000, &none), 10_000, &[0.0, 1.0]);
    let both = flows.map(|flow| (flow, BYTES_A_MS));
    assert_shares(&run(&mut link, 20_000, 1000, &both), 1000, &[0.9, 0.1]);
}

#[test]
fn other_weights_hold_at_once_and_another_scheduler_keeps_what_waits() {
    let mut link = shared(Policy::Pfb);
    let flows = [VIDEO, VIDEO, DATA].map(|application| link.add_flow(application, 0));
    let all = flows.map(|flow| (flow, BYTES_A_MS));
    assert_shares(&run(&mut link, 0, 20_000, &all), 20_000, &[0.25, 0.25, 0.5]);
    link.set_weight_of(Medium::Video, 3);
    link.set_stream(flows[1], 1, 2);
    assert_shares(&run(&mut link, 20_000, 20_000, &all), 20_000, &[0.25, 0.5, 0.25]);
    let now = Time::from_millis(40_000);
    let waiting = link.waiting();
    link.set_options(now, LinkOptions { scheduling: Scheduling::Weq, ..*link.options() });
    link.set_options(now, LinkOptions { scheduling: Scheduling::Shares, ..*link.options() });
    assert_eq!(link.waiting(), waiting);
    assert_shares(&run(&mut link, 40_000, 20_000, &all), 20_000, &[0.25, 0.5, 0.25]);
    link.set_options(now, LinkOptions { policy: Policy::PfbAd, ..*link.options() });
    assert_shares(&run(&mut link, 60_000, 20_000, &all), 20_000, &[0.25, 0.5, 0.25]);
}

#[test]
fn what_was_too_late_to_go_is_not_taken_off_the_share() {
    let mut link = shared(Policy::Pfb);
    link.set_useful_for(Some(Duration::from_millis(10)));
    let flows = [VIDEO, DATA].map(|application| link.add_flow(application, 0));
    let sent = run(&mut link, 0, 20_000, &[(flows[0], 4 * BYTES_A_MS), (flows[1], BYTES_A_MS)]);
    assert_shares(&sent, 20_000, &[0.5, 0.5]);
}

#[test]
fn where_everything_shares_one_buffer_it_goes_as_it_comes() {
    let mut link = shared(Policy::Shb);
    link.set_weight_of(Medium::Video, 1000);
    let flows = [DATA, VIDEO, DATA].map(|application| link.add_flow(application, 0));
    (0..9).for_each(|number| link.offer(Time::ZERO, flows[number % 3], frame(0), 1000, number));
    let order = std::iter::successors(Some(0), |ms| Some(ms + 1)).map_while(|ms| {
        match link.depart(Time::from_millis(ms)) {
            Next::Departs(departed) => Some(departed.item),
            _ => None,
        }
    });
    assert!(order.eq(0..9));
}

#[test]
fn another_share_of_lower_classes_holds_from_the_next_packet_on() {
    let priority = LinkOptions { scheduling: Scheduling::Priority, ..options(Policy::Pfb, 20_000) };
    let mut link = Link::new(LinkOptions { slack: Duration::from_millis(2), ..priority });
    let flows = [link.add_flow(VIDEO, 0), link.add_flow(VIDEO, 1)];
    let all = flows.map(|flow| (flow, 2 * BYTES_A_MS));
    assert_shares(&run(&mut link, 0, 20_000, &all), 20_000, &[1.0, 0.0]);
    for (round, percent) in [(1, 5), (2, 25), (3, 10)] {
        let now = Time::from_millis(round * 20_000);
        link.set_options(now, LinkOptions { lower_share: Share::percent(percent), ..*link.options() });
        let share = f64::from(percent) / 100.0;
        assert_shares(&run(&mut link, round * 20_000, 20_000, &all), 20_000, &[1.0 - share, share]);
    }
}
