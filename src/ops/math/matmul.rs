//! Matrix products, single and over batches.

use super::gradients::typed;
use super::matmul_kernel::{batch_mat_mul, mat_mul, prepare};
use ff_hlo::DotDims;
use ff_op::{Gradient, GradientContext, Kernel, LowerContext, Op, OutputRef, ShapeContext, shapes};
use ff_tensor::{DataType, PartialShape, Result, dim};

/// Types with native kernels: gemm microkernels with constant right sides packed once.
const NATIVE: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
];

static MAT_MUL: Op = Op {
    name: "MatMul",
    shape,
    prepare: Some(prepare),
    kernels: &[
        Kernel::native(mat_mul).for_types(&[("T", NATIVE)]),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
static BATCH_MAT_MUL: Op = Op {
    name: "BatchMatMul",
    shape: batch_shape,
    kernels: &[
        Kernel::native(batch_mat_mul).for_types(&[("T", NATIVE)]),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_batch),
    gradient: Gradient::Fn(batch_gradient),
    ..Op::PURE
};
static BATCH_MAT_MUL_V2: Op = Op {
    name: "BatchMatMulV2",
    ..BATCH_MAT_MUL
};
static BATCH_MAT_MUL_V3: Op = Op {
    name: "BatchMatMulV3",
    gradient: Gradient::Missing,
    ..BATCH_MAT_MUL
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&MAT_MUL, &BATCH_MAT_MUL, &BATCH_MAT_MUL_V2, &BATCH_MAT_MUL_V3];

/// `[m, k] x [k, n] = [m, n]`, either transposed.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let matrix = |index| {
        context
            .input_with_rank(index, 2)
            .map_err(|error| context.in_words_of_kernel(error, || format!("In[{index}] ndims must be >= 2")))
    };
    let (a, b) = (matrix(0)?, matrix(1)?);
    let (transpose_a, transpose_b) = (
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let (m, k) = if transpose_a {
        (a.dim(1), a.dim(0))
    } else {
        (a.dim(0), a.dim(1))
    };
    let (k2, n) = if transpose_b {
        (b.dim(1), b.dim(0))
    } else {
        (b.dim(0), b.dim(1))
    };
    dim::merge(k, k2).map_err(|error| {
        context.in_words_of_kernel(error, || {
            format!("Matrix size-incompatible: In[0]: {a}, In[1]: {b}")
        })
    })?;
    context.set_output(0, PartialShape::new(&[m, n]));
    Ok(())
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let dims = DotDims::matmul(
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let product = context.builder.dot_general(a, b, dims, None)?;
    context.set_output(0, product);
    Ok(())
}

/// `[..., m, k] x [..., k, n]`, leading axes broadcast.
fn batch_shape(context: &mut ShapeContext) -> Result<()> {
    let matrices = |index| {
        context.input_with_rank_at_least(index, 2).map_err(|error| {
            let rank = context.input(index).rank().unwrap_or(0);
            context.in_words_of_kernel(error, || format!("In[{index}] ndims must be >= 2: {rank}"))
        })
    };
    let (a, b) = (matrices(0)?, matrices(1)?);
    let (adj_x, adj_y) = (context.attrs().bool("adj_x")?, context.attrs().bool("adj_y")?);
    let (m, k) = if adj_x {
        (a.dim(-1), a.dim(-2))
    } else {
        (a.dim(-2), a.dim(-1))
    };
    let (k2, n) = if adj_y {
        (b.dim(-1), b.dim(-2))
    } else {
        (b.dim(-2), b.dim(-1))
    };
    dim::merge(k, k2).map_err(|error| {
        let adjoint = (u8::from(adj_x), u8::from(adj_y));
        context.in_words_of_kernel(error, || {
            format!(
                "Matrix size-incompatible: In[0]: {a}, In[1]: {b} {} {}",
                adjoint.0, adjoint.1
            )
        })
    })?;
    let (a_batch, b_batch) = (a.slice(0, Some(-2)), b.slice(0, Some(-2)));
    let batch = match context.node().op_name() {
        "BatchMatMul" => a_batch.merge(&b_batch)?,
        _ => shapes::broadcast(&a_batch, &b_batch).map_err(|error| {
            context.in_words_of_kernel(error, || {
                format!("In[0] and In[1] must have compatible batch dimensions: {a} vs. {b}")
            })
        })?,
    };
    context.set_output(0, batch.concat(&PartialShape::new(&[m, n])));
    Ok(())
}

fn lower_batch(context: &mut LowerContext) -> Result<()> {
    let (adj_x, adj_y) = (context.attrs().bool("adj_x")?, context.attrs().bool("adj_y")?);
    let (a_dims, b_dims) = (context.input_dims(0)?, context.input_dims(1)?);
    let (a_batch, a_matrix) = a_dims.split_at(a_dims.len() - 2);
    let (b_batch, b_matrix) = b_dims.split_at(b_dims.len() - 2);
    let batch = ff_hlo::broadcast_dims(a_batch, b_batch)?;
    let (mut a, mut b) = (context.input(0)?, context.input(1)?);
    let preferred = Some(context.output_type(0));
    let builder = &mut *context.builder;
    if adj_x {
        a = builder.conjugate(a)?;
    }
    if adj_y {
        b = builder.conjugate(b)?;
    }
    let a = builder.broadcast_to(a, &[&batch[..], a_matrix].concat())?;
    let b = builder.broadcast_to(b, &[&batch[..], b_matrix].concat())?;
    let product = builder.dot_general(a, b, DotDims::batch_matmul(batch.len(), adj_x, adj_y), preferred)?;
    context.set_output(0, product);
    Ok(())
}

/// The two products of a gradient, for each pair of transpositions: (left, right, transpose left, transpose right).
fn products(
    g: OutputRef,
    a: OutputRef,
    b: OutputRef,
    transpose: (bool, bool),
) -> [(OutputRef, OutputRef, bool, bool); 2] {
    match transpose {
        (false, false) => [(g, b, false, true), (a, g, true, false)],
        (false, true) => [(g, b, false, false), (g, a, true, false)],
        (true, false) => [(b, g, false, true), (a, g, false, false)],
        (true, true) => [(b, g, true, true), (g, a, true, true)],
    }
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let transpose = (
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a, b) = (
        super::gradients::conjugate(context, a)?,
        super::gradients::conjugate(context, b)?,
    );
    for (index, (left, right, ta, tb)) in products(incoming, a, b, transpose).into_iter().enumerate() {
        let attrs = typed(context.dtype(incoming))
            .with("transpose_a", ta)
            .with("transpose_b", tb);
        let product = context.op("MatMul", &[left, right], attrs)?;
        context.set(index, product);
    }
    Ok(())
}

fn batch_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let adjoint = (context.attrs().bool("adj_x")?, context.attrs().bool("adj_y")?);
    let (a, b) = (context.input(0)?, context.input(1)?);
    let op = context.node().op_name().to_string();
    let mut gradients = Vec::new();
    for (left, right, adj_x, adj_y) in products(incoming, a, b, adjoint) {
        let attrs = typed(context.dtype(incoming))
            .with("adj_x", adj_x)
            .with("adj_y", adj_y);
        gradients.push(context.op(&op, &[left, right], attrs)?);
    }
    if op == "BatchMatMul" {
        context.set(0, gradients[0]);
        context.set(1, gradients[1]);
        return Ok(());
    }
    super::gradients::set_reduced(context, 0, gradients[0])?;
    super::gradients::set_reduced(context, 1, gradients[1])
}

crate::op_cases! {
    products: family(&["MatMul"], &[FRACTIONS, &SIGNED[2..]].concat(), |op, dtype| {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 2.0, 1.0, 0.5, 3.0]);
        Case::op(op).inputs([numbers(dtype, &[2, 3], &a), numbers(dtype, &[3, 2], &b)])
    });
    transposed: family(&["MatMul"], &[FRACTIONS, &SIGNED[2..]].concat(), |op, dtype| {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 2.0, 1.0, 0.5, 3.0]);
        Case::op(op).inputs([numbers(dtype, &[3, 2], &a), numbers(dtype, &[2, 3], &b)]).attr("transpose_a", true).attr("transpose_b", true)
    });
    over_nothing: Case::op("MatMul").inputs([t::<f32>(&[2, 0], &[]), t::<f32>(&[0, 2], &[])]).gives(t(&[2, 2], &[0.0f32; 4]));
    misfits: Case::op("MatMul").inputs([t(&[1, 2], &[1.0f32, 2.0]), t(&[1, 2], &[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    no_matrix: Case::op("MatMul").inputs([vector(&[1.0f32, 2.0]), t(&[2, 1], &[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    batches: family(&["BatchMatMulV2"], &[FRACTIONS, &SIGNED[2..]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 1, 2, 3]), cycle(dtype, &[3, 3, 1])])
    });
    batches_adjoint: family(&["BatchMatMul", "BatchMatMulV2"], FRACTIONS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 2]), cycle(dtype, &[2, 4, 3])]).attr("adj_x", true).attr("adj_y", true)
    });
    batches_to_another_type: Case::op("BatchMatMulV3").inputs([t(&[1, 2], &[100i8, 100]), t(&[2, 1], &[100i8, 100])]).attr("Tout", DataType::INT32);
    batches_misfit: Case::op("BatchMatMulV2").inputs([cycle(DataType::FLOAT, &[2, 1, 1]), cycle(DataType::FLOAT, &[3, 1, 1])])
        .fails(Code::InvalidArgument);
    old_batches_do_not_broadcast: Case::op("BatchMatMul").inputs([cycle(DataType::FLOAT, &[2, 1, 1]), cycle(DataType::FLOAT, &[1, 1, 1])])
        .fails(Code::InvalidArgument);
}
