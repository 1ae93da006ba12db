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
