//! `outflow token`

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use clap::Args;
use outflow_config::{Config, TokenRight};
use outflow_engine::system::random_bytes;
use outflow_rtsp::auth::{Algorithm, ha1};
use outflow_rtsp::server::REALM;
use outflow_serve::fail;
use sha2::{Digest as _, Sha256};

/// Makes a token, and the table of the configuration that lets it in
///
/// The token is shown this once, on standard error: the table, on standard output, has hashes of it only. Add the table to
/// the configuration, and reload.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow token studio --rights publish --streams 'live/*'\n  \
                        outflow token viewers --rights play --expires 2026-12-31T00:00:00Z")]
pub(crate) struct Token {
    /// What it is called in the log
    name: String,
    /// What it is good for: publish, play, control, relay
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',', default_value = "play")]
    rights: Vec<TokenRight>,
    /// The streams that it is good for, names or beginnings of names: all, if there are none
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    streams: Vec<String>,
    /// The addresses that it may come from, as 10.0.0.0/8: all, if there are none
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    from: Vec<String>,
    /// When it is good no longer, as 2026-12-31T00:00:00Z
    #[arg(long, value_name = "MOMENT")]
    expires: Option<String>,
}

impl Token {
    pub(crate) fn run(self) -> ExitCode {
        let made = random().map_err(|error| format!("the system has no random bytes: {error}"));
        match made.and_then(|token| Ok((self.table(&token)?, token))) {
            Ok((table, token)) => {
                eprintln!("the token of {}, which is shown this once: {token}", self.name);
                print!("{table}");
                ExitCode::SUCCESS
            }
            Err(mistake) => fail(mistake),
        }
    }

    /// The table that lets it in.
    ///
    /// # Errors
    /// What the configuration would say of it.
    fn table(&self, token: &str) -> Result<String, String> {
        let list = |texts: &[String]| format!("{texts:?}");
        let hash: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
        let by = [Algorithm::Md5, Algorithm::Sha256].map(|with| ha1(with, &self.name, REALM, token));
        let rights: Vec<_> = self.rights.iter().map(ToString::to_string).collect();
        let mut table = format!("[[access.tokens]]\nname = {:?}\nsha256 = \"{hash}\"\n", self.name);
        let mut add = |line: String| _ = writeln!(table, "{line}");
        add(format!("ha1 = {}", list(&by)));
        add(format!("rights = {}", list(&rights)));
        if !self.streams.is_empty() {
            add(format!("streams = {}", list(&self.streams)));
        }
        if !self.from.is_empty() {
            add(format!("from = {}", list(&self.from)));
        }
        self.expires.iter().for_each(|expires| add(format!("expires = {expires:?}")));
        let checked = Config::parse(&table, "the table", &outflow_fronts::protocols());
        checked.map(|_| table).map_err(|mistakes| mistakes.to_string())
    }
}

/// 128 random bits.
fn random() -> io::Result<String> {
    Ok(format!("{:032x}", u128::from_be_bytes(random_bytes()?)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Asked {
        #[command(flatten)]
        token: Token,
    }

    fn table(arguments: &str) -> Result<String, String> {
        let words = std::iter::once("token").chain(arguments.split_whitespace());
        Asked::try_parse_from(words).map_err(|error| error.to_string())?.token.table("secret")
    }

    #[test]
    fn a_table_has_hashes_and_what_the_token_is_good_for() {
        let table = table(
            "studio --rights publish,play --streams live/*,stage --from 10.0.0.0/8,::1 \
             --expires 2026-12-31T00:00:00Z",
        )
        .expect("a table");
        assert!(!table.contains("secret"), "{table}");
        let config = Config::parse(&table, "t", &outflow_fronts::protocols()).expect("good");
        let token = &config.access.tokens[0];
        assert_eq!(token.rights, [TokenRight::Publish, TokenRight::Play]);
        assert_eq!(token.sha256.0[..4], [0x2b, 0xb8, 0x0d, 0x53]);
        assert_eq!((token.streams.len(), token.from.len(), token.ha1.len()), (2, 2, 2));
        assert!(token.expires.is_some() && table.contains("f4f4fca6feee0245a755b1b1ff7d1e61"), "{table}");
    }

    #[test]
    fn what_the_configuration_would_not_take_is_told() {
        assert!(table("a --rights fly").is_err());
        assert!(table("a:b").is_err_and(|mistakes| mistakes.contains("no name of a token")));
        assert!(table("a --expires soon").is_err_and(|mistakes| mistakes.contains("no moment")));
    }

    #[test]
    fn no_two_tokens_are_alike() {
        let (one, other) = (random().expect("random"), random().expect("random"));
        assert!(one != other && one.len() == 32);
    }
}
