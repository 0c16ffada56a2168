//! Where the directory is, and how one gets in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use outflow_routing::tree::limits::ENTRY_LIFE;
use percent_encoding::percent_decode_str;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use url::Url;

use crate::limits::{CONNECT_WAIT, FILE_BYTES_MAX, PING_EVERY};

/// Where the directory is, and how one gets in.
#[derive(Clone)]
pub struct Options {
    /// Addresses of NATS: `nats://HOST:PORT`, or `tls://` to refuse a server without TLS. In front of the host
    /// may stand `USER:PASSWORD@` or `TOKEN@`, which precede [`Options::auth`] at this server. All servers of a
    /// cluster are to be named: others are not looked for.
    pub servers: Vec<String>,
    /// The bucket, which is made if it is not there: letters, digits, `-` and `_`.
    pub bucket: String,
    /// How this client authenticates to the server.
    pub auth: Auth,
    /// The authorities to trust, if not the system's. With this, a server without TLS is refused.
    pub tls: Option<Tls>,
    /// Where the bucket is kept, if it is made.
    pub storage: Storage,
    /// On how many servers of a cluster, if it is made: 1 to 5.
    pub replicas: usize,
    /// After how long an entry that is not said again is forgotten, if the bucket is made.
    pub max_age: Duration,
    /// What NATS's own tools call this connection.
    pub name: String,
    /// What chance is made of: which entries a lookup names besides the nearest, and how long is waited
    /// between attempts.
    pub seed: u64,
}

impl core::fmt::Debug for Options {
    /// Without the servers: passwords may stand in their addresses.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Options")
            .field("bucket", &self.bucket)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            servers: Vec::new(),
            bucket: "outflow".to_owned(),
            auth: Auth::None,
            tls: None,
            storage: Storage::Memory,
            replicas: 1,
            max_age: ENTRY_LIFE,
            name: "outflow".to_owned(),
            seed: 0,
        }
    }
}

/// The credentials of this client.
#[derive(Clone, Default)]
pub enum Auth {
    /// None.
    #[default]
    None,
    /// By name and password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// By a token that all share.
    Token(String),
    /// By a file: credentials as `nsc` writes them (`.creds`), or the seed of an nkey alone. It is read again
    /// for each connection, so that it may be exchanged.
    File(PathBuf),
}

impl core::fmt::Debug for Auth {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Auth::None => f.write_str("None"),
            Auth::Password { user, .. } => write!(f, "Password({user})"),
            Auth::Token(_) => f.write_str("Token"),
            Auth::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

/// TLS with authorities of one's own, or with a certificate of one's own.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Authorities that are trusted instead of the system's, as PEM.
    pub ca: Option<PathBuf>,
    /// This relay's certificate, as PEM.
    pub certificate: Option<PathBuf>,
    /// Its key, as PEM.
    pub key: Option<PathBuf>,
}

/// Where NATS keeps the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// In memory: everything is said again within seconds anyway.
    #[default]
    Memory,
    /// In files.
    File,
}

/// What is wrong with the options. All of it is the configuration's, and nothing that time would mend.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server is named.
    #[error("no server of the directory is named: give at least one, such as nats://localhost:4222")]
    NoServers,
    /// An address is none. What is said of it is without user and password.
    #[error("the directory's address '{0}' is none: write nats://HOST:PORT, or tls://HOST:PORT")]
    Server(String),
    /// A bucket cannot have this name.
    #[error("'{0}' is no name for a bucket: use letters, digits, '-' and '_'")]
    Bucket(String),
    /// A bucket cannot have this many replicas.
    #[error("NATS keeps a bucket on 1 to 5 servers, not on {0}")]
    Replicas(usize),
    /// Entries cannot live so shortly or long.
    #[error("entries of the directory live between 1 s and 1 h, not {0:?}")]
    MaxAge(Duration),
    /// A file cannot be used.
    #[error("{path}: {why}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what should be in it.
        why: String,
    },
    /// A certificate without its key, or the other way round.
    #[error("a certificate for the directory needs its key, and the key its certificate: give both or none")]
    HalfPair,
}

/// Options that were found good.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) servers: Vec<Server>,
    pub(crate) options: Options,
}

/// One of the servers.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: ServerAddr,
    /// Without user and password: this may be shown.
    pub(crate) shown: String,
    auth: Option<Auth>,
}

