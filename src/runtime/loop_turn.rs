//! The loop around a kernel, and its turn, for the kernels that may ask for both.
//!
//! The engines know them; other kernels never ask. So an engine sets them on its thread around kernels of such ops only, and
//! all else costs nothing. Guarantees: the numbers are the reference's, whichever engine runs the loop.

use ff_op::{KernelRecord, OpRecord};
use std::cell::Cell;

/// A turn of a loop under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopTurn {
    /// Number of the loop: 0 outside of loops, else a hash of the names of its frames and of the turns around it.
    pub frame: u64,
    /// The turn, from 0.
    pub turn: u64,
}

thread_local! {
    static CURRENT: Cell<LoopTurn> = const { Cell::new(LoopTurn { frame: 0, turn: 0 }) };
}

/// Sets it back, whatever happens meanwhile.
struct Restored(LoopTurn);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl LoopTurn {
    /// Where the kernel that this thread runs, or starts, is.
    pub fn current() -> LoopTurn {
        CURRENT.get()
    }

    /// Runs or starts a kernel in this turn.
    pub fn within<R>(self, kernel: impl FnOnce() -> R) -> R {
        let _restored = Restored(CURRENT.replace(self));
        kernel()
    }

    /// The first turn of a loop that starts in this turn; `name` is the [`name_hash`] of its frame.
    pub fn inner(self, name: u64) -> LoopTurn {
        let frame = combined(self.frame, combined(self.turn, name));
        LoopTurn { frame, turn: 0 }
    }
}

/// The hash of a frame's name.
pub fn name_hash(name: &str) -> u64 {
    ff_ops::string::hash64(name.as_bytes())
}

fn combined(a: u64, b: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7800;
    a ^ b.wrapping_add(GOLDEN).wrapping_add(a << 10).wrapping_add(a >> 4)
}

/// Whether kernels of an op may ask for their turn: those given at run time, and those whose variables last for a turn.
pub fn may_ask(op: &OpRecord) -> bool {
    let mut kernels = op.kernels.iter();
    kernels.any(|kernel| matches!(kernel, KernelRecord::Dynamic { .. }))
        || matches!(
            op.def.name.as_str(),
            "TemporaryVariable" | "DestroyTemporaryVariable"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_s_numbers() {
        let outside = LoopTurn::default();
        assert_eq!(outside.inner(name_hash("loop")).frame, 12250576138533019675);
        let mut outer = outside.inner(name_hash("outer"));
        assert_eq!(outer.frame, 15760626509582709433);
        for frame in [9517457602297849209, 9517457602297850118, 9517457602297851259u64] {
            assert_eq!(outer.inner(name_hash("inner")), LoopTurn { frame, turn: 0 });
            outer.turn += 1;
        }
    }

    #[test]
    fn set_back_afterwards() {
        let turn = LoopTurn { frame: 3, turn: 4 };
        assert_eq!(turn.within(LoopTurn::current), turn);
        assert_eq!(LoopTurn::current(), LoopTurn::default());
    }
}
