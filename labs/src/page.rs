//! Pages of the documentation that labs keep up to date.

use std::path::Path;

use anyhow::{Context, Result};

/// Puts `text` into the page at `path`, between the lines `<!-- NAME: … -->` and
/// `<!-- end of NAME -->`; what stands there goes.
///
/// # Errors
/// The page cannot be read or written, or lacks one of the two lines.
pub fn write_into(path: &Path, name: &str, text: &str) -> Result<()> {
    let page = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let page = replaced(&page, name, text).with_context(|| {
        format!("{} has no lines <!-- {name}: … --> and <!-- end of {name} -->", path.display())
    })?;
    std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let begin = page.find(&format!("<!-- {name}:"))?;
    let begin = begin + page[begin..].find('\n')? + 1;
    let end = begin + page[begin..].find(&format!("<!-- end of {name} -->"))?;
    Some(format!("{}\n{}\n\n{}", &page[..begin], text.trim_end(), &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_lines_changes() {
        let page = "a\n<!-- x: by y -->\n\nold\n\n<!-- end of x -->\nb\n";
        let new = "a\n<!-- x: by y -->\n\nnew\n\n<!-- end of x -->\nb\n";
        assert_eq!(replaced(page, "x", "new\n").as_deref(), Some(new));
        assert_eq!(replaced(new, "x", "new").as_deref(), Some(new), "again, and nothing changes");
        assert_eq!(replaced(page, "z", "new"), None);
        assert_eq!(replaced("<!-- x: -->\n", "x", "new"), None, "the second line is missing");
    }
}
