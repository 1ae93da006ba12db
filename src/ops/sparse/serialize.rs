//! Sparse tensors as rows of three messages or three variants: places, values, extents; and a batch of them as one.

use super::parts::{Sparse, matrix, set_parts, take};
use crate::movement::Writer;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_proto::{Message, TensorProto};
use ff_tensor::{
    DataType, PartialShape, Result, Shape, TString, Tensor, VariantObject, VariantValue, dim, ensure, status,
};

const SERIALIZE: Op = Op {
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SerializeSparse",
        shape: |context| {
            check_ranks(context)?;
            context.set_output(0, PartialShape::new(&[3]));
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let parts = Sparse::read(context, 0)?;
            let dtype = context.output_type(0);
            let output = cells(&[3], dtype, &three(&parts)?)?;
            context.set_output(0, output)
        })],
        ..SERIALIZE
    },
    &Op {
        name: "SerializeManySparse",
        shape: |context| {
            check_ranks(context)?;
            context.set_output(0, PartialShape::new(&[dim::UNKNOWN, 3]));
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let rows = split_rows(&Sparse::read(context, 0)?)?;
            let dtype = context.output_type(0);
            let mut tensors = Vec::new();
            for row in &rows {
                tensors.extend(three(row)?);
            }
            let output = cells(&[rows.len() as i64, 3], dtype, &tensors)?;
            context.set_output(0, output)
        })],
        ..SERIALIZE
    },
    &Op {
        name: "DeserializeSparse",
        shape: |context| {
            let input = context.input_with_rank_at_least(0, 1)?;
            if input.rank().is_some() {
                dim::merge(input.dim(-1), 3)?;
            }
            set_parts(context, 0, dim::UNKNOWN);
            Ok(())
        },
        kernels: &[Kernel::native(read)],
        ..SERIALIZE
    },
    &Op {
        name: "DeserializeManySparse",
        shape: |context| {
            let input = context.input_with_rank(0, 2)?;
            dim::merge(input.dim(1), 3)?;
            set_parts(context, 0, dim::UNKNOWN);
            Ok(())
        },
        kernels: &[Kernel::native(read)],
        ..SERIALIZE
    },
];

fn check_ranks(context: &ShapeContext) -> Result<()> {
    context.input_with_rank(0, 2)?;
    context.input_with_rank(1, 1)?;
    context.input_with_rank(2, 1)?;
    Ok(())
}

/// A tensor in a variant.
struct TensorVariant(Tensor);

impl VariantObject for TensorVariant {
    fn type_name(&self) -> &str {
        "tensorflow::Tensor"
    }
}

fn three(parts: &Sparse) -> Result<[Tensor; 3]> {
    Ok([
        matrix(&parts.places, parts.count(), parts.rank())?,
        parts.values.clone(),
        Tensor::vector(&parts.dims)?,
    ])
}

fn cells(dims: &[i64], dtype: DataType, tensors: &[Tensor]) -> Result<Tensor> {
    let shape = Shape::new(dims)?;
    if dtype == DataType::VARIANT {
        let values = tensors
            .iter()
            .map(|tensor| VariantValue::new(TensorVariant(tensor.clone())));
        return Tensor::from_variants(shape, values.collect());
    }
    let texts = tensors
        .iter()
        .map(|tensor| TString::from(&tensor.to_proto().encode_to_vec()[..]));
    Tensor::from_strings(shape, texts.collect())
}

/// The rows of the first axis as sparse tensors of one rank less.
pub fn split_rows(parts: &Sparse) -> Result<Vec<Sparse>> {
    ensure!(
        parts.rank() > 1,
        InvalidArgument,
        "Rank of input SparseTensor should be > 1, but saw rank: {}",
        parts.rank()
    );
    parts.check_order()?;
    let count = Shape::new(&parts.dims[..1])?.num_elements();
    let mut numbers: Vec<Vec<usize>> = crate::wide::filled(count, Vec::new())?;
    for number in 0..parts.count() {
        let row = parts.place(number)[0];
        let found = usize::try_from(row).ok().and_then(|row| numbers.get_mut(row));
        let list = found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Received unexpected column 0 value in input SparseTensor: {row} is not in [0, {count})"
            )
        })?;
        list.push(number);
    }
    let row = |numbers: &Vec<usize>| -> Result<Sparse> {
        Ok(Sparse {
            places: numbers
                .iter()
                .flat_map(|&number| parts.place(number)[1..].iter().copied())
                .collect(),
            values: take(&parts.values, numbers)?,
            dims: parts.dims[1..].to_vec(),
        })
    };
    numbers.iter().map(row).collect()
}

