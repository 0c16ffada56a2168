//! The time of day, which is wrong.

use anyhow::Result;

use crate::trouble::fault::Trouble;
use crate::trouble::scene::Scene;

/// How far the relay's clock is ahead of what it should be, step by step.
const AHEAD_S: [i64; 3] = [3600, 0, -3600];

/// The relay's clock is set back and forth an hour, all the time. What was done is how often.
pub(super) fn set(_scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    Ok(Box::new(Set { done: 0 }))
}

struct Set {
    done: u64,
}

impl Trouble for Set {
    fn go_on(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        scene.clock.set(AHEAD_S[self.done as usize % AHEAD_S.len()])?;
        self.done += 1;
        Ok(())
    }

    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        scene.clock.set(0)?;
        Ok(self.done)
    }
}
