//! Comparisons, logic, choice, and bits.

use crate::dispatch::{FAST, FAST_INTEGERS};
use crate::elementwise::{map, zip, zip_same};
use ff_hlo::{Direction, Opcode};
use ff_kernels::elementwise::cost;
use ff_op::{Gradient, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes};
use ff_tensor::{Bool, DataType, PartialShape, Result, Shape, Tensor};

/// Types that equality compares natively; among them those that HLO does not know.
const EQUALITY: &[(&str, &[DataType])] = &[(
    "T",
    &[
        DataType::FLOAT,
        DataType::DOUBLE,
        DataType::INT32,
        DataType::INT64,
        DataType::UINT8,
        DataType::BOOL,
        DataType::STRING,
        DataType::QINT8,
        DataType::QUINT8,
        DataType::QINT16,
        DataType::QUINT16,
        DataType::QINT32,
    ],
)];

/// An ordering comparison.
macro_rules! ordering {
    ($name:literal, $direction:ident, $operator:tt) => {
        Op {
            name: $name,
            shape: shapes::broadcast_binary,
            kernels: &[Kernel::native(|context| {
                crate::match_fast!(context.input(0)?.dtype(), T => {
                    zip::<T, Bool>(context, cost::SIMPLE, |a, b| Bool::from(a $operator b))
                })
            }).for_types(FAST), Kernel::FROM_LOWERING],
            lower: Some(|context| lower_compare(context, Direction::$direction)),
            gradient: Gradient::NotDifferentiable,
            ..Op::PURE
        }
    };
}

/// A logical op of two truth values.
macro_rules! logical {
    ($name:literal, $opcode:ident, $operator:tt) => {
        Op {
            name: $name,
            shape: shapes::broadcast_binary,
            kernels: &[Kernel::native(|context| {
                zip_same::<Bool>(context, cost::SIMPLE, |a, b| Bool::from(a.get() $operator b.get()))
            })],
            lower: Some(|context| super::arithmetic::lower_binary(context, Opcode::$opcode)),
            gradient: Gradient::NotDifferentiable,
            ..Op::PURE
        }
    };
}

/// An op on the bits of two integers.
macro_rules! bits {
    ($name:literal, $opcode:ident, $operator:tt) => {
        Op {
            name: $name,
            shape: shapes::broadcast_binary,
            kernels: &[Kernel::native(|context| {
                crate::match_fast_integer!(context.output_type(0), T => {
                    zip_same::<T>(context, cost::SIMPLE, |a, b| a $operator b)
                })
            }).for_types(FAST_INTEGERS), Kernel::FROM_LOWERING],
            lower: Some(|context| super::arithmetic::lower_binary(context, Opcode::$opcode)),
            gradient: Gradient::NotDifferentiable,
            ..Op::PURE
        }
    };
}

