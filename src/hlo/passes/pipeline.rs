//! The passes in their order.

use super::{
    Changed, algebraic, constant_folding, cse, dce, dot, fusion, inline, loop_invariant, random_bits,
    schedule, transpose_motion, trip_count,
};
use crate::module::Module;
use ff_tensor::Result;

/// A pass with its name, which is also that of its folder of tests.
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// The function.
    pub run: fn(&mut Module) -> Result<Changed>,
}

/// The passes that make a module simpler, run until nothing changes.
pub const ALL: &[Pass] = &[
    Pass {
        name: "inline",
        run: inline::run,
    },
    Pass {
        name: "random_bits",
        run: random_bits::run,
    },
    Pass {
        name: "algebraic",
        run: algebraic::run,
    },
    Pass {
        name: "transpose_motion",
        run: transpose_motion::run,
    },
    Pass {
        name: "dot",
        run: dot::run,
    },
    Pass {
        name: "trip_count",
        run: trip_count::run,
    },
    Pass {
        name: "loop_invariant",
        run: loop_invariant::run,
    },
    Pass {
        name: "constant_folding",
        run: constant_folding::run,
    },
    Pass {
        name: "cse",
        run: cse::run,
    },
    Pass {
        name: "dce",
        run: dce::run,
    },
];

/// The passes that prepare a simple module for code, run once in this order.
pub const LAST: &[Pass] = &[
    Pass {
        name: "fusion",
        run: fusion::run,
    },
    Pass {
        name: "schedule",
        run: schedule::run,
    },
];

/// How often the list is run while something changes.
const MAX_ROUNDS: usize = 4;

/// Told of each pass that ran: its name, the module before it and after it.
pub type Observer<'a> = &'a mut dyn FnMut(&str, &Module, &Module);

/// Simplifies a module, then prepares it for code.
pub fn prepare(module: &mut Module) -> Result<Changed> {
    prepare_observed(module, None)
}

/// As [`prepare`], with somebody watching.
pub fn prepare_with(module: &mut Module, observer: Observer) -> Result<Changed> {
    prepare_observed(module, Some(observer))
}

fn prepare_observed(module: &mut Module, mut observer: Option<Observer>) -> Result<Changed> {
    let mut changed = rounds(module, &mut observer)?;
    for pass in LAST {
        changed = changed.or(apply(pass, module, &mut observer)?);
    }
    Ok(changed)
}

fn apply(pass: &Pass, module: &mut Module, observer: &mut Option<Observer>) -> Result<Changed> {
    let before = observer.as_ref().map(|_| module.clone());
    let changed = (pass.run)(module).map_err(|error| error.prefixed(&format!("pass {}: ", pass.name)))?;
    if let (Some(observer), Some(before)) = (observer, before) {
        observer(pass.name, &before, module);
    }
    Ok(changed)
}

/// Runs the passes of [`ALL`] until nothing changes, at most a few times.
pub fn run(module: &mut Module) -> Result<Changed> {
    rounds(module, &mut None)
}

fn rounds(module: &mut Module, observer: &mut Option<Observer>) -> Result<Changed> {
    let mut changed = Changed::No;
    for _ in 0..MAX_ROUNDS {
        let mut now = Changed::No;
        for pass in ALL {
            now = now.or(apply(pass, module, observer)?);
        }
        if now == Changed::No {
            break;
        }
        changed = Changed::Yes;
    }
    Ok(changed)
}
