//! The tables of RFC 3376 section 6.4, row by row. INCLUDE (1, 2) and EXCLUDE ({1, 2}, {3, 4}) are where they
//! begin.

use super::*;
use RecordKind::{Allow, Block, IsEx, IsIn, ToEx, ToIn};

/// INCLUDE (1, 2).
fn include() -> Lab {
    let mut lab = Lab::new();
    lab.record(IsIn, &[1, 2]);
    lab.clear();
    lab
}

/// EXCLUDE ({1, 2}, {3, 4}).
fn exclude() -> Lab {
    let mut lab = Lab::new();
    lab.record(IsEx, &[3, 4]);
    lab.says("10.0.0.3", Allow, GROUP, &[1, 2], None);
    lab.clear();
    lab
}

/// How long the sources with timers and the group have, in seconds.
fn timers(lab: &Lab) -> (Vec<(u8, u64)>, Option<u64>) {
    let seconds = |timer: Time| timer.since(lab.now).as_secs();
    let slot = lab.router.groups.find(address(GROUP)).expect("it is there");
    let group = lab.router.groups.get(slot).expect("it is there");
    let running =
        |source: &super::super::wanted::Source| Some((last_byte(source.address), seconds(source.timer?)));
    (group.sources.iter().filter_map(running).collect(), group.timer.map(seconds))
}

fn asked(list: &[u8]) -> Asked {
    (Some(address(GROUP)), false, list.to_vec())
}

#[test]
fn current_state_records_of_an_include_group() {
    let mut lab = include();
    lab.after_ms(10_000);
    lab.record(IsIn, &[2, 3]);
    assert_eq!(timers(&lab), (vec![(1, 250), (2, 260), (3, 260)], None));
    let mut lab = include();
    lab.after_ms(10_000);
    lab.record(IsEx, &[2, 3]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![3])));
    assert_eq!(timers(&lab), (vec![(2, 250)], Some(260)));
    assert_eq!(lab.asked, []);
}

#[test]
fn current_state_records_of_an_exclude_group() {
    let mut lab = exclude();
    lab.after_ms(10_000);
    lab.record(IsIn, &[2, 3, 5]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![4])));
    assert_eq!(timers(&lab), (vec![(1, 250), (2, 260), (3, 260), (5, 260)], Some(250)));
    let mut lab = exclude();
    lab.after_ms(10_000);
    lab.record(IsEx, &[2, 3, 5]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![3])));
    assert_eq!(timers(&lab), (vec![(2, 250), (5, 260)], Some(260)));
    assert_eq!(lab.asked, []);
}

#[test]
fn changes_of_an_include_group() {
    let mut lab = include();
    lab.record(Allow, &[3]);
    assert_eq!((lab.state(), lab.asked.len()), (Some((Mode::Include, vec![1, 2, 3])), 0));
    let mut lab = include();
    lab.record(Block, &[2, 3]);
    assert_eq!(timers(&lab), (vec![(1, 260), (2, 2)], None));
    assert_eq!(lab.asked, [asked(&[2])]);
    let mut lab = include();
    lab.after_ms(10_000);
    lab.record(ToEx, &[2, 3]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![3])));
    assert_eq!(timers(&lab), (vec![(2, 2)], Some(260)));
    assert_eq!(lab.asked, [asked(&[2])]);
    let mut lab = include();
    lab.record(ToIn, &[2, 3]);
    assert_eq!(timers(&lab), (vec![(1, 2), (2, 260), (3, 260)], None));
    assert_eq!(lab.asked, [asked(&[1])]);
}

#[test]
fn changes_of_an_exclude_group() {
    let mut lab = exclude();
    lab.record(Allow, &[3, 5]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![4])));
    assert_eq!(lab.asked, []);
    let mut lab = exclude();
    lab.record(Block, &[2, 3, 5]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![3, 4])));
    assert_eq!(timers(&lab), (vec![(1, 260), (2, 2), (5, 2)], Some(260)));
    assert_eq!(lab.asked, [asked(&[2, 5])]);
    let mut lab = exclude();
    lab.record(ToEx, &[2, 3, 5]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![3])));
    assert_eq!(timers(&lab), (vec![(2, 2), (5, 2)], Some(260)));
    assert_eq!(lab.asked, [asked(&[2, 5])]);
    let mut lab = exclude();
    lab.record(ToIn, &[2, 3, 5]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![4])));
    assert_eq!(timers(&lab), (vec![(1, 2), (2, 260), (3, 260), (5, 260)], Some(2)));
    assert_eq!(lab.asked, [asked(&[]), asked(&[1])]);
}

#[test]
fn a_group_whose_timer_runs_out_becomes_an_include_group_of_what_is_wanted() {
    let mut lab = exclude();
    lab.record(ToIn, &[2]);
    lab.after_ms(2000);
    assert_eq!(lab.state(), Some((Mode::Include, vec![2])), "section 6.5");
    lab.after_ms(258_000);
    assert_eq!(lab.state(), None, "section 6.3");
}

#[test]
fn a_source_whose_timer_runs_out_in_exclude_mode_is_no_longer_wanted() {
    let mut lab = exclude();
    lab.record(Block, &[1]);
    lab.after_ms(2000);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![1, 3, 4])), "section 6.3");
}

#[test]
fn sources_are_asked_about_twice_and_with_the_s_flag_once_somebody_wants_them() {
    let mut lab = include();
    lab.record(Block, &[1, 2]);
    lab.after_ms(500);
    lab.says("10.0.0.3", IsIn, GROUP, &[2], None);
    lab.after_ms(500);
    let later = [asked(&[1]), (Some(address(GROUP)), true, vec![2])];
    assert_eq!(lab.asked, [vec![asked(&[1, 2])], later.to_vec()].concat(), "section 6.6.3.2");
    lab.after_ms(5000);
    assert_eq!((lab.state(), lab.asked.len()), (Some((Mode::Include, vec![2])), 3));
}

#[test]
fn more_is_asked_about_while_queries_are_under_way() {
    let mut lab = include();
    lab.record(Block, &[1]);
    lab.after_ms(600);
    lab.record(Block, &[1, 2]);
    assert_eq!(lab.asked, [asked(&[1]), asked(&[2])], "what is asked about already is left");
    lab.after_ms(400);
    assert_eq!(lab.asked[2], asked(&[1, 2]));
    lab.after_ms(5000);
    assert_eq!((lab.state(), lab.asked.len()), (None, 3));
}

#[test]
fn sources_beyond_the_limit_are_refused_one_by_one() {
    let mut lab = Lab::new();
    lab.record(Allow, &(0..100).collect::<Vec<_>>());
    assert_eq!(lab.state(), Some((Mode::Include, (0..64).collect())));
    assert_eq!(lab.count(Reason::SourceLimit), 36);
}
