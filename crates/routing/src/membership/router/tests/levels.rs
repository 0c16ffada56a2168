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
    assert_eq!(lab.level(), Some(1), "one that says nothing wants the best");
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
fn late_levels_are_refused_and_those_of_a_host_that_began_again_are_taken() {
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
    assert_eq!(lab.level(), Some(1), "one that comes again says it again");
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
    assert_eq!(lab.level(), Some(1), "one that is not known wants the best");
    let refused = (0..2000).filter(|_| lab.tells("10.0.0.2", GROUP, 20) == Err(Reason::RateLimit)).count();
    assert_eq!((refused as u64, refused > 900), (lab.count(Reason::RateLimit), true));
}

/// The levels that were told, one after the other.
fn told(lab: &Lab) -> Vec<u8> {
    let level = |event: &Event| match event {
        Event::GroupWanted { level, .. } => Some(level.number()),
        _ => None,
    };
    lab.events.iter().filter_map(level).collect()
}

/// A program on a host says level 2 when a player there has ended, and before the host's kernel says so.
fn between_players() -> Lab {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((3, 1)));
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.after_ms(5000);
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((2, 2)));
    lab.after_ms(10);
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!(told(&lab), [3, 2]);
    lab.clear();
    lab
}

#[test]
fn a_kernel_that_leaves_does_not_unsay_the_level_of_a_program() {
    let mut lab = between_players();
    lab.after_ms(50);
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.after_ms(600);
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((2, 2)));
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.after_ms(100_000);
    assert_eq!((lab.level(), told(&lab)), (Some(2), vec![]));
}

#[test]
fn a_kernel_that_repeats_its_leave_does_not_unsay_a_level_that_was_said_meanwhile() {
    let mut lab = between_players();
    lab.after_ms(300);
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], Some((5, 3)));
    lab.after_ms(300);
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!(lab.asked.len(), 1, "it may be that the program left since");
    lab.after_ms(1900);
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((5, 3)));
    lab.after_ms(100_000);
    assert_eq!((lab.level(), told(&lab)), (Some(5), vec![5]));
}

#[test]
fn a_level_that_no_program_confirms_is_over_when_members_were_asked() {
    let mut lab = between_players();
    lab.after_ms(1999);
    assert_eq!(lab.level(), Some(2));
    lab.after_ms(1);
    assert_eq!(lab.events, [Event::GroupGone { group: address(GROUP) }], "it ends as any group does");

    let mut lab = between_players();
    lab.after_ms(500);
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], None);
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.after_ms(1499);
    assert!(told(&lab).is_empty());
    lab.after_ms(1);
    assert_eq!(told(&lab), [1], "a player there that never said one gets the best");

    let mut lab = between_players();
    lab.says("10.0.0.3", RecordKind::ToEx, GROUP, &[], Some((9, 1)));
    lab.clear();
    lab.after_ms(2000);
    assert_eq!((told(&lab), lab.router.usage()), (vec![9], [1, 1, 1]), "others keep only what they want");
}

#[test]
fn a_kernel_that_leaves_takes_along_what_was_said_otherwise() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Ok(()));
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Err(Reason::LevelOfNoMember));
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    assert_eq!(lab.level(), Some(1));
}

#[test]
fn what_is_said_otherwise_after_a_kernel_left_holds_for_the_next_player() {
    let mut lab = between_players();
    assert_eq!(lab.tells("10.0.0.2", GROUP, 20), Ok(()));
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.after_ms(5000);
    assert_eq!(told(&lab), [20]);
}

#[test]
fn a_program_that_leaves_does_not_speak_for_the_kernel_of_its_host() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
    lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((4, 1)));
    lab.says("10.0.0.3", RecordKind::ToEx, GROUP, &[], Some((9, 1)));
    lab.clear();
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], Some((0, 2)));
    assert_eq!((lab.level(), lab.asked.len()), (Some(4), 1), "9 would be too little for a player there");
    lab.after_ms(500);
    lab.says("10.0.0.2", RecordKind::IsEx, GROUP, &[], None);
    lab.says("10.0.0.3", RecordKind::IsEx, GROUP, &[], Some((9, 1)));
    lab.after_ms(1500);
    assert_eq!(told(&lab), [1]);
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!(lab.level(), Some(9), "both have left");
}

#[test]
fn fast_leave_asks_a_host_where_a_program_says_levels_and_a_player_plays() {
    let both = || {
        let mut lab = Lab::with(|settings| settings.fast_leave = true);
        lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], Some((4, 1)));
        lab.says("10.0.0.2", RecordKind::ToEx, GROUP, &[], None);
        lab
    };
    let (kernel, program) = (None, Some((0, 2)));
    for (first, last) in [(kernel, program), (program, kernel)] {
        let mut lab = both();
        lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], first);
        assert_eq!((lab.level(), lab.asked.len()), (Some(4), 1));
        lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], last);
        assert_eq!(lab.state(), None, "it was the last");
    }
}

#[test]
fn with_mld_a_kernel_that_leaves_does_not_unsay_the_level_of_a_program() {
    let settings = RouterSettings::new(Link::new(address("fe80::100"), 64));
    let mut router = Router::new(Time::ZERO, settings);
    let (host, group) = (address("fe80::2"), address("ff0e::1:2"));
    let (mut entries, mut out) = (Vec::new(), Vec::new());
    let sequence = [
        (0, RecordKind::ToEx, Some(3)),
        (10, RecordKind::ToEx, None),
        (20, RecordKind::ToIn, None),
        (90, RecordKind::ToEx, None),
        (900, RecordKind::IsEx, Some(3)),
        (5000, RecordKind::IsEx, None),
    ];
    for (ms, kind, level) in sequence {
        let mut writer = ReportWriter::new(host, Some(1), &mut entries, &mut out);
        assert!(writer.push(kind, group, [], level));
        writer.finish();
        router.handle_packet(Time::from_millis(ms), &out);
        assert_eq!(router.wanted(group).map(|wanted| wanted.level.number()), Some(3), "after {ms} ms");
    }
}
