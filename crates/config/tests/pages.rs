//! What the pages of the documentation show as configuration is one.

use outflow_config::Config;

const SERVICES: &str = include_str!("../../../docs/services.md");

#[test]
fn the_examples_of_services_are_one_good_configuration() {
    let blocks = SERVICES.split("\n```toml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let text = blocks.collect::<Vec<_>>().join("\n\n");
    let config = Config::parse(&text, "docs/services.md").unwrap_or_else(|errors| panic!("{errors}"));
    let plan = config.streams["live"].plan();
    let programs = plan.elements.values().filter(|element| element.kind == "external").count();
    assert_eq!((programs, config.sinks.len()), (2, 1));
}
