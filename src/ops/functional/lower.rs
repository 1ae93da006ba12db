//! Lowerings of functional ops: a call is inlined, a choice is a `conditional`, a loop is a `while` over a tuple.
//!
//! Shapes are concrete in HLO: a loop whose state changes shape, and branches whose results differ in shape, have no
//! lowering (the builder's INVALID_ARGUMENT says so).

use ff_hlo::{Builder, ComputationId, HloShape, Op as HloOp};
use ff_op::{FunctionRef, LowerContext};
use ff_tensor::{DataType, Result, ensure};

/// Lowering of calls.
pub fn call(context: &mut LowerContext) -> Result<()> {
    call_of(context, "f")
}

/// Lowering of calls whose function is called so.
pub fn launch(context: &mut LowerContext) -> Result<()> {
    call_of(context, "function")
}

fn call_of(context: &mut LowerContext, name: &str) -> Result<()> {
    let function = context.attrs().func(name)?.clone();
    let arguments: Vec<HloOp> = (0..context.num_inputs())
        .map(|i| context.input(i))
        .collect::<Result<_>>()?;
    let results = context
        .functions()?
        .lower(&function, context.builder, &arguments)?;
    set_results(context, &results)
}

fn set_results(context: &mut LowerContext, results: &[HloOp]) -> Result<()> {
    ensure!(
        results.len() == context.node().output_types.len(),
        InvalidArgument,
        "{} has {} outputs, its function gives {}",
        context.node().describe(),
        context.node().output_types.len(),
        results.len()
    );
    for (index, result) in results.iter().enumerate() {
        context.set_output(index, *result);
    }
    Ok(())
}

/// The function as a computation of one tuple: its results as a tuple, or its only result as it is.
fn computation(
    context: &mut LowerContext,
    function: &FunctionRef,
    state: &HloShape,
    as_tuple: bool,
) -> Result<ComputationId> {
    let functions = context.functions()?;
    context
        .builder
        .computation(function.name.as_str(), |builder: &mut Builder| {
            let parameter = builder.parameter(0, state.clone(), "state")?;
            let arguments = builder.tuple_elements(parameter)?;
            let results = functions.lower(function, builder, &arguments)?;
            if as_tuple {
                return builder.tuple(&results);
            }
            ensure!(
                results.len() == 1,
                InvalidArgument,
                "The condition {} gives {} values, expected one",
                function.name,
                results.len()
            );
            truth(builder, results[0])
        })
}

/// A scalar as a pred: whether it is not zero.
fn truth(builder: &mut Builder, value: HloOp) -> Result<HloOp> {
    match builder.dtype(value) {
        DataType::BOOL => Ok(value),
        dtype => {
            let zero = builder.scalar(dtype, 0.0)?;
            builder.compare(ff_hlo::Direction::Ne, value, zero)
        }
    }
}

/// The inputs from `first` on as a tuple, and its shape.
fn state_of(context: &mut LowerContext, first: usize) -> Result<(HloOp, HloShape)> {
    let inputs: Vec<HloOp> = (first..context.num_inputs())
        .map(|i| context.input(i))
        .collect::<Result<_>>()?;
    let state = context.builder.tuple(&inputs)?;
    let shape = context.builder.shape_of(state).clone();
    Ok((state, shape))
}

/// Lowering of choices; the first input chooses.
pub fn choice(context: &mut LowerContext, branches: &[FunctionRef]) -> Result<()> {
    let (state, shape) = state_of(context, 1)?;
    let mut computations = Vec::with_capacity(branches.len());
    for branch in branches {
        computations.push((computation(context, branch, &shape, true)?, state));
    }
    let mut index = context.input(0)?;
    if context.node().op_name().ends_with("If") {
        index = truth(context.builder, index)?;
    }
    let result = context.builder.conditional(index, &computations)?;
    let results = context.builder.tuple_elements(result)?;
    set_results(context, &results)
}

/// Lowering of loops.
pub fn while_loop(context: &mut LowerContext) -> Result<()> {
    let (condition, body) = (
        context.attrs().func("cond")?.clone(),
        context.attrs().func("body")?.clone(),
    );
    let (state, shape) = state_of(context, 0)?;
    let condition = computation(context, &condition, &shape, false)?;
    let body = computation(context, &body, &shape, true)?;
    let result = context.builder.while_loop(condition, body, state)?;
    let results = context.builder.tuple_elements(result)?;
    set_results(context, &results)
}

