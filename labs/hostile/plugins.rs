//! Plug-ins that mean no good, and one that does.

use anyhow::{Context, Result};

/// A plug-in: its name, and what it does with the packets `$p`, `$n` and the bytes `$b`, `$l`.
pub(crate) struct Plugin {
    pub(crate) name: &'static str,
    work: &'static str,
    /// Of the contract that it speaks.
    version: &'static str,
}

const fn plugin(name: &'static str, work: &'static str) -> Plugin {
    Plugin { name, work, version: "1.0.0" }
}

/// What the others are compared with: reads the first byte of each batch, and lets all pass.
pub(crate) const HARMLESS: Plugin = plugin("harmless", "(drop (i32.load8_u (local.get $b)))");

/// Of this many calls, one is slow: it turns so often.
pub(crate) const SLOW_CALLS: u32 = 8;
pub(crate) const SLOW_TURNS: u32 = 850_000;

pub(crate) const HOSTILE: [Plugin; 6] = [
    plugin("loop", "(loop $ever (br $ever))"),
    plugin(
        "memory_bomb",
        "(loop $ever
            (drop (memory.grow (i32.const 16)))
            (memory.fill (i32.const 131072) (i32.const 7) (i32.const 131072))
            (br $ever))",
    ),
    plugin("trap", "unreachable"),
    // The answer names packets that there are not, and bytes outside of its memory.
    plugin(
        "garbage",
        "(i32.store8 (i32.const 4096) (i32.const 1))
         (i32.store (i32.const 4100) (i32.const -64))
         (i32.store (i32.const 4104) (i32.const 9))
         (return (i32.const 4096))",
    ),
    // Every eighth call (SLOW_CALLS), as much as it just may (SLOW_TURNS): six instructions a turn, of 5 millions
    // and a hundred for each of 4000 bytes.
    plugin(
        "slow_sometimes",
        "(global.set $count (i32.add (global.get $count) (i32.const 1)))
         (if (i32.eqz (i32.and (global.get $count) (i32.const 7))) (then
            (local.set $i (i32.const 850000))
            (loop $turn
                (local.set $i (i32.sub (local.get $i) (i32.const 1)))
                (br_if $turn (local.get $i)))))",
    ),
    Plugin { name: "wrong_version", work: "", version: "2.0.0" },
];

impl Plugin {
    /// Whether it is of a contract that the relay speaks.
    pub(crate) fn is_taken(&self) -> bool {
        self.version == HARMLESS.version
    }

    pub(crate) fn code(&self) -> Result<Vec<u8>> {
        let (version, work) = (self.version, self.work);
        let text = format!(
            r#"(module
            (memory (export "memory") 4)
            (global $top (mut i32) (i32.const 65536))
            (global $count (mut i32) (i32.const 0))
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
                (global.set $top (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
            (func (export "outflow:plugin/element@{version}#init") (param i32 i32 i32 i32 i32) (result i32)
                (i32.store8 (i32.const 1024) (i32.const 0))
                (i32.store8 (i32.const 1028) (i32.const 2))
                (i32.const 1024))
            (func (export "cabi_post_outflow:plugin/element@{version}#work") (param i32)
                (global.set $top (i32.const 65536)))
            (func (export "outflow:plugin/element@{version}#work")
                (param $p i32) (param $n i32) (param $b i32) (param $l i32) (result i32) (local $i i32)
                (i32.store8 (i32.const 4096) (i32.const 0))
                {work}
                (i32.const 4096)))"#
        );
        wat::parse_str(text).with_context(|| format!("'{}' is no WebAssembly", self.name))
    }
}
