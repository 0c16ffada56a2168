//! Hosts and routers of older versions (RFC 3376 section 7.3).

use super::*;

#[test]
fn hosts_of_version_2_make_block_and_lists_to_exclude_ignored() {
    let mut lab = Lab::new();
    lab.old_report(Version::V2, "10.0.0.2");
    lab.says("10.0.0.3", RecordKind::Block, GROUP, &[1], None);
    assert_eq!((lab.state(), lab.count(Reason::OlderHosts)), (Some((Mode::Exclude, vec![])), 1));
    lab.says("10.0.0.3", RecordKind::ToEx, GROUP, &[1], None);
    lab.after_ms(3000);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![])));
    lab.says("10.0.0.3", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!(lab.asked.len(), 1, "that somebody leaves is heard");
}

#[test]
fn hosts_of_version_1_make_leaves_ignored() {
    let mut lab = Lab::new();
    lab.old_report(Version::V1, "10.0.0.2");
    lab.leave("10.0.0.3");
    lab.says("10.0.0.3", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!((lab.asked.len(), lab.count(Reason::OlderHosts)), (0, 2));
    lab.after_ms(200_000);
    lab.old_report(Version::V2, "10.0.0.2");
    lab.after_ms(59_999);
    lab.leave("10.0.0.2");
    assert_eq!(lab.asked.iter().filter(|asked| asked.0.is_some()).count(), 0);
    lab.after_ms(1);
    lab.leave("10.0.0.2");
    let asked = lab.asked.iter().filter(|asked| asked.0.is_some()).count();
    assert_eq!(asked, 1, "section 8.13: the older host present interval is over");
}

#[test]
fn version_3_is_back_when_older_hosts_are_gone() {
    let mut lab = Lab::new();
    lab.old_report(Version::V2, "10.0.0.2");
    for _ in 0..3 {
        lab.after_ms(100_000);
        lab.says("10.0.0.3", RecordKind::IsEx, GROUP, &[], None);
    }
    lab.says("10.0.0.3", RecordKind::Block, GROUP, &[1], None);
    lab.after_ms(2000);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![1])));
}

#[test]
fn a_router_set_to_version_2_asks_of_groups_alone() {
    let mut lab = Lab::with(|settings| settings.version = Version::V2);
    lab.record(RecordKind::Allow, &[1]);
    lab.record(RecordKind::Block, &[1]);
    assert_eq!(lab.asked, []);
    lab.old_report(Version::V2, "10.0.0.2");
    lab.leave("10.0.0.2");
    assert_eq!(lab.asked, [(Some(address(GROUP)), false, vec![])]);
}

#[test]
fn a_router_set_to_version_1_asks_all_alone() {
    let mut lab = Lab::with(|settings| settings.version = Version::V1);
    lab.old_report(Version::V1, "10.0.0.2");
    lab.leave("10.0.0.2");
    lab.after_ms(100_000);
    assert!(lab.asked.iter().all(|(group, ..)| group.is_none()));
    assert!(lab.state().is_some());
}
