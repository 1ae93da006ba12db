//! A function's body in HLO, for arguments of concrete shapes.
//!
//! Every node is lowered by its op; a node that depends on constants and shapes only becomes a constant. Shape functions
//! check what lowerings rely on. A body that reads or writes state, or that holds strings, resources or variants, has no
//! lowering: UNIMPLEMENTED, naming the node.

use crate::{FunctionBody, NodeId};
use ff_hlo::{Builder, Op as HloOp};
use ff_op::{
    Effects, FunctionHost, LowerContext, NodeInfo, OutputRef, RunOneHost, ShapeContext, ShapeHost, run_one,
};
use ff_platform::threads;
use ff_tensor::{PartialShape, Result, Shape, Tensor, ensure, status};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::sync::Arc;

/// How deep calls within a function are lowered.
const DEEPEST: usize = 30;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts lowerings within lowerings on this thread.
struct Nested;

impl Nested {
    fn enter() -> Result<Nested> {
        let depth = DEPTH.get();
        ensure!(
            depth < DEEPEST,
            Unimplemented,
            "calls more than {DEEPEST} deep have no lowering"
        );
        DEPTH.set(depth + 1);
        Ok(Nested)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl FunctionBody {
    /// Emits the body; gives its results. `functions` lowers what it calls.
    pub fn lower(
        &self,
        builder: &mut Builder,
        arguments: &[HloOp],
        functions: &dyn FunctionHost,
    ) -> Result<Vec<HloOp>> {
        let _nested = Nested::enter()?;
        let depth = DEPTH.get();
        threads::with_stack(|| {
            DEPTH.set(depth);
            self.lower_here(builder, arguments, functions)
        })
    }

    fn lower_here(
        &self,
        builder: &mut Builder,
        arguments: &[HloOp],
        functions: &dyn FunctionHost,
    ) -> Result<Vec<HloOp>> {
        ensure!(
            arguments.len() == self.arguments().len(),
            InvalidArgument,
            "a function of {} arguments was given {}",
            self.arguments().len(),
            arguments.len()
        );
        let mut lowering = Lowering {
            builder,
            functions,
            host: RunOneHost::new(),
            values: self
                .arguments()
                .iter()
                .copied()
                .zip(arguments.iter().copied())
                .collect(),
        };
        for id in self.order()? {
            let node = self.graph().node(id);
            let inputs = lowering.values_of(&node.info, &node.inputs)?;
            let outputs = lowering.node(&node.info, &inputs)?;
            for (index, value) in outputs.into_iter().enumerate() {
                let index = index as u32;
                lowering.values.insert(OutputRef { node: id, index }, value);
            }
        }
        self.results()
            .iter()
            .map(|result| {
                let value = lowering.values.get(result).copied();
                value.ok_or_else(|| status!(Internal, "a result was not lowered"))
            })
            .collect()
    }

    /// The nodes that results and targets need, inputs first, without the arguments. UNIMPLEMENTED for a cycle.
    fn order(&self) -> Result<Vec<NodeId>> {
        let graph = self.graph();
        let given: Vec<NodeId> = self.arguments().iter().map(|argument| argument.node).collect();
        // 0: not seen, 1: its inputs are under way, 2: done.
        let mut states = vec![0u8; graph.len()];
        given.iter().for_each(|id| states[*id as usize] = 2);
        let mut order = Vec::new();
        let mut stack: Vec<NodeId> = self.results().iter().map(|result| result.node).collect();
        stack.extend(self.targets());
        while let Some(&id) = stack.last() {
            if states[id as usize] != 0 {
                stack.pop();
                if states[id as usize] == 1 {
                    states[id as usize] = 2;
                    order.push(id);
                }
                continue;
            }
            states[id as usize] = 1;
            let node = graph.node(id);
            let before = node.inputs.iter().map(|input| input.node);
            for before in before.chain(node.control_inputs.iter().copied()) {
                ensure!(
                    states[before as usize] != 1,
                    Unimplemented,
                    "{} is in a loop, which has no lowering",
                    node.info.describe()
                );
                if states[before as usize] == 0 {
                    stack.push(before);
                }
            }
        }
        Ok(order)
    }
}

struct Lowering<'a> {
    builder: &'a mut Builder,
    functions: &'a dyn FunctionHost,
    host: RunOneHost,
    values: FxHashMap<OutputRef, HloOp>,
}

fn no_lowering(node: &NodeInfo) -> ff_tensor::Status {
    status!(
        Unimplemented,
        "{} (op: {}) has no lowering",
        node.describe(),
        node.op_name()
    )
}

impl Lowering<'_> {
    fn values_of(&self, node: &NodeInfo, inputs: &[OutputRef]) -> Result<Vec<HloOp>> {
        let value = |input: &OutputRef| self.values.get(input).copied();
        inputs
            .iter()
            .map(|input| value(input).ok_or_else(|| no_lowering(node)))
            .collect()
    }

