//! Links: whether their numbers are possible, and whether those exist that others name.

use outflow_link::{Grouping, Medium, Scheduling};

use super::{Check, Key, Step, written};
use crate::invalid::{nearest, out_of};
use crate::limits::{CLASS_SHARE, LINK_BUFFER, LINK_RATE};
use crate::link::{LinkConfig, LinkName, LinkRate};
use crate::{BitRate, ByteSize};

impl Check<'_, '_, '_> {
    pub(super) fn links(&mut self) {
        let config = self.config;
        for (name, link) in &config.links {
            self.link(name, link);
        }
        let defaults = &config.defaults;
        self.linked(&[Key("defaults"), Key("link")], defaults.link.as_ref());
        for (name, stream) in &config.streams {
            let is_own = stream.link != defaults.link;
            self.linked(&[Key("streams"), Key(name), Key("link")], stream.link.as_ref().filter(|_| is_own));
        }
        for (index, sink) in config.sinks.iter().enumerate() {
            let of_stream = config.streams.get(&sink.stream).and_then(|stream| stream.link.as_ref());
            let own = sink.link.as_ref().filter(|link| Some(*link) != of_stream);
            self.linked(&[Key("sinks"), Step::Index(index), Key("link")], own);
        }
    }

    /// Whether a link that something names is there.
    fn linked(&mut self, path: &[Step<'_>], link: Option<&LinkName>) {
        let Some(LinkName(name)) = link.filter(|link| !self.config.links.contains_key(&link.0)) else {
            return;
        };
        let near = nearest(name, self.config.links.keys().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean '{near}'? else add [link.{name}]"),
            None => format!("add [link.{name}] with a rate, or leave it out"),
        };
        self.add(path, format!("no link is named '{name}'"), help);
    }

    fn link(&mut self, name: &str, link: &LinkConfig) {
        let path = [Key("link"), Key(name)];
        let at = |key| [path[0], path[1], Key(key)];
        let given = self.root.get("link").and_then(|links| links.get_ref().as_table()?.get(name));
        let table = given.and_then(|given| given.get_ref().as_table());
        match link.rate {
            None => {
                let help = "add rate = \"20 Mbit/s\", or rate = \"feedback\" to follow what receivers report";
                self.add(&path, "this link has no rate".to_owned(), help);
            }
            Some(LinkRate::Fixed(rate)) => {
                self.rate(&at("rate"), rate);
                for key in ["rate_min", "rate_max"].into_iter().filter(|key| written(table, key)) {
                    let help = "leave it out, or write rate = \"feedback\"";
                    self.add(&at(key), format!("{key} is for a rate that follows receivers"), help);
                }
            }
            Some(LinkRate::Feedback) => {
                self.rate(&at("rate_min"), link.rate_min);
                self.rate(&at("rate_max"), link.rate_max);
                if link.rate_min > link.rate_max {
                    let what = format!("{} is more than rate_max, {}", link.rate_min, link.rate_max);
                    self.add(&at("rate_min"), what, "lower it, or raise rate_max");
                }
            }
        }
        self.buffers(&path, link.buffer, link.buffer_per_flow);
        for medium in Medium::ALL {
            if let Some(of) = link.applications.0.get(medium.as_str()) {
                let path = [path[0], path[1], Key("applications"), Key(medium.as_str())];
                self.buffers(&path, of.buffer, of.buffer_per_flow);
                if of.weight.is_some() && link.scheduler.0 != Scheduling::Shares {
                    let at = [&path[..], &[Key("weight")]].concat();
                    let help = "write scheduler = \"shares\" for this link, or leave it out";
                    self.add(&at, "this scheduler has no weights".to_owned(), help);
                }
            }
        }
        if link.scheduler.0 != Scheduling::Priority && written(table, "lower_share") {
            let help = "write scheduler = \"priority\" for this link, or leave it out";
            self.add(&at("lower_share"), "this scheduler has no classes".to_owned(), help);
        }
        if let Some(invalid) =
            link.lower_share.and_then(|share| out_of(share, &CLASS_SHARE, ToString::to_string))
        {
            self.add(&at("lower_share"), invalid.what, invalid.help);
        }
        if link.scheduler.0 == Scheduling::Shares && link.policy.0.grouping() == Grouping::Link {
            let what = format!("\"{}\" has one buffer, of which nothing is shared", link.policy.0.as_str());
            let help = "choose a policy with a buffer for each application (\"elastic\") or flow (\"pfb\")";
            self.add(&at("scheduler"), what, help);
        }
    }

    fn rate(&mut self, path: &[Step<'_>], rate: BitRate) {
        if let Some(invalid) = out_of(rate, &LINK_RATE, ToString::to_string) {
            self.add(path, invalid.what, invalid.help);
        }
    }

    fn buffers(&mut self, path: &[Step<'_>], buffer: Option<ByteSize>, per_flow: Option<ByteSize>) {
        for (key, size) in [("buffer", buffer), ("buffer_per_flow", per_flow)] {
            if let Some(invalid) = size.and_then(|size| out_of(size, &LINK_BUFFER, ToString::to_string)) {
                self.add(&[path, &[Key(key)]].concat(), invalid.what, invalid.help);
            }
        }
        if buffer.is_some() && per_flow.is_some() {
            let what = "a buffer has one size".to_owned();
            self.add(&[path, &[Key("buffer_per_flow")]].concat(), what, "leave it out, or leave out buffer");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outflow_link::{Medium, Policy, Size, Unit};

    use crate::link::LinkRate;
    use crate::{BitRate, Config, Protocols, Share};

    fn config(text: &str) -> Config {
        Config::parse(text, "o.toml", &Protocols::default()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn mistake(text: &str) -> String {
        let errors = Config::parse(text, "o.toml", &Protocols::default()).expect_err(text);
        assert_eq!(errors.errors().len(), 1, "{errors}");
        let error = &errors.errors()[0];
        format!("{} {}: {}", error.line, error.what, error.help)
    }

    #[test]
    fn a_link_needs_a_rate_and_has_the_best_policy() {
        assert!(mistake("[link.up]").contains("1 this link has no rate: add rate = \"20 Mbit/s\""));
        let link = config("[link.up]\nrate = \"8 Mbit/s\"").links["up"].clone();
        assert_eq!(link.rate, Some(LinkRate::Fixed(BitRate(8_000_000))));
        assert_eq!((link.policy.0, link.unit.0), (Policy::Elastic, Unit::Packet));
        assert_eq!(link.size(), Size::Bytes(200_000), "200 ms");
        let link = config("[link.up]\nrate = \"feedback\"\nrate_max = \"40 Mbit/s\"").links["up"].clone();
        assert!(link.follows());
        assert_eq!(link.size(), Size::Bytes(1_000_000));
    }

    #[test]
    fn buffers_are_whole_or_by_flow_and_may_differ_by_application() {
        let link = config(
            "[link.up]\nrate = \"8 Mbit/s\"\nbuffer_per_flow = \"1.5 kB\"\npolicy = \"abd\"\nunit = \"frame\"\n\
             scheduler = \"drr\"\n[link.up.applications.audio]\nbuffer = \"9 kB\"",
        );
        let link = &link.links["up"];
        assert_eq!(link.size(), Size::PerFlow(1500));
        assert_eq!(link.size_of(Medium::Audio), Some(Size::Bytes(9000)));
        assert_eq!(link.size_of(Medium::Video), None);
        let up = "[link.up]\nrate = \"8 Mbit/s\"\n";
        let both = mistake(&format!("{up}buffer = \"9 kB\"\nbuffer_per_flow = \"2 kB\""));
        assert!(both.starts_with("4 a buffer has one size"), "{both}");
        assert!(mistake(&format!("{up}buffer = \"900 B\"")).contains("is too little: possible: 1500 B to"));
        let wrong = mistake(&format!("{up}[link.up.applications.vido]\nbuffer = \"9 kB\""));
        assert!(wrong.contains("did you mean \"video\"?"), "{wrong}");
    }

    #[test]
    fn shares_have_weights_and_more_than_one_buffer() {
        let up = "[link.up]\nrate = \"8 Mbit/s\"\n";
        let shares = format!("{up}scheduler = \"shares\"\n");
        let link = config(&format!("{shares}[link.up.applications.audio]\nweight = 30")).links["up"].clone();
        assert_eq!(Medium::ALL.map(|medium| link.weight_of(medium).get()), [1, 30, 1]);
        assert_eq!(link.size_of(Medium::Audio), None);
        let none = mistake(&format!("{up}[link.up.applications.audio]\nweight = 30"));
        assert!(none.starts_with("4 this scheduler has no weights: write scheduler = \"shares\""), "{none}");
        let little = mistake(&format!("{shares}[link.up.applications.audio]\nweight = 0"));
        assert_eq!(little, "5 0 is too little: possible: 1 to 1000");
        let whole = mistake(&format!("{shares}policy = \"shb\""));
        assert!(whole.starts_with("3 \"shb\" has one buffer, of which nothing is shared: choose"), "{whole}");
        let unknown = mistake(&format!("{shares}[link.up.applications.audio]\nwieght = 3"));
        assert!(unknown.contains("did you mean 'weight'?"), "{unknown}");
    }

    #[test]
    fn lower_classes_are_promised_a_share_unless_they_are_strict() {
        let up = "[link.up]\nrate = \"8 Mbit/s\"\n";
        let priority = format!("{up}scheduler = \"priority\"\n");
        let share = |text: &str| config(text).links["up"].lower_share;
        assert_eq!(share(&priority), Some(Share(5_000)));
        assert_eq!(share(&format!("{priority}lower_share = \"12.5 %\"")), Some(Share(12_500)));
        assert_eq!(share(&format!("{priority}lower_share = \"off\"")), None);
        let much = mistake(&format!("{priority}lower_share = \"50 %\""));
        assert!(much.starts_with("4 50 % is too much: possible: 1 % to 45 %"), "{much}");
        let none = mistake(&format!("{up}lower_share = \"5 %\""));
        assert!(
            none.starts_with("3 this scheduler has no classes: write scheduler = \"priority\""),
            "{none}"
        );
    }

    #[test]
    fn a_stream_has_a_weight() {
        let config = config("[defaults]\nweight = 2\n[streams.a]\nweight = 1000\n[streams.b]");
        assert_eq!((config.streams["a"].weight.get(), config.streams["b"].weight.get()), (1000, 2));
        let much = mistake("[streams.a]\nweight = 1001");
        assert_eq!(much, "2 1001 is too much: possible: 1 to 1000");
        let text = mistake("[streams.a]\nweight = \"heavy\"");
        assert!(text.contains("a whole number from 1 to 1000 is needed here, not a text"), "{text}");
    }

    #[test]
    fn a_stream_and_a_sink_reserve_a_rate_and_a_sink_has_a_weight() {
        let sink = |more: &str| format!("[[sinks]]\nstream = \"a\"\nto = \"rtp://10.0.0.1:5000\"\n{more}");
        let streams =
            "[defaults]\nreserve_rate = \"4 Mbit/s\"\n[streams.a]\n[streams.b]\nreserve_rate = \"off\"\n";
        let plain = config(&format!("{streams}{}", sink("")));
        let rates = ["a", "b"].map(|name| plain.streams[name].reserve_rate);
        assert_eq!(rates, [Some(BitRate(4_000_000)), None]);
        assert_eq!(
            (plain.sinks[0].reserve_rate, plain.sinks[0].weight.get()),
            (None, 1),
            "as the stream says"
        );
        let own = config(&format!("{streams}{}", sink("reserve_rate = \"1 kbit/s\"\nweight = 30")));
        assert_eq!((own.sinks[0].reserve_rate, own.sinks[0].weight.get()), (Some(BitRate(1000)), 30));
        let little = "reserve_rate = \"999 bit/s\"";
        for wrong in [format!("[streams.a]\n{little}"), format!("[streams.a]\n{}", sink(little))] {
            assert!(mistake(&wrong).contains("999 bit/s is too little: possible: 1 kbit/s to"), "{wrong}");
        }
        assert!(mistake(&format!("[streams.a]\n{}", sink("weight = 0"))).contains("possible: 1 to 1000"));
    }

    #[test]
    fn words_that_are_not_known_are_answered_with_those_that_are() {
        let up = "[link.up]\nrate = \"8 Mbit/s\"\n";
        assert!(mistake(&format!("{up}policy = \"pfb-da\"")).contains("did you mean \"pfb-ad\"?"));
        assert!(mistake(&format!("{up}scheduler = \"fifo\"")).contains("\"wrr\", \"weq\""));
        assert!(mistake("[link.up]\nrate = \"fast\"").contains("or \"feedback\""));
        assert!(mistake("[link.off]\nrate = \"8 Mbit/s\"").contains("'off' stands for no link"));
        assert!(mistake(&format!("{up}rate_min = \"1 Mbit/s\"")).contains("follows receivers"));
        let crossed = "[link.up]\nrate = \"feedback\"\nrate_min = \"2 Mbit/s\"\nrate_max = \"1 Mbit/s\"";
        assert!(mistake(crossed).contains("lower it, or raise rate_max"));
    }

    #[test]
    fn a_link_that_is_named_must_be_there() {
        let up = "[link.uplink]\nrate = \"8 Mbit/s\"\n";
        let wrong = mistake(&format!("{up}[streams.a]\nlink = \"uplnk\""));
        assert_eq!(wrong, "4 no link is named 'uplnk': did you mean 'uplink'? else add [link.uplnk]");
        let wrong =
            mistake("[streams.a]\n[[sinks]]\nstream = \"a\"\nto = \"rtp://10.0.0.1:5000\"\nlink = \"x\"");
        assert!(wrong.starts_with("5 no link is named 'x': add [link.x] with a rate"), "{wrong}");
        let wrong = mistake("[defaults]\nlink = \"x\"\n[streams.a]\n[streams.b]");
        assert!(wrong.starts_with("2 no link"), "once, where it stands: {wrong}");
    }

    #[test]
    fn a_sink_is_behind_the_link_of_its_stream_unless_it_names_another_or_none() {
        let config = config(
            "[link.a]\nrate = \"8 Mbit/s\"\n[link.b]\nrate = \"9 Mbit/s\"\n[streams.s]\nlink = \"a\"\n\
             [[sinks]]\nstream = \"s\"\nto = \"rtp://10.0.0.1:5000\"\n\
             [[sinks]]\nstream = \"s\"\nto = \"rtp://10.0.0.2:5000\"\nlink = \"b\"\n\
             [[sinks]]\nstream = \"s\"\nto = \"rtp://10.0.0.3:5000\"\nlink = \"off\"",
        );
        let links: Vec<_> = config.sinks.iter().map(|sink| sink.link.as_ref().map(|link| &*link.0)).collect();
        assert_eq!(links, [Some("a"), Some("b"), None]);
        assert_eq!(config.streams["s"].latency_budget, Duration::ZERO);
    }
}
