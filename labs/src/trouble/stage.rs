//! Where faults happen: the scene, set up again whenever it has to be.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::figures::progress;
use crate::net::cannot_make_namespaces;
use crate::programs::missing;
use crate::trouble::audience::Viewer;
use crate::trouble::fault::Fault;
use crate::trouble::faults::ALL;
use crate::trouble::logs::LogTo;
use crate::trouble::places::Places;
use crate::trouble::scene::Scene;
use crate::trouble::watch::{Life, Noticed, measure};

/// Why no faults can be made here, if so.
pub fn cannot_be_made() -> Option<String> {
    let needed = ["nft", "openssl", "prlimit"].into_iter().find_map(missing);
    cannot_make_namespaces().or(needed).map(|why| format!("{why}: see scripts/setup"))
}

/// The faults of these names, or all that can be had here.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Fault>> {
    for name in names {
        let known = ALL.iter().map(|fault| fault.name).collect::<Vec<_>>();
        ensure!(known.contains(&name.as_str()), "there is no fault '{name}': there are {}", known.join(", "));
    }
    let no_nats = missing("nats-server");
    if let Some(why) = &no_nats {
        progress(format!("nats_away is left out: {why}"));
    }
    let is_wanted = |fault: &&Fault| {
        let is_named = names.is_empty() || names.iter().any(|name| name == fault.name);
        is_named && (fault.name != "nats_away" || no_nats.is_none())
    };
    Ok(ALL.iter().filter(is_wanted).collect())
}

/// One of the faults, or two that can happen at the same time, and for how long: up to `most`. None if there are none.
pub fn by_chance<'f>(
    faults: &[&'f Fault],
    random: &mut fastrand::Rng,
    most: Duration,
) -> (Vec<&'f Fault>, Duration) {
    let first = random.choice(faults).copied();
    let goes_with = |fault: &&&Fault| first.is_some_and(|first| fault.goes_with(first));
    let others: Vec<_> = faults.iter().filter(goes_with).copied().collect();
    let second = random.choice(&others).copied().filter(|_| random.bool());
    (first.into_iter().chain(second).collect(), most.mul_f64(0.1 + 0.9 * random.f64()))
}

/// The scene, and what came of the faults that happened there.
pub struct Stage<'p> {
    places: &'p Places,
    viewers: Vec<Viewer>,
    scene: Option<Scene<'p>>,
    /// How often it was set up again because a fault had left damage.
    pub restarts: usize,
    /// Packets lost in all faults by viewers that they do not concern.
    pub lost: u64,
    /// The longest time for which one of those got none.
    pub worst_gap: Duration,
}

impl<'p> Stage<'p> {
    /// Not set up yet.
    pub fn new(places: &'p Places, viewers: Vec<Viewer>) -> Self {
        Self { places, viewers, scene: None, restarts: 0, lost: 0, worst_gap: Duration::ZERO }
    }

    /// The scene, set up if it has to be.
    pub fn scene(&mut self) -> Result<&mut Scene<'p>> {
        self.set_up(None)
    }

    fn set_up(&mut self, log: Option<LogTo>) -> Result<&mut Scene<'p>> {
        let is_so = |scene: &Scene<'_>| log.is_none_or(|to| scene.log.is_to(to));
        let scene = match self.scene.take().filter(is_so) {
            Some(scene) => scene,
            None => Scene::open(self.places, &self.viewers, log.unwrap_or(LogTo::Disk))?,
        };
        Ok(self.scene.insert(scene))
    }

    /// Has these faults happen together, while `life` is called a few times a second; none is a calm time.
    pub fn play(&mut self, faults: &[&Fault], time: Duration, life: &mut Life<'_>) -> Result<Noticed> {
        let scene = self.set_up(faults.iter().find_map(|fault| fault.log))?;
        let noticed = measure(scene, faults, time, life)?;
        if !faults.is_empty() {
            self.lost += noticed.lost;
            self.worst_gap = self.worst_gap.max(noticed.gap);
        }
        if !noticed.is_well {
            self.restarts += 1;
            self.scene = None;
        }
        Ok(noticed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_by_chance_are_those_of_the_seed_and_can_happen_together() {
        let faults: Vec<&Fault> = ALL.iter().collect();
        let names = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut one = || by_chance(&faults, &mut random, Duration::from_secs(8));
            let all: Vec<_> = (0..200).map(|_| one()).collect();
            assert!(all.iter().all(|(_, time)| (1..=8_000).contains(&time.as_millis())));
            for (together, _) in &all {
                assert!(matches!(together.len(), 1 | 2));
                let ends = together.iter().any(|fault| fault.ends_the_relay());
                assert!(!ends || together.len() == 1, "another one would be undone at a relay that is gone");
            }
            all.iter().flat_map(|(together, _)| together.iter().map(|fault| fault.name)).collect::<Vec<_>>()
        };
        assert_eq!(names(7), names(7));
        assert_ne!(names(7), names(8));
        assert!(ALL.iter().all(|fault| names(7).contains(&fault.name)));
    }
}
