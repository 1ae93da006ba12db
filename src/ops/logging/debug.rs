//! What debuggers watch of a tensor: itself, or figures about its elements.
//!
//! Nothing is sent or written anywhere: a node that is told to (`debug_urls`) is UNIMPLEMENTED.

use crate::array::identity;
use crate::wide::{f64s, from_f64s};
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, ensure};

const WATCHED: Op = Op {
    name: "DebugIdentity",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(|context| {
        check_name(context)?;
        check_urls(context)?;
        identity::pass_all(context)
    })],
    gradient: Gradient::Missing,
    ..Op::PURE
};
const COPY: Op = Op {
    name: "Copy",
    kernels: &[Kernel::native(|context| {
        check_watchers(context)?;
        identity::pass_all(context)
    })],
    ..WATCHED
};
const FIGURES: Op = Op {
    name: "DebugNumericSummaryV2",
    shape: |context| {
        context.set_output(0, PartialShape::of_rank(1));
        Ok(())
    },
    kernels: &[Kernel::native(figures_of_mode)],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &WATCHED,
    &Op {
        name: "DebugIdentityV2",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(|context| {
            check_urls(context)?;
            identity::pass_all(context)
        })],
        ..Op::STATEFUL
    },
    &COPY,
    &Op {
        name: "CopyHost",
        ..COPY
    },
    &Op {
        name: "DebugGradientIdentity",
        kernels: &[Kernel::native(identity::pass_all)],
        ..WATCHED
    },
    &Op {
        name: "DebugNanCount",
        shape: |context| {
            context.set_output(0, PartialShape::new(&[1]));
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            check_name(context)?;
            check_urls(context)?;
            let count = Counts::of(&f64s(context.input(0)?)?).nan;
            context.set_output(0, Tensor::vector(&[count as i64])?)
        })],
        ..FIGURES
    },
    &Op {
        name: "DebugNumericSummary",
        kernels: &[Kernel::native(summary)],
        ..FIGURES
    },
    &FIGURES,
];

/// INVALID_ARGUMENT unless the tensor has a name: a node's, and perhaps the number of an output.
fn check_name(context: &KernelContext) -> Result<()> {
    let name = context.attrs().string("tensor_name")?;
    let good = match name.split_once(':') {
        None => !name.is_empty(),
        Some((_, output)) => output.parse::<i32>().is_ok(),
    };
    ensure!(good, InvalidArgument, "Failed to parse tensor name: \"{name}\"");
    Ok(())
}

fn check_urls(context: &KernelContext) -> Result<()> {
    let urls = context.attrs().strings("debug_urls")?;
    ensure!(
        urls.is_empty(),
        Unimplemented,
        "{}: debug_urls are not supported",
        context.node().name
    );
    Ok(())
}

/// A copy is told who watches it: `op;url;whether it can be switched off` of each. INTERNAL where it is not so.
fn check_watchers(context: &KernelContext) -> Result<()> {
    for watcher in context.attrs().strings("debug_ops_spec")? {
        ensure!(
            watcher.iter().filter(|&&byte| byte == b';').count() == 2,
            Internal,
            "Unexpected number of semicolons in debug_ops_spec element: {}",
            String::from_utf8_lossy(watcher)
        );
    }
    Ok(())
}

/// How many elements there are of each kind.
#[derive(Default)]
struct Counts {
    nan: usize,
    negative_infinity: usize,
    positive_infinity: usize,
    negative: usize,
    zero: usize,
    positive: usize,
}

impl Counts {
    fn of(values: &[f64]) -> Counts {
        Counts::within(values, f64::NEG_INFINITY, f64::INFINITY)
    }

    /// What lies at or beyond a limit counts as infinite.
    fn within(values: &[f64], lower: f64, upper: f64) -> Counts {
        let mut counts = Counts::default();
        for &value in values {
            *match value {
                _ if value.is_nan() => &mut counts.nan,
                _ if value == f64::NEG_INFINITY || (lower.is_finite() && value <= lower) => {
                    &mut counts.negative_infinity
                }
                _ if value == f64::INFINITY || (upper.is_finite() && value >= upper) => {
                    &mut counts.positive_infinity
                }
                _ if value < 0.0 => &mut counts.negative,
                _ if value == 0.0 => &mut counts.zero,
                _ => &mut counts.positive,
            } += 1;
        }
        counts
    }
}

