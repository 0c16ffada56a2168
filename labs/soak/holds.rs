//! What a relay holds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use aya::maps::{Array, Map, MapData};
use outflow_labs::relay::Relay;
use serde_json::{Value, json};

/// Connections that ended are closed a moment later, and output that no receiver takes any more is kept for a while
/// (`BRANCH_LINGER` of the relay).
const LINGER: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Bytes of an entry of the kernel's table (`struct target` in crates/kernel/bpf/layout.h).
const ENTRY: usize = 64;
/// Where its device is, which is 0 if it is blank.
const DEVICE: std::ops::Range<usize> = 44..48;

/// What a relay holds, or by how much that has grown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holds {
    /// Bytes.
    pub(crate) resident: i64,
    pub(crate) descriptors: i64,
    /// Of the kernel's tables, those that are not blank.
    pub(crate) entries: i64,
}

impl Holds {
    /// The least of each in a while in which nothing happens.
    pub(crate) fn of(relay: &mut Relay<'_>) -> Result<Self> {
        let until = Instant::now() + LINGER;
        let mut least = Self::now(relay)?;
        while Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
            let now = Self::now(relay)?;
            least.resident = least.resident.min(now.resident);
            least.descriptors = least.descriptors.min(now.descriptors);
            least.entries = least.entries.min(now.entries);
        }
        Ok(least)
    }

    fn now(relay: &mut Relay<'_>) -> Result<Self> {
        let process = relay.process();
        let (descriptors, entries) = (process.descriptors()?.cast_signed() as i64, entries(process.pid())?);
        Ok(Self { resident: relay.resident()?.cast_signed(), descriptors, entries })
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            resident: self.resident - before.resident,
            descriptors: self.descriptors - before.descriptors,
            entries: self.entries - before.entries,
        }
    }

    pub(crate) fn figures(&self) -> Value {
        let rss_mb = outflow_labs::figures::rounded(self.resident as f64 / 1e6);
        json!({ "rss_mb": rss_mb, "descriptors": self.descriptors, "entries": self.entries })
    }
}

/// Entries that are not blank of all tables of a process.
fn entries(pid: u32) -> Result<i64> {
    let mut tables = BTreeMap::new();
    for file in std::fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        // Some close meanwhile.
        let text = std::fs::read_to_string(file?.path()).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().parse::<u32>().ok()
        };
        if let (Some(map), Some(bytes), Some(entries)) =
            (field("map_id"), field("value_size"), field("max_entries"))
            && bytes as usize == ENTRY
            && entries > 1
        {
            tables.insert(map, entries);
        }
    }
    let mut taken = 0;
    for (map, entries) in tables {
        let data = MapData::from_id(map).context("a table of the relay cannot be read")?;
        let table: Array<MapData, [u8; ENTRY]> = Array::try_from(Map::Array(data))?;
        for place in 0..entries {
            let entry = table.get(&place, 0)?;
            taken += i64::from(entry[DEVICE] != [0; 4]);
        }
    }
    Ok(taken)
}