static LESS: Op = ordering!("Less", Lt, <);
static LESS_EQUAL: Op = ordering!("LessEqual", Le, <=);
static GREATER: Op = ordering!("Greater", Gt, >);
static GREATER_EQUAL: Op = ordering!("GreaterEqual", Ge, >=);
static EQUAL: Op = Op {
    name: "Equal",
    shape: equality_shape,
    kernels: &[
        Kernel::native(|context| equality(context, false)).for_types(EQUALITY),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_compare(context, Direction::Eq)),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static NOT_EQUAL: Op = Op {
    name: "NotEqual",
    kernels: &[
        Kernel::native(|context| equality(context, true)).for_types(EQUALITY),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| lower_compare(context, Direction::Ne)),
    ..EQUAL
};
static LOGICAL_AND: Op = logical!("LogicalAnd", And, &&);
static LOGICAL_OR: Op = logical!("LogicalOr", Or, ||);
static LOGICAL_NOT: Op = Op {
    name: "LogicalNot",
    shape: shapes::unchanged,
    kernels: &[Kernel::native(|context| {
        map::<Bool, Bool>(context, cost::SIMPLE, |a| Bool::from(!a.get()))
    })],
    lower: Some(|context| super::unary::lower_unary(context, Opcode::Not)),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static BITWISE_AND: Op = bits!("BitwiseAnd", And, &);
static BITWISE_OR: Op = bits!("BitwiseOr", Or, |);
static BITWISE_XOR: Op = bits!("BitwiseXor", Xor, ^);
static INVERT: Op = Op {
    name: "Invert",
    shape: shapes::unchanged,
    kernels: &[
        Kernel::native(|context| {
            crate::match_fast_integer!(context.output_type(0), T => {
                crate::elementwise::map_same::<T>(context, cost::SIMPLE, |a| !a)
            })
        })
        .for_types(FAST_INTEGERS),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(|context| super::unary::lower_unary(context, Opcode::Not)),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &LESS,
    &LESS_EQUAL,
    &GREATER,
    &GREATER_EQUAL,
    &EQUAL,
    &NOT_EQUAL,
    &LOGICAL_AND,
    &LOGICAL_OR,
    &LOGICAL_NOT,
    &BITWISE_AND,
    &BITWISE_OR,
    &BITWISE_XOR,
    &INVERT,
];

fn lower_compare(context: &mut LowerContext, direction: Direction) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    if ff_hlo::broadcast_dims(context.builder.dims(a), context.builder.dims(b)).is_err() {
        // Only equality gets here: tensors of such shapes are not equal.
        let answer = context
            .builder
            .constant_scalar(Bool::from(direction == Direction::Ne))?;
        context.set_output(0, answer);
        return Ok(());
    }
    let result = context.builder.compare_broadcast(direction, a, b)?;
    context.set_output(0, result);
    Ok(())
}

/// As broadcasting, but shapes that do not fit are an error only when the node asks for it; else the answer is a
/// scalar.
fn equality_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = shapes::broadcast(&context.input(0), &context.input(1));
    let strict = context.attrs().bool("incompatible_shape_error").unwrap_or(true);
    match shape {
        Ok(shape) if strict || context.inputs().iter().all(PartialShape::is_fully_known) => {
            context.set_output(0, shape);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if strict => Err(context.in_words_of_kernel(error, || {
            format!(
                "Incompatible shapes: {} vs. {}",
                context.input(0),
                context.input(1)
            )
        })),
        Err(_) => {
            context.set_output(0, PartialShape::scalar());
            Ok(())
        }
    }
}

fn equality(context: &mut KernelContext, negated: bool) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    if shapes::broadcast(&a.partial_shape(), &b.partial_shape()).is_err() {
        return context.set_output(0, Tensor::from_slice(Shape::scalar(), &[Bool::from(negated)])?);
    }
    match a.dtype() {
        DataType::STRING => string_equality(context, negated),
        DataType::BOOL => zip::<Bool, Bool>(context, cost::SIMPLE, |a, b| {
            Bool::from((a.get() == b.get()) != negated)
        }),
        dtype => {
            crate::match_type!(dtype, (f32, f64, i32, i64, u8, ff_tensor::QInt8, ff_tensor::QUInt8, ff_tensor::QInt16, ff_tensor::QUInt16, ff_tensor::QInt32), T => zip::<T, Bool>(context, cost::SIMPLE, |a, b| Bool::from((a == b) != negated))
            )
        }
    }
}

fn string_equality(context: &mut KernelContext, negated: bool) -> Result<()> {
    let mut output = context.allocate_output(0)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let dims = crate::elementwise::extents(output.dims());
    let operands = [
        crate::elementwise::extents(a.dims()),
        crate::elementwise::extents(b.dims()),
    ];
    let plan = ff_kernels::broadcast::Broadcast::new(&dims, [&operands[0], &operands[1]]);
    let (a, b) = (a.strings()?, b.strings()?);
    let out = output.as_mut_slice::<Bool>()?;
    let [a_step, b_step] = plan.row_strides();
    plan.for_each_row(0..plan.len(), |row, [a_start, b_start]| {
        for (i, place) in row.enumerate() {
            out[place] = Bool::from((a[a_start + i * a_step] == b[b_start + i * b_step]) != negated);
        }
    });
    context.set_output(0, output)
}

crate::op_cases! {
    order: family(&["Less", "LessEqual", "Greater", "GreaterEqual"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[1.0, 2.0, 3.0]), numbers(dtype, &[], &[2.0])])
    });
    order_of_nan: family(&["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[f64::NAN, 1.0]), numbers(dtype, &[2], &[f64::NAN, f64::NAN])])
    });
    order_misfit: Case::op("Less").inputs([vector(&[1, 2]), vector(&[1, 2, 3])]).fails(Code::InvalidArgument);
    equality: family(&["Equal", "NotEqual"], &[FRACTIONS, INTEGERS, &[DataType::BOOL]].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 1], &[1.0, 0.0]), numbers(dtype, &[2], &[0.0, 1.0])])
    });
    equality_of_strings: Case::op("Equal").inputs([strings(&[2], &["a", "b"]), strings(&[], &["b"])]).gives(bools(&[2], &[false, true]));
    equality_misfit: Case::op("Equal").inputs([vector(&[1, 2]), vector(&[1, 2, 3])]).fails(Code::InvalidArgument);
    unequal_shapes_differ: Case::op("NotEqual").inputs([vector(&[1, 2]), vector(&[1, 2, 3])]).attr("incompatible_shape_error", false)
        .gives(scalar(ff_tensor::Bool::TRUE));
    logic: family(&["LogicalAnd", "LogicalOr"], &[DataType::BOOL], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 1], &[1.0, 0.0]), numbers(dtype, &[2], &[1.0, 0.0])])
    });
    logic_of_nothing: Case::op("LogicalOr").inputs([bools(&[0], &[]), bools(&[1], &[true])]).gives(bools(&[0], &[]));
    negation: Case::op("LogicalNot").input(bools(&[2], &[true, false])).gives(bools(&[2], &[false, true]));
    bits: family(&["BitwiseAnd", "BitwiseOr", "BitwiseXor"], INTEGERS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[12.0, 5.0, 0.0]), numbers(dtype, &[3], &[10.0, 3.0, 7.0])])
    });
    inverted_bits: family(&["Invert"], INTEGERS, |op, dtype| Case::op(op).input(numbers(dtype, &[2], &[0.0, 5.0])));
    bits_misfit: Case::op("BitwiseAnd").inputs([vector(&[1, 2]), vector(&[1, 2, 3])]).fails(Code::InvalidArgument);
}
