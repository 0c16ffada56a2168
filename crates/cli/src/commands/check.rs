//! `outflow check`

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use outflow_config::Config;
use outflow_serve::fail;

use super::file::ConfigFile;

/// Checks a configuration: every mistake with its line, and what to do
///
/// Nothing is started and nothing is bound. Files that the configuration names (certificates,
/// session descriptions) must be readable. The exit status is 0 if all is well, else 1.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow check outflow.toml\n  outflow check - < outflow.toml")]
pub(crate) struct Check {
    #[command(flatten)]
    file: ConfigFile,
}

impl Check {
    pub(crate) fn run(self) -> ExitCode {
        let config = match self.file.load() {
            Ok(config) => config,
            Err(mistakes) => return fail(mistakes),
        };
        let unreadable = unreadable(&config);
        if !unreadable.is_empty() {
            return fail(unreadable.join("\n"));
        }
        println!("{}: good: {}", self.file.name(), summary(&config));
        ExitCode::SUCCESS
    }
}

/// A line for each file that the configuration names and that cannot be read.
fn unreadable(config: &Config) -> Vec<String> {
    let tls = config.tls.iter().flat_map(|tls| {
        [("[tls] certificate".to_owned(), &tls.certificate), ("[tls] key".to_owned(), &tls.key)]
    });
    let sdp = config.streams.iter().filter_map(|(name, stream)| {
        let path = stream.sdp.as_ref()?;
        Some((format!("[streams.{name}] sdp"), path))
    });
    let error = |path: &Path| outflow_file::open(path).err().map(|error| error.to_string());
    tls.chain(sdp)
        .filter_map(|(key, path)| Some((key, path, error(path)?)))
        .map(|(key, path, error)| {
            format!("{key}: {}: {error}: paths are relative to the configuration's folder", path.display())
        })
        .collect()
}

fn summary(config: &Config) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let encrypted = if config.tls.is_some() { ", TLS" } else { "" };
    format!("{}, {}{encrypted}", count(config.streams.len(), "stream"), count(config.sinks.len(), "sink"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, folder: &Path) -> Config {
        let name = folder.join("outflow.toml");
        Config::parse(text, &name.display().to_string(), &outflow_fronts::protocols())
            .unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn files_that_are_named_must_be_readable() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("there.pem"), "x").expect("written");
        let config = config(
            "[tls]\ncertificate = \"there.pem\"\nkey = \"missing.pem\"\n\
             [streams.a]\nsource = \"rtp://0.0.0.0:5004\"\nsdp = \".\"\n",
            folder.path(),
        );
        let found = unreadable(&config);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("[tls] key: ") && found[0].contains("missing.pem"));
        assert!(found[1].starts_with("[streams.a] sdp: ") && found[1].contains("is a directory"));
    }

    #[test]
    fn the_summary_counts() {
        let text = "[streams.a]\n[[sinks]]\nstream = \"a\"\nto = \"udp://10.0.0.1:5000\"\n";
        assert_eq!(summary(&config(text, Path::new("."))), "1 stream, 1 sink");
        assert_eq!(summary(&Config::default()), "0 streams, 0 sinks");
    }
}
