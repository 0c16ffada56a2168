//! Why a packet was dropped. Nothing vanishes: every drop is counted under one of these.

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Why a packet, or bytes that should have been one, went no further.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DropReason {
            $($(#[$doc])* $variant,)+
        }

        impl DropReason {
            /// Every reason, in the order of [`Drops::iter`].
            pub const ALL: &[DropReason] = &[$(DropReason::$variant,)+];

            /// The reason as it stands in metrics and logs.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(DropReason::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// Could not be read as the format that the source announced.
    Malformed = "malformed",
    /// Larger than a receive buffer, than an access unit may be (when RTP is turned into a transport
    /// stream), or than an image of another program may be.
    Oversized = "oversized",
    /// An RTP payload type or channel that the description does not name.
    UnknownTrack = "unknown-track",
    /// From another sender than the stream's own, while that one is active.
    ForeignSource = "foreign-source",
    /// Arrived while the stream had no format yet.
    NoFormat = "no-format",
    /// The queue between a publisher's connection and its worker was full.
    IngestFull = "ingest-full",
    /// The system dropped it because the source's socket was full.
    ReceiveBuffer = "receive-buffer",
    /// The queue between the stream's worker and the one that serves this sink was full.
    HandOverFull = "hand-over-full",
    /// The ring was full and this sink the slowest.
    SlowSink = "slow-sink",
    /// The ring was full, and its policy then refuses what arrives, for all sinks.
    TailDrop = "tail-drop",
    /// The ring filled up, and random early detection refused the packet, for all sinks.
    Red = "red",
    /// Needs a packet that this sink has lost.
    DependsOnDropped = "depends-on-dropped",
    /// Came too late to be put in order (when RTP is turned into a transport stream), or to be told from
    /// a copy (when flows are merged); waited at a link until it was of no use.
    Late = "late",
    /// The rest of an access unit of which a part was lost (when RTP is turned into a transport stream);
    /// an image that another program did not finish.
    Incomplete = "incomplete",
    /// Of a layer above those of the level that the receiver wants.
    Level = "level",
    /// An element was told to leave such packets out.
    Filtered = "filtered",
    /// A link's buffer was full.
    LinkFull = "link-full",
    /// It made room in a link's buffer for what is worth more.
    LessValuable = "less-valuable",
    /// It waited at a link for a receiver that has left.
    ReceiverLeft = "receiver-left",
    /// A connection behind a link took no more.
    ConnectionFull = "connection-full",
    /// Lost on the way to a receiver of the partial-order transport, and not worth sending again.
    NotRepaired = "not-repaired",
    /// More than an element's rate lets pass.
    RateLimit = "rate-limit",
    /// The same packet came before: a copy of it, or one that was recorded and sent again.
    Duplicate = "duplicate",
    /// An encrypted packet that was not made with the key, or that was changed on its way.
    Unauthentic = "unauthentic",
    /// An element cannot work on what the stream carries.
    Unfit = "unfit",
    /// An element went wrong while it worked on this packet.
    ElementFault = "element-fault",
    /// The queue to an execution context, or to another program, was full.
    ContextFull = "context-full",
    /// The elements had used up their share of the processor.
    CpuBudget = "cpu-budget",
    /// The receiver's host said that no socket listens there.
    Refused = "refused",
    /// No route to the receiver, or its network is down.
    Unreachable = "unreachable",
    /// The queue of the device that the packet was to leave by was full.
    DeviceFull = "device-full",
    /// The system or the device did not take the packet.
    System = "system",
}

/// Counters, one a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    /// Counts `packets` more under `reason`.
    pub fn add(&mut self, reason: DropReason, packets: u64) {
        self.0[reason as usize] += packets;
    }

    /// Takes back `packets` counted under `reason` before: they will be offered again.
    pub fn take_back(&mut self, reason: DropReason, packets: u64) {
        self.0[reason as usize] = self.0[reason as usize].saturating_sub(packets);
    }

    /// Adds all counters of `other`.
    pub fn merge(&mut self, other: &Drops) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.wrapping_add(theirs);
        }
    }

    /// Takes all counters of `other` off. Below zero they wrap, until the same is added again.
    pub fn take_off(&mut self, other: &Drops) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.wrapping_sub(theirs);
        }
    }

    /// Raises every counter to what `other` has, where that is more.
    pub fn raise_to(&mut self, other: &Drops) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = theirs.max(*mine);
        }
    }

    /// Packets dropped for `reason`.
    pub const fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every reason by its name with its count, zeros left out: what another process takes up.
    pub fn save(&self) -> Vec<(String, u64)> {
        let some = self.iter().filter(|(_, count)| *count > 0);
        some.map(|(reason, count)| (reason.as_str().to_owned(), count)).collect()
    }

    /// What another process has counted. A reason that is not known here is left out.
    pub fn restore(saved: &[(String, u64)]) -> Self {
        let mut drops = Drops::default();
        for (name, count) in saved {
            let reason = DropReason::ALL.iter().find(|reason| reason.as_str() == name);
            // Sums of some of these fit their type.
            reason.into_iter().for_each(|reason| drops.0[*reason as usize] = (*count).min(1 << 48));
        }
        drops
    }

    /// Every reason with its count, zeros included, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&reason| (reason, self.get(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_under_their_reason() {
        let mut drops = Drops::default();
        drops.add(DropReason::SlowSink, 3);
        drops.add(DropReason::Malformed, 1);
        let mut sum = drops;
        sum.merge(&drops);
        assert_eq!(sum.get(DropReason::SlowSink), 6);
        assert_eq!(sum.total(), 8);
        assert_eq!(sum.iter().filter(|(_, n)| *n > 0).count(), 2);
    }

    #[test]
    fn counts_go_on_by_their_names() {
        let mut drops = Drops::default();
        drops.add(DropReason::SlowSink, 3);
        let mut saved = drops.save();
        assert_eq!(saved, [("slow-sink".to_owned(), 3)]);
        saved.push(("of-tomorrow".to_owned(), 9));
        assert_eq!(Drops::restore(&saved), drops);
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = DropReason::ALL.iter().map(|r| r.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), DropReason::ALL.len());
    }
}
