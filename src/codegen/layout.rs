//! The arguments of a kernel: where extents, strides, addresses and constants lie in one table of 64-bit words.
//!
//! The table: a function that calls the evaluator's functions; for each of those the function and its parameter; the
//! distance of intermediate rows; the extents; for each input its first element and its strides in bytes; for each
//! counter its first value and what steps add; the outputs; the bits of the constants; for each read its starts (limit and
//! stride in bytes) and checks (bound, spread and stride in bytes). Places depend on the structure of a plan only.

use crate::stages::may_call;
use ff_hlo::fusion::{FusionPlan, LibraryFunction, NodeKind, call_library, library_function};
use ff_tensor::{Result, status};
use smallvec::SmallVec;

/// Elements of room behind each intermediate row: whole vectors are written there.
const ROOM: usize = 64;

/// The words of a run.
pub type Words = SmallVec<[u64; 64]>;

/// Places in the table of a structure.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Nodes that call functions, in the order of their words.
    pub library: Vec<usize>,
    rank: usize,
    inputs: usize,
    counters: usize,
    outputs: usize,
    constants: usize,
    /// The starts and checks of reads, each after those of the reads before.
    reads: Vec<(usize, usize)>,
}

impl Layout {
    /// The layout for a plan, where `calls` says which nodes call functions.
    fn of(plan: &FusionPlan, calls: impl Fn(usize) -> bool) -> Layout {
        Layout {
            library: (0..plan.nodes.len()).filter(|&node| calls(node)).collect(),
            rank: plan.extents.len(),
            inputs: plan.inputs.len(),
            counters: plan.counters.len(),
            outputs: plan.outputs.len(),
            constants: plan.constants.len(),
            reads: (plan.reads.iter())
                .map(|read| (read.starts.len(), read.checks.len()))
                .collect(),
        }
    }

    /// The layout of the code that this crate makes for a plan.
    pub fn of_plan(plan: &FusionPlan) -> Layout {
        Layout::of(plan, |number| match &plan.nodes[number].kind {
            NodeKind::Map(opcode, _) => may_call(*opcode, plan.nodes[number].operand_dtype),
            _ => false,
        })
    }

    /// The words of a function; its parameter follows.
    pub fn library_word(&self, node: usize) -> Option<usize> {
        self.library
            .iter()
            .position(|&other| other == node)
            .map(|index| 1 + 2 * index)
    }

    /// The distance of intermediate rows, in bytes.
    pub fn scratch_word(&self) -> usize {
        1 + 2 * self.library.len()
    }

    /// An extent.
    pub fn extent_word(&self, axis: usize) -> usize {
        self.scratch_word() + 1 + axis
    }

    /// The address of an input; its strides follow.
    pub fn input_word(&self, input: usize) -> usize {
        self.extent_word(self.rank) + input * (1 + self.rank)
    }

    /// The first value of a counter; its strides follow.
    pub fn counter_word(&self, counter: usize) -> usize {
        self.input_word(self.inputs) + counter * (1 + self.rank)
    }

    /// The address of an output; for sums of columns, of the partial results of a block.
    pub fn output_word(&self, output: usize) -> usize {
        self.counter_word(self.counters) + output
    }

    /// The bits of a constant.
    pub fn constant_word(&self, constant: usize) -> usize {
        self.output_word(self.outputs) + constant
    }

    /// The limit of a start; its stride follows.
    pub fn start_word(&self, read: usize, start: usize) -> usize {
        let before = self.reads[..read]
            .iter()
            .map(|(starts, checks)| 2 * starts + 3 * checks);
        self.constant_word(self.constants) + before.sum::<usize>() + 2 * start
    }

    /// The bound of a check; its spread and stride follow.
    pub fn check_word(&self, read: usize, check: usize) -> usize {
        self.start_word(read, self.reads[read].0) + 3 * check
    }

    /// The functions that the nodes of a plan call.
    pub fn functions(&self, plan: &FusionPlan) -> Result<Vec<LibraryFunction>> {
        let function = |&node: &usize| {
            let node = &plan.nodes[node];
            let found = match &node.kind {
                NodeKind::Map(opcode, attributes) => {
                    library_function(*opcode, attributes, node.operand_dtype, node.dtype)
                }
                _ => None,
            };
            found.ok_or_else(|| status!(Unimplemented, "a kernel calls a function that does not exist"))
        };
        self.library.iter().map(function).collect()
    }

    /// Bytes of an intermediate row.
    pub fn scratch_bytes(plan: &FusionPlan) -> usize {
        (plan.row() + ROOM) * 8
    }

    /// The table of a run.
    pub fn words(
        &self,
        plan: &FusionPlan,
        functions: &[LibraryFunction],
        parameters: &[*const u8],
        outputs: &[*mut u8],
    ) -> Words {
        let mut words = Words::new();
        words.push(call_library as *const () as u64);
        for function in functions {
            words.extend([function.address() as u64, function.parameter()]);
        }
        words.push(Layout::scratch_bytes(plan) as u64);
        words.extend(plan.extents.iter().map(|&extent| extent as u64));
        for input in &plan.inputs {
            let size = input.dtype.size() as isize;
            words.push(parameters[input.parameter].wrapping_offset(input.offset * size) as u64);
            words.extend(input.strides.iter().map(|&stride| (stride * size) as u64));
        }
        for counter in &plan.counters {
            words.push(counter.offset as u64);
            words.extend(counter.strides.iter().map(|&stride| stride as u64));
        }
        words.extend(outputs.iter().map(|&output| output as u64));
        for constant in &plan.constants {
            let mut bits = [0; 8];
            let bytes = constant.bytes();
            bits[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
            words.push(u64::from_le_bytes(bits));
        }
        for read in &plan.reads {
            let size = plan.inputs[read.input].dtype.size() as i64;
            for start in &read.starts {
                words.extend([start.limit as u64, (start.stride * size) as u64]);
            }
            for check in &read.checks {
                let (spread, stride) = check.spread.unwrap_or((1, 0));
                words.extend([check.bound as u64, spread as u64, (stride * size) as u64]);
            }
        }
        words
    }
}