impl Access {
    pub(crate) fn check(options: Options) -> Result<Access, Error> {
        if options.servers.is_empty() {
            return Err(Error::NoServers);
        }
        let servers = options.servers.iter().map(|text| server(text)).collect::<Result<Vec<_>, _>>()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if options.bucket.is_empty() || !options.bucket.chars().all(is_name) {
            return Err(Error::Bucket(options.bucket));
        }
        if !(1..=5).contains(&options.replicas) {
            return Err(Error::Replicas(options.replicas));
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&options.max_age) {
            return Err(Error::MaxAge(options.max_age));
        }
        if let Some(tls) = &options.tls {
            check_tls(tls)?;
        }
        let access = Access { servers, options };
        for server in &access.servers {
            access.connect_options(server)?;
        }
        Ok(access)
    }

    /// What a connection with this server is made with.
    pub(crate) fn connect_options(&self, server: &Server) -> Result<ConnectOptions, Error> {
        let mut connect = ConnectOptions::new()
            .name(&self.options.name)
            .connection_timeout(CONNECT_WAIT)
            .ping_interval(PING_EVERY)
            .ignore_discovered_servers()
            // A lost connection is made again here, where it is known what else is to be done.
            .max_reconnects(1);
        if let Some(tls) = &self.options.tls {
            connect = connect.require_tls(true);
            if let Some(ca) = &tls.ca {
                connect = connect.add_root_certificates(ca.clone());
            }
            if let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) {
                connect = connect.add_client_certificate(certificate.clone(), key.clone());
            }
        }
        match server.auth.as_ref().unwrap_or(&self.options.auth) {
            Auth::None => Ok(connect),
            Auth::Password { user, password } => {
                Ok(connect.user_and_password(user.clone(), password.clone()))
            }
            Auth::Token(token) => Ok(connect.token(token.clone())),
            Auth::File(path) => with_file(connect, path),
        }
    }
}

fn with_file(connect: ConnectOptions, path: &Path) -> Result<ConnectOptions, Error> {
    let text = text_of(path)?;
    let wrong = |why: String| Error::File { path: path.to_owned(), why };
    if text.contains("-----BEGIN NATS USER JWT-----") {
        return connect.credentials(&text).map_err(|error| {
            wrong(format!(
                "the credentials cannot be read: {error}; create them again with `nsc generate creds`"
            ))
        });
    }
    let seed = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let seed = seed.filter(|line| line.starts_with("SU") && line.bytes().all(|b| b.is_ascii_alphanumeric()));
    let seed = seed.ok_or_else(|| {
        wrong(
            "has neither credentials of NATS (.creds, as nsc writes them) nor the seed of a user's nkey"
                .into(),
        )
    })?;
    Ok(connect.nkey(seed.to_owned()))
}

fn text_of(path: &Path) -> Result<String, Error> {
    outflow_file::read_text(path, FILE_BYTES_MAX).map_err(|error| Error::File {
        path: path.to_owned(),
        why: format!("cannot be read: {error}; it is needed to reach the directory"),
    })
}

fn check_tls(tls: &Tls) -> Result<(), Error> {
    for path in [&tls.ca, &tls.certificate].into_iter().flatten() {
        let text = text_of(path)?;
        let found = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
        if !found.is_ok_and(|certificates| !certificates.is_empty()) {
            let why = "has no certificates: they begin with -----BEGIN CERTIFICATE-----".to_owned();
            return Err(Error::File { path: path.clone(), why });
        }
    }
    if let Some(path) = &tls.key
        && PrivateKeyDer::from_pem_slice(text_of(path)?.as_bytes()).is_err()
    {
        let why = "has no private key: it begins with -----BEGIN PRIVATE KEY-----".to_owned();
        return Err(Error::File { path: path.clone(), why });
    }
    if tls.certificate.is_some() != tls.key.is_some() {
        return Err(Error::HalfPair);
    }
    Ok(())
}

