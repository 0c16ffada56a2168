//! What came of an emulation.

use outflow_packet::Drops;
use outflow_sim::network::Delays;
use serde_json::{Value, json};

/// Of one link.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkReport {
    /// Packets that came to it.
    pub packets: u64,
    /// Their bytes, with the headers of IP.
    pub bytes: u64,
    /// What did not fit, or was late, by reason.
    pub drops: Drops,
    /// Packets that were lost on the way behind its buffer.
    pub lost: u64,
    /// Packets of which there were two from here on.
    pub copied: u64,
}

impl LinkReport {
    /// Why packets were dropped, and how many.
    fn dropped(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let drops = self.drops.iter().filter(|(_, count)| *count > 0);
        drops.map(|(reason, count)| (reason.as_str(), count))
    }
}

/// Of all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// By the links' names.
    pub links: Vec<(String, LinkReport)>,
    /// What media went through: `studio > home: 10.0.0.1:5000 > 10.0.0.2:5000: H264`.
    pub media: Vec<String>,
    /// Packets that came to their ends.
    pub arrived: u64,
    /// Packets for which no path leads anywhere.
    pub no_path: u64,
    /// What was no packet of IP.
    pub malformed: u64,
    /// Packets that found too many others on their way.
    pub full: u64,
    /// Packets that an end did not take.
    pub refused: u64,
    /// How much later than they should packets came to their ends.
    pub behind: Delays,
}

impl Report {
    /// For programs.
    pub fn json(&self) -> Value {
        let link = |(name, link): &(String, LinkReport)| {
            let drops = link.dropped().map(|(reason, count)| (reason.to_owned(), json!(count)));
            let drops: serde_json::Map<_, _> = drops.collect();
            let value = json!({
                "packets": link.packets,
                "bytes": link.bytes,
                "drops": drops,
                "lost": link.lost,
                "copied": link.copied,
            });
            (name.clone(), value)
        };
        let links: serde_json::Map<_, _> = self.links.iter().map(link).collect();
        json!({
            "links": links,
            "media": self.media,
            "arrived": self.arrived,
            "no_path": self.no_path,
            "malformed": self.malformed,
            "full": self.full,
            "refused": self.refused,
            "behind_p50_ms": self.behind.quantile_ms(0.5),
            "behind_p99_ms": self.behind.quantile_ms(0.99),
        })
    }

    /// For people.
    pub fn words(&self) -> String {
        let mut text = String::new();
        for (name, link) in &self.links {
            let drops: Vec<_> = link.dropped().map(|(reason, count)| format!("{reason} {count}")).collect();
            let dropped = if drops.is_empty() { "none".to_owned() } else { drops.join(", ") };
            text += &format!(
                "{name}: {} packets, {} bytes; dropped: {dropped}; lost {}, doubled {}\n",
                link.packets, link.bytes, link.lost, link.copied
            );
        }
        for media in &self.media {
            text += &format!("{media}\n");
        }
        let other = [
            (self.no_path, "for no end"),
            (self.malformed, "no packets of IP"),
            (self.full, "too many on their way"),
            (self.refused, "not taken by their ends"),
        ];
        for (count, what) in other.into_iter().filter(|(count, _)| *count > 0) {
            text += &format!("{count} {what}\n");
        }
        text += &format!(
            "{} packets arrived, half of them within {:.3} ms of their time, 99 % within {:.3} ms\n",
            self.arrived,
            self.behind.quantile_ms(0.5),
            self.behind.quantile_ms(0.99)
        );
        text
    }
}
