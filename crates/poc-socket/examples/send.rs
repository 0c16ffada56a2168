//! Sends lines of standard input, each of use for half a second: `send 127.0.0.1:7000 passphrase:…`.

use std::sync::Arc;
use std::time::Duration;

use outflow_petri::service::presets::{Order, datagrams};
use outflow_petri::service::{Class, Request};
use outflow_poc_socket::{Options, PocSocket, Security};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().ok_or("where to? HOST:PORT")?.parse()?;
    let keys = arguments.next().ok_or("which key? shared:…")?.parse()?;

    let flow = datagrams(Order::Total, Some(Duration::from_millis(500)), Class::Reliable)?;
    let request = Request { resource: "/lines".to_owned(), to_server: Some(flow), to_client: None };
    let options = Options::new(Security::Keys(Arc::new(keys)));
    let socket = PocSocket::connect(server, request, &options).await?;
    for line in std::io::stdin().lines() {
        socket.send(line?).await?;
    }
    socket.finish().await;
    Ok(())
}
