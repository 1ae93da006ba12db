//! Compiled computations: steps on slots, and their run.

use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor, ensure, status};
use smallvec::SmallVec;
use std::sync::Arc;

/// Makes the tensors of a run.
pub(super) type Allocate<'a> = &'a (dyn Fn(DataType, Shape) -> Result<Tensor> + Sync);

/// What a run brings along.
#[derive(Clone, Copy)]
pub(super) struct Environment<'a> {
    pub pool: &'a ThreadPool,
    pub allocate: Allocate<'a>,
}

/// Where a dense value lies in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operand {
    Slot(u32),
    Constant(u32),
}

/// The work of a step.
pub(super) trait Kernel: Send + Sync {
    /// Reads operands, and sets every output.
    fn run(&self, step: &mut StepContext) -> Result<()>;

    /// Told once which operands (bit `i` for operand `i`) nobody reads after this step.
    fn note_dying(&mut self, _dying: u64) {}
}

/// A dense array that a step gives.
pub(super) struct OutputArray {
    pub slot: u32,
    pub dtype: DataType,
    pub shape: Shape,
}

/// One step of a computation.
pub(super) struct Step {
    pub kernel: Box<dyn Kernel>,
    pub operands: SmallVec<[Operand; 4]>,
    pub outputs: SmallVec<[OutputArray; 1]>,
    /// Bit `i` is set when operand `i` is a slot that nobody reads later (for `i` below 64).
    pub dying: u64,
    /// Slots to empty after the step.
    pub release: SmallVec<[u32; 4]>,
    /// The graph node that it comes from, for error messages.
    pub node: Option<Arc<str>>,
}

/// A value that a computation returns.
pub(super) struct ResultArray {
    pub operand: Operand,
    pub dtype: DataType,
    pub shape: Shape,
    /// Whether a later result is in the same slot.
    pub shared: bool,
}

/// A compiled computation. Its first slots are its parameters, tuples flattened.
pub(super) struct Code {
    pub name: String,
    pub steps: Vec<Step>,
    pub slots: usize,
    pub parameters: Vec<(DataType, Shape)>,
    pub constants: Vec<Tensor>,
    pub results: Vec<ResultArray>,
}

type Slots = SmallVec<[Option<Tensor>; 16]>;

/// What a kernel sees of a run.
pub(super) struct StepContext<'a> {
    slots: &'a mut Slots,
    constants: &'a [Tensor],
    step: &'a Step,
    environment: Environment<'a>,
}

impl Code {
    /// Runs on the leaves of the parameters; INVALID_ARGUMENT when they do not have the parameters' shapes.
    pub fn run(&self, environment: Environment, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.check_inputs(&inputs)?;
        let mut slots: Slots = inputs.into_iter().map(Some).collect();
        slots.resize_with(self.slots, || None);
        for step in &self.steps {
            let mut context = StepContext {
                slots: &mut slots,
                constants: &self.constants,
                step,
                environment,
            };
            step.kernel
                .run(&mut context)
                .map_err(|error| named(error, step))?;
            for &slot in &step.release {
                slots[slot as usize] = None;
            }
        }
        self.results
            .iter()
            .map(|result| self.result(result, &mut slots))
            .collect()
    }

    fn check_inputs(&self, inputs: &[Tensor]) -> Result<()> {
        ensure!(
            inputs.len() == self.parameters.len(),
            InvalidArgument,
            "Computation {} takes {} inputs, got {}",
            self.name,
            self.parameters.len(),
            inputs.len()
        );
        for (index, (input, (dtype, shape))) in inputs.iter().zip(&self.parameters).enumerate() {
            ensure!(
                input.dtype() == *dtype && input.shape() == shape,
                InvalidArgument,
                "Input {index} of computation {} must be {dtype} of shape {shape}, got {} of shape {}",
                self.name,
                input.dtype(),
                input.shape()
            );
        }
        Ok(())
    }

    fn result(&self, result: &ResultArray, slots: &mut Slots) -> Result<Tensor> {
        let tensor = match result.operand {
            Operand::Constant(index) => self.constants[index as usize].clone(),
            Operand::Slot(slot) if result.shared => slots[slot as usize].clone().ok_or_else(empty_slot)?,
            Operand::Slot(slot) => slots[slot as usize].take().ok_or_else(empty_slot)?,
        };
        with_type(tensor, result.dtype, &result.shape)
    }
}

