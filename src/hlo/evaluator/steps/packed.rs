//! Constant right sides of products, in the order in which microkernels read them.
//!
//! Packed once: programs that hold the same constant, one for each batch size for example, share it. Only those are
//! packed whose products have the same bits either way, so a program's results do not depend on what is a constant.

use super::dot::elements;
use super::matrix::out_of_memory;
use crate::attributes::Attributes;
use crate::module::{Computation, InstructionId};
use crate::opcode::Opcode;
use ff_kernels::ThreadPool;
use ff_kernels::conv::PackedFilter;
use ff_kernels::gemm::{self, Matrix, PackedB};
use ff_tensor::{DataType, Result, Tensor};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What is packed.
pub(super) enum Panels {
    Single(PackedB<f32>),
    Double(PackedB<f64>),
    SingleFilter(PackedFilter<f32>),
    DoubleFilter(PackedFilter<f64>),
}

/// The panels of a constant, which is kept as long as they are: its address is its own.
pub(super) struct Packed {
    pub panels: Panels,
    _constant: Tensor,
}

/// How the elements of a constant are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// A matrix of `k` rows and `n` columns.
    Matrix {
        k: usize,
        n: usize,
        row_step: usize,
        column_step: usize,
    },
    /// A filter of `rows` taps times input channels of a group.
    Filter { rows: usize, out: usize, groups: usize },
}

type Shared = FxHashMap<(usize, DataType, Form), Weak<Packed>>;

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);

/// The value of an operand that is a constant, in whatever shape it is seen.
pub(super) fn constant(computation: &Computation, operand: InstructionId) -> Option<&Tensor> {
    let mut instruction = computation.instruction(operand);
    while matches!(instruction.opcode, Opcode::Reshape | Opcode::Copy) {
        instruction = computation.instruction(instruction.operands[0]);
    }
    match &instruction.attributes {
        Attributes::Constant(value) => Some(value),
        _ => None,
    }
}

/// Packs a constant, or finds it packed. None for types without microkernels.
pub(super) fn pack(constant: &Tensor, form: Form) -> Result<Option<Arc<Packed>>> {
    let dtype = constant.dtype();
    if !matches!(dtype, DataType::FLOAT | DataType::DOUBLE) {
        return Ok(None);
    }
    let key = (constant.data_ptr() as usize, dtype, form);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let shared = shared.get_or_insert_default();
    if let Some(found) = shared.get(&key).and_then(Weak::upgrade) {
        return Ok(Some(found));
    }
    shared.retain(|_, packed| packed.strong_count() > 0);
    let panels = match dtype {
        DataType::FLOAT => panels(constant, form, Panels::Single, Panels::SingleFilter)?,
        _ => panels(constant, form, Panels::Double, Panels::DoubleFilter)?,
    };
    let packed = Arc::new(Packed {
        panels,
        _constant: constant.clone(),
    });
    shared.insert(key, Arc::downgrade(&packed));
    Ok(Some(packed))
}

fn panels<T: ff_tensor::Element + gemm::Element>(
    constant: &Tensor,
    form: Form,
    of_matrix: fn(PackedB<T>) -> Panels,
    of_filter: fn(PackedFilter<T>) -> Panels,
) -> Result<Panels> {
    let (pool, data) = (ThreadPool::serial(), elements::<T>(constant));
    let packed = match form {
        Form::Matrix {
            k,
            n,
            row_step,
            column_step,
        } => {
            let b = Matrix {
                data,
                row_step,
                column_step,
            };
            PackedB::new(pool, k, n, b).map(of_matrix)
        }
        Form::Filter { rows, out, groups } => PackedFilter::new(pool, data, rows, out, groups).map(of_filter),
    };
    packed.map_err(out_of_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_forms_of_one_constant_are_packed_once() {
        let constant = Tensor::vector(&[1.0f32; 12]).unwrap();
        let other = constant.deep_copy().unwrap();
        let form = |row_step| Form::Matrix {
            k: 3,
            n: 4,
            row_step,
            column_step: 1,
        };
        let packed = |constant: &Tensor, row_step| pack(constant, form(row_step)).unwrap().unwrap();
        let first = packed(&constant, 4);
        assert!(Arc::ptr_eq(&first, &packed(&constant, 4)));
        assert!(!Arc::ptr_eq(&first, &packed(&constant, 3)));
        assert!(!Arc::ptr_eq(&first, &packed(&other, 4)));
        assert!(
            pack(&Tensor::vector(&[1i32; 12]).unwrap(), form(4))
                .unwrap()
                .is_none()
        );
    }
}
