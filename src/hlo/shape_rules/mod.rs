//! Shape rules: the result shape of an instruction from its operands and attributes.
//!
//! [`infer`] is the only place that knows them; builder and verifier both ask it. Where the operands do not decide the
//! shape (`parameter`, `iota`, `convert`, `reshape`, `broadcast`...) the *declared* shape is checked and returned.
//! All errors are INVALID_ARGUMENT and name the opcode.

mod contraction;
mod control;
mod elementwise;
mod indexing;
mod movement;
mod source;
mod window;

#[cfg(test)]
mod tests;

use crate::attributes::Attributes;
use crate::module::{Computation, ComputationId};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, HloShape};
use ff_tensor::{Result, ensure, status};

/// An instruction whose shape is asked.
pub struct Query<'a> {
    /// Its opcode.
    pub opcode: Opcode,
    /// The shapes of its operands.
    pub operands: &'a [&'a HloShape],
    /// Its attributes.
    pub attributes: &'a Attributes,
    /// The shape that it claims, where the operands do not decide it.
    pub declared: Option<&'a HloShape>,
    /// The computations before it, which it may call.
    pub computations: &'a [Computation],
}

/// The shape of the result. INVALID_ARGUMENT when the instruction breaks a rule of its opcode.
pub fn infer(query: &Query) -> Result<HloShape> {
    let opcode = query.opcode;
    if let Some(declared) = query.declared {
        declared.validate()?;
    }
    ensure!(
        opcode.arity().accepts(query.operands.len()),
        InvalidArgument,
        "Opcode {opcode} does not take {} operands",
        query.operands.len()
    );
    if let Some(HloShape::Array(first)) = query.operands.first() {
        ensure!(
            opcode.types().accept(first.dtype),
            InvalidArgument,
            "Expected element type in shape to be {} for {opcode} operation; got {first}",
            opcode.types().describe()
        );
    }
    let shape = dispatch(query).map_err(|error| error.suffixed(&format!(" [{opcode}]")))?;
    shape.validate()?;
    Ok(shape)
}

fn dispatch(query: &Query) -> Result<HloShape> {
    use Opcode::*;
    match query.opcode {
        Parameter | Constant | Iota | RngBitGenerator | GetDimensionSize | CustomCall => source::infer(query),
        Broadcast | Reshape | Transpose | Reverse | Slice | DynamicSlice | DynamicUpdateSlice
        | Concatenate | Pad => movement::infer(query),
        Gather | Scatter | Sort | TopK => indexing::infer(query),
        Dot | Reduce | Fft | Cholesky | TriangularSolve => contraction::infer(query),
        Convolution | ReduceWindow | SelectAndScatter => window::infer(query),
        While | Conditional | Scan | Call | Fusion | Map | Tuple | GetTupleElement | OptBarrier | Check => {
            control::infer(query)
        }
        _ => elementwise::infer(query),
    }
}

impl Query<'_> {
    /// An operand that must be an array.
    fn array(&self, index: usize) -> Result<&ArrayShape> {
        self.operands[index].as_array()
    }

    /// All operands, which must be arrays.
    fn arrays(&self) -> Result<Vec<&ArrayShape>> {
        self.operands.iter().map(|shape| shape.as_array()).collect()
    }

    /// The shape that the instruction claims.
    fn declared(&self) -> Result<&HloShape> {
        self.declared
            .ok_or_else(|| status!(InvalidArgument, "The shape of the result is not given"))
    }

    /// A computation that the instruction calls.
    fn called(&self, id: ComputationId) -> Result<&Computation> {
        self.computations
            .get(id.0 as usize)
            .ok_or_else(|| status!(InvalidArgument, "Called computation {} does not exist", id.0))
    }
}

/// The error for attributes of another opcode.
fn wrong_attributes<T>() -> Result<T> {
    Err(status!(InvalidArgument, "Attributes belong to another opcode"))
}

/// An axis number as an index. INVALID_ARGUMENT when out of range.
fn axis(value: i64, rank: usize, what: &str) -> Result<usize> {
    ensure!(
        value >= 0 && (value as usize) < rank,
        InvalidArgument,
        "{what} {value} is out of bounds for rank {rank}"
    );
    Ok(value as usize)
}

/// Axis numbers as a set of flags. INVALID_ARGUMENT when one is out of range or repeated.
fn axis_set(values: &[i64], rank: usize, what: &str) -> Result<Vec<bool>> {
    let mut set = vec![false; rank];
    for &value in values {
        let index = axis(value, rank, what)?;
        ensure!(
            !set[index],
            InvalidArgument,
            "{what} {value} is repeated in {values:?}"
        );
        set[index] = true;
    }
    Ok(set)
}

/// INVALID_ARGUMENT unless the numbers ascend strictly.
fn ensure_ascending(values: &[i64], what: &str) -> Result<()> {
    ensure!(
        values.windows(2).all(|pair| pair[0] < pair[1]),
        InvalidArgument,
        "{what} must be strictly ascending, got {values:?}"
    );
    Ok(())
}

/// INVALID_ARGUMENT unless a computation from `2n` scalars (of types `types` twice) gives scalars of these types.
fn check_reducer(computation: &Computation, types: &[ff_tensor::DataType]) -> Result<()> {
    let shape = computation.program_shape();
    let name = &computation.name;
    ensure!(
        shape.parameters.len() == 2 * types.len(),
        InvalidArgument,
        "Reduction function {name} takes {} parameters, expected {}",
        shape.parameters.len(),
        2 * types.len()
    );
    for (i, parameter) in shape.parameters.iter().enumerate() {
        let expected = HloShape::Array(ArrayShape::scalar(types[i % types.len()]));
        ensure!(
            *parameter == expected,
            InvalidArgument,
            "Parameter {i} of reduction function {name} has shape {parameter}, expected {expected}"
        );
    }
    let results: Vec<HloShape> = types
        .iter()
        .map(|&dtype| ArrayShape::scalar(dtype).into())
        .collect();
    let expected = match &results[..] {
        [single] => single.clone(),
        _ => HloShape::Tuple(results),
    };
    ensure!(
        shape.result == expected,
        InvalidArgument,
        "Reduction function {name} gives {}, expected {expected}",
        shape.result
    );
    Ok(())
}

/// One array, or a tuple of several.
fn array_or_tuple(mut arrays: Vec<ArrayShape>) -> HloShape {
    if arrays.len() == 1 {
        HloShape::Array(arrays.remove(0))
    } else {
        HloShape::Tuple(arrays.into_iter().map(HloShape::Array).collect())
    }
}
