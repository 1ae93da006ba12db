//! `TF_AbstractOp`: an op to be executed or traced.

use crate::TF_Status;
use crate::datatype::{TF_DataType, data_type};
use crate::eager_context::TFE_Context;
use crate::eager_execute;
use crate::eager_op::TFE_Op;
use crate::ffi::{Array, Enum, Text, given, given_mut};
use crate::guard::{guard, quiet};
use crate::unified::{Execution, Operand, TF_AbstractTensor, TF_ExecutionContext, TF_OutputList};
use crate::unified_tracing::Tracing;
use ff_graph::NodeBuilder;
use ff_op::AttrValue;
use ff_tensor::{Result, bail, ensure, status};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

/// An op to be executed or traced: type, name, attributes. One thread at a time may use it.
pub struct TF_AbstractOp {
    kind: Kind,
}

enum Kind {
    /// To be executed in this context; none before it has a type.
    Eager(*const TFE_Context, Option<Box<TFE_Op>>),
    Tracing(Arc<Tracing>, Box<Node>),
}

/// A node while it is described.
#[derive(Default)]
struct Node {
    op_type: String,
    /// Once it has a name.
    builder: Option<NodeBuilder>,
}

impl TF_AbstractOp {
    /// An op of a context, which lives as long.
    pub fn new(context: &TF_ExecutionContext) -> TF_AbstractOp {
        let kind = match &context.kind {
            Execution::Eager(eager) => Kind::Eager(&raw const **eager, None),
            Execution::Tracing(tracing) => Kind::Tracing(tracing.clone(), Box::default()),
        };
        TF_AbstractOp { kind }
    }

    fn set_type(&mut self, op_type: &str) -> Result<()> {
        match &mut self.kind {
            Kind::Eager(context, op) => {
                // SAFETY: the context lives as long as its ops.
                let context = given(unsafe { context.as_ref() }, "the context")?;
                *op = Some(TFE_Op::new(context, op_type)?);
            }
            Kind::Tracing(_, node) => {
                ensure!(
                    node.builder.is_none(),
                    FailedPrecondition,
                    "Reset called on already built op."
                );
                node.op_type = op_type.to_string();
            }
        }
        Ok(())
    }

    fn set_name(&mut self, name: &str) -> Result<()> {
        let Kind::Tracing(tracing, node) = &mut self.kind else {
            bail!(
                InvalidArgument,
                "TF_AbstractOpSetOpName must be called on a TracingOperation."
            );
        };
        ensure!(
            node.builder.is_none(),
            FailedPrecondition,
            "SetOpName called on already built op."
        );
        ensure!(
            !node.op_type.is_empty(),
            FailedPrecondition,
            "GraphOperation::Reset must be called before calling SetOpName."
        );
        node.builder = Some(tracing.node(&node.op_type, name));
        Ok(())
    }

    fn set_attr(&mut self, name: &str, value: AttrValue) -> Result<()> {
        let incomplete = || {
            status!(
                FailedPrecondition,
                "op_type and op_name must be specified before specifying attrs."
            )
        };
        match &mut self.kind {
            Kind::Eager(_, op) => op.as_mut().ok_or_else(incomplete)?.attrs.set(name, value),
            Kind::Tracing(_, node) => {
                let builder = node.builder.as_mut().ok_or_else(incomplete)?;
                builder.set_attr(name, value);
            }
        }
        Ok(())
    }