/// 14 figures and the extents: whether there is a tensor, elements, those of each kind, least, largest, mean and variance of
/// the finite ones, type, rank.
fn summary(context: &mut KernelContext) -> Result<()> {
    check_name(context)?;
    check_urls(context)?;
    let attrs = context.attrs();
    let (lower, upper) = (attrs.float("lower_bound")?, attrs.float("upper_bound")?);
    let tensor = context.input(0)?;
    let values = f64s(tensor)?;
    let counts = Counts::within(&values, f64::from(lower), f64::from(upper));
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let number = finite().count() as f64;
    let mean = finite().sum::<f64>() / number;
    let variance = finite().map(|value| (value - mean) * (value - mean)).sum::<f64>() / number;
    let mut figures = vec![
        1.0,
        values.len() as f64,
        counts.nan as f64,
        counts.negative_infinity as f64,
        counts.negative as f64,
        counts.zero as f64,
        counts.positive as f64,
        counts.positive_infinity as f64,
        finite().fold(f64::INFINITY, f64::min),
        finite().fold(f64::NEG_INFINITY, f64::max),
        if number > 0.0 { mean } else { f64::NAN },
        if number > 0.0 { variance } else { f64::NAN },
        f64::from(tensor.dtype().0),
        tensor.rank() as f64,
    ];
    figures.extend(tensor.dims().iter().map(|&extent| extent as f64));
    context.set_output(0, Tensor::vector(&figures)?)
}

/// What each mode of `DebugNumericSummaryV2` is called by number.
mod mode {
    pub const HEALTH: i64 = 2;
    pub const CONCISE: i64 = 3;
    pub const FULL: i64 = 4;
    pub const SHAPE: i64 = 5;
    pub const THREE_SLOTS: i64 = 8;
}

fn figures_of_mode(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (mode, id, dtype) = (
        attrs.int("tensor_debug_mode")?,
        attrs.int("tensor_id")?,
        attrs.dtype("output_dtype")?,
    );
    let tensor = context.input(0)?;
    let values = f64s(tensor)?;
    let counts = Counts::of(&values);
    let largest_id = 1i64 << if dtype == DataType::FLOAT { 24 } else { 53 };
    ensure!(
        mode == mode::THREE_SLOTS || id <= largest_id,
        InvalidArgument,
        "DebugNumericSummaryV2Op requires tensor_id to be less than or equal to {largest_id}. Given tensor_id:{id}"
    );
    let (id, size, rank) = (id as f64, values.len() as f64, tensor.rank() as f64);
    let kind = f64::from(tensor.dtype().0);
    let [low, high, nan] =
        [counts.negative_infinity, counts.positive_infinity, counts.nan].map(|count| count as f64);
    let figures = match mode {
        mode::HEALTH => vec![id, f64::from(low + high + nan > 0.0)],
        mode::CONCISE => vec![id, size, low, high, nan],
        mode::FULL => {
            let others = [counts.negative, counts.zero, counts.positive].map(|count| count as f64);
            [&[id, -1.0, kind, rank, size, low, high, nan], &others[..]].concat()
        }
        mode::SHAPE => {
            // The last six extents, and zeros where there are fewer.
            let dims = tensor.dims();
            let shown = dims[dims.len().saturating_sub(6)..]
                .iter()
                .map(|&extent| extent as f64);
            let mut figures = vec![id, kind, rank, size];
            figures.extend(shown.chain([0.0; 6]).take(6));
            figures
        }
        mode::THREE_SLOTS => {
            let slot = |count: f64, shown: f64| if count > 0.0 { shown } else { 0.0 };
            vec![
                slot(low, f64::NEG_INFINITY),
                slot(high, f64::INFINITY),
                slot(nan, f64::NAN),
            ]
        }
        _ => ff_tensor::bail!(Unimplemented, "Unimplemented tensor debug mode: {mode}"),
    };
    let figures = from_f64s(dtype, Shape::vector(figures.len()), &figures)?;
    context.set_output(0, figures)
}

#[cfg(test)]
fn every_kind(dtype: DataType) -> Tensor {
    let numbers = [f64::NAN, 1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, 0.0];
    crate::testing::numbers(dtype, &[2, 3], &numbers)
}

