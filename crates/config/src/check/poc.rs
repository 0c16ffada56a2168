//! What belongs together where the partial-order transport is used.

use super::Step::{Index, Key};
use super::{Check, out_of};
use crate::limits::POC_LATENCY;
use crate::model::Encryption;
use crate::units::Written;
use crate::{PocUrl, SinkUrl, SourceUrl};

impl Check<'_, '_, '_> {
    /// Whoever uses it has keys, or says that none are needed; and times are possible.
    pub(super) fn poc(&mut self) {
        let poc = &self.config.poc;
        if let Some(invalid) = out_of(poc.latency, &POC_LATENCY, |time| Written(*time).to_string()) {
            self.add(&[Key("poc"), Key("latency")], invalid.what, invalid.help);
        }
        let is_plain = poc.encryption == Encryption::Off;
        if poc.key_file.is_some() && is_plain {
            let help = "leave it or encryption = \"off\" out";
            self.add(&[Key("poc"), Key("key_file")], "a key that encrypts nothing".to_owned(), help);
        }
        if poc.key_file.is_none() && !is_plain {
            self.poc_keys();
        }
        for (name, stream) in &self.config.streams {
            if let SourceUrl::Poc(url) = &stream.source {
                self.poc_latency(url, &[Key("streams"), Key(name), Key("source")]);
            }
        }
        for (index, sink) in self.config.sinks.iter().enumerate() {
            if let SinkUrl::Poc(url) = &sink.to {
                self.poc_latency(url, &[Key("sinks"), Index(index), Key("to")]);
            }
        }
    }

    fn poc_latency(&mut self, url: &PocUrl, at: &[super::Step<'_>]) {
        let invalid = url.latency.and_then(|time| out_of(time, &POC_LATENCY, |t| Written(*t).to_string()));
        if let Some(invalid) = invalid {
            self.add(at, format!("latency: {}", invalid.what), invalid.help);
        }
    }

    /// Without a key for all, each address has one.
    fn poc_keys(&mut self) {
        let help = "add [poc] key_file = \"poc.key\" (`outflow poc key` makes one), \
                    or encryption = \"off\" in a network of your own";
        let what = || "connections are encrypted, and there is no key".to_owned();
        if self.config.listen.poc.is_some() {
            self.add(&[Key("listen"), Key("poc")], what(), help);
        }
        let lacks = |url: &PocUrl| url.key_file.is_none() && !url.is_plain;
        for (name, stream) in &self.config.streams {
            if matches!(&stream.source, SourceUrl::Poc(url) if lacks(url)) {
                self.add(&[Key("streams"), Key(name), Key("source")], what(), help);
            }
        }
        for (index, sink) in self.config.sinks.iter().enumerate() {
            if matches!(&sink.to, SinkUrl::Poc(url) if lacks(url)) {
                self.add(&[Key("sinks"), Index(index), Key("to")], what(), help);
            }
        }
    }
}
