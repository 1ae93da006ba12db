//! What a shape function sees: shapes of the inputs, values where they are known, and where to put the results.
//!
//! The same function runs when a graph is built (partial shapes, few values) and before a kernel runs (full
//! shapes, all values). Values that it asks for are recorded, so that a plan knows what its result depends on.

use crate::{FunctionHost, NodeInfo};
use ff_tensor::{DataType, PartialShape, Result, Status, Tensor, bail, ensure, status};
use smallvec::SmallVec;
use std::cell::Cell;

/// Shapes of a node's outputs. Most nodes have one.
pub type Shapes = SmallVec<[PartialShape; 1]>;

/// Element type and shape of what each handle of a resource (or variant) tensor holds.
pub type HandleShapes = Vec<(DataType, PartialShape)>;

/// Where a shape function's questions are answered: by the graph's refiner, or by a step.
pub trait ShapeHost {
    /// The value of an input, if it can be known.
    fn input_value(&self, index: usize) -> Option<Tensor>;

    /// The shape that the value of an input describes, as far as it is known: a shape with unknown extents where
    /// elements are unknown. By default all or nothing, from the value.
    fn input_as_shape(&self, index: usize) -> Result<PartialShape> {
        match self.input_value(index) {
            Some(value) => shape_from_value(&value),
            None => Ok(PartialShape::unknown()),
        }
    }

    /// What the resource or variant at an input holds, if known.
    fn input_handle(&self, _index: usize) -> Option<HandleShapes> {
        None
    }

    /// The functions that the node can name, if there are any.
    fn functions(&self) -> Option<&dyn FunctionHost> {
        None
    }

    /// Whether a kernel is about to run.
    fn in_step(&self) -> bool {
        false
    }
}

/// The shape that an int32 or int64 vector describes; -1 is an unknown extent, a scalar -1 an unknown shape.
pub fn shape_from_value(value: &Tensor) -> Result<PartialShape> {
    let extents = value.to_i64_vec()?;
    if value.rank() == 0 {
        return match extents[..] {
            [-1] => Ok(PartialShape::unknown()),
            _ => Err(status!(
                InvalidArgument,
                "Input tensor must be rank 1, or if its rank 0 it must have value -1 (representing an unknown shape).  Saw value: {}",
                extents[0]
            )),
        };
    }
    ensure!(
        value.rank() == 1,
        InvalidArgument,
        "Shape must be rank 1 but is rank {}",
        value.rank()
    );
    if let Some(bad) = extents.iter().find(|&&extent| extent < -1) {
        bail!(InvalidArgument, "Invalid value in tensor used for shape: {bad}");
    }
    Ok(PartialShape::new(&extents))
}

/// The view that a shape function has.
pub struct ShapeContext<'a> {
    node: &'a NodeInfo,
    inputs: &'a [PartialShape],
    host: &'a dyn ShapeHost,
    outputs: Shapes,
    handles: Vec<Option<HandleShapes>>,
    values_read: Cell<u64>,
    shapes_read: Cell<u64>,
}

impl<'a> ShapeContext<'a> {
    /// A context for a node with these input shapes. Outputs start as unknown.
    pub fn new(node: &'a NodeInfo, inputs: &'a [PartialShape], host: &'a dyn ShapeHost) -> ShapeContext<'a> {
        let outputs = Shapes::from_elem(PartialShape::unknown(), node.output_types.len());
        ShapeContext {
            node,
            inputs,
            host,
            outputs,
            handles: Vec::new(),
            values_read: Cell::new(0),
            shapes_read: Cell::new(0),
        }
    }

    /// The node.
    pub fn node(&self) -> &'a NodeInfo {
        self.node
    }

