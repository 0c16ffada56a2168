//! Which clients get in: passwords, tokens, nkeys, credentials, TLS.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use outflow_directory::{Auth, Event, Options, Tls};

use super::server::{Server, connected, event, openssl, program, refused};
use super::{answers, entry};

/// A client with these options gets in, and can do all that a relay does.
async fn is_let_in(options: Options) {
    let (directory, _events) = connected(options).await;
    directory.register(&entry("s", 1));
    answers(&directory, "s", &[1]).await;
}

#[tokio::test]
async fn by_user_and_password() {
    let settings = "authorization { user: relay, password: \"p@ss\" }";
    let Some(server) = Server::start("by user and password", settings) else { return };
    let password =
        |password: &str| Auth::Password { user: "relay".to_owned(), password: password.to_owned() };
    is_let_in(Options { auth: password("p@ss"), ..server.options() }).await;
    let url = format!("nats://relay:p%40ss@127.0.0.1:{}", server.port);
    is_let_in(Options { servers: vec![url], ..server.options() }).await;
    for auth in [password("wrong"), Auth::None, Auth::Token("p@ss".to_owned())] {
        let why = refused(Options { auth, ..server.options() }).await;
        assert!(why.contains("refuses") && !why.contains("wrong"), "{why}");
    }
}

#[tokio::test]
async fn by_token() {
    let Some(server) = Server::start("by token", "authorization { token: s3cret }") else { return };
    is_let_in(Options { auth: Auth::Token("s3cret".to_owned()), ..server.options() }).await;
    let url = format!("nats://s3cret@127.0.0.1:{}", server.port);
    is_let_in(Options { servers: vec![url], ..server.options() }).await;
    assert!(refused(server.options()).await.contains("refuses"));
}

#[tokio::test]
async fn by_nkey() {
    let user = KeyPair::new_user();
    let settings = format!("authorization {{ users: [ {{ nkey: {} }} ] }}", user.public_key());
    let Some(server) = Server::start("by nkey", &settings) else { return };
    let (mine, other) = (server.folder.path().join("mine"), server.folder.path().join("other"));
    std::fs::write(&mine, user.seed().expect("a seed")).expect("written");
    std::fs::write(&other, KeyPair::new_user().seed().expect("a seed")).expect("written");
    is_let_in(Options { auth: Auth::File(mine), ..server.options() }).await;
    assert!(refused(Options { auth: Auth::File(other), ..server.options() }).await.contains("refuses"));
}

/// A token of NATS (ADR-14): claims of `issuer` about `subject`.
fn token(issuer: &KeyPair, subject: &KeyPair, name: &str, claims: &str) -> String {
    let (issuer_key, subject_key) = (issuer.public_key(), subject.public_key());
    let head = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let body = format!(
        r#"{{"jti":"{name}","iat":1700000000,"iss":"{issuer_key}","name":"{name}","sub":"{subject_key}","nats":{claims}}}"#
    );
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(body));
    let signature = issuer.sign(signed.as_bytes()).expect("a signature");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// What `nsc generate creds` writes.
fn credentials(path: &Path, account: &KeyPair, user: &KeyPair) {
    let jwt =
        token(account, user, "relay", r#"{"subs":-1,"data":-1,"payload":-1,"type":"user","version":2}"#);
    let seed = user.seed().expect("a seed");
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    std::fs::write(path, text).expect("written");
}

#[tokio::test]
async fn by_credentials() {
    let (operator, system, account) =
        (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
    let limits =
        r#""subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1"#;
    let jetstream = r#""mem_storage":-1,"disk_storage":-1,"streams":-1,"consumer":-1"#;
    let with = |more: &str| format!(r#"{{"limits":{{{limits}{more}}},"type":"account","version":2}}"#);
    let settings = format!(
        "operator: \"{}\"\nsystem_account: {}\nresolver: MEMORY\nresolver_preload {{\n{}: \"{}\"\n{}: \"{}\"\n}}\n",
        token(&operator, &operator, "operator", r#"{"type":"operator","version":2}"#),
        system.public_key(),
        system.public_key(),
        token(&operator, &system, "system", &with("")),
        account.public_key(),
        token(&operator, &account, "account", &with(&format!(",{jetstream}"))),
    );
    let Some(server) = Server::start("by credentials", &settings) else { return };
    let path = |name: &str| server.folder.path().join(name);
    let user = KeyPair::new_user();
    credentials(&path("good.creds"), &account, &user);
    credentials(&path("other.creds"), &KeyPair::new_account(), &user);
    is_let_in(Options { auth: Auth::File(path("good.creds")), ..server.options() }).await;
    let other = Options { auth: Auth::File(path("other.creds")), ..server.options() };
    assert!(refused(other).await.contains("refuses"));
}

/// Makes an authority, and certificates of it: `NAME.pem` and `NAME.key`.
fn certificates(openssl_program: &Path, folder: &Path) {
    let run = |arguments: &str| openssl(openssl_program, folder, arguments);
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for ca in ["ca", "stranger"] {
        run(&format!("req -x509 {key} -keyout {ca}.key -out {ca}.pem -subj /CN={ca} -days 2"));
    }
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("written");
    for name in ["server", "relay"] {
        run(&format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        let by = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names";
        run(&format!("x509 -req -in {name}.csr -out {name}.pem {by}"));
    }
}

#[tokio::test]
async fn by_tls_with_certificates_at_both_ends() {
    let test = "by TLS with certificates at both ends";
    let Some(openssl) = program("openssl", test) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    certificates(&openssl, folder.path());
    let file = |name: &str| folder.path().join(name);
    let settings = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}",
        file("server.pem").display(),
        file("server.key").display(),
        file("ca.pem").display(),
    );
    let with = |ca: &str, has_own: bool| {
        let own = |name: &str| has_own.then(|| file(name));
        Tls { ca: Some(file(ca)), certificate: own("relay.pem"), key: own("relay.key") }
    };
    let (good, unknown, unnamed) = (with("ca.pem", true), with("stranger.pem", true), with("ca.pem", false));
    let Some(server) = Server::start_in(test, &settings, folder) else { return };
    is_let_in(Options { tls: Some(good.clone()), ..server.options() }).await;
    let by_name = format!("tls://localhost:{}", server.port);
    is_let_in(Options { tls: Some(good), servers: vec![by_name], ..server.options() }).await;
    let why = refused(Options { tls: Some(unknown), ..server.options() }).await;
    assert!(why.contains("certificate"), "{why}");
    refused(Options { tls: Some(unnamed), ..server.options() }).await;
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_wanted() {
    let Some(server) = Server::start("a server without TLS", "") else { return };
    let url = format!("tls://127.0.0.1:{}", server.port);
    refused(Options { servers: vec![url], ..server.options() }).await;
    refused(Options { tls: Some(Tls::default()), ..server.options() }).await;
}

#[tokio::test]
async fn by_the_permissions_of_the_example() {
    let example = include_str!("../../../../examples/tree/nats.conf");
    let settings = &example[example.find("authorization").expect("its users")..];
    let Some(server) = Server::start("by the permissions of the example", settings) else { return };
    let url = format!("nats://relay:change-me@127.0.0.1:{}", server.port);
    let options = Options { servers: vec![url], ..server.options() };
    is_let_in(options.clone()).await;
    // What the server denies is known by its word, and by its silence.
    let (directory, mut events) = connected(Options { bucket: "elsewhere".to_owned(), ..options }).await;
    directory.register(&entry("s", 1));
    let Event::Away { why } = event(&mut events).await else { panic!("it may not") };
    assert!(why.to_lowercase().contains("permissions violation"), "{why}");
}
