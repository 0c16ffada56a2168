//! From text to a configuration: first the structure of each table, then what they say together.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::check::Check;
use crate::error::Collector;
use crate::limits::TEXT_BYTES_MAX;
use crate::model::{SinkKeys, TABLES, TABLES_OF_WHAT, TlsKeys};
use crate::section::{Section, read_keys, read_section, read_table, table, unknown};
use crate::stream::STREAM_OWN_KEYS;
use crate::value::{Given, Value, type_fault};
use crate::{
    Config, ConfigErrors, Extensions, Invalid, LinkConfig, Listen, Protocols, SinkConfig, StreamConfig, Tls,
    Vocabulary, check_name,
};

impl Config {
    /// Reads a configuration of a program that has these protocols. Paths in it are made relative to
    /// the folder of `file_name`, which is otherwise only used in messages.
    ///
    /// # Errors
    /// Every mistake that can be found at once: all of the syntax, or else all within the tables,
    /// or else all of what the tables say together.
    pub fn parse(text: &str, file_name: &str, known: &Protocols) -> Result<Config, ConfigErrors> {
        let mut errors = Collector::new(file_name, text);
        let mut config = Config::default();
        if let Some(root) = tables(text, &mut errors) {
            config = structure(&root, Path::new(file_name), known, &mut errors);
            if errors.is_empty() {
                let mut check = Check::new(&config, &root, &mut errors);
                check.all_of_core();
                for check_more in known.iter().filter_map(|protocol| protocol.check) {
                    check_more(&mut check);
                }
            }
        }
        errors.finish(config)
    }
}

/// The tables of a text, if it is TOML.
pub(crate) fn tables<'t>(text: &'t str, errors: &mut Collector<'_>) -> Option<DeTable<'t>> {
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("the configuration has {} bytes, more than {TEXT_BYTES_MAX}", text.len());
        errors.add(0..0, Invalid::new(what, "give the path of an Outflow configuration"));
        return None;
    }
    let (root, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        let help = "texts, addresses and quantities need quotes, as in ring = \"8 MB\"; see https://toml.io";
        errors.add(error.span().unwrap_or(0..0), Invalid::new(error.message(), help));
    }
    errors.is_empty().then(|| root.into_inner())
}

fn structure(root: &DeTable<'_>, file: &Path, protocols: &Protocols, errors: &mut Collector<'_>) -> Config {
    let (listen, tables) = (Listen::new(protocols.listeners()), protocols.table_defaults());
    let mut config = Config { tables, listen, ..Config::default() };
    let known = protocols.vocabulary();
    let of_protocols = protocols.tables().map(|table| table.name);
    let all: Vec<_> = TABLES.into_iter().chain(of_protocols).collect();
    for key in root.keys().filter(|key| !all.contains(&key.get_ref().as_ref())) {
        errors.add(key.span(), unknown(key.get_ref(), "", &all, &known.sections));
    }
    let says_how = |name: &str| TABLES.contains(&name) && !TABLES_OF_WHAT.contains(&name);
    config.is_blank = root.keys().all(|key| says_how(key.get_ref()));
    if let Some(listen) = table(root, "listen", errors) {
        config.listen.read(listen, known, errors);
    }
    read_table(&mut config.access, root, "access", known, errors);
    Section::beside(&mut config.access, file);
    read_table(&mut config.limits, root, "limits", known, errors);
    read_table(&mut config.fanout, root, "fanout", known, errors);
    read_table(&mut config.log, root, "log", known, errors);
    tables_of_protocols(&mut config.tables, root, protocols, errors);
    config.tables.beside(file);
    config.tls = tls(root, file, known, errors);
    if config.tls.is_none() {
        config.listen.without_certificate();
    }
    let defaults = defaults(root, protocols, errors);
    config.defaults = defaults.clone();
    streams(&mut config, &defaults, root, file, known, errors);
    links(&mut config, root, known, errors);
    sinks(&mut config, &defaults, root, known, errors);
    config.sinks.iter_mut().for_each(|sink| Value::beside(&mut sink.to, file));
    let tokens = protocols.iter().filter_map(|protocol| protocol.relay_tokens);
    config.relay_tokens = tokens.flat_map(|tokens| tokens(&config)).collect();
    config
}

/// Several protocols may have keys in one table.
fn tables_of_protocols(
    into: &mut Extensions,
    root: &DeTable<'_>,
    protocols: &Protocols,
    errors: &mut Collector<'_>,
) {
    let known = protocols.vocabulary();
    let mut names: Vec<_> = protocols.tables().map(|table| table.name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let Some(keys) = table(root, name, errors) else { continue };
        let all = into.keys_of(name);
        read_keys(keys, name, &all, known, errors, |key, given| into.read_key(name, key, given, known));
    }
}

fn tls(root: &DeTable<'_>, file: &Path, known: &Vocabulary, errors: &mut Collector<'_>) -> Option<Tls> {
    let (header, given) = root.get_key_value("tls")?;
    let mut keys = TlsKeys::default();
    read_table(&mut keys, root, "tls", known, errors);
    Section::beside(&mut keys, file);
    let table = given.get_ref().as_table()?;
    for key in TlsKeys::KEYS.iter().filter(|key| !table.contains_key(**key)) {
        let help = format!("add {key} = \"….pem\", or remove [tls]");
        errors.add(header.span(), Invalid::new(format!("[tls] has no {key}"), help));
    }
    Some(Tls { certificate: keys.certificate?, key: keys.key? })
}

