//! `Assert`: ends the step with an error, and data that tells why, unless a condition holds.

use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{Result, bail, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "Assert",
    shape: |context| {
        context.input_with_rank(0, 0)?;
        Ok(())
    },
    kernels: &[Kernel::native(assert)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
}];

fn assert(context: &mut KernelContext) -> Result<()> {
    let condition = context.input(0)?;
    ensure!(
        condition.rank() == 0,
        InvalidArgument,
        "In[0] should be a scalar: {}",
        condition.shape()
    );
    if condition.to_bool()? {
        return Ok(());
    }
    let summarize = context.attrs().int("summarize")?;
    let data = context.input_tensors(1..context.num_inputs())?;
    let texts: Vec<String> = data
        .iter()
        .map(|tensor| format!("[{}]", tensor.summarize(summarize)))
        .collect();
    bail!(InvalidArgument, "assertion failed: {}", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, bools, scalar, strings, vector};
    use ff_op::Attrs;
    use ff_tensor::Code;

    #[test]
    fn a_failure_shows_its_data() {
        let inputs = [
            bools(&[], &[false]),
            vector(&[0, 1, 2, 3]),
            strings(&[2], &["a", "b"]),
            scalar(2.5f32),
        ];
        let error = OpRunner::new().run("Assert", &inputs, Attrs::new()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        let text = "assertion failed: [0 1 2...] [a b] [2.5]";
        assert!(error.message().starts_with(text), "{error}");
        let all = Attrs::new().with("summarize", -1i64);
        let error = OpRunner::new().run("Assert", &inputs[..2], all).unwrap_err();
        let text = "assertion failed: [0 1 2 3]";
        assert!(error.message().starts_with(text), "{error}");
    }

    #[test]
    fn a_condition_that_holds_does_nothing() {
        let inputs = [bools(&[], &[true]), scalar(1)];
        assert!(
            OpRunner::new()
                .run("Assert", &inputs, Attrs::new())
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_condition_is_a_scalar() {
        let inputs = [bools(&[1], &[true]), scalar(1)];
        let error = OpRunner::new().run("Assert", &inputs, Attrs::new()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}
