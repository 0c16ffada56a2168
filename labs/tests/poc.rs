//! `outflow poc send` and `recv` from one namespace to another: what goes in comes out.

use std::io::{Read, Write};
use std::path::Path;
use std::thread;

use anyhow::{Result, ensure};
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::process::Program;
use outflow_labs::programs::clip;
use outflow_labs::relay::binary;
use outflow_labs::scene::{PATIENCE, scene, wait_bound};

const PORT: u16 = 7000;

fn outflow(arguments: &[&str]) -> Result<Program> {
    Ok(Program::new(binary()?.display().to_string()).args(arguments.iter().copied()))
}

/// Sends bytes through a connection, and answers what arrives.
fn carried(paths: &Paths, bytes: &[u8], secure: &[&str]) -> Result<Vec<u8>> {
    let address = format!("poc://{RELAY_IN}:{PORT}/clip");
    let recv = [&["poc", "recv", &address, "--listen"], secure].concat();
    // All of it comes at once: nothing is left out because it is late.
    let send =
        [&["poc", "send", &address, "--service", "datagrams:latency=inf,repair=reliable"], secure].concat();
    let (mut receiver, _, mut out) = outflow(&recv)?.within(&paths.relay).start_piped()?;
    let arriving = thread::spawn(move || {
        let mut arrived = Vec::new();
        out.read_to_end(&mut arrived).map(|_| arrived)
    });
    let (mut sender, mut input, _) = outflow(&send)?.within(&paths.source).start_piped()?;
    let feeding = bytes.to_vec();
    let feeding = thread::spawn(move || input.write_all(&feeding));
    let status = sender.wait(PATIENCE)?;
    ensure!(status.success(), "the sender: {}", sender.account());
    feeding.join().expect("no panic")?;
    let status = receiver.wait(PATIENCE)?;
    ensure!(status.success(), "the receiver: {}", receiver.account());
    Ok(arriving.join().expect("no panic")?)
}

#[test]
fn what_is_sent_comes_out_encrypted_or_not() -> Result<()> {
    let Some(paths) = scene("poc", &[])? else { return Ok(()) };
    let clip = std::fs::read(clip())?;
    let folder = tempfile::tempdir()?;
    let key = outflow(&["poc", "key"])?.finish(PATIENCE)?.stdout;
    let file = folder.path().join("poc.key");
    std::fs::write(&file, &key)?;
    let file = file.display().to_string();
    for secure in [&["--insecure"][..], &["--key-file", &file]] {
        let arrived = carried(&paths, &clip, secure)?;
        ensure!(arrived == clip, "{} of {} bytes came", arrived.len(), clip.len());
    }
    Ok(())
}

#[test]
fn one_that_has_no_key_is_told_so() -> Result<()> {
    let Some(paths) = scene("pockey", &[])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let keys = ["a", "b"].map(|name| folder.path().join(name));
    for key in &keys {
        std::fs::write(key, outflow(&["poc", "key"])?.finish(PATIENCE)?.stdout)?;
    }
    let address = format!("poc://{RELAY_IN}:{PORT}/clip");
    let with = |what, key: &Path| outflow(&["poc", what, &address, "--key-file", &key.display().to_string()]);
    let mut receiver = with("recv", &keys[0])?.args(["--listen"]).within(&paths.relay).start()?;
    wait_bound(&mut receiver, PORT)?;
    let mut sender = with("send", &keys[1])?.within(&paths.source).start()?;
    ensure!(!sender.wait(PATIENCE)?.success(), "it was let in: {}", sender.account());
    ensure!(sender.account().contains("check the keys"), "{}", sender.account());
    drop(receiver);
    Ok(())
}

#[test]
fn one_that_asks_for_something_else_learns_what_there_is() -> Result<()> {
    let Some(paths) = scene("pocother", &[])? else { return Ok(()) };
    let place = format!("poc://{RELAY_IN}:{PORT}");
    let with = |what, resource: &str| outflow(&["poc", what, &(place.clone() + resource), "--insecure"]);
    let mut receiver = with("recv", "/clip")?.args(["--listen"]).within(&paths.relay).start()?;
    wait_bound(&mut receiver, PORT)?;
    let mut sender = with("send", "/other")?.within(&paths.source).start()?;
    ensure!(!sender.wait(PATIENCE)?.success(), "it was let in: {}", sender.account());
    ensure!(sender.account().contains("there is no /other here, but /clip"), "{}", sender.account());
    drop(receiver);
    Ok(())
}