/// What `[defaults]` says, as far as it is right.
fn defaults(root: &DeTable<'_>, protocols: &Protocols, errors: &mut Collector<'_>) -> StreamConfig {
    let mut defaults = StreamConfig { more: protocols.stream_defaults(), ..StreamConfig::default() };
    read_table(&mut defaults, root, "defaults", protocols.vocabulary(), errors);
    let table = root.get("defaults").and_then(|given| given.get_ref().as_table());
    for key in STREAM_OWN_KEYS.into_iter().chain(protocols.own_stream_keys()) {
        if let Some((key, _)) = table.and_then(|table| table.get_key_value(key)) {
            let what = format!("'{}' cannot be the same for all streams", key.get_ref());
            errors.add(key.span(), Invalid::new(what, "move it to the stream, [streams.NAME]"));
        }
    }
    defaults
}

fn streams(
    config: &mut Config,
    defaults: &StreamConfig,
    root: &DeTable<'_>,
    file: &Path,
    known: &Vocabulary,
    errors: &mut Collector<'_>,
) {
    let Some(given) = root.get("streams") else {
        return;
    };
    let Some(tables) = given.get_ref().as_table() else {
        return wrong_type(given, "a table of streams", "[streams.stage]", errors);
    };
    for (name, given) in tables {
        if let Err(invalid) = check_name(name.get_ref()) {
            errors.add(name.span(), invalid);
        }
        let Some(table) = given.get_ref().as_table() else {
            wrong_type(given, "a table", &format!("[streams.{}]", name.get_ref()), errors);
            continue;
        };
        let mut stream = defaults.clone();
        read_section(&mut stream, table, &format!("streams.{}", name.get_ref()), known, errors);
        Section::beside(&mut stream, file);
        stream.place_files(file);
        config.streams.insert(name.get_ref().to_string(), Arc::new(stream));
    }
}

fn links(config: &mut Config, root: &DeTable<'_>, known: &Vocabulary, errors: &mut Collector<'_>) {
    let Some(given) = root.get("link") else {
        return;
    };
    let Some(tables) = given.get_ref().as_table() else {
        return wrong_type(given, "a table of links", "[link.uplink]", errors);
    };
    for (name, given) in tables {
        let text = name.get_ref().as_ref();
        if text == "off" {
            let what = "'off' stands for no link at all";
            errors.add(name.span(), Invalid::new(what, "choose another name"));
        } else if let Err(invalid) = check_name(text) {
            errors.add(name.span(), invalid);
        }
        let Some(table) = given.get_ref().as_table() else {
            let example = format!("rate = \"20 Mbit/s\" below [link.{text}]");
            wrong_type(given, "a table", &example, errors);
            continue;
        };
        let mut link = LinkConfig::default();
        read_section(&mut link, table, &format!("link.{text}"), known, errors);
        config.links.insert(text.to_owned(), link);
    }
}

fn sinks(
    config: &mut Config,
    defaults: &StreamConfig,
    root: &DeTable<'_>,
    known: &Vocabulary,
    errors: &mut Collector<'_>,
) {
    let Some(given) = root.get("sinks") else {
        return;
    };
    let Some(list) = given.get_ref().as_array() else {
        return wrong_type(given, "a list of tables", "[[sinks]]", errors);
    };
    for given in list {
        let Some(table) = given.get_ref().as_table() else {
            wrong_type(given, "a table", "[[sinks]]", errors);
            continue;
        };
        let mut keys = SinkKeys::default();
        read_section(&mut keys, table, "[sinks]", known, errors);
        for (key, example) in [("stream", "stage"), ("to", "udp://239.2.2.2:6000?ttl=4")] {
            if !table.contains_key(key) {
                let help = format!("add it, as in {key} = \"{example}\"");
                errors.add(given.span(), Invalid::new(format!("this sink has no '{key}'"), help));
            }
        }
        if let (Some(stream), Some(to)) = (keys.stream, keys.to) {
            let of = config.streams.get(&stream).map_or(defaults, |of| of);
            let priority = keys.priority.unwrap_or(of.priority);
            let latency_budget = keys.latency_budget.unwrap_or(of.latency_budget);
            let pace = if table.contains_key("pace") { keys.pace } else { of.pace };
            let name = keys.name.unwrap_or_else(|| to.to_string());
            let link = if table.contains_key("link") { keys.link } else { of.link.clone() };
            let (branch, view, level) = (keys.branch, keys.view, keys.level);
            let (weight, reserve_rate) = (keys.weight, keys.reserve_rate);
            config.sinks.push(SinkConfig {
                name,
                stream,
                branch,
                view,
                level,
                to,
                priority,
                latency_budget,
                pace,
                link,
                weight,
                reserve_rate,
            });
        }
    }
}

fn wrong_type(given: &Given<'_>, wanted: &str, example: &str, errors: &mut Collector<'_>) {
    let (span, invalid) = type_fault(given, wanted, example);
    // A table may be the whole rest of the file; its first character is enough.
    let end = if matches!(given.get_ref(), DeValue::Table(_)) { span.start + 1 } else { span.end };
    errors.add(span.start..end, invalid);
}
