//! Circles in what needs what: Tarjan's strongly connected components.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What each file needs.
pub(crate) type Needs = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The files of each circle, by their paths in `root`.
pub(crate) fn circles(needs: &Needs, root: &Path) -> Vec<Vec<String>> {
    let mut search = Search::new(needs);
    for file in needs.keys() {
        if !search.index.contains_key(file.as_path()) {
            search.visit(file);
        }
    }
    let shown = |file: &&Path| file.strip_prefix(root).unwrap_or(file).display().to_string();
    let shown = |circle: &Vec<&Path>| {
        let mut names: Vec<_> = circle.iter().map(shown).collect();
        names.sort();
        names
    };
    search.found.iter().map(shown).collect()
}

struct Search<'a> {
    needs: &'a Needs,
    index: BTreeMap<&'a Path, usize>,
    low: BTreeMap<&'a Path, usize>,
    stack: Vec<&'a Path>,
    found: Vec<Vec<&'a Path>>,
}

impl<'a> Search<'a> {
    fn new(needs: &'a Needs) -> Self {
        Search { needs, index: BTreeMap::new(), low: BTreeMap::new(), stack: Vec::new(), found: Vec::new() }
    }

    fn visit(&mut self, file: &'a Path) {
        let number = self.index.len();
        self.index.insert(file, number);
        self.low.insert(file, number);
        self.stack.push(file);
        for next in self.needs.get(file).into_iter().flatten() {
            if !self.index.contains_key(next.as_path()) {
                self.visit(next);
                self.lower(file, self.low[next.as_path()]);
            } else if self.stack.contains(&next.as_path()) {
                self.lower(file, self.index[next.as_path()]);
            }
        }
        if self.low[file] == number {
            let at = self.stack.iter().position(|on| *on == file).expect("it was put there");
            let circle = self.stack.split_off(at);
            if circle.len() > 1 {
                self.found.push(circle);
            }
        }
    }

    fn lower(&mut self, file: &'a Path, to: usize) {
        let low = self.low.get_mut(file).expect("it was visited");
        *low = to.min(*low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_reach_each_other_are_a_circle() {
        let needs = |from: &str, to: &[&str]| {
            let to = to.iter().map(|name| Path::new("/r").join(name)).collect();
            (Path::new("/r").join(from), to)
        };
        let needs: Needs =
            [needs("a", &["b"]), needs("b", &["c", "d"]), needs("c", &["a"]), needs("d", &[])].into();
        assert_eq!(circles(&needs, Path::new("/r")), [["a", "b", "c"]]);
    }
}