fn server(text: &str) -> Result<Server, Error> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("nats://{text}") };
    // What stands before an @ may be a password, and is not shown.
    let shown = || text.rsplit_once('@').map_or(text, |(_, host)| host).to_owned();
    let mut url = Url::parse(&with_scheme).map_err(|_| Error::Server(shown()))?;
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "nats" | "tls") || !has_host || !is_bare {
        return Err(Error::Server(shown()));
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let auth = match (url.username(), url.password()) {
        ("", None) => None,
        (token, None) => Some(Auth::Token(decoded(token))),
        (user, Some(password)) => Some(Auth::Password { user: decoded(user), password: decoded(password) }),
    };
    let bare = url.set_username("").and_then(|()| url.set_password(None));
    let address = bare.ok().and_then(|()| ServerAddr::from_url(url.clone()).ok());
    let address = address.ok_or_else(|| Error::Server(shown()))?;
    Ok(Server { shown: url.to_string(), address, auth })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut Options)) -> Result<Access, Error> {
        let mut options = Options { servers: vec!["nats://localhost:4222".to_owned()], ..Options::default() };
        change(&mut options);
        Access::check(options)
    }

    #[test]
    fn servers_are_addresses_and_may_carry_credentials() {
        let access = check(|options| {
            let servers = ["relay:p%40ss@one:4223", "tls://s3cret@two", "three"];
            options.servers = servers.map(str::to_owned).to_vec();
        })
        .expect("servers");
        let [one, two, three] = &access.servers[..] else { panic!("three") };
        let is_user = |auth: &Option<Auth>| {
            matches!(auth, Some(Auth::Password { user, password })
            if user == "relay" && password == "p@ss")
        };
        assert!(is_user(&one.auth), "{one:?}");
        assert!(matches!(&two.auth, Some(Auth::Token(token)) if token == "s3cret"), "{two:?}");
        assert!(three.auth.is_none());
        assert_eq!((one.shown.as_str(), one.address.port()), ("nats://one:4223", 4223));
        assert!(two.address.tls_required() && !one.address.tls_required());
        assert!(!format!("{access:?}").contains("p@ss"), "passwords are not shown");
    }

    #[test]
    fn options_are_shown_without_passwords() {
        let servers = vec!["nats://relay:p4ss@one:4223".to_owned()];
        let shown = format!("{:?}", Options { servers, ..Options::default() });
        assert!(shown.contains("bucket") && !shown.contains("p4ss"), "{shown}");
    }

    #[test]
    fn wrong_options_say_what_to_do() {
        let said = |change: fn(&mut Options)| check(change).expect_err("wrong").to_string();
        assert!(said(|o| o.servers.clear()).contains("nats://localhost:4222"));
        let address = said(|o| o.servers = vec!["http://user:hidden@host".to_owned()]);
        assert!(address.contains("nats://HOST:PORT") && !address.contains("hidden"), "{address}");
        assert!(said(|o| o.servers = vec!["nats://host/path".to_owned()]).contains("nats://HOST:PORT"));
        assert!(said(|o| o.bucket = "a.b".to_owned()).contains("letters"));
        assert!(said(|o| o.replicas = 0).contains("1 to 5"));
        assert!(said(|o| o.max_age = Duration::ZERO).contains("1 s"));
        assert!(
            said(|o| o.auth = Auth::File("missing.creds".into())).contains("missing.creds: cannot be read")
        );
    }

    #[test]
    fn files_are_read_before_anything_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let (text, seed) = (file("text", "hello"), file("seed", "# mine\n SUAAB\n"));
        let auth = |path: &PathBuf| {
            let path = path.clone();
            check(move |options| options.auth = Auth::File(path))
        };
        assert!(auth(&text).expect_err("no credentials").to_string().contains("nsc"));
        assert!(auth(&seed).is_ok());
        let tls = |ca: Option<&PathBuf>, certificate: Option<&PathBuf>, key: Option<&PathBuf>| {
            let tls = Tls { ca: ca.cloned(), certificate: certificate.cloned(), key: key.cloned() };
            check(move |options| options.tls = Some(tls)).map(drop)
        };
        assert!(matches!(tls(Some(&text), None, None), Err(Error::File { .. })));
        assert!(matches!(tls(None, Some(&text), Some(&text)), Err(Error::File { .. })));
        assert!(matches!(tls(None, None, Some(&text)), Err(Error::File { .. })));
        assert!(tls(None, None, None).is_ok());
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(tls(None, Some(&file("pem", pem)), None), Err(Error::HalfPair)));
    }
}
