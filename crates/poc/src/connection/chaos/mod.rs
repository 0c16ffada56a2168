//! Random services over random nets, in random weather, in virtual time: what is promised holds.
//!
//! A scenario is a number. One that fails says which, and is run alone by `POC_CHAOS_SEED=… cargo test -p
//! outflow-poc chaos`; `POC_CHAOS_SEEDS=100000` runs 100000 of them, best with `--release`.
//!
//! | promise | checked by |
//! |---|---|
//! | order is that of the net | `oracle`: what may have fired at the most, worked out from what was told |
//! | nothing comes twice, or as something else | `oracle` |
//! | nothing is delivered that came after its deadline, or after it was given up | before each datagram, what the receiver's engine says of what is in it |
//! | what is reliable is not lost while it is valid | `oracle`, of nets that wait for all |
//! | both ends know the same of each unit | `oracle`, at the end |
//! | it ends, and no wait is in vain | applications only go on when they are told; a limit of virtual time |
//! | no more is kept than was agreed on | `check_accounts`, after each step |
//! | nothing is to be called again and again | `world` |
//! | no packet number is used twice | `world` |
//! | an end that is handed over keeps all of that, too | the same again, with ends that are saved and restored |

mod hostile;
mod oracle;
mod scenario;
mod weather;
mod world;

use core::cell::Cell;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use self::world::World;

/// Seeds of the test that always runs.
const SEEDS: u64 = 6000;

/// Those of the one in which ends are handed over.
const HANDOVER_SEEDS: u64 = 1500;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn run(seeds: core::ops::Range<u64>, play: impl Fn(u64)) {
    for seed in seeds {
        let played = catch_unwind(AssertUnwindSafe(|| play(seed)));
        if let Err(panic) = played {
            eprintln!("it was POC_CHAOS_SEED={seed}");
            if number("POC_CHAOS_GO_ON").is_none() {
                resume_unwind(panic);
            }
        }
    }
}

#[test]
fn whatever_happens_on_the_way_promises_are_kept() {
    run(seeds(SEEDS), |seed| World::new(seed).run());
}

#[test]
fn promises_are_kept_by_ends_that_are_handed_over() {
    let count = Cell::new(0);
    let seeds = seeds(HANDOVER_SEEDS);
    run(seeds.clone(), |seed| {
        let mut world = World::handing_over(seed);
        world.run();
        count.set(count.get() + world.handovers());
    });
    assert!(count.get() > seeds.count() as u64, "{} handovers", count.get());
}

fn seeds(count: u64) -> core::ops::Range<u64> {
    match number("POC_CHAOS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("POC_CHAOS_SEEDS").unwrap_or(count),
    }
}