/// One tensor of a cell.
fn tensor_of(cells: &Tensor, at: usize) -> Result<Tensor> {
    if cells.dtype() == DataType::VARIANT {
        let found = cells.variants()?[at].get::<TensorVariant>();
        let found = found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Could not get a tensor from serialized_sparse[{at}]"
            )
        })?;
        return Ok(found.0.clone());
    }
    let bytes = cells.strings()?[at].as_bytes();
    let unreadable = || {
        status!(
            InvalidArgument,
            "Could not parse serialized_sparse[{}, {}]",
            at / 3,
            at % 3
        )
    };
    let proto = TensorProto::decode(bytes).map_err(|_| unreadable())?;
    Tensor::from_proto(&proto).map_err(|_| unreadable())
}

fn sparse_of(cells: &Tensor, number: usize, dtype: DataType) -> Result<Sparse> {
    let [places, values, dims] = [0, 1, 2].map(|part| tensor_of(cells, 3 * number + part));
    let (places, values, dims) = (places?, values?, dims?);
    ensure!(
        places.rank() == 2 && places.dtype() == DataType::INT64,
        InvalidArgument,
        "Expected serialized_sparse[{number}, 0] to represent an index matrix but received shape {}",
        places.shape()
    );
    ensure!(
        values.rank() == 1,
        InvalidArgument,
        "Expected serialized_sparse[{number}, 1] to represent a values vector but received shape {}",
        values.shape()
    );
    ensure!(
        dims.rank() == 1 && dims.dtype() == DataType::INT64,
        InvalidArgument,
        "Expected serialized_sparse[{number}, 2] to represent a shape vector but received shape {}",
        dims.shape()
    );
    ensure!(
        values.dtype() == dtype,
        InvalidArgument,
        "Requested SparseTensor of type {dtype} but SparseTensor[{number}].values.dtype() == {}",
        values.dtype()
    );
    Sparse::new(&places, values, dims.to_i64_vec()?)
}

/// Sparse tensors as one, with `batch` before their extents, of which the largest are taken.
pub fn join(all: &[Sparse], batch: &[i64], dtype: DataType) -> Result<Sparse> {
    let rank = all.first().map_or(0, Sparse::rank);
    let mut dims = vec![0; rank];
    let mut places = Vec::new();
    let total = all.iter().map(Sparse::count).sum();
    let mut values = Writer::new(dtype, Shape::vector(total))?;
    let mut to = 0;
    for (number, parts) in all.iter().enumerate() {
        ensure!(
            parts.rank() == rank,
            InvalidArgument,
            "Inconsistent shape across SparseTensors: rank prior to SparseTensor[{number}] was: {rank} but rank of \
             SparseTensor[{number}] is: {}",
            parts.rank()
        );
        dims.iter_mut()
            .zip(&parts.dims)
            .for_each(|(all, &own)| *all = own.max(*all));
        let mut at = number as i64;
        let mut leading = vec![0; batch.len()];
        for axis in (0..batch.len()).rev() {
            leading[axis] = at % batch[axis];
            at /= batch[axis];
        }
        for value in 0..parts.count() {
            places.extend_from_slice(&leading);
            places.extend_from_slice(parts.place(value));
        }
        values.copy(to, &parts.values, 0, parts.count())?;
        to += parts.count();
    }
    let dims = batch.iter().copied().chain(dims).collect();
    Ok(Sparse {
        places,
        values: values.finish()?,
        dims,
    })
}

/// Sets the three outputs.
pub fn set_outputs(context: &mut KernelContext, parts: Sparse) -> Result<()> {
    let [places, values, dims] = three(&parts)?;
    context.set_output(0, places)?;
    context.set_output(1, values)?;
    context.set_output(2, dims)
}

