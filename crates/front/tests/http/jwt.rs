//! Signed tokens over HTTP, with keys of a server of their own.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::Ed25519KeyPair;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::door::{connect, read_until};
use super::{Bench, PATIENCE};

/// The public key of what signs here.
const JWKS: &str = concat!(
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"ed","use":"sig","alg":"EdDSA","x":"A6EHv_POEL4dcN0Y"#,
    r#"50vAmWfk1jCbpQ1fHdyGZBJVMbg"}]}"#,
);

/// A token of "camera-7", which may play what begins with "cl" until then, in seconds since 1970.
fn signed_until(exp: u64) -> String {
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let claims = format!(
        r#"{{"iss":"https://id.example","aud":"outflow","sub":"camera-7","exp":{exp},"outflow":{{"play":["cl*"]}}}}"#
    );
    let text = format!("{}.{}", part(br#"{"alg":"EdDSA","kid":"ed"}"#), part(claims.as_bytes()));
    let seed: Vec<u8> = (0..32).collect();
    let key = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed");
    format!("{text}.{}", part(key.sign(text.as_bytes()).as_ref()))
}

/// This moment, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_secs()
}

/// A server that has the keys; its address.
async fn keys() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{JWKS}", JWKS.len());
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    address
}

/// A relay that takes signed tokens.
async fn bench() -> Bench {
    Bench::start(&format!(
        "[access.jwt]\njwks = \"http://{}/\"\nissuer = \"https://id.example\"\naudience = \"outflow\"\n\
         [streams.clip]\nsource = \"demo://\"\n[streams.other]\nsource = \"demo://\"\n",
        keys().await
    ))
    .await
}

/// A player, and how its answer begins.
async fn play(address: SocketAddr, path: &str, token: &str) -> (TcpStream, String) {
    let head = format!("GET /{path}.ts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    let mut socket = connect(address, &head).await;
    let read = read_until(&mut socket, |read| read.len() > 40).await;
    (socket, String::from_utf8_lossy(&read).into_owned())
}

/// The same, once the relay has the keys.
async fn play_soon(address: SocketAddr, path: &str, token: &str) -> TcpStream {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let (socket, answer) = play(address, path, token).await;
        if answer.starts_with("HTTP/1.1 200 ") {
            return socket;
        }
        assert!(tokio::time::Instant::now() < until, "it is still answered {answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signed_token_lets_in_once_the_keys_are_there() {
    let bench = bench().await;
    let address = bench.listen().await;
    let token = signed_until(now() + 3600);
    let mut player = play_soon(address, "clip", &token).await;
    let named = |stream: &Value| stream["receivers"][0]["token"] == "JWT camera-7";
    bench.wait("/api/v1/streams/clip", named).await;
    assert!(play(address, "other", &token).await.1.starts_with("HTTP/1.1 403 "));
    let forged = token.replace("eyJpc3M", "eyJpc3N");
    assert!(play(address, "clip", &forged).await.1.starts_with("HTTP/1.1 401 "));
    assert!(play(address, "clip", &signed_until(now() - 1)).await.1.starts_with("HTTP/1.1 403 "));
    let control = bench.relay().control();
    let rules = outflow_door::Rules::from(&*control.config());
    let closed = outflow_door::Rules { jwt: None, play: vec![outflow_config::Secret::new("x")], ..rules };
    control.door().set_rules(closed);
    read_until(&mut player, |_| false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_ends_when_its_signed_token_has_expired() {
    let bench = bench().await;
    let address = bench.listen().await;
    let mut stays = play_soon(address, "clip", &signed_until(now() + 3600)).await;
    let expires = now() + 3;
    let mut player = play_soon(address, "clip", &signed_until(expires)).await;
    read_until(&mut player, |_| false).await;
    assert!(now() >= expires, "not before");
    bench.wait("/api/v1/relay", |relay: &Value| relay["connections"]["revoked"] == 1).await;
    read_until(&mut stays, |read| read.len() > 20 * 188).await;
}
