//! `outflow poc key`

use clap::Args;
use outflow_poc_socket::noise::{PrivateKey, SharedKey};

/// Makes a key, for the files that --key-file takes
///
/// A shared key goes into the file of both ends. Of a pair, the line that begins with "private:" goes into the
/// server's file and the one that begins with "public:" into those of its clients.
#[derive(Debug, Args)]
pub(super) struct MakeKey {
    /// A pair of keys: clients know the server by it, and need no secret
    #[arg(long)]
    pair: bool,
}

impl MakeKey {
    pub(super) fn run(self) -> Result<(), String> {
        if self.pair {
            let key = PrivateKey::generate().map_err(|error| error.to_string())?;
            println!("# the server's\n{}\n# its clients'\n{}", key.to_text(), key.public().to_text());
        } else {
            println!("{}", SharedKey::generate().map_err(|error| error.to_string())?.to_text());
        }
        Ok(())
    }
}
