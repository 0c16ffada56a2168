//! Paths that no constant was chosen by: to be left as they are, so that they go on saying what to expect.

use super::*;

#[test]
fn flows_of_our_kind_on_paths_that_nothing_was_tuned_on() {
    let (mut all, mut mistaken) = (Vec::new(), 0);
    for count in [2_usize, 4, 6] {
        for (rate, rtt) in [(7, 40), (15, 65), (25, 25), (40, 120), (4, 90)] {
            for gap_ms in [500, 1_700, 4_300] {
                let mut world = World::new(Link::of_ms(rate * MBIT, 1000));
                let flows: Vec<usize> = (0..count)
                    .map(|n| world.add(TestPath::of(rtt).from(n as u64 * gap_ms), Ours::greedy()))
                    .collect();
                let from = (count as u64 - 1) * gap_ms + 10_000;
                world.run_to(from + 30_000);
                let compete = |flow: &usize| world.ours(*flow).share_in(State::Compete, from, from + 30_000);
                mistaken += u32::from(flows.iter().map(compete).sum::<f64>() > 0.0);
                all.push(world.record.fairness(&flows, from, from + 30_000));
            }
        }
    }
    all.sort_by(f64::total_cmp);
    let less = all.iter().filter(|fairness| **fairness < 0.95).count();
    println!("unseen: Jain from {:.3}, {less} of {} below 0.95, {mistaken} mistaken", all[0], all.len());
    assert!(all[0] > 0.8 && less <= 7 && mistaken <= 3);
}

#[test]
fn beside_tcp_on_paths_that_nothing_was_tuned_on() {
    let mut all = Vec::new();
    for growth in [Growth::Cubic, Growth::Reno] {
        for (rate, rtt) in [(6, 35), (15, 70), (30, 40)] {
            for times in [0.7, 1.5, 3.0] {
                for start_ms in [4_000, 13_000] {
                    let mut world = World::new(Link::of_ms(rate * MBIT, bdp_ms(rtt, times)));
                    let ours = world.add(TestPath::of(rtt).from(start_ms), Ours::greedy());
                    let tcp = world.add(TestPath::of(rtt).from(7_000), Tcp::new(growth));
                    world.run_to(150_000);
                    let rate = |flow| world.record.rate(flow, 30_000, 150_000);
                    all.push(rate(ours) / rate(tcp));
                }
            }
        }
    }
    all.sort_by(f64::total_cmp);
    let (low, high) = (all[0], all[all.len() - 1]);
    let beyond = all.iter().filter(|share| !(1.0 / 3.0..3.0).contains(*share)).count();
    println!("unseen, beside TCP: {low:.2} to {high:.2}, {beyond} of {} beyond 1/3 and 3", all.len());
    assert!(low > 0.25 && high < 3.0 && beyond <= 4);
}
