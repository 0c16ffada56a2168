//! Every element there is: one line each. What `outflow elements` prints, what a configuration is
//! checked against, and where elements come from.

use crate::elements;
use crate::kind::Kind;

/// All elements, in the order of the manual.
pub const CATALOGUE: &[&Kind] = &[
    &elements::pass::KIND,
    &elements::filter::KIND,
    &elements::sample::KIND,
    &elements::rate_limit::KIND,
    &elements::prioritise::KIND,
    &elements::remark::KIND,
    &elements::redirect::KIND,
    &elements::duplicate::KIND,
    &elements::merge::KIND,
    &elements::encrypt::KIND,
    &elements::decrypt::KIND,
    &elements::gray::KIND,
    &elements::crop::KIND,
    &elements::shrink::KIND,
    &elements::convert::KIND,
    &elements::view::KIND,
    &elements::to_ts::KIND,
    &elements::to_opus::KIND,
    &elements::to_rtp::KIND,
    &elements::wasm::KIND,
    &elements::external::KIND,
];

/// The element of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    CATALOGUE.iter().copied().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_lines_are_lines() {
        for (index, kind) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..index].iter().all(|other| other.name != kind.name), "{} twice", kind.name);
            assert!(!kind.outputs.is_empty() && kind.outputs.len() <= 256, "{}", kind.name);
            assert!(kind.doc.ends_with('.') && !kind.doc.contains('\n'), "{}: {}", kind.name, kind.doc);
            for (at, option) in kind.options.iter().enumerate() {
                assert!(option.doc.ends_with('.'), "{}: {}", kind.name, option.doc);
                assert!(kind.options[..at].iter().all(|other| other.name != option.name), "{}", option.name);
                assert!(!(option.needed && option.default.is_some()), "{}", option.name);
            }
            assert!(kind.describe().contains(kind.doc));
        }
    }
}