    /// Executes or traces. `room` is how many outputs are expected.
    fn execute(&mut self, inputs: &[&TF_AbstractTensor], room: usize) -> Result<Vec<TF_AbstractTensor>> {
        let incomplete = || status!(InvalidArgument, "AbstractOp is incomplete.");
        match &mut self.kind {
            Kind::Eager(_, op) => {
                let op = op.as_mut().ok_or_else(incomplete)?;
                for input in inputs {
                    let Operand::Eager(handle) = input.kind else {
                        bail!(InvalidArgument, "Unable to cast input to an eager tensor");
                    };
                    // SAFETY: the handle belongs to the tensor, which lives for the call.
                    op.add_input(unsafe { &*handle }.clone())?;
                }
                let room = c_int::try_from(room).unwrap_or(c_int::MAX);
                let outputs = eager_execute::execute(op, room)?;
                Ok(outputs.into_iter().map(TF_AbstractTensor::eager).collect())
            }
            Kind::Tracing(tracing, node) => {
                for input in inputs {
                    let Operand::Traced(traced) = &input.kind else {
                        bail!(InvalidArgument, "Unable to cast input to GraphTensor");
                    };
                    let builder = node.builder.as_mut().ok_or_else(incomplete)?;
                    ensure!(
                        Arc::ptr_eq(&traced.tracing, tracing),
                        InvalidArgument,
                        "an input is of another function"
                    );
                    builder.add_input(traced.output);
                }
                let builder = node.builder.take().ok_or_else(incomplete)?;
                let traced = Tracing::add(tracing, builder)?.into_iter();
                let tensor = |traced| TF_AbstractTensor {
                    kind: Operand::Traced(traced),
                };
                Ok(traced.map(tensor).collect())
            }
        }
    }
}

/// Frees an op; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteAbstractOp(op: Option<Box<TF_AbstractOp>>) {
    quiet((), || {
        drop(op);
        Ok(())
    });
}

/// Says which op it is. NOT_FOUND for one that there is not, when it is to be executed; FAILED_PRECONDITION when it is traced
/// and has a name already.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AbstractOpSetOpType(
    op: Option<&mut TF_AbstractOp>,
    op_type: Text,
    s: Option<&mut TF_Status>,
) {
    guard(s, || given_mut(op, "op")?.set_type(&op_type.text("op_type")?));
}

/// Names the node that it becomes; a number is added to the name. FAILED_PRECONDITION before it has a type and when it has a
/// name; INVALID_ARGUMENT when it is to be executed.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AbstractOpSetOpName(
    op: Option<&mut TF_AbstractOp>,
    op_name: Text,
    s: Option<&mut TF_Status>,
) {
    guard(s, || given_mut(op, "op")?.set_name(&op_name.text("op_name")?));
}

/// Sets an attribute to an element type. FAILED_PRECONDITION before it has a type, and a name if it is traced.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AbstractOpSetAttrType(
    op: Option<&mut TF_AbstractOp>,
    attr_name: Text,
    value: Enum<TF_DataType>,
    s: Option<&mut TF_Status>,
) {
    guard(s, || {
        let name = attr_name.text("attr_name")?;
        given_mut(op, "op")?.set_attr(&name, data_type(value).into())
    });
}

/// Executes the op, or adds a node for it, and puts its outputs, to be freed with `TF_DeleteAbstractTensor`, in `o`. If it is
/// executed, `TF_OutputListSetNumOutputs` must have said how many to expect.
///
/// INVALID_ARGUMENT for inputs of the other kind, without type or name, or for what does not fit the op.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ExecuteOperation(
    op: Option<&mut TF_AbstractOp>,
    num_inputs: c_int,
    inputs: Array<*mut TF_AbstractTensor>,
    o: Option<&mut TF_OutputList>,
    s: Option<&mut TF_Status>,
) {
    guard(s, || {
        let list = given_mut(o, "o")?;
        let inputs = inputs.of(num_inputs, "inputs")?.iter();
        // SAFETY: each is NULL or a tensor that C code holds.
        let inputs = inputs.map(|input| given(unsafe { input.as_ref() }, "an input"));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let expected = list.outputs.len();
        let made = given_mut(op, "op")?.execute(&inputs, expected)?;
        list.outputs = made
            .into_iter()
            .map(|output| Box::into_raw(Box::new(output)))
            .collect();
        list.outputs.resize(list.outputs.len().max(expected), null_mut());
        Ok(())
    });
}
