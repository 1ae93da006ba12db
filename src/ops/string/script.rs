//! The script that a code point belongs to, by ICU's numbers.
//!
//! `scripts.bin` holds runs of code points of one script; see `tools/reference/tables.py`.

use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_tensor::Result;

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "UnicodeScript",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(scripts)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// Runs of four bytes: the first code point and the script.
static RUNS: &[u8] = include_bytes!("scripts.bin");

/// The script of a code point; -1 for what is none.
fn script(point: i32) -> i32 {
    let Ok(point) = u32::try_from(point) else {
        return -1;
    };
    let (runs, _) = RUNS.as_chunks::<4>();
    let start = |run: &[u8; 4]| u32::from_le_bytes([run[0], run[1], run[2], 0]);
    let after = runs.partition_point(|run| start(run) <= point);
    match after.checked_sub(1).map(|at| runs[at][3]) {
        None | Some(u8::MAX) => -1,
        Some(script) => i32::from(script),
    }
}

fn scripts(context: &mut KernelContext) -> Result<()> {
    let mut output = context.allocate_output(0)?;
    let points = context.input_slice::<i32>(0)?;
    for (to, &point) in output.as_mut_slice::<i32>()?.iter_mut().zip(points) {
        *to = script(point);
    }
    context.set_output(0, output)
}

crate::op_cases! {
    of_letters: Case::op("UnicodeScript").input(vector(&[0x41, 0x3b1, 0x431, 0x5d0, 0x627, 0x4e2d, 0x3042, 0x20, 0x301]));
    of_strange_points: Case::op("UnicodeScript").input(t(&[2, 4], &[-1, 0x10ffff, 0x110000, 0xd800, i32::MAX, i32::MIN, 0x1f600, 0]));
    of_nothing: Case::op("UnicodeScript").input(t::<i32>(&[0, 2], &[]));
    of_one: Case::op("UnicodeScript").input(scalar(0x3b1)).gives(scalar(14));
}
