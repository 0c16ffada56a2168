//! Every limit of groups, with what happens when it is reached.

/// Port of the groups that streams go to because somebody asks for that (RFC 3551, section 8).
pub(crate) const GROUP_PORT: u16 = 5004;
