//! What came of packets of IP on links.

use std::collections::BTreeMap;

use outflow_packet::Drops;
use serde_json::{Value, json};

use crate::network::nodes::Figures;
use crate::network::outcome::Delays;

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

/// Of traffic of the network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TrafficReport {
    /// Packets that were sent.
    pub sent: u64,
    /// Those that arrived, the same one counted once.
    pub arrived: u64,
    /// The mean of its flows' shares of bytes that can be used, 0 to 1.
    pub goodput: f64,
}

/// Of all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// By the links' names.
    pub links: Vec<(String, LinkReport)>,
    /// By the nodes' names: their figures.
    pub nodes: BTreeMap<String, Figures>,
    /// By the names of traffic that goes through links: what came of it.
    pub traffic: BTreeMap<String, TrafficReport>,
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
        let traffic = |(name, of): (&String, &TrafficReport)| {
            let goodput_pct = 100.0 * of.goodput;
            (name.clone(), json!({ "sent": of.sent, "arrived": of.arrived, "goodput_pct": goodput_pct }))
        };
        let traffic: serde_json::Map<_, _> = self.traffic.iter().map(traffic).collect();
        json!({
            "links": links,
            "nodes": self.nodes,
            "traffic": traffic,
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
        for (name, of) in &self.traffic {
            let (sent, arrived, goodput) = (of.sent, of.arrived, 100.0 * of.goodput);
            text += &format!("{name}: {arrived} of {sent} packets arrived, goodput {goodput:.2} %\n");
        }
        for (name, figures) in &self.nodes {
            let figures: Vec<_> = figures.iter().map(|(figure, value)| format!("{figure} {value}")).collect();
            text += &format!("{name}: {}\n", figures.join(", "));
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
