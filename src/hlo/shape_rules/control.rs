//! Opcodes that call computations, build tuples or check values.

use super::{Query, array_or_tuple, axis, wrong_attributes};
use crate::attributes::{Attributes, ScanConfig};
use crate::module::ComputationId;
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, HloShape};
use ff_tensor::{DataType, Result, bail, ensure, status};

pub(super) fn infer(query: &Query) -> Result<HloShape> {
    match (query.opcode, query.attributes) {
        (Opcode::While, Attributes::While { condition, body }) => while_loop(query, *condition, *body),
        (Opcode::Scan, Attributes::Scan(config)) => scan(query, config),
        (Opcode::Conditional, Attributes::Branches(branches)) => conditional(query, branches),
        (Opcode::Call | Opcode::Fusion, Attributes::Call(computation)) => {
            let callee = query.called(*computation)?;
            let shape = callee.program_shape();
            let fits = shape.parameters.len() == query.operands.len()
                && shape.parameters.iter().zip(query.operands).all(|(a, &b)| a == b);
            ensure!(
                fits,
                InvalidArgument,
                "Computation {} takes {:?}, got {:?}",
                callee.name,
                shape.parameters,
                query.operands
            );
            Ok(shape.result)
        }
        (Opcode::Map, Attributes::Map(computation)) => map(query, *computation),
        (Opcode::Tuple, Attributes::None) => Ok(HloShape::Tuple(
            query.operands.iter().map(|&shape| shape.clone()).collect(),
        )),
        (Opcode::GetTupleElement, Attributes::TupleIndex(index)) => {
            let elements = query.operands[0].as_tuple()?;
            elements.get(*index).cloned().ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Tuple {} has no element {index}",
                    query.operands[0]
                )
            })
        }
        (Opcode::OptBarrier, Attributes::None) => Ok(query.operands[0].clone()),
        (Opcode::Check, Attributes::Check(_)) => check(query),
        _ => wrong_attributes(),
    }
}

fn pred() -> HloShape {
    HloShape::Array(ArrayShape::scalar(DataType::BOOL))
}

fn while_loop(query: &Query, condition: ComputationId, body: ComputationId) -> Result<HloShape> {
    let state = query.operands[0];
    let condition = query.called(condition)?.program_shape();
    let body = query.called(body)?.program_shape();
    ensure!(
        condition.parameters.len() == 1 && condition.parameters[0] == *state && condition.result == pred(),
        InvalidArgument,
        "The condition of a loop over {state} takes {:?} and gives {}",
        condition.parameters,
        condition.result
    );
    ensure!(
        body.parameters.len() == 1 && body.parameters[0] == *state && body.result == *state,
        InvalidArgument,
        "The body of a loop over {state} takes {:?} and gives {}",
        body.parameters,
        body.result
    );
    Ok(state.clone())
}

fn scan(query: &Query, config: &ScanConfig) -> Result<HloShape> {
    let arrays = query.arrays()?;
    let carried = usize::try_from(config.num_carries).unwrap_or(usize::MAX);
    ensure!(
        carried < arrays.len(),
        InvalidArgument,
        "A scan of {} operands cannot carry {}",
        arrays.len(),
        config.num_carries
    );
    let (sequences, carries) = arrays.split_at(arrays.len() - carried);
    let mut expected: Vec<HloShape> = Vec::with_capacity(arrays.len());
    let mut extent = None;
    for sequence in sequences {
        let along = axis(config.dimension, sequence.rank(), "Scanned dimension")?;
        let mut slice = (*sequence).clone();
        let own = slice.dims.remove(along);
        ensure!(
            *extent.get_or_insert(own) == own,
            InvalidArgument,
            "Scanned operands have different extents along dimension {along}: {sequences:?}"
        );
        expected.push(slice.into());
    }
    expected.extend(carries.iter().map(|&carry| carry.clone().into()));
    let callee = query.called(config.computation)?;
    let shape = callee.program_shape();
    ensure!(
        shape.parameters == expected,
        InvalidArgument,
        "Scanned computation {} takes {:?}, expected {expected:?}",
        callee.name,
        shape.parameters
    );
    let mut results: Vec<ArrayShape> = shape.result.leaves().into_iter().cloned().collect();
    let flat = match &shape.result {
        HloShape::Array(_) => true,
        HloShape::Tuple(elements) => elements.iter().all(|element| !element.is_tuple()),
    };
    let outputs = results
        .len()
        .checked_sub(carried)
        .filter(|&outputs| flat && outputs + carried > 0);
    let carries_fit = outputs.is_some_and(|outputs| results[outputs..].iter().eq(carries.iter().copied()));
    let (Some(outputs), true) = (outputs, carries_fit) else {
        bail!(
            InvalidArgument,
            "Scanned computation {} gives {}, which does not end in the carried {carries:?}",
            callee.name,
            shape.result
        );
    };
    for output in &mut results[..outputs] {
        let along = axis(config.dimension, output.rank() + 1, "Scanned dimension")?;
        output.dims.insert(along, extent.unwrap_or(0));
    }
    Ok(array_or_tuple(results))
}

fn conditional(query: &Query, branches: &[ComputationId]) -> Result<HloShape> {
    let index = query.array(0)?;
    let right = index.is_scalar()
        && (index.dtype == DataType::INT32 || index.dtype == DataType::BOOL && branches.len() == 2);
    ensure!(
        right && !branches.is_empty() && query.operands.len() == branches.len() + 1,
        InvalidArgument,
        "{} branches with {} arguments cannot be chosen by {index}",
        branches.len(),
        query.operands.len() - 1
    );
    let mut result: Option<HloShape> = None;
    for (&branch, &argument) in branches.iter().zip(&query.operands[1..]) {
        let callee = query.called(branch)?;
        let shape = callee.program_shape();
        ensure!(
            shape.parameters.len() == 1 && shape.parameters[0] == *argument,
            InvalidArgument,
            "Branch {} takes {:?}, got {argument}",
            callee.name,
            shape.parameters
        );
        match &result {
            Some(first) if *first != shape.result => {
                bail!(InvalidArgument, "Branches give {first} and {}", shape.result)
            }
            _ => result = Some(shape.result),
        }
    }
    result.ok_or_else(|| status!(InvalidArgument, "A conditional needs a branch"))
}

fn map(query: &Query, computation: ComputationId) -> Result<HloShape> {
    let arrays = query.arrays()?;
    let callee = query.called(computation)?;
    let shape = callee.program_shape();
    let result = shape.result.as_array()?;
    let fits = shape.parameters.len() == arrays.len()
        && shape.parameters.iter().zip(&arrays).all(|(parameter, array)| {
            array.dims == arrays[0].dims && *parameter == HloShape::Array(ArrayShape::scalar(array.dtype))
        });
    ensure!(
        fits && result.is_scalar(),
        InvalidArgument,
        "Mapped computation {} takes {:?} to {result}, which does not fit {arrays:?}",
        callee.name,
        shape.parameters
    );
    Ok(arrays[0].with_dtype(result.dtype).into())
}

fn check(query: &Query) -> Result<HloShape> {
    let arrays = query.arrays()?;
    ensure!(
        arrays[0].dtype == DataType::BOOL,
        InvalidArgument,
        "A check needs a predicate, got {}",
        arrays[0]
    );
    for values in &arrays[1..] {
        ensure!(
            values.is_scalar() || values.dims == arrays[0].dims,
            InvalidArgument,
            "Values {values} of a check do not have the extents of predicate {}",
            arrays[0]
        );
    }
    Ok(HloShape::Tuple(Vec::new()))
}