fn read(context: &mut KernelContext) -> Result<()> {
    let cells = context.input(0)?;
    let Some((&3, batch)) = cells.dims().split_last() else {
        ff_tensor::bail!(
            InvalidArgument,
            "Serialized sparse should have 3 as the last dimension but received shape {}",
            cells.shape()
        );
    };
    let dtype = context.output_type(1);
    let count = cells.num_elements() / 3;
    ensure!(
        count > 0,
        InvalidArgument,
        "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows"
    );
    let all: Vec<Sparse> = (0..count)
        .map(|number| sparse_of(cells, number, dtype))
        .collect::<Result<_>>()?;
    let joined = join(&all, batch, dtype)?;
    set_outputs(context, joined)
}

#[cfg(test)]
fn messages(dims: &[i64], rows: &[&[Tensor; 3]]) -> Tensor {
    let all: Vec<Tensor> = rows.iter().flat_map(|row| row.iter().cloned()).collect();
    cells(dims, DataType::STRING, &all).expect("messages")
}

#[cfg(test)]
fn sample(extent: i64) -> [Tensor; 3] {
    use crate::testing::{t, vector};
    [
        t(&[2, 1], &[0i64, extent - 1]),
        vector(&[1.0f32, 2.0]),
        vector(&[extent]),
    ]
}

crate::op_cases! {
    many_out_of_order: Case::op("SerializeManySparse").inputs([t(&[2, 2], &[1i64, 0, 0, 0]), vector(&[1.0f32, 2.0]), vector(&[3i64, 2])]).fails(Code::InvalidArgument);
    many_repeated: Case::op("SerializeManySparse").inputs([t(&[2, 2], &[1i64, 0, 1, 0]), vector(&[1.0f32, 2.0]), vector(&[3i64, 2])]).fails(Code::InvalidArgument);
    one: family(&["SerializeSparse", "SerializeManySparse"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| Case::op(op)
        .inputs([t(&[2, 2], &[0i64, 1, 2, 0]), numbers(dtype, &[2], &[1.0, 2.0]), vector(&[3i64, 2])]));
    text: family(&["SerializeSparse", "SerializeManySparse"], &[DataType::STRING], |op, _| Case::op(op)
        .inputs([t(&[2, 2], &[0i64, 1, 2, 0]), strings(&[2], &["a", ""]), vector(&[3i64, 2])]));
    misfit: family(&["SerializeSparse", "SerializeManySparse"], &[DataType::FLOAT], |op, _| Case::op(op)
        .inputs([vector(&[0i64]), vector(&[1.0f32]), vector(&[3i64])]).fails(Code::InvalidArgument));
    many_of_vector: Case::op("SerializeManySparse").inputs([t(&[1, 1], &[0i64]), vector(&[1.0f32]), vector(&[3i64])]).fails(Code::InvalidArgument);
    many_outside: Case::op("SerializeManySparse").inputs([t(&[1, 2], &[3i64, 0]), vector(&[1.0f32]), vector(&[3i64, 2])]).fails(Code::InvalidArgument);
    read_one: Case::op("DeserializeSparse").attr("dtype", DataType::FLOAT).input(messages(&[3], &[&sample(3)]))
        .gives(t(&[2, 1], &[0i64, 2])).gives(vector(&[1.0f32, 2.0])).gives(vector(&[3i64]));
    read_batch: Case::op("DeserializeSparse").attr("dtype", DataType::FLOAT).input(messages(&[2, 1, 3], &[&sample(3), &sample(5)]))
        .gives(t(&[4, 3], &[0i64, 0, 0, 0, 0, 2, 1, 0, 0, 1, 0, 4])).gives(vector(&[1.0f32, 2.0, 1.0, 2.0])).gives(vector(&[2i64, 1, 5]));
    read_many: Case::op("DeserializeManySparse").attr("dtype", DataType::FLOAT).input(messages(&[2, 3], &[&sample(3), &sample(5)]));
    read_other_type: Case::op("DeserializeSparse").attr("dtype", DataType::INT32).input(messages(&[3], &[&sample(3)])).fails(Code::InvalidArgument);
    read_nonsense: Case::op("DeserializeSparse").attr("dtype", DataType::FLOAT).input(strings(&[3], &["\u{1}x", "", ""])).fails(Code::InvalidArgument);
    read_pairs: Case::op("DeserializeSparse").attr("dtype", DataType::FLOAT).input(strings(&[2], &["", ""])).fails(Code::InvalidArgument);
    read_nothing: Case::op("DeserializeManySparse").attr("dtype", DataType::FLOAT).input(strings(&[0, 3], &[])).fails(Code::InvalidArgument);
}
