//! The types of messages: their codes in IGMP and MLD, and what they are in both.

use crate::membership::Version;
use crate::membership::address::Family;

pub(super) const IGMP_QUERY: u8 = 0x11;
pub(super) const IGMP_REPORT_V1: u8 = 0x12;
pub(super) const IGMP_REPORT_V2: u8 = 0x16;
pub(super) const IGMP_LEAVE: u8 = 0x17;
pub(super) const IGMP_REPORT: u8 = 0x22;
pub(super) const MLD_QUERY: u8 = 130;
pub(super) const MLD_REPORT_V1: u8 = 131;
pub(super) const MLD_DONE: u8 = 132;
pub(super) const MLD_REPORT: u8 = 143;

/// What a type is, whichever the family.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Query,
    OldReport(Version),
    Leave,
    Report,
}

impl Kind {
    pub(super) const fn of(family: Family, code: u8) -> Option<Kind> {
        Some(match (family, code) {
            (Family::V4, IGMP_QUERY) | (Family::V6, MLD_QUERY) => Kind::Query,
            (Family::V4, IGMP_REPORT_V1) => Kind::OldReport(Version::V1),
            (Family::V4, IGMP_REPORT_V2) | (Family::V6, MLD_REPORT_V1) => Kind::OldReport(Version::V2),
            (Family::V4, IGMP_LEAVE) | (Family::V6, MLD_DONE) => Kind::Leave,
            (Family::V4, IGMP_REPORT) | (Family::V6, MLD_REPORT) => Kind::Report,
            _ => return None,
        })
    }
}
