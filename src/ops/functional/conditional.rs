//! Choosing between functions.

use super::call::{arguments, infer, instantiate, set_results};
use super::in_turn;
use ff_op::{Attrs, FunctionRef, Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Tensor, bail, ensure, status};

static IF: Op = Op {
    name: "If",
    shape: |context| {
        let branches = [
            context.attrs().func("then_branch")?.clone(),
            context.attrs().func("else_branch")?.clone(),
        ];
        branch_shapes(context, &branches)
    },
    kernels: &[Kernel::calls(
        |context| {
            let branch = taken(context.input(0)?, context.attrs())?;
            run(context, &branch)
        },
        |context| {
            in_turn::call(context, 1, |context| {
                taken(context.input(0)?, &context.node.attrs)
            })
        },
    )],
    lower: Some(|context| {
        let attrs = context.attrs();
        let branches = [
            attrs.func("then_branch")?.clone(),
            attrs.func("else_branch")?.clone(),
        ];
        super::lower::choice(context, &branches)
    }),
    gradient: Gradient::Fn(super::gradient::conditional),
    ..Op::WRITES
};
static STATELESS_IF: Op = Op {
    name: "StatelessIf",
    effects: ff_op::Effects::Pure,
    ..IF
};
static CASE: Op = Op {
    name: "Case",
    shape: |context| {
        let branches = context.attrs().funcs("branches")?.to_vec();
        branch_shapes(context, &branches)
    },
    kernels: &[Kernel::calls(
        |context| {
            let branch = case(context.input(0)?, context.attrs())?;
            run(context, &branch)
        },
        |context| in_turn::call(context, 1, |context| case(context.input(0)?, &context.node.attrs)),
    )],
    lower: Some(|context| {
        let branches = context.attrs().funcs("branches")?.to_vec();
        super::lower::choice(context, &branches)
    }),
    gradient: Gradient::Fn(super::gradient::case),
    ..Op::WRITES
};
static STATELESS_CASE: Op = Op {
    name: "StatelessCase",
    effects: ff_op::Effects::Pure,
    ..CASE
};

/// Whether a value counts as true.
static TO_BOOL: Op = Op {
    name: "ToBool",
    shape: ff_op::shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let is_true = truth(context.input(0)?)?;
        context.set_output(0, Tensor::scalar(ff_tensor::Bool::from(is_true))?)
    })],
    lower: Some(|context| {
        let (dims, input) = (context.input_dims(0)?, context.input(0)?);
        let builder = &mut *context.builder;
        let is_true = match dims.is_empty() {
            true => crate::lowering::compare_with(builder, ff_hlo::Direction::Ne, input, 0.0)?,
            false => builder.scalar(DataType::BOOL, f64::from(u8::from(!dims.contains(&0))))?,
        };
        context.set_output(0, is_true);
        Ok(())
    }),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file; names with an underscore are those of graphs that the reference has lowered.
pub static OPS: &[&Op] = &[
    &IF,
    &STATELESS_IF,
    &Op { name: "_If", ..IF },
    &Op {
        name: "XlaIf",
        gradient: Gradient::Missing,
        ..IF
    },
    &CASE,
    &STATELESS_CASE,
    &TO_BOOL,
];

/// What all branches agree on; unless the node itself says more by `output_shapes`.
fn branch_shapes(context: &mut ShapeContext, branches: &[FunctionRef]) -> Result<()> {
    let declared = context.attrs().shapes("output_shapes").unwrap_or(&[]).to_vec();
    let mut common: Option<Vec<PartialShape>> = None;
    for branch in branches {
        let Ok((shapes, _)) = infer(context, branch, 1) else {
            continue;
        };
        common = Some(match common {
            Some(known) => known.iter().zip(&shapes).map(|(a, b)| a.relax(b)).collect(),
            None => shapes,
        });
    }
    for (index, shape) in common.unwrap_or_default().into_iter().enumerate() {
        let shape = declared
            .get(index)
            .and_then(|more| shape.merge(more).ok())
            .unwrap_or(shape);
        context.set_output(index, shape);
    }
    Ok(())
}

/// Whether a value counts as true: a scalar that is not zero (a string that is not empty), or any other tensor with
/// elements.
pub fn truth(value: &Tensor) -> Result<bool> {
    if value.rank() > 0 {
        return Ok(value.num_elements() > 0);
    }
    match value.dtype() {
        DataType::BOOL => value.to_bool(),
        DataType::STRING => Ok(value.strings()?.first().is_some_and(|text| !text.is_empty())),
        dtype if dtype.is_plain() => crate::match_real!(dtype, T => Ok(value.single::<T>()? != T::default())),
        other => bail!(InvalidArgument, "a condition cannot be of type {other}"),
    }
}

fn run(context: &mut KernelContext, function: &FunctionRef) -> Result<()> {
    let function = instantiate(context, function)?;
    let arguments = arguments(context, 1)?;
    let results = function.run(context.host(), arguments)?;
    set_results(context, results)
}

/// The branch that a condition takes.
fn taken(condition: &Tensor, attrs: &Attrs) -> Result<FunctionRef> {
    let branch = if truth(condition)? {
        "then_branch"
    } else {
        "else_branch"
    };
    Ok(attrs.func(branch)?.clone())
}

/// The branch with an index; one out of range takes the last.
fn case(index: &Tensor, attrs: &Attrs) -> Result<FunctionRef> {
    let branches = attrs.funcs("branches")?;
    ensure!(index.rank() == 0, InvalidArgument, "branch_index must be scalar");
    let index = i64::from(index.single::<i32>()?);
    let last = branches
        .len()
        .checked_sub(1)
        .ok_or_else(|| status!(InvalidArgument, "no branches"))?;
    let index = usize::try_from(index).map_or(last, |index| index.min(last));
    Ok(branches[index].clone())
}
