//! A configuration of which a part could not be made: what is in force then.

use crate::Config;

/// Something that could not be made as a new configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmade {
    /// The stream of this name, and whether there is one as before.
    Stream(String, bool),
    /// The sink of this name, and whether there is one as before.
    Sink(String, bool),
    /// What a protocol was told.
    Protocol,
}

impl Config {
    /// What could not be made is in force as it was, with the link that it is behind.
    pub fn put_back(&mut self, old: &Config, unmade: &Unmade) {
        let link = match unmade {
            Unmade::Stream(name, is_there) => {
                self.streams.remove(name);
                let before = old.streams.get(name).filter(|_| *is_there);
                self.streams.extend(before.map(|before| (name.clone(), before.clone())));
                before.and_then(|stream| stream.link.as_ref())
            }
            Unmade::Sink(name, is_there) => {
                self.sinks.retain(|sink| sink.name != *name);
                let before = old.sinks.iter().find(|sink| sink.name == *name).filter(|_| *is_there);
                self.sinks.extend(before.cloned());
                before.and_then(|sink| sink.link.as_ref())
            }
            Unmade::Protocol => None,
        };
        if let Some((name, link)) = link.and_then(|link| old.links.get_key_value(&link.0)) {
            self.links.entry(name.clone()).or_insert_with(|| link.clone());
        }
    }
}
