//! Conversion between element types.

use crate::elementwise::map;
use ff_kernels::elementwise::cost;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, shapes};
use ff_tensor::{Bool, DataType, Result};

static CAST: Op = Op {
    name: "Cast",
    shape: shapes::unchanged,
    kernels: &[
        Kernel::native(cast).for_types(&[("SrcT", COMMON), ("DstT", COMMON)]),
        Kernel::native(refuse).for_types(&[("SrcT", OBJECTS)]),
        Kernel::native(refuse).for_types(&[("DstT", OBJECTS)]),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&CAST];

/// Types between which there are native loops; the rest goes through the lowering.
const COMMON: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::INT32,
    DataType::INT64,
    DataType::UINT8,
    DataType::BOOL,
];

/// Types whose elements are not numbers.
const OBJECTS: &[DataType] = &[DataType::STRING, DataType::RESOURCE, DataType::VARIANT];

fn refuse(context: &mut KernelContext) -> Result<()> {
    let (from, to) = (context.attrs().dtype("SrcT")?, context.attrs().dtype("DstT")?);
    if from == to {
        context.forward(0, 0);
        return Ok(());
    }
    ff_tensor::bail!(Unimplemented, "Cast {from} to {to} is not supported")
}

/// A plain number that converts as C does, through the widest type that holds it; out-of-range floats saturate.
trait Convert: ff_tensor::Element {
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
    fn from_f64(x: f64) -> Self;
    fn from_i64(x: i64) -> Self;
    /// Whether values are integers, which must not go through `f64`.
    const IS_INTEGER: bool;
}

macro_rules! convert {
    ($($name:ty, $integer:literal;)*) => {$(
        impl Convert for $name {
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { x as $name }
            #[inline(always)]
            fn from_i64(x: i64) -> Self { x as $name }
            const IS_INTEGER: bool = $integer;
        }
    )*};
}

convert! { f32, false; f64, false; i32, true; i64, true; u8, true; }

impl Convert for Bool {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self.get())
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Bool::from(x != 0.0)
    }
    #[inline(always)]
    fn from_i64(x: i64) -> Self {
        Bool::from(x != 0)
    }
    const IS_INTEGER: bool = true;
}

fn cast(context: &mut KernelContext) -> Result<()> {
    let (from, to) = (context.input(0)?.dtype(), context.output_type(0));
    if from == to {
        let input = context.take_input(0)?;
        return context.set_output(0, input);
    }
    crate::match_type!(from, (f32, f64, i32, i64, u8, Bool), A => {
        crate::match_type!(to, (f32, f64, i32, i64, u8, Bool), B => {
            map::<A, B>(context, cost::SIMPLE, |x| if A::IS_INTEGER { B::from_i64(x.to_i64()) } else { B::from_f64(x.to_f64()) })
        })
    })
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let input = context.input(0)?;
    let result = context.builder.convert(input, context.output_type(0))?;
    context.set_output(0, result);
    Ok(())
}

/// Gradients flow between floating-point and complex types only.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let (input, incoming) = (context.input(0)?, context.incoming_or_zeros(0)?);
    let (from, to) = (context.dtype(input), context.dtype(incoming));
    let differentiable = |dtype: DataType| dtype.is_floating() || dtype.is_complex();
    if differentiable(from) && differentiable(to) {
        let gradient = context.op(
            "Cast",
            &[incoming],
            Attrs::new().with("SrcT", to).with("DstT", from),
        )?;
        context.set(0, gradient);
    }
    Ok(())
}

crate::op_cases! {
    from_float: family(&["Cast"], &[FRACTIONS, INTEGERS, &[DataType::BOOL]].concat(), |op, dtype| {
        Case::op(op).input(vector(&[0.0f32, 1.5, 2.5, 100.75])).attr("DstT", dtype)
    });
    from_negative: family(&["Cast"], &[FLOATS, SIGNED].concat(), |op, dtype| {
        Case::op(op).input(vector(&[-1.5f64, -0.25, -100.0])).attr("DstT", dtype)
    });
    from_int: family(&["Cast"], &[FRACTIONS, INTEGERS, &[DataType::BOOL]].concat(), |op, dtype| {
        Case::op(op).input(vector(&[0, 300, -1, 70000])).attr("DstT", dtype)
    });
    to_float: family(&["Cast"], &[FLOATS, INTEGERS, &[DataType::BOOL]].concat(), |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2, 2], &[0.0, 1.0, 2.0, 100.0])).attr("DstT", DataType::FLOAT)
    });
    nothing: Case::op("Cast").input(t::<f32>(&[0], &[])).attr("DstT", DataType::INT8).gives(t::<i8>(&[0], &[]));
    of_strings: Case::op("Cast").input(strings(&[1], &["1"])).attr("DstT", DataType::FLOAT).fails(Code::Unimplemented);
}
