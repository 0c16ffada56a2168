//! Where chance comes from: a generator of its own for everything that draws.

/// What draws.
#[derive(Debug, Clone, Copy)]
pub(super) enum Draws {
    /// When a flow starts.
    Start,
    /// What a flow sends.
    Sends,
    /// What a link does to packets.
    Impairs,
    /// What a node does.
    Node,
}

/// The generator of one thing in a run.
pub(super) fn generator(seed: u64, draws: Draws, group: usize, member: usize) -> fastrand::Rng {
    let words = [seed, draws as u64, group as u64, member as u64];
    fastrand::Rng::with_seed(words.into_iter().fold(0x6a09_e667_f3bc_c908, mixed))
}

/// SplitMix64 over what was before and a word (Steele, Lea, Flood, 2014).
fn mixed(before: u64, word: u64) -> u64 {
    let mut x = before.rotate_left(17) ^ word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_draws_for_itself() {
        let first = |seed, draws, group, member| generator(seed, draws, group, member).u64(..);
        let mut all: Vec<u64> = Vec::new();
        for seed in 0..3 {
            for draws in [Draws::Start, Draws::Sends, Draws::Impairs] {
                all.extend((0..9).map(|at| first(seed, draws, at / 3, at % 3)));
            }
        }
        assert_eq!(all[0], first(0, Draws::Start, 0, 0));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 81);
    }
}
