//! Limits of demand tables, with what happens when they are reached.

/// Children of all keys of a table together. The want of a further one is refused, and counted; those that
/// are there may still change theirs.
pub const CHILDREN_MAX: usize = 1 << 20;

/// Keys of a table that at least one child wants. The want of a further one is refused, and counted.
pub const KEYS_MAX: usize = 1 << 16;

/// Children of one key. The want of a further one is refused, and counted.
pub const CHILDREN_OF_KEY_MAX: usize = 1 << 16;
