//! What the documentation writes in TOML is a configuration.

use std::path::{Path, PathBuf};

use outflow_config::Config;

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

fn good(file: &Path, piece: &str) {
    let given = completed(piece);
    if let Err(errors) = Config::parse(&given, &file.display().to_string()) {
        panic!("{errors}\nin:\n{given}");
    }
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn each_piece_of_the_readme_is_a_good_configuration() {
    let file = root().join("README.md");
    assert!(pieces(&text(&file)).inspect(|piece| good(&file, piece)).count() > 5);
}

#[test]
fn the_pieces_of_a_page_are_one_good_configuration() {
    let pages =
        std::fs::read_dir(root().join("docs")).expect("a folder").map(|entry| entry.expect("it").path());
    let mut read = 0;
    for file in pages.filter(|file| file.extension() == Some("md".as_ref())) {
        let text = text(&file);
        read += pieces(&text).count();
        good(&file, &pieces(&text).collect::<Vec<_>>().join("\n"));
    }
    assert!(read > 3, "{read} pieces");
}
