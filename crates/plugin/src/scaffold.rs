//! The beginning of a new plug-in: a project that builds, with a test.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::WIT;

/// A language for which there is a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lang {
    /// By `wit-bindgen`.
    Rust,
    /// By Go itself (wasip1).
    Go,
    /// By clang, without a C library.
    C,
    /// By `componentize-js`.
    Js,
}

/// What keeps a project from being written.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// The name cannot be one in all places where it stands.
    #[error("\"{0}\" cannot be the name: write small letters, digits and '-', beginning with a letter")]
    Name(String),
    /// It would be written over something.
    #[error("{0} is there already: choose another name or folder")]
    Exists(PathBuf),
    /// The system refused.
    #[error("{0}: {1}")]
    System(PathBuf, io::Error),
}

/// A file of a template.
type File = (&'static str, &'static str);

macro_rules! files {
    ($folder:literal: $($name:literal),+) => {
        [$(($name, include_str!(concat!("../templates/", $folder, "/", $name)))),+].as_slice()
    };
}

macro_rules! example {
    ($file:literal) => {
        include_str!(concat!("../../../examples/plugins/", $file))
    };
}

impl Lang {
    /// Every one there is.
    pub const ALL: [Lang; 4] = [Lang::Rust, Lang::Go, Lang::C, Lang::Js];

    /// Its name, as it is written on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Lang::Rust => "rust",
            Lang::Go => "go",
            Lang::C => "c",
            Lang::Js => "js",
        }
    }

    /// The language of this name.
    pub fn find(name: &str) -> Option<Self> {
        Lang::ALL.into_iter().find(|lang| lang.as_str() == name)
    }

    /// What differs from name to name.
    const fn own(self) -> &'static [File] {
        match self {
            Lang::Rust => files!("rust": "Cargo.toml", "src/lib.rs", "README.md"),
            Lang::Go => {
                files!("go": "go.mod", "element.go", "element_test.go", "plugin/main.go", "README.md")
            }
            Lang::C => files!("c": "element.c", "test.c", "Makefile", "README.md"),
            Lang::Js => files!("js": "package.json", "element.js", "element.test.js", "README.md"),
        }
    }

    /// The contract in the language, where no tool makes it of `plugin.wit`. The examples have it, too.
    const fn bindings(self) -> &'static [File] {
        match self {
            Lang::Rust | Lang::Js => &[],
            Lang::Go => &[
                ("outflow/outflow.go", example!("thinner/outflow/outflow.go")),
                ("outflow/host_wasm.go", example!("thinner/outflow/host_wasm.go")),
                ("outflow/host_other.go", example!("thinner/outflow/host_other.go")),
            ],
            Lang::C => &[
                ("outflow_plugin.h", example!("gray/outflow_plugin.h")),
                ("outflow_plugin.c", example!("gray/outflow_plugin.c")),
            ],
        }
    }
}

/// Writes a project with this name into `into`, which is made if it is not there. Returns what was
/// written.
///
/// # Errors
/// The name is none, one of the files is there already (then nothing is written), or the system
/// refused.
pub fn scaffold(name: &str, lang: Lang, into: &Path) -> Result<Vec<PathBuf>, ScaffoldError> {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_of_name) {
        return Err(ScaffoldError::Name(name.to_owned()));
    }
    let own = lang.own().iter().map(|(file, text)| (*file, text.replace("NAME", name)));
    let fixed = lang.bindings().iter().chain(&[("wit/plugin.wit", WIT)]);
    let files: Vec<(PathBuf, String)> = own
        .chain(fixed.map(|(file, text)| (*file, (*text).to_owned())))
        .map(|(file, text)| (into.join(file), text))
        .collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(ScaffoldError::Exists(path.clone()));
    }
    for (path, text) in &files {
        let folder = path.parent().unwrap_or(into);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, text))
            .map_err(|error| ScaffoldError::System(path.clone(), error))?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_written_once_and_bears_its_name() {
        for lang in Lang::ALL {
            let folder = tempfile::tempdir().expect("a folder");
            let into = folder.path().join("deep/er");
            let files = scaffold("my-element", lang, &into).expect("it can be written");
            for file in &files {
                let text = fs::read_to_string(file).expect("it was written");
                assert!(!text.contains("NAME"), "{}", file.display());
            }
            assert!(files.contains(&into.join("README.md")), "{lang:?}");
            let again = scaffold("my-element", lang, &into);
            assert!(matches!(again, Err(ScaffoldError::Exists(_))), "{again:?}");
            assert_eq!(Lang::find(lang.as_str()), Some(lang));
        }
        for name in ["", "Upper", "../up", "1st", "a b"] {
            assert!(matches!(scaffold(name, Lang::C, Path::new("x")), Err(ScaffoldError::Name(_))), "{name}");
        }
    }
}
