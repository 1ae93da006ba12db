//! Ops that pass their input on: for a name, an order, a shape, or a stop to gradients.

use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, ensure};

static IDENTITY: Op = Op {
    name: "Identity",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(pass_all)],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
static IDENTITY_N: Op = Op {
    name: "IdentityN",
    shape: each_unchanged,
    ..IDENTITY
};
static LIST_TO_ARRAY: Op = Op {
    name: "_ListToArray",
    gradient: Gradient::Missing,
    ..IDENTITY_N
};
static ARRAY_TO_LIST: Op = Op {
    name: "_ArrayToList",
    ..LIST_TO_ARRAY
};
static REF_IDENTITY: Op = Op {
    name: "RefIdentity",
    lower: None,
    ..IDENTITY
};
static SNAPSHOT: Op = Op {
    name: "Snapshot",
    ..IDENTITY
};
static STOP_GRADIENT: Op = Op {
    name: "StopGradient",
    gradient: Gradient::NotDifferentiable,
    ..IDENTITY
};
static PREVENT_GRADIENT: Op = Op {
    name: "PreventGradient",
    gradient: Gradient::Missing,
    ..IDENTITY
};
static GUARANTEE_CONST: Op = Op {
    name: "GuaranteeConst",
    gradient: Gradient::NotDifferentiable,
    ..IDENTITY
};
static ENSURE_SHAPE: Op = Op {
    name: "EnsureShape",
    shape: ensured_shape,
    kernels: &[Kernel::native(ensure_shape)],
    ..IDENTITY
};
static CHECK_NUMERICS: Op = Op {
    name: "CheckNumerics",
    kernels: &[Kernel::native(check_numerics)],
    lower: Some(crate::host_call::lower),
    ..IDENTITY
};
static CHECK_NUMERICS_V2: Op = Op {
    name: "CheckNumericsV2",
    ..CHECK_NUMERICS
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &IDENTITY,
    &IDENTITY_N,
    &LIST_TO_ARRAY,
    &ARRAY_TO_LIST,
    &REF_IDENTITY,
    &SNAPSHOT,
    &STOP_GRADIENT,
    &PREVENT_GRADIENT,
    &GUARANTEE_CONST,
    &ENSURE_SHAPE,
    &CHECK_NUMERICS,
    &CHECK_NUMERICS_V2,
];

/// Passes every input on.
pub fn pass_all(context: &mut KernelContext) -> Result<()> {
    for index in 0..context.num_outputs() {
        context.forward(index, index);
    }
    Ok(())
}

fn each_unchanged(context: &mut ShapeContext) -> Result<()> {
    for index in 0..context.num_outputs() {
        context.set_output(index, context.input(index));
        if let Some(handle) = context.input_handle(index) {
            context.set_output_handle(index, handle);
        }
    }
    Ok(())
}

fn lower(context: &mut LowerContext) -> Result<()> {
    for index in 0..context.num_inputs() {
        let input = context.input(index)?;
        context.set_output(index, input);
    }
    Ok(())
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    for index in 0..context.num_inputs() {
        if let Some(incoming) = context.incoming(index) {
            context.set(index, incoming);
        }
    }
    Ok(())
}

fn ensured_shape(context: &mut ShapeContext) -> Result<()> {
    let wanted = context.attrs().shape("shape")?;
    let merged = context.input(0).merge(wanted)?;
    context.set_output(0, merged);
    Ok(())
}

fn ensure_shape(context: &mut KernelContext) -> Result<()> {
    let wanted: &PartialShape = context.attrs().shape("shape")?;
    let input = context.input(0)?;
    ensure!(
        wanted.is_compatible_with(&input.partial_shape()),
        InvalidArgument,
        "Shape of tensor {} {} is not compatible with expected shape {wanted}.",
        context.node().name,
        input.shape()
    );
    pass_all(context)
}

fn check_numerics(context: &mut KernelContext) -> Result<()> {
    let message = context.attrs().string("message")?;
    let (mut nan, mut positive, mut negative) = (false, false, false);
    crate::match_float!(context.input(0)?.dtype(), T => {
        for &value in context.input_slice::<T>(0)? {
            let value = ff_kernels::math::Real::to_f64(value);
            nan |= value.is_nan();
            positive |= value == f64::INFINITY;
            negative |= value == f64::NEG_INFINITY;
        }
        Ok(())
    })?;
    let signed = context.node().op_name() == "CheckNumericsV2";
    let what = match (nan, positive, negative) {
        (false, false, false) => return pass_all(context),
        (true, false, false) => "NaN",
        (false, true, false) if signed => "+Inf",
        (false, false, true) if signed => "-Inf",
        (false, true, true) if signed => "-Inf and +Inf",
        (true, true, false) if signed => "+Inf and NaN",
        (true, false, true) if signed => "-Inf and NaN",
        (true, true, true) if signed => "-Inf, +Inf, and NaN",
        (true, _, _) => "Inf and NaN",
        _ => "Inf",
    };
    ff_tensor::bail!(InvalidArgument, "{message} : Tensor had {what} values")
}

crate::op_cases! {
    identity_of_nothing: Case::op("Identity").input(t::<f32>(&[0, 2], &[])).gives(t::<f32>(&[0, 2], &[]));
    identity_of_strings: Case::op("Identity").input(strings(&[], &["a"])).gives(strings(&[], &["a"]));
    list_to_array: Case::op("_ListToArray").inputs([scalar(1i32), vector(&[2, 3])]).attr("T", DataType::INT32).attr("N", 2i64)
        .gives(scalar(1i32)).gives(vector(&[2, 3]));
    array_to_list: Case::op("_ArrayToList").inputs([scalar(1i32), vector(&[2, 3])]).attr("N", 2i64).attr("out_types", vec![DataType::INT32; 2])
        .gives(scalar(1i32)).gives(vector(&[2, 3]));
    identities: Case::op("IdentityN").inputs([scalar(1i32), vector(&[true, false].map(ff_tensor::Bool::from))]);
    stopped: Case::op("StopGradient").input(counting(DataType::BFLOAT16, &[3]));
    ensured_partly: Case::op("EnsureShape").input(counting(DataType::INT8, &[2, 3]))
        .attr("shape", PartialShape::new(&[-1, 3])).gives(counting(DataType::INT8, &[2, 3]));
    ensured_in_vain: Case::op("EnsureShape").input(counting(DataType::INT8, &[2, 3]))
        .attr("shape", PartialShape::new(&[-1, 4])).fails(Code::InvalidArgument);
}
