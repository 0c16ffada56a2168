//! What tests want to know.

use super::*;

impl Incoming {
    pub(in crate::connection) fn need(&self, unit: u64) -> Need {
        self.engine.need(unit)
    }

    pub(in crate::connection) fn check_accounts(&self) {
        let assembling = self.assembling.values().map(|assembly| u64::from(assembly.bytes())).sum::<u64>();
        let held = self.held.values().map(|whole| whole.len() as u64).sum::<u64>();
        assert_eq!(self.buffered, assembling + held + self.unread.bytes(), "bytes that are kept");
        assert!(self.buffered <= u64::from(self.flow.buffer_bytes), "{} bytes are kept", self.buffered);
        let window = u64::from(self.flow.rounds) * self.flow.net.objects() as u64;
        assert!((self.assembling.len() + self.held.len()) as u64 <= window);
        assert!(self.unread.len() as u64 <= window, "{} of {window} units unread", self.unread.len());
        assert!(self.lost.spans().len() as u64 <= 2 * window, "{:?}", self.lost);
    }

    pub(in crate::connection) fn describe(&self) -> String {
        let engine = (self.engine.settled_below(), self.engine.window_end(), self.engine.next_timeout());
        format!(
            "engine {engine:?}, known {}, told {:?}, buffered {}, held {:?}, assembling {:?}, unread {:?}, {:?}",
            self.known_below,
            self.told,
            self.buffered,
            self.held.keys(),
            self.assembling.keys(),
            self.unread.lowest(),
            self.counts
        )
    }
}
