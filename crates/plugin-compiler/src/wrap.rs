//! Components out of what compilers make: modules that export the contract's functions by their
//! canonical names, with or without WASI (preview 1), are wrapped here, so that no tool is needed
//! for it.

use outflow_graph::Unfit;
use outflow_plugin::{WIT, spoken};
use wasmparser::{BinaryReaderError, Parser, Payload as Part};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// What answers WASI (preview 1) without a system; made from `wasi/preview1.wat`.
const ANSWERS: &[u8] = include_bytes!("wasi/preview1.wasm");
/// The name under which WASI (preview 1) is asked for.
const PREVIEW1: &str = "wasi_snapshot_preview1";

/// The bytes of a component: the given ones, if they are one, else the module that they are, wrapped.
///
/// # Errors
/// What keeps them from being a plug-in, and what to do.
pub(crate) fn component(bytes: &[u8]) -> Result<Vec<u8>, Unfit> {
    // The magic number, then the version: 1 for modules, with a layer of 1 behind it for components.
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', _, _, 1, 0]) => return Ok(bytes.to_vec()),
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => {}
        _ => return Err(Unfit::new("the file is no WebAssembly", "name a .wasm file")),
    }
    let names = Names::of(bytes).map_err(|error| {
        Unfit::new(format!("the file is damaged: {error}"), "build or copy the .wasm file again")
    })?;
    let interfaces = || names.exports.iter().filter_map(|name| Some(name.split_once('#')?.0));
    spoken(interfaces(), "element")?;
    let has = |interface| spoken(interfaces(), interface).is_ok();
    let world = match (has("state"), has("control")) {
        (false, false) => "plugin",
        (true, false) => "stateful",
        (false, true) => "listening",
        (true, true) => "full",
    };
    encode(bytes, &names, world).map_err(|error| {
        let help = "build it again with the wit folder and the template of this version";
        Unfit::new(format!("it does not fit the contract: {error:#}"), help)
    })
}

fn encode(bytes: &[u8], names: &Names<'_>, world: &str) -> anyhow::Result<Vec<u8>> {
    let mut module = bytes.to_vec();
    if !names.is_typed {
        embed(&mut module, world)?;
    }
    let mut encoder = ComponentEncoder::default().validate(true).module(&module)?;
    if names.wants_preview1 {
        let mut adapter = ANSWERS.to_vec();
        embed(&mut adapter, "host-only")?;
        encoder = encoder.adapter(PREVIEW1, &adapter)?;
    }
    encoder.encode()
}

/// Says in a module which world of the contract it is for.
fn embed(module: &mut Vec<u8>, world: &str) -> anyhow::Result<()> {
    let mut resolve = Resolve::default();
    // What the answers to WASI ask for themselves, and no more.
    let text = format!("{WIT}\nworld host-only {{ import host; }}\n");
    let package = resolve.push_str("plugin.wit", &text)?;
    let world = resolve.select_world(&[package], Some(world))?;
    embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)
}

/// Names in a module.
#[derive(Default)]
struct Names<'b> {
    exports: Vec<&'b str>,
    /// It asks for WASI (preview 1).
    wants_preview1: bool,
    /// It says itself which world it is for.
    is_typed: bool,
}

impl<'b> Names<'b> {
    fn of(module: &'b [u8]) -> Result<Self, BinaryReaderError> {
        let mut names = Names::default();
        for part in Parser::new(0).parse_all(module) {
            match part? {
                Part::CustomSection(section) => {
                    names.is_typed |= section.name().starts_with("component-type")
                }
                Part::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        names.wants_preview1 |= import?.module == PREVIEW1;
                    }
                }
                Part::ExportSection(exports) => {
                    for export in exports {
                        names.exports.push(export?.name);
                    }
                }
                _ => {}
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_to_wasi_are_what_their_text_makes() {
        let made = wat::parse_str(include_str!("wasi/preview1.wat")).expect("it is valid");
        assert!(made == ANSWERS, "assemble wasi/preview1.wat again: `cargo run --example assemble`");
    }

    #[test]
    fn what_is_no_webassembly_is_said() {
        for (bytes, words) in [
            (&b"#!/bin/sh\n"[..], "no WebAssembly"),
            (&b"\0asm"[..], "no WebAssembly"),
            (&b"\0asm\x01\0\0\0\x07\x7f"[..], "damaged"),
            (&b"\0asm\x01\0\0\0"[..], "no element"),
        ] {
            let unfit = component(bytes).expect_err("it is none");
            assert!(unfit.to_string().contains(words), "{unfit}");
        }
    }
}
