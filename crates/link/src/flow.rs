//! Flows, what they are for, and which of them belong together.

/// A flow: the packets of a track of a stream to one receiver, or of anything else that has an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub usize);

/// Flows of one application are alike: they may share a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub u32);

/// What a flow is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// Pictures; a transport stream and whatever is in it.
    Video,
    /// Sound.
    Audio,
    /// Everything else, and what is not known.
    Data,
}

impl Medium {
    /// All of them.
    pub const ALL: [Medium; 3] = [Medium::Video, Medium::Audio, Medium::Data];

    /// Its name, as it stands in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Medium::Video => "video",
            Medium::Audio => "audio",
            Medium::Data => "data",
        }
    }
}

impl ApplicationId {
    /// The flows of a medium that are alike: the first group of them has the number 0.
    pub const fn of(medium: Medium, group: u32) -> Self {
        ApplicationId(group * Medium::ALL.len() as u32 + medium as u32)
    }

    /// What they are for.
    pub const fn medium(self) -> Medium {
        Medium::ALL[self.0 as usize % Medium::ALL.len()]
    }

    /// Which group of its medium it is.
    pub const fn group(self) -> u32 {
        self.0 / Medium::ALL.len() as u32
    }
}
