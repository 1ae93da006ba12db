//! Running a function over tensors element by element, with broadcasting, in place where memory allows.

use ff_kernels::{broadcast, elementwise};
use ff_op::KernelContext;
use ff_tensor::{Element, Result, Tensor};
use smallvec::SmallVec;

/// Extents as the kernels take them.
pub fn extents(dims: &[i64]) -> SmallVec<[usize; 6]> {
    dims.iter().map(|&extent| extent as usize).collect()
}

/// Output 0 is `f` of input 0, of the same type.
pub fn map_same<T: Element>(
    context: &mut KernelContext,
    cost: f64,
    f: impl Fn(T) -> T + Sync + Copy,
) -> Result<()> {
    let pool = context.pool();
    let (mut output, in_place) = context.forward_or_allocate(0, 0)?;
    if in_place {
        elementwise::unary_in_place(pool, output.as_mut_slice()?, cost, f);
    } else {
        elementwise::unary(pool, context.input_slice(0)?, output.as_mut_slice()?, cost, f);
    }
    context.set_output(0, output)
}

/// Output 0 is `f` of input 0, of another type.
pub fn map<A: Element, B: Element>(
    context: &mut KernelContext,
    cost: f64,
    f: impl Fn(A) -> B + Sync + Copy,
) -> Result<()> {
    let mut output = context.allocate_output(0)?;
    elementwise::unary(
        context.pool(),
        context.input_slice(0)?,
        output.as_mut_slice()?,
        cost,
        f,
    );
    context.set_output(0, output)
}

/// Output 0 is `f` of inputs 0 and 1, broadcast; all of one type. Writes over an input that nobody else reads.
pub fn zip_same<T: Element>(
    context: &mut KernelContext,
    cost: f64,
    f: impl Fn(T, T) -> T + Sync + Copy,
) -> Result<()> {
    if context.forward_in_place(0, 0)? {
        return broadcast_into(context, 1, cost, f);
    }
    if context.forward_in_place(1, 0)? {
        return broadcast_into(context, 0, cost, |b, a| f(a, b));
    }
    zip(context, cost, f)
}

/// `output = f(output, input)`, where the output is set.
fn broadcast_into<T: Element>(
    context: &mut KernelContext,
    input: usize,
    cost: f64,
    f: impl Fn(T, T) -> T + Sync + Copy,
) -> Result<()> {
    let pool = context.pool();
    let (output, other) = context.output_and_input(0, input)?;
    if let ([a], [b]) = (output.as_mut_slice()?, other.as_slice::<T>()?) {
        *a = f(*a, *b);
        return Ok(());
    }
    let dims = extents(output.dims());
    let values = output.as_mut_slice()?;
    broadcast::binary_broadcast_in_place(
        pool,
        values,
        &dims,
        other.as_slice()?,
        &extents(other.dims()),
        cost,
        f,
    );
    Ok(())
}

fn zip_into<A: Element, B: Element>(
    context: &KernelContext,
    output: &mut Tensor,
    cost: f64,
    f: impl Fn(A, A) -> B + Sync + Copy,
) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a_values, b_values) = (a.as_slice::<A>()?, b.as_slice::<A>()?);
    if let ([a], [b], [out]) = (a_values, b_values, output.as_mut_slice::<B>()?) {
        *out = f(*a, *b);
        return Ok(());
    }
    let dims = extents(output.dims());
    let out = output.as_mut_slice::<B>()?;
    let (a_dims, b_dims) = (extents(a.dims()), extents(b.dims()));
    broadcast::binary_broadcast(
        context.pool(),
        a_values,
        &a_dims,
        b_values,
        &b_dims,
        out,
        &dims,
        cost,
        f,
    );
    Ok(())
}

/// Output 0 is `f` of inputs 0 and 1, broadcast; the output is of another type.
pub fn zip<A: Element, B: Element>(
    context: &mut KernelContext,
    cost: f64,
    f: impl Fn(A, A) -> B + Sync + Copy,
) -> Result<()> {
    let mut output = context.allocate_output(0)?;
    zip_into(context, &mut output, cost, f)?;
    context.set_output(0, output)
}
