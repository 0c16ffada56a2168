//! What a module names.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, Item, ItemUse, Macro, Meta, UseTree, Visibility};

/// What can be named in a module.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// What stands in it.
    own: BTreeSet<String>,
    /// What it takes from elsewhere.
    used: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// What this item adds.
    pub(crate) fn add(&mut self, item: &Item) {
        match item {
            Item::Use(of) => {
                let mut leaves = Vec::new();
                flatten(&of.tree, &mut Vec::new(), &mut leaves);
                self.used.extend(leaves);
            }
            Item::Struct(of) => drop(self.own.insert(of.ident.to_string())),
            Item::Enum(of) => drop(self.own.insert(of.ident.to_string())),
            Item::Trait(of) => drop(self.own.insert(of.ident.to_string())),
            Item::Type(of) => drop(self.own.insert(of.ident.to_string())),
            Item::Fn(of) => drop(self.own.insert(of.sig.ident.to_string())),
            Item::Const(of) => drop(self.own.insert(of.ident.to_string())),
            Item::Static(of) => drop(self.own.insert(of.ident.to_string())),
            _ => {}
        }
    }

    /// What `name` stands for, if the module takes it from elsewhere.
    pub(crate) fn taken_from(&self, name: &str) -> Option<&[String]> {
        self.used.get(name).map(|path| &path[..])
    }

    /// Whether `name` stands in the module.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.own.contains(name)
    }
}

/// Gathers the paths that are named.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) paths: BTreeSet<Vec<String>>,
}

impl Reader {
    /// Reads an item.
    pub(crate) fn read(&mut self, item: &Item) {
        self.visit_item(item);
    }

    /// Paths in what a macro is given: names with `::` between them.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if path.is_empty() || colons == 2 => path.push(name.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                // The visibility of an item in a macro: see `visit_visibility`.
                TokenTree::Group(_) if path == ["pub"] => path.clear(),
                other => {
                    self.paths.extend((!path.is_empty()).then(|| core::mem::take(&mut path)));
                    match other {
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                    }
                }
            }
            colons = 0;
        }
        self.paths.extend((!path.is_empty()).then_some(path));
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.insert(path.segments.iter().map(|part| part.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            let mut leaves = Vec::new();
            flatten(&item.tree, &mut Vec::new(), &mut leaves);
            self.paths.extend(leaves.into_iter().map(|(_, path)| path));
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.tokens(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }

    /// `pub(super)` names a module, but needs nothing that stands in it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// The names that a `use` binds, and the path of each.
fn flatten(tree: &UseTree, before: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            let last = before.last().cloned().unwrap_or_default();
            leaves.push((last, before.clone()));
        }
        UseTree::Name(name) => leaves.push(leaf(name.ident.to_string(), &name.ident.to_string(), before)),
        UseTree::Rename(name) => leaves.push(leaf(name.rename.to_string(), &name.ident.to_string(), before)),
        UseTree::Glob(_) => leaves.push(("*".to_owned(), before.clone())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, leaves)),
    }
}

fn leaf(bound: String, name: &str, before: &[String]) -> (String, Vec<String>) {
    (bound, before.iter().cloned().chain([name.to_owned()]).collect())
}

/// Whether an item is only there for tests.
pub(crate) fn is_for_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Mod(of) => &of.attrs,
        Item::Use(of) => &of.attrs,
        Item::Fn(of) => &of.attrs,
        Item::Impl(of) => &of.attrs,
        _ => return false,
    };
    let says_test = |attribute: &Attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string().contains("test"),
        Meta::Path(_) | Meta::NameValue(_) => false,
    };
    attributes.iter().any(says_test)
}
