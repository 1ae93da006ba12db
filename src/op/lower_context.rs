//! What a lowering sees: HLO operands of concrete shapes, values of constant inputs, and the builder.

use crate::{FunctionHost, NodeInfo};
use ff_hlo::{Builder, Op as HloOp};
use ff_tensor::{DataType, Result, Tensor, status};

/// The view that a lowering has. It emits instructions and sets one HLO value per output.
pub struct LowerContext<'a> {
    node: &'a NodeInfo,
    /// The builder to emit into.
    pub builder: &'a mut Builder,
    inputs: &'a [HloOp],
    constants: &'a [Option<Tensor>],
    outputs: Vec<Option<HloOp>>,
    constants_read: u64,
    functions: Option<&'a dyn FunctionHost>,
}

impl<'a> LowerContext<'a> {
    /// A context for a node. `constants` has one entry per input: its value where it is known.
    pub fn new(
        node: &'a NodeInfo,
        builder: &'a mut Builder,
        inputs: &'a [HloOp],
        constants: &'a [Option<Tensor>],
        functions: Option<&'a dyn FunctionHost>,
    ) -> LowerContext<'a> {
        let outputs = vec![None; node.output_types.len()];
        LowerContext {
            node,
            builder,
            inputs,
            constants,
            outputs,
            constants_read: 0,
            functions,
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

    /// An input as an HLO value. INTERNAL when there is none.
    pub fn input(&self, index: usize) -> Result<HloOp> {
        let input = self.inputs.get(index).copied();
        input.ok_or_else(|| status!(Internal, "{} has no input {index}", self.node.describe()))
    }

    /// The extents of an input.
    pub fn input_dims(&self, index: usize) -> Result<Vec<i64>> {
        Ok(self.builder.dims(self.input(index)?).to_vec())
    }

    /// The value of an input that must be known when compiling. INVALID_ARGUMENT when it is not.
    pub fn constant(&mut self, index: usize) -> Result<Tensor> {
        self.constants_read |= 1 << index.min(63);
        let value = self.constants.get(index).cloned().flatten();
        value.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Input {index} to {} must be a compile-time constant",
                self.node.describe()
            )
        })
    }

    /// The elements of an int32 or int64 input that must be known when compiling.
    pub fn constant_i64s(&mut self, index: usize) -> Result<Vec<i64>> {
        self.constant(index)?.to_i64_vec()
    }

    /// Which inputs' values were asked for: bit `i` for input `i`, bit 63 for any from 63 on.
    pub fn constants_read(&self) -> u64 {
        self.constants_read
    }

    /// Element type of an output.
    pub fn output_type(&self, index: usize) -> DataType {
        self.node.output_types[index].base()
    }

    /// Functions that the node can name. UNIMPLEMENTED when there are none.
    pub fn functions(&self) -> Result<&'a dyn FunctionHost> {
        self.functions.ok_or_else(|| {
            status!(
                Unimplemented,
                "{} needs functions to be lowered",
                self.node.describe()
            )
        })
    }

    /// Sets an output.
    pub fn set_output(&mut self, index: usize, value: HloOp) {
        self.outputs[index] = Some(value);
    }

    /// The outputs. INTERNAL when the lowering left one unset.
    pub fn finish(self) -> Result<Vec<HloOp>> {
        let node = self.node;
        let missing = || {
            status!(
                Internal,
                "the lowering of {} left an output unset",
                node.describe()
            )
        };
        self.outputs
            .into_iter()
            .map(|output| output.ok_or_else(missing))
            .collect()
    }
}
