//! What the documentation writes in TOML is a configuration.

use crate::parse;

/// Pieces of TOML in a document.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split("```toml\n").skip(1).map(|piece| piece.split("```").next().unwrap_or_default())
}

/// A piece, with sources for the streams that it only says more of.
fn completed(piece: &str) -> String {
    let mut text = String::new();
    let tables = piece.lines().filter_map(|line| line.strip_prefix("[streams.")?.split([']', '.']).next());
    let sinks = piece.lines().filter_map(|line| line.strip_prefix("stream = \"")?.split('"').next());
    let mut streams: Vec<_> = tables.chain(sinks).collect();
    streams.sort_unstable();
    streams.dedup();
    for stream in streams.iter().filter(|stream| !piece.contains(&format!("[streams.{stream}]"))) {
        text += &format!("[streams.{stream}]\nsource = \"push\"\n");
        // Rules name an element that the piece may not have.
        if piece.contains("mark\"") && !piece.contains("elements.mark]") {
            text += &format!("[streams.{stream}.elements.mark]\nelement = \"pass\"\n");
        }
    }
    text + piece
}

fn good(file: &str, piece: &str) {
    let given = completed(piece);
    if let Err(errors) = parse(&given, file) {
        panic!("{errors}\nin:\n{given}");
    }
}

#[test]
fn each_piece_of_the_readme_is_a_good_configuration() {
    let readme = include_str!("../../../../README.md");
    assert!(pieces(readme).inspect(|piece| good("README.md", piece)).count() > 5);
}

#[test]
fn the_pieces_of_the_page_on_links_are_one_good_configuration() {
    let all: Vec<_> = pieces(include_str!("../../../../docs/links.md")).collect();
    assert!(all.len() > 1, "{all:?}");
    good("docs/links.md", &all.join("\n"));
}

#[test]
fn each_piece_of_the_page_on_multicast_is_a_good_configuration() {
    let all: Vec<_> = pieces(include_str!("../../../../docs/multicast.md")).collect();
    assert!(all.len() > 1, "{all:?}");
    all.iter().for_each(|piece| good("docs/multicast.md", piece));
}

#[test]
fn the_pieces_of_the_page_on_services_are_one_good_configuration() {
    let all: Vec<_> = pieces(include_str!("../../../../docs/services.md")).collect();
    assert!(all.len() > 3, "{all:?}");
    good("docs/services.md", &all.join("\n"));
}
