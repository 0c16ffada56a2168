//! The annotated example is a good configuration, and explains every key that there is.

use crate::parse;

const EXAMPLE: &str = include_str!("../../../../examples/outflow.toml");

/// The example with what is commented out in it switched on: lines such as `# key = "value"`.
fn switched_on() -> String {
    let on = |line: &str| -> String {
        let Some(bare) = line.strip_prefix("# ") else {
            return line.to_owned();
        };
        let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let is_key = bare.split_once(" = ").is_some_and(|(key, _)| word(key));
        let is_header = bare.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let is_header = is_header.is_some_and(|name| name.split('.').all(word));
        if is_key || is_header { bare.to_owned() } else { line.to_owned() }
    };
    EXAMPLE.lines().map(|line| on(line) + "\n").collect()
}

#[test]
fn the_example_is_good_as_it_stands_and_switched_on() {
    let config = parse(EXAMPLE, "examples/outflow.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(config.streams.len(), 11);
    assert_eq!(config.links.len(), 3);
    assert_eq!(config.sinks.len(), 5);
    let config = parse(&switched_on(), "examples/outflow.toml").unwrap_or_else(|e| panic!("{e}"));
    assert!(config.tls.is_some() && config.listen.at("https").is_some());
}

#[test]
fn every_key_of_every_table_is_in_the_example() {
    let text = switched_on();
    // For as long as the test runs.
    let root: &'static toml::Table = Box::leak(Box::new(text.parse().expect("TOML")));
    for section in outflow_fronts::protocols().sections() {
        let mut tables = vec![root];
        for step in section.header.trim_matches(['[', ']']).split('.') {
            let below = |table: &'static toml::Table| -> Vec<&'static toml::Table> {
                let values: Vec<_> = match step {
                    "NAME" => table.values().collect(),
                    key => table.get(key).into_iter().collect(),
                };
                let tables = values.into_iter().flat_map(|value| match value {
                    toml::Value::Array(list) => list.iter().collect(),
                    other => vec![other],
                });
                tables.filter_map(toml::Value::as_table).collect()
            };
            tables = tables.into_iter().flat_map(below).collect();
        }
        for key in &section.keys {
            let shown = tables.iter().any(|table| table.contains_key(*key));
            assert!(shown, "examples/outflow.toml does not show {key} of {}", section.header);
        }
    }
    assert!(root.contains_key("defaults"));
}

#[test]
fn what_the_example_calls_a_default_is_one() {
    let written = parse(EXAMPLE, "o.toml").unwrap_or_else(|e| panic!("{e}"));
    let silent = parse("", "o.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(written.listen, silent.listen);
    assert_eq!(written.limits, silent.limits);
    assert_eq!(written.log, silent.log);
    let demo = &written.streams["demo"];
    let plain = &parse("[streams.demo]\nsource = \"demo://\"", "o.toml").expect("good").streams["demo"];
    assert_eq!(demo, plain);
}
