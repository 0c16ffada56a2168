//! Which level a group is wanted at.

use super::*;

#[test]
fn a_group_is_wanted_at_the_best_level_of_its_hosts() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 1)));
    assert_eq!(
        lab.events,
        [Event::GroupWanted { group: address(GROUP), level: Level::new(20).expect("one") }]
    );
    lab.says("10.0.0.3", RecordKind::ToEx, GROUP, &[], Some((7, 9)));
    assert_eq!(lab.level(), Some(7));
    lab.says("10.0.0.4", RecordKind::ToEx, GROUP, &[], None);
    assert_eq!(lab.level(), Some(1), "who says nothing wants the best");
    lab.says("10.0.0.4", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!(lab.level(), Some(7), "a level is over with the membership");
    assert_eq!(lab.events.len(), 4);
}

#[test]
fn a_report_without_a_level_does_not_change_it() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 1)));
    lab.clear();
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], None);
    assert_eq!((lab.level(), lab.events.len()), (Some(20), 0));
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((1, 2)));
    assert_eq!((lab.level(), lab.events.len()), (Some(1), 1));
}

#[test]
fn late_levels_are_refused_and_those_of_a_host_that_began_anew_are_taken() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 5)));
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((3, 4)));
    assert_eq!((lab.level(), lab.count(Reason::LateLevel)), (Some(20), 1));
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((3, 0x8000_0000)));
    assert_eq!(lab.level(), Some(3));
    lab.after_ms(10_000);
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((8, 0x7fff_ffff)));
    assert_eq!(lab.level(), Some(8), "it is too long ago to be late");
}

#[test]
fn a_host_that_falls_silent_takes_its_level_along() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 5)));
    lab.says("10.0.0.3", RecordKind::ToEx, GROUP, &[], Some((3, 5)));
    lab.after_ms(200_000);
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], None);
    lab.after_ms(59_999);
    assert_eq!(lab.level(), Some(3));
    lab.after_ms(1);
    assert_eq!(lab.level(), Some(20));
}

#[test]
fn while_the_last_host_is_asked_for_the_level_stays() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 5)));
    lab.clear();
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], Some((0, 6)));
    assert_eq!((lab.level(), lab.events.len()), (Some(20), 0));
    lab.after_ms(2000);
    assert_eq!(lab.events, [Event::GroupGone { group: address(GROUP) }]);
}

#[test]
fn a_host_that_blocks_its_last_source_may_say_that_it_is_gone() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::Allow, GROUP, &[1], Some((20, 5)));
    lab.says("10.0.0.3", RecordKind::Allow, GROUP, &[2], Some((4, 5)));
    lab.says("10.0.0.3", RecordKind::Block, GROUP, &[2], Some((0, 6)));
    assert_eq!(lab.level(), Some(20));
}

#[test]
fn hosts_of_older_versions_want_the_best() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 5)));
    lab.old_report(Version::V2, "10.0.0.3");
    assert_eq!(lab.level(), Some(1));
    for _ in 0..3 {
        lab.after_ms(100_000);
        lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], None);
    }
    assert_eq!(lab.level(), Some(20), "until none of them can be there any more");
}

#[test]
fn a_level_of_a_group_that_the_host_is_no_member_of_is_refused() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 5)));
    lab.says("10.0.0.3", RecordKind::Block, GROUP, &[9], Some((2, 5)));
    assert_eq!((lab.level(), lab.count(Reason::LevelOfNoMember)), (Some(20), 1));
}

#[test]
fn when_a_host_of_an_older_version_leaves_there_may_be_others() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((20, 5)));
    lab.old_report(Version::V2, "10.0.0.3");
    lab.leave("10.0.0.3");
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], None);
    lab.after_ms(10_000);
    assert_eq!(lab.level(), Some(1), "whose reports were not needed beside this one's");
}

#[test]
fn a_level_that_is_said_otherwise_holds_as_long_as_the_host_is_a_member() {
    let mut lab = Lab::new();
    let other = "225.1.2.4";
    for group in [GROUP, other] {
        lab.says("10.0.0.2", RecordKind::ToEx, group, &[], None);
    }
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Ok(()));
    assert_eq!(lab.level(), Some(20));
    let level_there = |lab: &Lab| lab.router.wanted(address(other)).map(|wanted| wanted.level.number());
    assert_eq!(level_there(&lab), Some(1), "of one group nothing follows for another");
    lab.after_ms(200_000);
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], None);
    assert_eq!((lab.level(), level_there(&lab)), (Some(20), Some(1)), "plain reports leave it");
    lab.after_ms(260_000);
    assert_eq!((lab.level(), level_there(&lab)), (None, None));
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], None);
    assert_eq!(lab.level(), Some(1), "who comes again says it again");
}

#[test]
fn the_last_word_counts_however_it_is_said() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((9, 5)));
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Ok(()));
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((9, 4)));
    assert_eq!(lab.level(), Some(20), "a report that is late has not the last word");
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((3, 6)));
    assert_eq!(lab.level(), Some(3));
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Ok(()));
    assert_eq!(lab.level(), Some(20));
}

#[test]
fn only_members_that_are_known_say_levels_and_not_too_often() {
    let mut lab = Lab::with(|settings| settings.hosts_max = 1);
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Err(Reason::LevelOfNoMember));
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.says("10.0.0.3", RecordKind::ToEx, GROUP, &[], None);
    assert_eq!(lab.tells("10.0.0.3", GROUP, 20), Err(Reason::LevelOfNoMember), "there is no place for it");
    assert_eq!(lab.tells("10.0.0.4", GROUP, 20), Err(Reason::LevelOfNoMember));
    assert_eq!(lab.count(Reason::LevelOfNoMember), 3);
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Ok(()));
    assert_eq!(lab.level(), Some(1), "who is not known wants the best");
    let refused = (0..2000).filter(|_| lab.tells("10.0.0.2", GROUP, 20) == Err(Reason::RateLimit)).count();
    assert_eq!((refused as u64, refused > 900), (lab.count(Reason::RateLimit), true));
}
