//! Ragged tensors in variants.

use super::{splits_tensor, take_rows};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{
    DataType, PartialShape, Result, Shape, TString, Tensor, VariantObject, VariantValue, bail, dim, ensure,
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "RaggedTensorToVariant",
        shape: |context| {
            let rank = context.attrs().int("RAGGED_RANK")? as usize;
            for layer in 0..rank {
                context.input_with_rank(layer, 1)?;
            }
            if !context.attrs().bool("batched_input")? {
                context.set_output(0, PartialShape::scalar());
                return Ok(());
            }
            let rows = if rank > 0 {
                match context.input(0).dim(0) {
                    extent if extent >= 0 => extent - 1,
                    _ => dim::UNKNOWN,
                }
            } else {
                context.input_with_rank_at_least(0, 1)?.dim(0)
            };
            context.set_output(0, PartialShape::new(&[rows]));
            Ok(())
        },
        kernels: &[Kernel::native(to_variant)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "RaggedTensorFromVariant",
        shape: |context| {
            let splits = context.attrs().int("output_ragged_rank")? as usize;
            for layer in 0..splits {
                context.set_output(layer, PartialShape::new(&[dim::UNKNOWN]));
            }
            Ok(())
        },
        kernels: &[Kernel::native(from_variant)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "RaggedTensorToVariantGradient",
        shape: |context| {
            let shape = context.input_as_shape(2)?;
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(to_variant_gradient)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

/// The gradients of the rows of a batch, or the one of a single ragged tensor, one after the other in the shape of the values; a
/// row without a gradient has zeros.
fn to_variant_gradient(context: &mut KernelContext) -> Result<()> {
    let (gradients, splits) = (context.input(0)?, context.input_i64s(1)?);
    let shape = Shape::new(&context.input_i64s(2)?)?;
    let dtype = context.output_type(0);
    let mut parts: Vec<Tensor> = Vec::new();
    for (row, variant) in gradients.variants()?.iter().enumerate() {
        if let Some(ragged) = variant.get::<RaggedValue>() {
            parts.push(ragged.values.clone());
            continue;
        }
        ensure!(
            variant.object().is_none() && row + 1 < splits.len(),
            InvalidArgument,
            "encoded_ragged_grad does not hold a RaggedTensorVariant: {variant:?}"
        );
        // Nothing came back for this row.
        let mut dims = shape.dims().to_vec();
        if let Some(first) = dims.first_mut() {
            *first = splits[row + 1] - splits[row];
        }
        parts.push(Tensor::zeros(dtype, Shape::new(&dims)?)?);
    }
    ensure!(
        parts.iter().all(|part| part.dtype() == dtype),
        InvalidArgument,
        "encoded_ragged_grad holds values that are not of type {dtype}"
    );
    let flat = parts
        .into_iter()
        .map(|part| part.reshape(Shape::vector(part.num_elements())));
    let flat: Vec<Tensor> = flat.collect::<Result<_>>()?;
    let joined = concatenated(&flat.iter().collect::<Vec<_>>(), dtype)?;
    ensure!(
        joined.num_elements() == shape.num_elements(),
        InvalidArgument,
        "The gradients have {} elements, which do not fill {shape}",
        joined.num_elements()
    );
    let joined = joined.into_shape(shape)?;
    context.set_output(0, joined)
}

/// A ragged tensor as a value.
pub struct RaggedValue {
    /// Boundaries of each layer, the outer one first.
    pub splits: Vec<Vec<i64>>,
    /// The innermost values.
    pub values: Tensor,
}

impl VariantObject for RaggedValue {
    fn type_name(&self) -> &str {
        "RaggedTensorVariant"
    }
}

fn to_variant(context: &mut KernelContext) -> Result<()> {
    let rank = context.attrs().int("RAGGED_RANK")? as usize;
    let batched = context.attrs().bool("batched_input")?;
    let splits: Vec<Vec<i64>> = (0..rank)
        .map(|layer| context.input_i64s(layer))
        .collect::<Result<_>>()?;
    let values = context.input(rank)?.clone();
    if !batched {
        let value = VariantValue::new(RaggedValue { splits, values });
        return context.set_output(0, Tensor::from_variants(Shape::scalar(), vec![value])?);
    }
    ensure!(
        values.rank() > 0 && splits.iter().all(|edges| !edges.is_empty()),
        InvalidArgument,
        "Cannot split a scalar into a batch"
    );
    for (layer, edges) in splits.iter().enumerate() {
        let next = match splits.get(layer + 1) {
            Some(edges) => edges.len() as i64 - 1,
            None => values.dims()[0],
        };
        super::check_splits(edges, next)?;
    }
    let rows = match splits.first() {
        Some(edges) => edges.len() as i64 - 1,
        None => values.dims()[0],
    };
    let mut variants = crate::wide::reserved(rows as usize)?;
    for row in 0..rows {
        variants.push(VariantValue::new(part(&splits, &values, row)?));
    }
    context.set_output(0, Tensor::from_variants(Shape::vector(variants.len()), variants)?)
}

/// One row of a batch: a ragged tensor of a layer less. Without layers it is a row of the values.
fn part(splits: &[Vec<i64>], values: &Tensor, row: i64) -> Result<RaggedValue> {
    if splits.is_empty() {
        let one = values.rows(row as usize, 1)?;
        let shape = Shape::new(&values.dims()[1..])?;
        return Ok(RaggedValue {
            splits: Vec::new(),
            values: one.reshape(shape)?,
        });
    }
    let (mut start, mut end) = (splits[0][row as usize], splits[0][row as usize + 1]);
    let mut layers = Vec::new();
    for edges in &splits[1..] {
        let own = &edges[start as usize..=end as usize];
        layers.push(own.iter().map(|edge| edge - own[0]).collect());
        (start, end) = (own[0], own[own.len() - 1]);
    }
    let range = start..end;
    Ok(RaggedValue {
        splits: layers,
        values: take_rows(values, std::slice::from_ref(&range))?,
    })
}

/// Tensors of equal rows, one after the other.
fn concatenated(parts: &[&Tensor], dtype: DataType) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Tensor::zeros(dtype, Shape::vector(0));
    };
    let mut dims = first.dims().to_vec();
    ensure!(
        !dims.is_empty()
            && parts
                .iter()
                .all(|part| part.rank() == dims.len() && part.dims()[1..] == dims[1..]),
        InvalidArgument,
        "All flat_values must have compatible shapes."
    );
    dims[0] = parts.iter().map(|part| part.dims()[0]).sum();
    let shape = Shape::new(&dims)?;
    if dtype == DataType::STRING {
        let mut all: Vec<TString> = Vec::new();
        for part in parts {
            all.extend_from_slice(part.strings()?);
        }
        return Tensor::from_strings(shape, all);
    }
    let mut joined = Tensor::allocate(dtype, shape)?;
    if let Some(bytes) = joined.bytes_mut() {
        let mut at = 0;
        for part in parts {
            bytes[at..at + part.byte_size()].copy_from_slice(part.bytes());
            at += part.byte_size();
        }
    }
    Ok(joined)
}

fn from_variant(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (inner, outer) = (
        attrs.int("input_ragged_rank")?,
        attrs.int("output_ragged_rank")? as usize,
    );
    let input = context.input(0)?;
    let dtype = context.output_type(outer);
    let inner = if inner < 0 {
        outer as i64 - input.rank() as i64
    } else {
        inner
    };
    ensure!(
        inner >= 0 && outer as i64 == input.rank() as i64 + inner,
        InvalidArgument,
        "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); got {outer}, {inner} and {}",
        input.rank()
    );
    let mut parts: Vec<&RaggedValue> = Vec::new();
    for variant in input.variants()? {
        let Some(value) = variant.get::<RaggedValue>() else {
            bail!(
                InvalidArgument,
                "Input Variant element doesn't hold a RaggedTensorVariant: {variant:?}"
            );
        };
        ensure!(
            value.splits.len() as i64 == inner && value.values.dtype() == dtype,
            InvalidArgument,
            "Expected values of type {dtype} with {inner} layers, got {} with {}",
            value.values.dtype(),
            value.splits.len()
        );
        parts.push(value);
    }
    if input.rank() == 0 {
        let value = parts[0];
        let splits = value.splits.clone();
        let values = value.values.clone();
        return set(context, splits, values);
    }
    // The variants' own extents make regular layers, but for the last one.
    let mut layers: Vec<Vec<i64>> = Vec::new();
    let dims = input.dims().to_vec();
    for axis in 1..dims.len() {
        let count: i64 = dims[..axis].iter().product();
        layers.push(crate::wide::collected(
            (0..count as usize + 1).map(|i| i as i64 * dims[axis]),
        )?);
    }
    let mut edges = vec![0];
    for value in &parts {
        let rows = match value.splits.first() {
            Some(edges) => edges.len() as i64 - 1,
            None => value.values.dims().first().copied().unwrap_or(1),
        };
        edges.push(edges[edges.len() - 1] + rows);
    }
    layers.push(edges);
    for layer in 0..inner as usize {
        let mut edges = vec![0];
        for value in &parts {
            let start = edges[edges.len() - 1];
            edges.extend(value.splits[layer].iter().skip(1).map(|edge| start + edge));
        }
        layers.push(edges);
    }
    let tensors: Vec<&Tensor> = parts.iter().map(|part| &part.values).collect();
    let values = concatenated(&tensors, dtype)?;
    set(context, layers, values)
}

fn set(context: &mut KernelContext, layers: Vec<Vec<i64>>, values: Tensor) -> Result<()> {
    let count = layers.len();
    for (layer, edges) in layers.iter().enumerate() {
        let edges = splits_tensor(context.output_type(layer), edges)?;
        context.set_output(layer, edges)?;
    }
    context.set_output(count, values)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, code, counting, vector};
    use ff_op::Attrs;
    use ff_tensor::{Code, DataType, Tensor};

    fn batch(runner: &OpRunner, dtype: DataType) -> Tensor {
        let inputs = [
            vector(&[0i64, 2, 2, 3]),
            vector(&[0i64, 2, 2, 5]),
            counting(dtype, &[5]),
        ];
        let attrs = Attrs::new().with("RAGGED_RANK", 2i64).with("batched_input", true);
        runner
            .run("RaggedTensorToVariant", &inputs, attrs)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn a_batch_comes_back() {
        let runner = OpRunner::new();
        for dtype in [DataType::FLOAT, DataType::STRING] {
            let variants = batch(&runner, dtype);
            assert_eq!(variants.dims(), [3]);
            let attrs = Attrs::new()
                .with("input_ragged_rank", 1i64)
                .with("output_ragged_rank", 2i64)
                .with("Tvalues", dtype);
            let back = runner.run("RaggedTensorFromVariant", &[variants], attrs).unwrap();
            assert_eq!(back[0].as_slice::<i64>().unwrap(), [0, 2, 2, 3]);
            assert_eq!(back[1].as_slice::<i64>().unwrap(), [0, 2, 2, 5]);
            assert_eq!(back[2].num_elements(), 5);
        }
    }

    #[test]
    fn gradients_of_rows_are_joined() {
        let runner = OpRunner::new();
        let split = |splits: &[i64], values: Tensor| {
            let attrs = Attrs::new().with("RAGGED_RANK", 1i64).with("batched_input", true);
            let inputs = [vector(splits), values];
            runner
                .run("RaggedTensorToVariant", &inputs, attrs)
                .unwrap()
                .remove(0)
        };
        let gradients = split(&[0, 2, 2, 3], vector(&[1.0f32, 2.0, 3.0]));
        let attrs = || Attrs::new().with("Tvalues", DataType::FLOAT);
        let inputs = [gradients.clone(), vector(&[0i64, 2, 2, 3]), vector(&[3i32])];
        let joined = runner
            .run("RaggedTensorToVariantGradient", &inputs, attrs())
            .unwrap();
        assert_eq!(joined[0].as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        let misfit = [gradients, vector(&[0i64, 2, 2, 3]), vector(&[4i32])];
        let result = runner.run("RaggedTensorToVariantGradient", &misfit, attrs());
        assert_eq!(code(result), Some(Code::InvalidArgument));
    }

    #[test]
    fn other_types_are_refused() {
        let runner = OpRunner::new();
        let variants = batch(&runner, DataType::FLOAT);
        let attrs = Attrs::new()
            .with("input_ragged_rank", 1i64)
            .with("output_ragged_rank", 2i64)
            .with("Tvalues", DataType::INT32);
        let result = runner.run("RaggedTensorFromVariant", &[variants], attrs);
        assert_eq!(code(result), Some(Code::InvalidArgument));
    }
}