crate::op_cases! {
    passed: family(&["DebugIdentity", "DebugIdentityV2", "DebugGradientIdentity"], &[DataType::FLOAT, DataType::STRING, DataType::BOOL], |op, dtype| {
        let case = Case::op(op).input(counting(dtype, &[2, 2]));
        if op == "DebugIdentity" { case.attr("tensor_name", "a:0") } else { case }
    });
    copied: family(&["Copy", "CopyHost"], &[DataType::FLOAT, DataType::STRING], |op, dtype| Case::op(op).input(counting(dtype, &[2, 2])));
    copied_for_nobody: Case::op("CopyHost").attr("debug_ops_spec", vec![ff_proto::Bytes::from_static(b"nonsense")]).input(scalar(1)).fails(Code::Internal);
    nameless: family(&["DebugIdentity", "DebugNanCount", "DebugNumericSummary"], &FLOATS[..1], |op, dtype| Case::op(op).input(cycle(dtype, &[2])).fails(Code::InvalidArgument));
    counted: family(&["DebugNanCount"], FLOATS, |op, dtype| Case::op(op).attr("tensor_name", "a").input(every_kind(dtype)).gives(vector(&[1i64])));
    summarized: family(&["DebugNumericSummary"], &FLOATS[..2], |op, dtype| Case::op(op).attr("tensor_name", "a").input(every_kind(dtype)));
    summarized_whole: family(&["DebugNumericSummary"], INTEGERS, |op, dtype| Case::op(op).attr("tensor_name", "a").input(cycle(dtype, &[5])));
    within_limits: Case::op("DebugNumericSummary").attr("tensor_name", "a").attr("lower_bound", -1.0f32).attr("upper_bound", 0.5f32)
        .input(vector(&[-2.0f32, -1.0, 0.0, 0.5, 1.0, f32::NAN]));
    of_nothing: Case::op("DebugNumericSummary").attr("tensor_name", "a").input(t::<f32>(&[0, 2], &[]));
    healthy: family(&["DebugNumericSummaryV2"], FLOATS, |op, dtype| {
        Case::op(op).attr("tensor_debug_mode", 2i64).attr("tensor_id", 7i64).input(every_kind(dtype))
    });
    concise: family(&["DebugNumericSummaryV2"], FLOATS, |op, dtype| {
        Case::op(op).attr("tensor_debug_mode", 3i64).attr("tensor_id", 7i64).input(every_kind(dtype))
    });
    full: family(&["DebugNumericSummaryV2"], FLOATS, |op, dtype| {
        Case::op(op).attr("tensor_debug_mode", 4i64).attr("tensor_id", 7i64).input(every_kind(dtype))
    });
    shape: family(&["DebugNumericSummaryV2"], FLOATS, |op, dtype| {
        Case::op(op).attr("tensor_debug_mode", 5i64).attr("tensor_id", 7i64).input(every_kind(dtype))
    });
    three_slots: family(&["DebugNumericSummaryV2"], FLOATS, |op, dtype| {
        Case::op(op).attr("tensor_debug_mode", 8i64).attr("tensor_id", 7i64).input(every_kind(dtype))
    });
    unknown_mode: Case::op("DebugNumericSummaryV2").attr("tensor_debug_mode", 6i64).input(scalar(1.0f32)).fails(Code::Unimplemented);
    modes_of_types: family(&["DebugNumericSummaryV2"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).attr("tensor_debug_mode", 4i64).attr("tensor_id", 1i64).attr("output_dtype", DataType::DOUBLE).input(cycle(dtype, &[5]))
    });
    many_extents: Case::op("DebugNumericSummaryV2").attr("tensor_debug_mode", 5i64).attr("tensor_id", 1i64).input(counting(DataType::INT32, &[1, 2, 3, 1, 2, 1, 2, 2]));
    a_large_number: Case::op("DebugNumericSummaryV2").attr("tensor_debug_mode", 2i64).attr("tensor_id", (1i64 << 24) + 1).input(scalar(1.0f32)).fails(Code::InvalidArgument);
    a_larger_number: Case::op("DebugNumericSummaryV2").attr("tensor_debug_mode", 2i64).attr("tensor_id", 1i64 << 53).attr("output_dtype", DataType::DOUBLE).input(scalar(1.0f32));
}
