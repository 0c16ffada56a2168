//! Which interfaces of the contract, in which versions, are spoken here.

use outflow_graph::Unfit;

use crate::version::{PACKAGE, VERSION};

/// The one of these names that is an interface of the contract in a version that is spoken here.
///
/// # Errors
/// None is, or one of another version.
pub fn spoken<'n>(names: impl Iterator<Item = &'n str>, interface: &str) -> Result<&'n str, Unfit> {
    let (major, minor, patch) = VERSION;
    let ours = format!("{major}.{minor}.{patch}");
    let mut other = None;
    for name in names {
        let Some((found, version)) = name.strip_prefix(PACKAGE).and_then(|name| name.split_once('@')) else {
            continue;
        };
        if found != interface {
            continue;
        }
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(theirs), Some(step)) if theirs == major && step <= minor => return Ok(name),
            _ => other = Some(version),
        }
    }
    Err(match other {
        Some(version) => Unfit::new(
            format!("it is built for version {version} of the contract; this is Outflow with version {ours}"),
            format!(
                "build it again with the wit folder of version {ours} (`outflow element new` writes one)"
            ),
        ),
        None => Unfit::new(
            format!("it has no {PACKAGE}{interface}@{ours}: it is no element"),
            "build one from a template of `outflow element new`",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_steps_of_a_version_are_spoken_and_other_versions_named() {
        let name = |version: &str| format!("{PACKAGE}element@{version}");
        let (major, minor, patch) = VERSION;
        let same = name(&format!("{major}.{minor}.{}", patch + 7));
        assert_eq!(spoken([same.as_str()].into_iter(), "element"), Ok(same.as_str()));
        for other in [name(&format!("{major}.{}.0", minor + 1)), name("0.9.0"), name("x")] {
            let unfit = spoken([other.as_str()].into_iter(), "element").expect_err("another version");
            assert!(unfit.what.contains(&format!("{major}.{minor}.{patch}")), "{unfit}");
        }
        assert!(spoken(["wasi:cli/run@0.2.0"].into_iter(), "element").is_err());
    }
}
