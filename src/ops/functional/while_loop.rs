//! Loops by functions: `while cond(state) { state = body(state) }`.

use super::call::{arguments, infer, instantiate, set_results};
use super::conditional::truth;
use super::in_turn::{self, Next};
use ff_op::{AsyncKernelContext, Gradient, Kernel, KernelContext, NodeInfo, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Tensor, ensure};

static WHILE: Op = Op {
    name: "While",
    shape,
    kernels: &[Kernel::calls(run, |context| in_turn::start(context, script))],
    lower: Some(super::lower::while_loop),
    gradient: Gradient::Fn(super::gradient::while_loop),
    ..Op::WRITES
};
static STATELESS_WHILE: Op = Op {
    name: "StatelessWhile",
    effects: ff_op::Effects::Pure,
    ..WHILE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &WHILE,
    &STATELESS_WHILE,
    &Op {
        name: "_While",
        ..WHILE
    },
    &Op {
        name: "XlaWhile",
        gradient: Gradient::Missing,
        ..WHILE
    },
];

/// What the state and the body's results have in common; repeated until that no longer changes.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let body = context.attrs().func("body")?.clone();
    let declared = context.attrs().shapes("output_shapes").unwrap_or(&[]).to_vec();
    if !declared.is_empty() {
        for (index, shape) in declared.into_iter().enumerate() {
            context.set_output(index, shape);
        }
    } else {
        let Ok((results, _)) = infer(context, &body, 0) else {
            return Ok(());
        };
        for (index, result) in results.iter().enumerate() {
            // One turn shows which extents stay; one that changes once may change again.
            let common: PartialShape = context.input(index).relax(result);
            let stays = common == context.input(index);
            context.set_output(index, if stays { common } else { PartialShape::unknown() });
        }
    }
    for index in 0..context.num_outputs() {
        if let Some(handle) = context.input_handle(index) {
            context.set_output_handle(index, handle);
        }
    }
    Ok(())
}

fn run(context: &mut KernelContext) -> Result<()> {
    let condition = instantiate(context, context.attrs().func("cond")?)?;
    let body = instantiate(context, context.attrs().func("body")?)?;
    let host = context.host();
    let mut state = arguments(context, 0)?;
    let count = state.len();
    let (mut condition, mut body) = (condition.runner(host)?, body.runner(host)?);
    // Kept from turn to turn, so that a turn allocates nothing for them.
    let (mut asked, mut answer) = (Vec::with_capacity(count), Vec::with_capacity(1));
    let mut next = Vec::with_capacity(count);
    loop {
        host.cancellation().check()?;
        asked.extend(state.iter().cloned());
        answer.clear();
        condition.run(&mut asked, &mut answer)?;
        if !goes_on(context.node(), &answer)? {
            break;
        }
        body.run(&mut state, &mut next)?;
        check(context.node(), &next, count)?;
        std::mem::swap(&mut state, &mut next);
        next.clear();
    }
    drop((condition, body));
    set_results(context, state)
}

/// What a condition's results say.
fn goes_on(node: &NodeInfo, answer: &[Tensor]) -> Result<bool> {
    ensure!(
        answer.len() == 1,
        InvalidArgument,
        "The condition of {} returned {} values, expected one",
        node.describe(),
        answer.len()
    );
    truth(&answer[0])
}

fn check(node: &NodeInfo, next: &[Tensor], count: usize) -> Result<()> {
    ensure!(
        next.len() == count,
        InvalidArgument,
        "The body of {} returned {} values, expected {count}",
        node.describe(),
        next.len()
    );
    Ok(())
}

/// The loop for functions that may wait.
fn script(context: &AsyncKernelContext) -> Result<impl in_turn::Script + use<>> {
    let function = |name| {
        context
            .host
            .functions()
            .instantiate(context.node.attrs.func(name)?)
    };
    let (condition, body) = (function("cond")?, function("body")?);
    let count = context.inputs.len();
    // The state, while the condition is asked.
    let mut asked: Option<Vec<Tensor>> = None;
    Ok(
        move |context: &AsyncKernelContext, results: Vec<Tensor>| match asked.take() {
            Some(state) => match goes_on(&context.node, &results)? {
                true => Ok(Next::Call(body.clone(), state)),
                false => Ok(Next::End(state)),
            },
            None => {
                check(&context.node, &results, count)?;
                asked = Some(results.clone());
                Ok(Next::Call(condition.clone(), results))
            }
        },
    )
}