/// The error with the node that it comes from.
#[cold]
fn named(error: ff_tensor::Status, step: &Step) -> ff_tensor::Status {
    match &step.node {
        Some(node) => error.suffixed(&format!("\n\t [[{{{{node {node}}}}}]]")),
        None => error,
    }
}

#[cold]
fn empty_slot() -> ff_tensor::Status {
    status!(Internal, "A value was used after its last use")
}

/// The same bytes with this type (of the same size) and shape.
pub(super) fn with_type(tensor: Tensor, dtype: DataType, shape: &Shape) -> Result<Tensor> {
    let tensor = if tensor.dtype() == dtype {
        tensor
    } else {
        tensor.reinterpret(dtype)?
    };
    if tensor.shape() == shape {
        return Ok(tensor);
    }
    tensor.into_shape(shape.clone())
}

impl<'a> StepContext<'a> {
    /// The thread pool.
    pub fn pool(&self) -> &'a ThreadPool {
        self.environment.pool
    }

    /// What the run brought along.
    pub fn environment(&self) -> Environment<'a> {
        self.environment
    }

    /// A dense operand. Its dtype and shape may be those of another view of the same bytes.
    pub fn input(&self, index: usize) -> Result<&Tensor> {
        match self.step.operands[index] {
            Operand::Constant(constant) => Ok(&self.constants[constant as usize]),
            Operand::Slot(slot) => self.slots[slot as usize].as_ref().ok_or_else(empty_slot),
        }
    }

    /// Start of a dense operand's elements.
    pub fn input_ptr(&self, index: usize) -> Result<*const u8> {
        Ok(self.input(index)?.data_ptr().cast_const())
    }

    /// The number of operands.
    pub fn num_inputs(&self) -> usize {
        self.step.operands.len()
    }

    /// An operand as a tensor of this output's type and shape that may be written; a copy unless it is not needed
    /// any more. The shape must have as many bytes as the operand.
    pub fn take_input(&mut self, index: usize, output: usize) -> Result<Tensor> {
        let taken = self.take_dying(index)?;
        let source = match taken {
            Some(tensor) => {
                if tensor.is_writable() {
                    let out = &self.step.outputs[output];
                    return with_type(tensor, out.dtype, &out.shape);
                }
                tensor
            }
            None => self.input(index)?.clone(),
        };
        let copy = self.allocate(output)?;
        let bytes = copy.byte_size();
        if bytes > 0 {
            // SAFETY: both tensors have that many bytes; the copy is new memory.
            unsafe { std::ptr::copy_nonoverlapping(source.data_ptr(), copy.data_ptr(), bytes) };
        }
        Ok(copy)
    }

    /// The operand itself if nobody reads it after this step.
    pub fn take_dying(&mut self, index: usize) -> Result<Option<Tensor>> {
        match self.step.operands[index] {
            Operand::Slot(slot) if index < 64 && self.step.dying >> index & 1 == 1 => {
                Ok(Some(self.slots[slot as usize].take().ok_or_else(empty_slot)?))
            }
            _ => Ok(None),
        }
    }

    /// As [`StepContext::take_dying`], but only memory that may be written.
    pub fn take_if_writable(&mut self, index: usize) -> Result<Option<Tensor>> {
        let Operand::Slot(slot) = self.step.operands[index] else {
            return Ok(None);
        };
        let value = self.slots[slot as usize].as_mut().ok_or_else(empty_slot)?;
        if value.is_writable() {
            self.take_dying(index)
        } else {
            Ok(None)
        }
    }

    /// An operand as a value that a called computation may own.
    pub fn give_input(&mut self, index: usize) -> Result<Tensor> {
        match self.take_dying(index)? {
            Some(tensor) => Ok(tensor),
            None => Ok(self.input(index)?.clone()),
        }
    }

    /// The type and shape of an output.
    pub fn output(&self, index: usize) -> &'a OutputArray {
        &self.step.outputs[index]
    }

    /// The number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.step.outputs.len()
    }

    /// New memory for an output.
    pub fn allocate(&self, index: usize) -> Result<Tensor> {
        let output = &self.step.outputs[index];
        (self.environment.allocate)(output.dtype, output.shape.clone())
    }

    /// Gives an output its value.
    pub fn set(&mut self, index: usize, value: Tensor) {
        self.slots[self.step.outputs[index].slot as usize] = Some(value);
    }
}
