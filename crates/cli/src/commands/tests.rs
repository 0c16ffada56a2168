use clap::{CommandFactory, Parser};

use super::Cli;

/// Every command with its help as it is shown.
fn helps() -> Vec<(String, String)> {
    let mut cli = Cli::command();
    cli.build();
    let helps = cli.get_subcommands_mut().filter(|command| command.get_name() != "help");
    helps.map(|command| (command.get_name().to_owned(), command.render_long_help().to_string())).collect()
}

#[test]
fn the_arguments_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_says_what_it_does_and_shows_an_example() {
    let cli = Cli::command();
    for command in cli.get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(about.len() > 20, "{} says what it does", command.get_name());
    }
    for (name, help) in helps() {
        assert!(help.contains("Examples:\n"), "{name}: {help}");
        assert!(help.contains(&format!("Usage: outflow {name}")), "{name}: {help}");
    }
}

#[test]
fn every_argument_is_explained() {
    for command in Cli::command().get_subcommands() {
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{} of {}", argument.get_id(), command.get_name());
        }
    }
}

/// A line as a shell takes it apart: at white space, but not between quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for char in line.chars() {
        match char {
            '\'' => is_quoted = !is_quoted,
            char if char.is_whitespace() && !is_quoted => words.push(core::mem::take(&mut word)),
            char => word.push(char),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn the_examples_in_the_help_are_accepted() {
    for (name, help) in helps() {
        let examples = help.lines().filter_map(|line| line.trim().strip_prefix("outflow "));
        let mut found = 0;
        for example in examples {
            // What the shell would take away: redirections, pipes.
            let words =
                words(example).into_iter().take_while(|word| !["<", ">", "|"].contains(&word.as_str()));
            let words = std::iter::once("outflow".to_owned()).chain(words);
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{name}: {example}: {error}"));
            found += 1;
        }
        assert!(found > 0, "{name} has an example");
    }
}