    /// The node's attributes.
    pub fn attrs(&self) -> &'a crate::Attrs {
        &self.node.attrs
    }

    /// Number of inputs.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Shape of an input; unknown if there is no such input.
    pub fn input(&self, index: usize) -> PartialShape {
        self.inputs.get(index).cloned().unwrap_or_default()
    }

    /// All input shapes.
    pub fn inputs(&self) -> &'a [PartialShape] {
        self.inputs
    }

    /// Shape of an input of this rank. INVALID_ARGUMENT when it has another.
    pub fn input_with_rank(&self, index: usize, rank: usize) -> Result<PartialShape> {
        self.input(index).with_rank(rank)
    }

    /// Shape of an input of at least this rank. INVALID_ARGUMENT when it has a lower one.
    pub fn input_with_rank_at_least(&self, index: usize, rank: usize) -> Result<PartialShape> {
        self.input(index).with_rank_at_least(rank)
    }

    /// Shape of an input of at most this rank. INVALID_ARGUMENT when it has a higher one.
    pub fn input_with_rank_at_most(&self, index: usize, rank: usize) -> Result<PartialShape> {
        self.input(index).with_rank_at_most(rank)
    }

    /// The value of an input, if known.
    pub fn input_value(&self, index: usize) -> Option<Tensor> {
        self.note_read(index);
        self.host.input_value(index)
    }

    /// The shape that the value of an input describes, as far as known.
    pub fn input_as_shape(&self, index: usize) -> Result<PartialShape> {
        self.note_read(index);
        self.shapes_read.set(self.shapes_read.get() | 1 << index.min(63));
        self.host.input_as_shape(index)
    }

    /// The value of an int32 or int64 scalar input, if known.
    pub fn input_as_scalar(&self, index: usize) -> Result<Option<i64>> {
        let Some(value) = self.input_value(index) else {
            return Ok(None);
        };
        match value.to_i64_vec()?[..] {
            [scalar] => Ok(Some(scalar)),
            _ => Err(status!(
                InvalidArgument,
                "Input must be scalar but has shape {}",
                value.shape()
            )),
        }
    }

    /// The elements of an int32 or int64 input, if known.
    pub fn input_as_i64s(&self, index: usize) -> Result<Option<Vec<i64>>> {
        self.input_value(index)
            .map(|value| value.to_i64_vec())
            .transpose()
    }

    fn note_read(&self, index: usize) {
        self.values_read.set(self.values_read.get() | 1 << index.min(63));
    }

    /// Which inputs' values were asked for: bit `i` for input `i`, bit 63 for any from 63 on.
    pub fn values_read(&self) -> u64 {
        self.values_read.get()
    }

    /// Which of these values were asked for as shapes.
    pub fn shapes_read(&self) -> u64 {
        self.shapes_read.get()
    }

    /// Whether a kernel is about to run. The reference's kernels check shapes again, and word some errors in their own
    /// way: a shape function that is to fail in their words asks here.
    pub fn in_step(&self) -> bool {
        self.host.in_step()
    }

    /// The error, in these words if a kernel is about to run.
    #[cold]
    pub fn in_words_of_kernel(&self, error: Status, words: impl FnOnce() -> String) -> Status {
        if self.in_step() {
            Status::new(error.code(), words())
        } else {
            error
        }
    }

    /// What the resource or variant at an input holds, if known.
    pub fn input_handle(&self, index: usize) -> Option<HandleShapes> {
        self.host.input_handle(index)
    }

    /// The functions that the node can name, if there are any.
    pub fn functions(&self) -> Option<&'a dyn FunctionHost> {
        self.host.functions()
    }

    /// Sets an output's shape.
    pub fn set_output(&mut self, index: usize, shape: PartialShape) {
        if let Some(slot) = self.outputs.get_mut(index) {
            *slot = shape;
        }
    }

    /// Sets what the resource or variant at an output holds.
    pub fn set_output_handle(&mut self, index: usize, handle: HandleShapes) {
        if self.handles.len() <= index {
            self.handles.resize(index + 1, None);
        }
        self.handles[index] = Some(handle);
    }

    /// The shapes of the outputs, and what handles among them hold (a list as long as needed).
    pub fn finish(self) -> (Shapes, Vec<Option<HandleShapes>>) {
        (self.outputs, self.handles)
    }
}
