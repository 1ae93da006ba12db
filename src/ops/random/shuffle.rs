//! The rows of a tensor in random order: `RandomShuffle`, `StatelessShuffle`.

use super::stream::reserve;
use super::words::Words;
use crate::movement::Writer;
use ff_kernels::random::Philox;
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{Result, Tensor};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "RandomShuffle",
        shape: ff_op::shapes::unchanged,
        kernels: &[Kernel::native(shuffle)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "StatelessShuffle",
        shape: super::index_shuffle::rows_shape,
        kernels: &[Kernel::native(|context| {
            let philox = super::stateless::stream(context, true)?;
            let value = context.input(0)?.clone();
            let output = shuffled(value, |_| Ok(philox))?;
            context.set_output(0, output)
        })],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn shuffle(context: &mut KernelContext) -> Result<()> {
    let value = context.input(0)?.clone();
    let output = shuffled(value, |rows| reserve(context, rows.div_ceil(4) as u64))?;
    context.set_output(0, output)
}

/// The rows in the order that a stream says; it is asked for only where there is an order.
fn shuffled(value: Tensor, stream: impl FnOnce(usize) -> Result<Philox>) -> Result<Tensor> {
    let rows = value.dims().first().map_or(1, |&rows| rows as usize);
    if value.num_elements() <= 1 || rows <= 1 {
        return Ok(value);
    }
    let order = permutation(stream(rows)?, rows)?;
    let row = value.num_elements() / rows;
    let mut writer = Writer::new(value.dtype(), value.shape().clone())?;
    for (to, &from) in order.iter().enumerate() {
        writer.copy(to * row, &value, from * row, row)?;
    }
    writer.finish()
}

/// `0..count` in random order: for each place but the last, one of the numbers from there on is swapped in.
fn permutation(philox: Philox, count: usize) -> Result<Vec<usize>> {
    let mut words = Words::new(philox);
    let mut order = crate::wide::collected(0..count)?;
    for index in 0..count.saturating_sub(1) {
        let rest = (count - index) as u32;
        order.swap(index, index + (words.next_word() % rest) as usize);
    }
    Ok(order)
}

crate::op_cases! {
    scalar_stays: Case::op("RandomShuffle").input(scalar(3)).gives(scalar(3));
    nothing: Case::op("RandomShuffle").input(strings(&[0], &[])).gives(strings(&[0], &[]));
    vector_as_in_the_reference: Case::op("RandomShuffle").attr("seed", 7i64).attr("seed2", 11i64)
        .input(vector(&[0, 1, 2, 3, 4, 5, 6])).gives(vector(&[5, 3, 4, 2, 6, 0, 1]));
    rows_as_in_the_reference: Case::op("RandomShuffle").attr("seed", 7i64).attr("seed2", 11i64)
        .input(t(&[5, 2], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
        .gives(t(&[5, 2], &[6, 7, 0, 1, 4, 5, 8, 9, 2, 3]));
    by_key: family(&["StatelessShuffle"], &[DataType::INT32, DataType::STRING, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([counting(dtype, &[7, 2]), vector(&[5u64]), vector(&[1u64, 2]), scalar(1)])
    });
    by_key_of_another: Case::op("StatelessShuffle").inputs([vector(&[1, 2]), vector(&[5u64]), vector(&[1u64, 2]), scalar(2)]).fails(Code::InvalidArgument);
    strings_too: Case::op("RandomShuffle").attr("seed", 7i64).attr("seed2", 11i64)
        .input(strings(&[5], &["0", "1", "2", "3", "4"])).gives(strings(&[5], &["3", "0", "2", "4", "1"]));
}
