//! How the program is built: its size, its largest parts, and which files need each other in a circle.
//!
//! Read are all crates of the workspace, without tests. A file needs another when it names something that stands in
//! it; what is only passed on (`pub use`) counts for the file that it stands in. Calls of methods are not seen.

mod circles;
mod house;
mod reading;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use circles::circles;
use house::House;
use outflow_labs::figures::{Options, run_anywhere};
use serde_json::{Value, json};

/// A circle of more files than that is listed.
const CIRCLE_FILES_MAX: usize = 3;

fn main() -> ExitCode {
    run_anywhere("structure", lab)
}

fn lab(_: &Options) -> Result<Value> {
    survey()
}

fn survey() -> Result<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("labs lie in the workspace");
    let (mut files, mut lines, mut outside_tests, mut public_types) = (0, 0, 0, 0);
    let mut sizes = BTreeMap::new();
    let mut methods: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for manifest in house::crates(root)? {
        let (own_files, own_lines) = house::size(&manifest)?;
        files += own_files;
        lines += own_lines;
        let name = house::named(root, &manifest);
        sizes.insert(name.clone(), own_lines);
        for start in house::roots(&manifest) {
            let house = House::read(&start)?;
            outside_tests += house.lines;
            public_types += house.public_types();
            for (of, count) in house.methods() {
                *methods.entry((name.clone(), of)).or_default() += count;
            }
            found.extend(circles(&house.needs(), root));
        }
    }
    let mut methods: Vec<_> = methods.into_iter().collect();
    methods.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
    let mut sizes: Vec<_> = sizes.into_iter().collect();
    sizes.sort_by_key(|(_, lines)| core::cmp::Reverse(*lines));
    found.sort_by_key(|circle| core::cmp::Reverse(circle.len()));
    let large: Vec<_> = found.iter().filter(|circle| circle.len() > CIRCLE_FILES_MAX).collect();
    let largest = sizes.iter().take(3).map(|(within, lines)| json!({ "crate": within, "lines": lines }));
    let methods = methods.iter().take(3);
    let most = methods.map(|((within, of), own)| json!({ "crate": within, "type": of, "methods": own }));
    Ok(json!({
        "files": files,
        "lines": lines,
        "lines_outside_tests": outside_tests,
        "public_types": public_types,
        "largest_crates": largest.collect::<Vec<_>>(),
        "largest_types": most.collect::<Vec<_>>(),
        "circles": found.len(),
        "circles_over_three_files": large.len(),
        "large_circles": large,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Methods of a type at most: one that has more is to be divided into parts with owners.
    const METHODS_MAX: u64 = 60;
    /// Lines of a crate of the product at most.
    const LINES_MAX: u64 = 15_000;

    #[test]
    fn no_circle_type_or_crate_is_too_large() {
        let found = survey().expect("the workspace can be read");
        assert_eq!(found["large_circles"], json!([]), "see `labs/structure/run --json`");
        let types = found["largest_types"].as_array().expect("a list");
        assert!(types.iter().all(|of| of["methods"].as_u64() <= Some(METHODS_MAX)), "{types:?}");
        let crates = found["largest_crates"].as_array().expect("a list");
        let own = crates.iter().filter(|of| of["crate"] != "labs");
        assert!(own.clone().count() > 1);
        assert!(own.clone().all(|of| of["lines"].as_u64() <= Some(LINES_MAX)), "{crates:?}");
    }
}
