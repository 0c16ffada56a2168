//! The crates of the workspace, and the modules of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::{Item, Visibility};

use crate::circles::Needs;
use crate::reading::{Names, Reader, is_for_tests};

/// The folders of all crates.
pub(crate) fn crates(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.join("labs")];
    let mut folders = vec![root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.join("Cargo.toml").is_file() {
                found.push(path.clone());
            }
            if path.is_dir() && (path.ends_with("front") || folder.ends_with("front")) {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A crate by its folder.
pub(crate) fn named(root: &Path, folder: &Path) -> String {
    folder.strip_prefix(root).unwrap_or(folder).display().to_string()
}

/// Where the modules of a crate begin.
pub(crate) fn roots(folder: &Path) -> Vec<PathBuf> {
    ["src/lib.rs", "src/main.rs"].iter().map(|file| folder.join(file)).filter(|file| file.is_file()).collect()
}

/// Files and lines of Rust of a crate, with tests, without those of crates within it.
pub(crate) fn size(folder: &Path) -> Result<(usize, usize)> {
    let (mut files, mut lines) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(within) = folders.pop() {
        for entry in fs::read_dir(&within)? {
            let path = entry?.path();
            if path.is_dir() && !path.join("Cargo.toml").is_file() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files += 1;
                lines += fs::read_to_string(&path)?.lines().count();
            }
        }
    }
    Ok((files, lines))
}

/// A module: the file that it stands in, and what can be named in it.
#[derive(Default)]
struct Module {
    file: PathBuf,
    items: Vec<Item>,
    names: Names,
}

/// The modules of a crate, by their paths.
#[derive(Default)]
pub(crate) struct House {
    modules: BTreeMap<Vec<String>, Module>,
    /// Of its files, without tests.
    pub(crate) lines: usize,
}

impl House {
    /// Reads a crate from its root file on.
    pub(crate) fn read(start: &Path) -> Result<Self> {
        let mut house = House::default();
        house.file(Vec::new(), start, start.parent().expect("a file lies in a folder"))?;
        Ok(house)
    }

    /// Reads a file, whose modules lie in `within`.
    fn file(&mut self, path: Vec<String>, file: &Path, within: &Path) -> Result<()> {
        let text = fs::read_to_string(file).with_context(|| format!("{}: cannot read it", file.display()))?;
        let tree = syn::parse_file(&text).with_context(|| format!("{}: cannot parse it", file.display()))?;
        let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        self.lines += text[..tests].lines().count();
        self.module(path, file, within, tree.items)
    }

    fn module(&mut self, path: Vec<String>, file: &Path, within: &Path, items: Vec<Item>) -> Result<()> {
        let mut own = Module { file: file.to_owned(), ..Module::default() };
        for item in items {
            if is_for_tests(&item) {
                continue;
            }
            let Item::Mod(inner) = item else {
                own.names.add(&item);
                own.items.push(item);
                continue;
            };
            let name = inner.ident.to_string();
            let path = [&path[..], std::slice::from_ref(&name)].concat();
            match inner.content {
                Some((_, items)) => self.module(path, file, &within.join(&name), items)?,
                None => {
                    let beside = within.join(format!("{name}.rs"));
                    let inside = within.join(&name).join("mod.rs");
                    let file = if beside.is_file() { beside } else { inside };
                    self.file(path, &file, &within.join(&name))?;
                }
            }
        }
        self.modules.insert(path, own);
        Ok(())
    }

    /// Structures, enumerations, traits and aliases that other crates or modules may name.
    pub(crate) fn public_types(&self) -> usize {
        let is_public = |item: &&Item| match item {
            Item::Struct(of) => matches!(of.vis, Visibility::Public(_)),
            Item::Enum(of) => matches!(of.vis, Visibility::Public(_)),
            Item::Trait(of) => matches!(of.vis, Visibility::Public(_)),
            Item::Type(of) => matches!(of.vis, Visibility::Public(_)),
            _ => false,
        };
        self.modules.values().flat_map(|module| &module.items).filter(is_public).count()
    }

    /// How many methods and functions each type has, those of traits not counted.
    pub(crate) fn methods(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for item in self.modules.values().flat_map(|module| &module.items) {
            let Item::Impl(of) = item else { continue };
            if let (None, syn::Type::Path(name)) = (&of.trait_, &*of.self_ty) {
                let name = name.path.segments.last().map_or(String::new(), |part| part.ident.to_string());
                let methods = of.items.iter().filter(|item| matches!(item, syn::ImplItem::Fn(_))).count();
                *counts.entry(name).or_default() += methods;
            }
        }
        counts
    }

    /// Which other files each file needs.
    pub(crate) fn needs(&self) -> Needs {
        let mut needs = Needs::new();
        for (path, module) in &self.modules {
            let mut reader = Reader::default();
            for item in &module.items {
                reader.read(item);
            }
            let own = needs.entry(module.file.clone()).or_default();
            for named in reader.paths {
                let file = self.file_of(path, &named, 0);
                own.extend(file.filter(|file| **file != module.file).cloned());
            }
        }
        needs
    }

    /// The file that `named` stands in, as the module at `path` names it; `None` if it is of another crate.
    fn file_of(&self, path: &[String], named: &[String], depth: usize) -> Option<&PathBuf> {
        let mut at = path.to_vec();
        let mut rest = named;
        let mut is_first = true;
        // A name may stand for a crate of that name.
        if depth > 16 {
            return None;
        }
        while let Some((name, behind)) = rest.split_first() {
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ => {
                    let inner = [&at[..], std::slice::from_ref(name)].concat();
                    if self.modules.contains_key(&inner) {
                        at = inner;
                    } else {
                        let module = self.modules.get(&at)?;
                        if let Some(to) = module.names.taken_from(name) {
                            return self.file_of(&at, &[to, behind].concat(), depth + 1);
                        }
                        return (!is_first || module.names.has(name)).then_some(&module.file);
                    }
                }
            }
            is_first = false;
            rest = behind;
        }
        self.modules.get(&at).map(|module| &module.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visibility_is_no_need_and_imported_modules_are_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("a")).expect("a folder");
        let texts = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "mod c;\n"),
            ("a/c.rs", "pub(crate) struct C;\nmade! { pub(crate) struct D; }\n"),
            ("b.rs", "use crate::a;\nfn say(_: a::c::C) {}\n"),
        ];
        texts.iter().for_each(|(name, text)| fs::write(path(name), text).expect("written"));
        let needs = House::read(&path("lib.rs")).expect("read").needs();
        assert_eq!(needs[&path("b.rs")], [path("a.rs"), path("a/c.rs")].into());
        assert!(needs[&path("a/c.rs")].is_empty() && needs[&path("a.rs")].is_empty());
    }

    #[test]
    fn a_name_that_is_passed_on_counts_for_the_file_that_it_stands_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let start = file("lib.rs", "mod a;\nmod b;\npub use a::A;\npub struct Root;\n");
        let a = file(
            "a.rs",
            "use crate::b::B;\npub struct A(B);\n#[cfg(test)]\nmod tests {\nuse crate::Root;\n}\n",
        );
        let b = file("b.rs", "pub struct B;\nfn say(_: &super::A) { println!(\"{:?}\", crate::A::of()) }\n");
        let house = House::read(&start).expect("read");
        let expected: Needs = [(start, [].into()), (a.clone(), [b.clone()].into()), (b, [a].into())].into();
        assert_eq!(house.needs(), expected);
        assert_eq!((house.public_types(), house.lines), (3, 8));
    }
}