#[cfg(test)]
mod tests {
    use ff_hlo::{Builder, Direction, Op as HloOp, Program};
    use ff_op::{Attrs, Callable, FunctionHost, FunctionRef, FunctionSignature, HandleShapes, LowerContext};
    use ff_tensor::{DataType, PartialShape, Result, Tensor, bail};
    use std::sync::Arc;

    /// `less` compares with 3, `next` adds 1 to the first value and doubles the second.
    struct Functions;

    impl FunctionHost for Functions {
        fn signature(&self, _: &FunctionRef) -> Result<FunctionSignature> {
            bail!(Unimplemented, "not asked for")
        }

        fn instantiate(&self, _: &FunctionRef) -> Result<Arc<dyn Callable>> {
            bail!(Unimplemented, "not asked for")
        }

        fn infer(
            &self,
            _: &FunctionRef,
            _: &[PartialShape],
            _: &[Option<HandleShapes>],
        ) -> Result<(Vec<PartialShape>, Vec<Option<HandleShapes>>)> {
            bail!(Unimplemented, "not asked for")
        }

        fn lower(
            &self,
            function: &FunctionRef,
            builder: &mut Builder,
            arguments: &[HloOp],
        ) -> Result<Vec<HloOp>> {
            let [turn, value] = arguments[..] else {
                bail!(InvalidArgument, "two arguments");
            };
            match function.name.as_str() {
                "less" => {
                    let three = builder.scalar(DataType::INT32, 3.0)?;
                    Ok(vec![builder.compare(Direction::Lt, turn, three)?])
                }
                _ => {
                    let one = builder.scalar(DataType::INT32, 1.0)?;
                    Ok(vec![builder.add(turn, one)?, builder.add(value, value)?])
                }
            }
        }
    }

    fn function(name: &str) -> FunctionRef {
        FunctionRef {
            name: name.to_string(),
            attrs: Attrs::new(),
        }
    }

    /// Lowers a node on these inputs and runs what comes out.
    fn run(op: &str, inputs: &[Tensor], attrs: Attrs) -> Result<Vec<Tensor>> {
        let node = crate::testing::node(op, "node", inputs, attrs)?;
        let mut builder = Builder::new("test");
        let mut operands = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let shape = ff_hlo::ArrayShape::new(input.dtype(), input.dims());
            operands.push(builder.parameter(index, shape, "")?);
        }
        let constants = vec![None; inputs.len()];
        let mut context = LowerContext::new(&node, &mut builder, &operands, &constants, Some(&Functions));
        node.op.lower.unwrap()(&mut context)?;
        let results = context.finish()?;
        let root = builder.tuple(&results)?;
        Program::compile(&builder.finish(root)?)?.run(ff_kernels::ThreadPool::serial(), inputs.to_vec())
    }

    #[test]
    fn loops_choices_and_calls_run_as_hlo() {
        let state = [Tensor::scalar(0i32).unwrap(), Tensor::scalar(1.5f32).unwrap()];
        let attrs = Attrs::new()
            .with("cond", function("less"))
            .with("body", function("next"));
        let results = run("StatelessWhile", &state, attrs).unwrap();
        assert_eq!(results[0].single::<i32>().unwrap(), 3);
        assert_eq!(results[1].single::<f32>().unwrap(), 12.0);

        let types = vec![DataType::INT32, DataType::FLOAT];
        let attrs = Attrs::new()
            .with("f", function("next"))
            .with("Tout", types.clone());
        assert_eq!(
            run("PartitionedCall", &state, attrs).unwrap()[1]
                .single::<f32>()
                .unwrap(),
            3.0
        );

        let mut inputs = vec![Tensor::scalar(0i32).unwrap()];
        inputs.extend(state);
        let attrs = Attrs::new()
            .with("then_branch", function("next"))
            .with("else_branch", function("next"))
            .with("Tin", types.clone())
            .with("Tout", types);
        assert_eq!(
            run("StatelessIf", &inputs, attrs).unwrap()[0]
                .single::<i32>()
                .unwrap(),
            1
        );
    }
}