    fn node(&mut self, node: &Arc<NodeInfo>, inputs: &[HloOp]) -> Result<Vec<HloOp>> {
        if node.output_types.is_empty() && node.op.effects == Effects::Pure {
            return Ok(Vec::new());
        }
        let types = node.input_types.iter().chain(&node.output_types);
        let plain = types.clone().all(|dtype| dtype.is_plain() && !dtype.is_ref());
        if !plain || node.op.effects == Effects::Reads || node.op.effects == Effects::Stateful {
            return Err(no_lowering(node));
        }
        if let Some(values) = self.known(node, inputs)? {
            return values
                .into_iter()
                .map(|value| self.builder.constant(value))
                .collect();
        }
        let lower = node.op.lower.ok_or_else(|| no_lowering(node))?;
        self.check_shapes(node, inputs)?;
        self.builder.set_node(Some(Arc::from(node.name.as_str())));
        let constants: Vec<Option<Tensor>> = inputs
            .iter()
            .map(|input| self.builder.constant_value(*input).cloned())
            .collect();
        let mut context = LowerContext::new(node, self.builder, inputs, &constants, Some(self.functions));
        lower(&mut context)?;
        context.finish()
    }

    /// The outputs of a node that depends on constants, or on shapes, only.
    fn known(&self, node: &Arc<NodeInfo>, inputs: &[HloOp]) -> Result<Option<Vec<Tensor>>> {
        if node.op.effects != Effects::Pure {
            return Ok(None);
        }
        let of_shapes = matches!(node.op_name(), "Shape" | "ShapeN" | "Size" | "Rank");
        let value = |input: &HloOp| match self.builder.constant_value(*input) {
            Some(value) => Some(Ok(value.clone())),
            None if of_shapes => {
                let shape = Shape::new(self.builder.dims(*input));
                Some(shape.and_then(|shape| Tensor::zeros(self.builder.dtype(*input), shape)))
            }
            None => None,
        };
        match inputs.iter().map(value).collect::<Option<Result<Vec<Tensor>>>>() {
            None => Ok(None),
            // A node that calls functions is lowered with them.
            Some(_) if node.op.def.attr.iter().any(|attr| attr.r#type.contains("func")) => Ok(None),
            Some(values) => run_one(node, values?, &self.host).map(Some),
        }
    }

    /// Runs the shape function on what is known.
    fn check_shapes(&self, node: &NodeInfo, inputs: &[HloOp]) -> Result<()> {
        let shapes: Vec<PartialShape> = inputs
            .iter()
            .map(|input| PartialShape::new(self.builder.dims(*input)))
            .collect();
        let known = Known {
            builder: self.builder,
            inputs,
        };
        let mut context = ShapeContext::new(node, &shapes, &known);
        (node.op.shape)(&mut context)
    }
}

/// Answers a shape function's questions from constants.
struct Known<'a> {
    builder: &'a Builder,
    inputs: &'a [HloOp],
}

impl ShapeHost for Known<'_> {
    fn input_value(&self, index: usize) -> Option<Tensor> {
        self.builder.constant_value(*self.inputs.get(index)?).cloned()
    }
}
