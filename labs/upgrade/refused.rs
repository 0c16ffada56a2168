//! Upgrades to what cannot take the relay's place.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outflow_labs::figures::{progress, rounded};
use outflow_labs::relay::Upgrade;
use serde_json::{Map, Value, json};

use crate::scene::Scene;
use crate::tally::{During, Tally};

/// How long viewers are looked at afterwards.
const AFTER: Duration = Duration::from_secs(2);

/// What lies in the place of the relay's program.
const PROGRAMS: [(&str, &[u8]); 2] =
    [("ends_at_once", b"#!/bin/sh\nexit 1\n"), ("no_program", b"\x7fThis is no program.\n")];

/// Each of them, and what came of it.
pub(crate) fn all(scene: &mut Scene<'_>, tally: &mut Tally) -> Result<Map<String, Value>> {
    let mut figures = Map::new();
    for (name, content) in PROGRAMS {
        scene.replace_program(content)?;
        let refused = one(scene, tally);
        scene.restore_program()?;
        let refused = refused?;
        progress(format!("{name}: {refused}"));
        figures.insert(name.to_owned(), refused);
    }
    Ok(figures)
}

fn one(scene: &mut Scene<'_>, tally: &mut Tally) -> Result<Value> {
    let began = Instant::now();
    let answer = scene.relay.upgrade()?;
    let took = began.elapsed();
    std::thread::sleep(AFTER);
    scene.relay.healthy()?;
    let got = scene.got()?;
    tally.add(During::Else, &got);
    let (status, error) = match answer {
        Upgrade::Refused { status, why } => (status, why),
        Upgrade::Done { .. } => (200, String::new()),
    };
    ensure!(status != 200, "the relay says that what is no relay has taken over");
    let longest = got.iter().filter(|got| !got.is_gone).map(|got| got.gap).max().unwrap_or_default();
    Ok(json!({
        "status": status,
        "error": error,
        "answer_ms": rounded(took.as_secs_f64() * 1e3),
        "receivers_lost": got.iter().filter(|got| got.is_gone).count(),
        "packets_lost": got.iter().map(|got| got.lost).sum::<u64>(),
        "gap_ms_max": rounded(longest.as_secs_f64() * 1e3),
    }))
}
