//! Whatever comes, memory stays bounded and what is known is served.

use super::*;
use crate::membership::limits::{HOST_GROUPS_MAX, HOSTS_MAX};

#[test]
fn a_million_groups_fill_the_table_and_known_groups_are_served() {
    let mut lab = Lab::with(|settings| settings.groups_max = 1000);
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((3, 1)));
    let (mut entries, mut out) = (Vec::new(), Vec::new());
    let (mut number, mut packets) = (0_u32, 0_u32);
    while number < 1_000_000 {
        let host = IpAddr::from([10, 0, 0, 3 + (packets % 90) as u8]);
        let mut writer = ReportWriter::new(host, None, &mut entries, &mut out);
        while writer.push(RecordKind::ToEx, IpAddr::from((0xe200_0000 + number).to_be_bytes()), [], None) {
            number += 1;
        }
        writer.finish();
        packets += 1;
        lab.now = lab.now + Duration::from_millis(1);
        lab.packet(&out);
    }
    let [groups, hosts, members] = lab.router.usage();
    assert_eq!((groups, hosts <= 91, members), (1000, true, 1000));
    assert_eq!(lab.count(Reason::GroupLimit) + lab.count(Reason::HostGroupLimit), u64::from(number) - 999);
    assert_eq!(lab.events.len(), 1000);
    assert_eq!(lab.level(), Some(3));
    lab.clear();
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], None);
    lab.after_ms(2000);
    let gone = Event::GroupGone { group: address(GROUP) };
    assert_eq!((lab.asked.len(), &lab.events[..]), (2, &[gone][..]));
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![])), "there is a place again");
}

#[test]
fn one_host_does_not_take_all_places() {
    let mut lab = Lab::new();
    for number in 0..2000_u32 {
        let group = IpAddr::from((0xe200_0000 + number).to_be_bytes());
        lab.now = lab.now + Duration::from_millis(2);
        lab.says("10.0.0.2", RecordKind::ToEx, &group.to_string(), &[], None);
    }
    assert_eq!(lab.router.usage(), [HOST_GROUPS_MAX, 1, HOST_GROUPS_MAX]);
    assert_eq!(lab.count(Reason::HostGroupLimit), 2000 - HOST_GROUPS_MAX as u64);
    lab.says("10.0.0.3", RecordKind::ToEx, GROUP, &[], Some((9, 1)));
    assert_eq!(lab.level(), Some(9));
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    assert_eq!(lab.level(), Some(1), "it may join what is there, and then wants the best");
}

#[test]
fn hosts_without_a_place_refresh_what_is_there() {
    let mut lab = Lab::with(|settings| settings.hosts_max = 1);
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((9, 1)));
    lab.says("10.0.0.3", RecordKind::ToEx, "226.0.0.1", &[], None);
    assert_eq!((lab.count(Reason::HostLimit), lab.router.usage()), (1, [1, 1, 1]));
    lab.after_ms(200_000);
    lab.says("10.0.0.3", RecordKind::IsEx, GROUP, &[], None);
    lab.after_ms(100_000);
    assert_eq!((lab.level(), lab.router.usage()), (Some(1), [1, 0, 0]));
}

#[test]
fn a_host_that_sends_too_much_is_not_heard() {
    let mut lab = Lab::new();
    for _ in 0..1500 {
        lab.record(RecordKind::IsEx, &[]);
    }
    assert_eq!(lab.count(Reason::RateLimit), 500);
    lab.says("10.0.0.3", RecordKind::ToEx, "226.0.0.1", &[], None);
    assert_eq!(lab.router.groups().count(), 2);
}

#[test]
fn whatever_hosts_say_all_is_forgotten_in_the_end() {
    for seed in 0..20 {
        let mut lab = Lab::with(|settings| {
            (settings.groups_max, settings.hosts_max, settings.host_groups_max) = (20, 10, 8);
            settings.fast_leave = seed % 2 == 0;
        });
        let mut random = fastrand::Rng::with_seed(seed);
        let kinds = [
            RecordKind::IsIn,
            RecordKind::IsEx,
            RecordKind::ToIn,
            RecordKind::ToEx,
            RecordKind::Allow,
            RecordKind::Block,
        ];
        for _ in 0..2000 {
            let host = format!("10.0.0.{}", random.u8(1..30));
            let group = format!("226.0.0.{}", random.u8(0..40));
            let list: Vec<u8> = (0..random.usize(0..4)).map(|_| random.u8(0..8)).collect();
            let level = random.bool().then(|| (random.u8(..), random.u32(0..9)));
            let kind = kinds[random.usize(..6)];
            match random.u8(0..10) {
                0 => lab.query("10.0.0.99", query_head(Some(&group)), &list),
                1 => lab.old_report(Version::V2, &host),
                2 => lab.leave(&host),
                _ => lab.says(&host, kind, &group, &list, level),
            }
            lab.after_ms(random.u64(0..4000));
            let [groups, hosts, members] = lab.router.usage();
            assert!(groups <= 20 && hosts <= 10 && members <= 80);
            assert!(lab.router.hosts.len() <= HOSTS_MAX);
        }
        lab.after_ms(1_000_000);
        assert_eq!(lab.router.groups().count(), 0);
        let [groups, _, members] = lab.router.usage();
        assert_eq!((groups, members), (0, 0), "seed {seed}");
        assert!(lab.told.is_empty());
    }
}
