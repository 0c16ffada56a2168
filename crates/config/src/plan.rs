//! Services in a file that is no configuration, written as those of a stream.

use std::path::Path;

use outflow_graph::{Contents, Plan};

use crate::check::check_plan;
use crate::error::Collector;
use crate::read::tables;
use crate::services::{Branches, Elements};
use crate::value::Value;
use crate::{ConfigErrors, Protocols, StreamConfig};

/// Reads the services that stand in a table of a text, as `[TABLE.elements.NAME]` and
/// `[TABLE.branches.NAME]`, of a stream that may carry `worlds`. Files that elements name are made relative
/// to the folder of `file_name`, which is otherwise only used in messages. What else stands in the text is
/// none of its business.
///
/// # Errors
/// Every mistake that can be found at once: all of the syntax, or else of the tables, or else all that does
/// not fit.
pub fn plan(text: &str, file_name: &str, table: &str, worlds: Contents) -> Result<Plan, ConfigErrors> {
    let mut errors = Collector::new(file_name, text);
    let Some(root) = tables(text, &mut errors) else { return errors.finish(Plan::default()) };
    let given = |key| root.get(table)?.get_ref().as_table()?.get(key);
    let known = Protocols::default();
    let mut stream = StreamConfig::default();
    match given("elements").map(|given| Elements::read_among(given, known.vocabulary())).transpose() {
        Ok(elements) => stream.elements = elements.unwrap_or_default(),
        Err((span, invalid)) => errors.add(span, invalid),
    }
    match given("branches").map(|given| Branches::read_among(given, known.vocabulary())).transpose() {
        Ok(branches) => stream.branches = branches.unwrap_or_default(),
        Err((span, invalid)) => errors.add(span, invalid),
    }
    stream.place_files(Path::new(file_name));
    let plan = stream.plan();
    if errors.is_empty() {
        check_plan(&plan, worlds, &[table], &root, &mut errors);
    }
    errors.finish(plan)
}

#[cfg(test)]
mod tests {
    use outflow_graph::Content;

    use super::*;

    fn read(text: &str) -> Result<Plan, String> {
        let plan = plan(text, "folder/other.toml", "relay", Contents::of(&[Content::H264]));
        plan.map_err(|errors| errors.to_string())
    }

    #[test]
    fn services_are_those_of_a_stream_wherever_they_stand() {
        let services = "elements.e]\nelement = \"wasm\"\nfile = \"a.wasm\"\n";
        let branches = "branches.b]\ninput = \"e\"\nservices = [\"pass\"]\n";
        let here = read(&format!("seed = 1\n[relay.{services}[relay.{branches}")).expect("it fits");
        let text = format!("[streams.relay.{services}[streams.relay.{branches}");
        let config =
            crate::Config::parse(&text, "folder/outflow.toml", &Protocols::default()).expect("it fits");
        assert_eq!(here, config.streams["relay"].plan());
        assert_eq!(here.elements["e"].settings.text("file"), Some("folder/a.wasm"));
        assert_eq!(read("seed = 1"), Ok(Plan::default()));
    }

    #[test]
    fn mistakes_are_found_where_they_stand() {
        let found = |text: &str| read(text).expect_err(text);
        let unfit = found("[relay.elements.small]\nelement = \"gray\"\n");
        assert!(unfit.starts_with("folder/other.toml:1:17: 'small' takes raw video"), "{unfit}");
        let both = found("[relay.elements.a]\nelement = \"gary\"\n[relay.branches.b]\ninputs = \"a\"\n");
        assert!(both.contains("other.toml:2:11") && both.contains("other.toml:4:1"), "{both}");
        assert!(found("[relay").contains("other.toml:1"));
    }
}
