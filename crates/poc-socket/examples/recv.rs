//! Prints what a client sends, in order, and what is missing: `recv 0.0.0.0:7000 passphrase:…`.

use std::sync::Arc;

use outflow_poc::connection::Event;
use outflow_poc_socket::{Options, Security, blocking::PocSocket};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("where? ADDRESS:PORT")?.parse()?;
    let keys = arguments.next().ok_or("which key? shared:…")?.parse()?;

    let options = Options::new(Security::Keys(Arc::new(keys)));
    let socket = PocSocket::bind(address, None, options)?;
    let closed = loop {
        match socket.event() {
            Event::Delivered { unit, data } => println!("{unit}: {}", String::from_utf8_lossy(&data)),
            Event::Missed { unit } => println!("{unit} did not come in time"),
            Event::Closed(closed) => break closed,
            _ => (),
        }
    };
    println!("closed: {}", closed.text);
    Ok(())
}
