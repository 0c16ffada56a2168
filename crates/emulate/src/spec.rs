//! A link in one line: `20 Mbit/s, 50 ms, loss 1 % bursts 30 ms`.

use outflow_config::{BitRate, parse_duration};
use outflow_sim::network::{EndModel, LinkModel, Network, PathModel};
use toml::{Table, Value};

/// How long a buffer holds at the link's rate if nothing is said ...
const BUFFER_S: f64 = 0.1;

/// ... but no less than this: some packets.
const BUFFER_MIN: u64 = 15_000;

/// What is shared and what is lost if nothing is said: one buffer for everything, as in most routers.
const POLICY: &str = "shb";

/// Why a text is no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{part}' is no part of a link: {why}")]
pub struct SpecError {
    /// What is wrong.
    part: String,
    /// Why.
    why: String,
}

/// What can be said.
const PARTS: &str = "write a rate ('20 Mbit/s'), a delay ('50 ms'), 'loss 1 %', 'loss 1 % bursts 30 ms', \
                     'loss 1 % bursts 30 ms of 50 %', 'reorder 1 % by 5 ms', 'duplicate 0.1 %', \
                     'buffer 64 kB', 'buffer 100 ms', 'policy elastic', 'scheduler wrr', 'useful 200 ms', \
                     separated by commas";

/// Reads a link. Without a rate it takes everything at once; with one, its buffer holds what passes in 100 ms, all
/// traffic shares it, and what does not fit is lost, if nothing else is said.
///
/// # Errors
/// Which part is wrong, and what can be written.
pub fn link(text: &str) -> Result<LinkModel, SpecError> {
    let (mut table, mut impairments) = (Table::new(), Table::new());
    for part in text.split(',').map(str::trim) {
        let known = read(part, &mut table, &mut impairments);
        known.map_err(|why| SpecError { part: part.to_owned(), why })?;
    }
    let whole = |why: String| SpecError { part: text.to_owned(), why };
    if let Some(rate) = table.get("rate").and_then(Value::as_str).map(str::to_owned) {
        let bps: BitRate = rate.parse().map_err(|_| whole(PARTS.to_owned()))?;
        let holds = |seconds: f64| format!("{} B", ((bps.0 as f64 / 8.0 * seconds) as u64).max(BUFFER_MIN));
        let buffer = match table.remove("buffer").as_ref().and_then(Value::as_str) {
            None => holds(BUFFER_S),
            Some(given) => match parse_duration(given) {
                Ok(time) => holds(time.as_secs_f64()),
                Err(_) => given.to_owned(),
            },
        };
        table.insert("buffer".into(), Value::String(buffer));
    } else if table.contains_key("buffer") {
        return Err(whole("a buffer needs a rate: write it like '20 Mbit/s'".to_owned()));
    }
    table.entry("policy").or_insert_with(|| Value::String(POLICY.to_owned()));
    if !impairments.is_empty() {
        table.insert("impairments".into(), Value::Table(impairments));
    }
    let model: LinkModel =
        table.try_into().map_err(|error: toml::de::Error| whole(error.message().to_owned()))?;
    model.check().map_err(|must| whole(must.to_owned()))?;
    Ok(model)
}

/// A network of two ends with a link there and a link back.
pub fn between(ends: [&str; 2], there: LinkModel, back: LinkModel, seed: u64) -> Network {
    let path = |from: &str, to: &str, via: &str| PathModel {
        from: from.to_owned(),
        to: to.to_owned(),
        via: vec![via.to_owned()],
    };
    Network {
        seed,
        links: [("there".to_owned(), there), ("back".to_owned(), back)].into_iter().collect(),
        ends: ends.map(|name| (name.to_owned(), EndModel::default())).into_iter().collect(),
        paths: vec![path(ends[0], ends[1], "there"), path(ends[1], ends[0], "back")],
        ..Network::default()
    }
}

