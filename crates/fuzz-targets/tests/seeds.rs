//! Runs every target on its seeds and on mutations of them, the same ones each time.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use outflow_fuzz_targets::{TARGETS, Target};

const MUTATIONS: u64 = 3000;

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Files of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files
}

/// splitmix64, by Sebastiano Vigna, in the public domain.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn mutated(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.below(data.len());
        match random.below(7) {
            0 if !data.is_empty() => data[at] ^= 1 << random.below(8),
            1 if !data.is_empty() => data[at] = random.next() as u8,
            2 if !data.is_empty() => data[at] = [0, 0xff, 0x7f, 0x80][random.below(4)],
            3 => data.truncate(at),
            4 => data.insert(at, random.next() as u8),
            5 if !data.is_empty() => drop(data.remove(at)),
            _ => {
                let end = at + random.below(data.len() - at);
                let piece = data[at..end].to_vec();
                let to = random.below(data.len());
                data.splice(to..to, piece);
            }
        }
    }
    data
}

fn check((name, target): &Target, data: &[u8], what: &str) {
    if catch_unwind(|| target(data)).is_err() {
        let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("fuzz target {name} panics on {what}: {hex}");
    }
}

/// Does it with all targets, on all processors. A target that fails ends the test.
fn with_all(work: impl Fn(&Target) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(target);
                }
            });
        }
    });
}

#[test]
fn seeds_and_their_mutations_are_read_without_harm() {
    with_all(|target| {
        check(target, &[], "nothing");
        for path in files(&fuzz_dir().join("seeds").join(target.0)) {
            let seed = fs::read(&path).expect("readable");
            check(target, &seed, &path.display().to_string());
            let mut random = Random(seed.len() as u64);
            for round in 0..MUTATIONS {
                let what = format!("mutation {round} of {}", path.display());
                check(target, &mutated(&seed, &mut random), &what);
            }
        }
    });
}

#[test]
fn what_the_fuzzer_has_found_to_be_new_is_read_without_harm() {
    for target in TARGETS {
        let kept = fuzz_dir().join("kept").join(target.0);
        for path in if kept.is_dir() { files(&kept) } else { Vec::new() } {
            let input = fs::read(&path).expect("readable");
            check(target, &input, &path.display().to_string());
        }
    }
}

#[test]
fn every_target_has_seeds_and_a_program_for_the_fuzzer() {
    let manifest = fs::read_to_string(fuzz_dir().join("Cargo.toml")).expect("fuzz/Cargo.toml");
    for (name, _) in TARGETS {
        assert!(!files(&fuzz_dir().join("seeds").join(name)).is_empty(), "fuzz/seeds/{name} is empty");
        let program = fuzz_dir().join(format!("fuzz_targets/{name}.rs"));
        assert!(program.is_file(), "{} is missing", program.display());
        let line = format!("path = \"fuzz_targets/{name}.rs\"");
        assert!(manifest.contains(&line), "fuzz/Cargo.toml has no {line}");
    }
}
