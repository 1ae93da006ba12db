//! Numbers from the node's own stream.

use super::stream::reserve;
use super::{allocate, distribution, fill_floats, fill_range, shape_from_input};
use ff_kernels::random::stateful_steps;
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::Result;

static RANDOM_UNIFORM: Op = Op {
    name: "RandomUniform",
    shape: shape_from_input,
    kernels: &[Kernel::native(floats)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
static RANDOM_STANDARD_NORMAL: Op = Op {
    name: "RandomStandardNormal",
    ..RANDOM_UNIFORM
};
static TRUNCATED_NORMAL: Op = Op {
    name: "TruncatedNormal",
    ..RANDOM_UNIFORM
};
static RANDOM_UNIFORM_INT: Op = Op {
    name: "RandomUniformInt",
    shape: |context| {
        context.input_with_rank(1, 0)?;
        context.input_with_rank(2, 0)?;
        shape_from_input(context)
    },
    kernels: &[Kernel::native(integers)],
    ..RANDOM_UNIFORM
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &RANDOM_UNIFORM,
    &RANDOM_STANDARD_NORMAL,
    &TRUNCATED_NORMAL,
    &RANDOM_UNIFORM_INT,
];

fn floats(context: &mut KernelContext) -> Result<()> {
    let mut output = allocate(context)?;
    let philox = reserve(context, stateful_steps(output.num_elements()))?;
    fill_floats(
        context,
        distribution(context.node().op_name()),
        philox,
        &mut output,
    )?;
    context.set_output(0, output)
}

fn integers(context: &mut KernelContext) -> Result<()> {
    let mut output = allocate(context)?;
    let philox = reserve(context, stateful_steps(output.num_elements()))?;
    fill_range(context, 1, philox, &mut output)?;
    context.set_output(0, output)
}

crate::op_cases! {
    nothing: Case::op("RandomUniform").attr("dtype", DataType::FLOAT).input(vector(&[0])).gives(vector::<f32>(&[]));
    negative_extent: Case::op("RandomUniform").attr("dtype", DataType::FLOAT).input(vector(&[-5]))
        .fails(Code::InvalidArgument);
    empty_range: Case::op("RandomUniformInt").input(vector(&[5])).input(scalar(3)).input(scalar(3))
        .fails(Code::InvalidArgument);
    empty_range_of_nothing: Case::op("RandomUniformInt").input(vector(&[0])).input(scalar(3)).input(scalar(3))
        .gives(vector::<i32>(&[]));
    range_of_vectors: Case::op("RandomUniformInt").input(vector(&[5])).input(vector(&[3])).input(scalar(3))
        .fails(Code::InvalidArgument);
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, scalar, vector};
    use ff_op::Attrs;
    use ff_tensor::{DataType, Tensor, bf16, f16};

    /// Attributes with the seeds of all numbers below, which the reference made.
    fn seeds() -> Attrs {
        Attrs::new().with("seed", 7i64).with("seed2", 11i64)
    }

    fn floats(runner: &OpRunner, op: &str, dtype: DataType) -> Tensor {
        let attrs = seeds().with("dtype", dtype);
        runner.run(op, &[vector(&[5])], attrs).unwrap().remove(0)
    }

    fn bits32(tensor: &Tensor) -> Vec<u32> {
        tensor
            .as_slice::<f32>()
            .unwrap()
            .iter()
            .map(|x| x.to_bits())
            .collect()
    }

    fn bits64(tensor: &Tensor) -> Vec<u64> {
        tensor
            .as_slice::<f64>()
            .unwrap()
            .iter()
            .map(|x| x.to_bits())
            .collect()
    }

    #[test]
    fn f32_numbers_of_two_runs() {
        for (op, first, second) in [
            (
                "RandomUniform",
                [1019081024, 1036763168, 1058124358, 1058377722, 1055817820],
                [1062918506, 1061851202, 1059473832, 1061655756, 1051058072],
            ),
            (
                "RandomStandardNormal",
                [1070433388, 1074685351, 3205052814, 3211435965, 1067184111],
                [3205140714, 1041433329, 3211375534, 1043331585, 3181131713],
            ),
            (
                "TruncatedNormal",
                [1070433388, 3205052814, 3211435965, 1067184111, 1065799107],
                [3205140714, 1041433329, 3211375534, 1043331585, 3204246835],
            ),
        ] {
            let runner = OpRunner::new();
            assert_eq!(bits32(&floats(&runner, op, DataType::FLOAT)), first, "{op}");
            assert_eq!(bits32(&floats(&runner, op, DataType::FLOAT)), second, "{op}");
        }
    }

    #[test]
    fn f64_numbers() {
        for (op, expected) in [
            (
                "RandomUniform",
                [
                    4595851033768747024,
                    4603156314788827130,
                    4604719712424095068,
                    4601492585758832392,
                    4592543152473053920,
                ],
            ),
            (
                "RandomStandardNormal",
                [
                    13826953197900370116,
                    13833863378618807522,
                    4599460179881393538,
                    13828138826675552858,
                    13835280391603818677,
                ],
            ),
            (
                "TruncatedNormal",
                [
                    13826953197900370116,
                    13833863378618807522,
                    4598649996565885184,
                    4585806919789908004,
                    4607587892642362979,
                ],
            ),
        ] {
            assert_eq!(
                bits64(&floats(&OpRunner::new(), op, DataType::DOUBLE)),
                expected,
                "{op}"
            );
        }
    }

    #[test]
    fn numbers_of_half_precision() {
        for (op, half, brain) in [
            (
                "RandomUniform",
                [15242, 6144, 13452, 15354, 9664],
                [16138, 15488, 16012, 16250, 15928],
            ),
            (
                "RandomStandardNormal",
                [15980, 16499, 47178, 47957, 15583],
                [16334, 16398, 48905, 49003, 16284],
            ),
            (
                "TruncatedNormal",
                [15980, 47178, 47957, 15583, 15414],
                [16334, 48905, 49003, 16284, 16263],
            ),
        ] {
            let made = floats(&OpRunner::new(), op, DataType::HALF);
            assert_eq!(made.as_slice::<f16>().unwrap(), half.map(f16::from_bits), "{op}");
            let made = floats(&OpRunner::new(), op, DataType::BFLOAT16);
            assert_eq!(
                made.as_slice::<bf16>().unwrap(),
                brain.map(bf16::from_bits),
                "{op}"
            );
        }
    }

    #[test]
    fn integers_of_two_runs() {
        let runner = OpRunner::new();
        let inputs = [vector(&[5]), scalar(-3), scalar(1000)];
        for expected in [[857, 163, 855, 389, 817], [460, 374, 822, 293, 448]] {
            let made = runner.run("RandomUniformInt", &inputs, seeds()).unwrap();
            assert_eq!(made[0].as_slice::<i32>().unwrap(), expected);
        }
        let inputs = [vector(&[5]), scalar(-3i64), scalar(1_000_000_000_000i64)];
        let made = OpRunner::new().run("RandomUniformInt", &inputs, seeds()).unwrap();
        let expected = [
            175401590809,
            413315781357,
            745520312973,
            547886661727,
            460817441365i64,
        ];
        assert_eq!(made[0].as_slice::<i64>().unwrap(), expected);
    }

    #[test]
    fn without_seeds_runs_differ() {
        let attrs = || Attrs::new().with("dtype", DataType::FLOAT);
        let run = || {
            OpRunner::new()
                .run("RandomUniform", &[vector(&[50])], attrs())
                .unwrap()
        };
        assert!(!run()[0].bitwise_eq(&run()[0]));
    }
}