/// Reads a part; an error says what can be written.
fn read(part: &str, table: &mut Table, impairments: &mut Table) -> Result<(), String> {
    let text = |text: &str| Value::String(text.trim().to_owned());
    let all = |values: &[(&str, &str)]| {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), text(value)));
        Value::Table(values.collect())
    };
    let (word, rest) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
    let (table, key, value) = match word {
        "loss" => match rest.split_once("bursts") {
            Some((share, times)) => {
                let (last, loss) = times.split_once(" of ").unwrap_or((times, "100 %"));
                (impairments, "outages", all(&[("share", share), ("last", last), ("loss", loss)]))
            }
            None => (impairments, "loss", text(rest)),
        },
        "reorder" => match rest.split_once("by") {
            Some((share, by)) => (impairments, "reorder", all(&[("share", share), ("by", by)])),
            None => return Err("write it like 'reorder 1 % by 5 ms'".to_owned()),
        },
        "duplicate" => (impairments, "duplicate", text(rest)),
        "buffer" | "policy" | "scheduler" => (table, word, text(rest)),
        "useful" => (table, "useful_for", text(rest)),
        _ if part.parse::<BitRate>().is_ok() => (table, "rate", text(part)),
        _ if parse_duration(part).is_ok() => (table, "delay", text(part)),
        _ => return Err(PARTS.to_owned()),
    };
    match table.insert(key.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err("it is said twice: leave one out".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use outflow_config::ByteSize;
    use outflow_link::Policy;

    use super::*;

    #[test]
    fn a_link_is_what_its_line_says() {
        let model = link("20 Mbit/s, 50 ms, loss 1 % bursts 30 ms, reorder 1 % by 5 ms, duplicate 0.1 %");
        let model = model.expect("valid");
        assert_eq!((model.rate, model.delay), (Some(BitRate(20_000_000)), Duration::from_millis(50)));
        assert_eq!((model.buffer, model.policy), (Some(ByteSize(250_000)), Policy::Shb));
        let impairments = model.impairments;
        let outages = impairments.outages.expect("given");
        assert_eq!((outages.share, outages.last, outages.loss), (0.01, Duration::from_millis(30), 1.0));
        let both = link("loss 2 %, loss 10 % bursts 30 ms of 50 %").expect("valid").impairments;
        assert_eq!((both.loss, both.outages.expect("given").loss), (0.02, 0.5));
        assert_eq!(impairments.reorder.expect("given").by, Duration::from_millis(5));
        assert_eq!((impairments.loss, impairments.duplicate), (0.0, 0.001));
        let model = link("1Mbit/s,buffer 200 ms,policy elastic,useful 1 s,loss 2%").expect("valid");
        assert_eq!((model.buffer, model.policy), (Some(ByteSize(25_000)), Policy::Elastic));
        assert_eq!((model.useful_for, model.impairments.loss), (Some(Duration::from_secs(1)), 0.02));
        assert_eq!(link("5 Mbit/s, buffer 64 kB").expect("valid").buffer, Some(ByteSize(64_000)));
        assert_eq!(link("5 ms").expect("valid").rate, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| link(text).expect_err(text).to_string();
        for (text, hint) in [
            ("fast", "'fast' is no part of a link: write a rate"),
            ("", "write a rate"),
            ("5 ms, 6 ms", "'6 ms' is no part of a link: it is said twice"),
            ("loss much", "is no share: write it like"),
            ("loss 1 % bursts 10 us", "1 ms"),
            ("loss 1 % bursts 30 ms of half", "is no share: write it like"),
            ("reorder 1 %", "write it like 'reorder 1 % by 5 ms'"),
            ("1 Mbit/s, policy good", "write one of shb, pfb"),
            ("buffer 5 kB", "a buffer needs a rate"),
            ("0 bit/s", "rate must be above 0"),
        ] {
            assert!(wrong(text).contains(hint), "{text}: {}", wrong(text));
        }
    }
}
