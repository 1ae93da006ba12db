//! Sparse tensors kept in the session under numbers, to travel through queues as integers.

use super::parts::{Sparse, set_parts};
use super::serialize::{join, set_outputs, split_rows};
use crate::data_flow::place_of;
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure, status};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

const MAP: Op = Op {
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "AddSparseToTensorsMap",
        shape: |context| {
            check_ranks(context)?;
            context.set_output(0, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let parts = Sparse::read(context, 0)?;
            let number = map_of(context)?.lock().add(parts);
            context.set_output(0, Tensor::scalar(number)?)
        })],
        ..MAP
    },
    &Op {
        name: "AddManySparseToTensorsMap",
        shape: |context| {
            check_ranks(context)?;
            context.set_output(0, PartialShape::new(&[dim::UNKNOWN]));
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let rows = split_rows(&Sparse::read(context, 0)?)?;
            let map = map_of(context)?;
            let mut map = map.lock();
            let numbers: Vec<i64> = rows.into_iter().map(|parts| map.add(parts)).collect();
            context.set_output(0, Tensor::vector(&numbers)?)
        })],
        ..MAP
    },
    &Op {
        name: "TakeManySparseFromTensorsMap",
        shape: |context| {
            context.input_with_rank(0, 1)?;
            set_parts(context, 0, dim::UNKNOWN);
            Ok(())
        },
        kernels: &[Kernel::native(take)],
        ..MAP
    },
];

fn check_ranks(context: &ff_op::ShapeContext) -> Result<()> {
    for (index, rank) in [2, 1, 1].into_iter().enumerate() {
        context.input_with_rank(index, rank)?;
    }
    Ok(())
}

#[derive(Default)]
struct Kept {
    next: i64,
    parts: BTreeMap<i64, Sparse>,
}

impl Kept {
    fn add(&mut self, parts: Sparse) -> i64 {
        self.parts.insert(self.next, parts);
        self.next += 1;
        self.next - 1
    }
}

fn map_of(context: &KernelContext) -> Result<Arc<Mutex<Kept>>> {
    let place = place_of(context.node())?;
    context
        .resources()
        .find_or_create(&place.container, &place.name, || Ok(Mutex::new(Kept::default())))
}

fn take(context: &mut KernelContext) -> Result<()> {
    let numbers = context.input_i64s(0)?;
    let place = place_of(context.node())?;
    let map = context
        .resources()
        .find::<Mutex<Kept>>(&place.container, &place.name)?;
    let dtype = context.output_type(1);
    let mut all = Vec::new();
    for (row, number) in numbers.iter().enumerate() {
        let found = map.lock().parts.remove(number);
        let parts = found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Unable to find SparseTensor: {number} in map: {}",
                place.name
            )
        })?;
        ensure!(
            parts.values.dtype() == dtype,
            InvalidArgument,
            "Requested SparseTensor of type {dtype} but SparseTensor[{row}].values.dtype() == {}",
            parts.values.dtype()
        );
        all.push(parts);
    }
    let joined = join(&all, &[numbers.len() as i64], dtype)?;
    set_outputs(context, joined)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, code, scalar, t, vector};
    use ff_op::Attrs;
    use ff_tensor::{Code, DataType};

    #[test]
    fn what_was_added_is_taken_once() {
        let ops = OpRunner::new();
        let shared = || Attrs::new().with("shared_name", "kept");
        let parts = [
            t(&[2, 2], &[0i64, 1, 1, 0]),
            vector(&[1.0f32, 2.0]),
            vector(&[2i64, 2]),
        ];
        let numbers = ops.run("AddManySparseToTensorsMap", &parts, shared()).unwrap();
        assert_eq!(numbers[0].to_i64_vec().unwrap(), [0, 1]);
        let one = [t(&[1, 1], &[4i64]), vector(&[7.0f32]), vector(&[5i64])];
        let number = ops.run("AddSparseToTensorsMap", &one, shared()).unwrap();
        assert_eq!(number[0].to_i64_vec().unwrap(), [2]);
        let take = |numbers: &[i64]| {
            let attrs = shared().with("dtype", DataType::FLOAT);
            ops.run("TakeManySparseFromTensorsMap", &[vector(numbers)], attrs)
        };
        let taken = take(&[2, 0]).unwrap();
        assert_eq!(taken[0].to_i64_vec().unwrap(), [0, 4, 1, 1]);
        assert_eq!(taken[1].as_slice::<f32>().unwrap(), [7.0, 1.0]);
        assert_eq!(taken[2].to_i64_vec().unwrap(), [2, 5]);
        assert_eq!(code(take(&[2])), Some(Code::InvalidArgument));
        let other = ops.run(
            "AddSparseToTensorsMap",
            &[scalar(0i64), vector(&[7.0f32]), vector(&[5i64])],
            shared(),
        );
        assert_eq!(code(other), Some(Code::InvalidArgument));
    }
}
