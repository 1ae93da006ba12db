//! Examples to tensors: `ParseExample` in two versions, and of a single one.

use super::features::{
    Dense, Names, Sparse, collect_ragged, collect_sparse, dense_shape, set_sparse_shapes, string_attr,
    string_list, strings_of,
};
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_proto::{Example, Features, Message};
use ff_tensor::{DataType, PartialShape, Result, TString, dim, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ParseExample",
        shape: |context| {
            let batch = context.input_with_rank(0, 1)?.dim(0);
            let sparse = context.attrs().int("Nsparse")? as usize;
            set_shapes(context, Some(batch), sparse, 0)
        },
        kernels: &[Kernel::native(first)],
        ..Op::PURE
    },
    &Op {
        name: "ParseExampleV2",
        shape: |context| {
            let serialized = context.input_with_rank_at_most(0, 1)?;
            for keys in 2..5 {
                context.input_with_rank(keys, 1)?;
            }
            let sparse = context.attrs().int("num_sparse")? as usize;
            let ragged = context.attrs().types("ragged_value_types")?.len();
            match serialized.rank() {
                Some(0) => set_shapes(context, None, sparse, ragged),
                Some(_) => set_shapes(context, Some(serialized.dim(0)), sparse, ragged),
                None => Ok(()),
            }
        },
        kernels: &[Kernel::native(second)],
        ..Op::PURE
    },
    &Op {
        name: "ParseSingleExample",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            let sparse = context.attrs().int("num_sparse")? as usize;
            set_shapes(context, None, sparse, 0)
        },
        kernels: &[Kernel::native(single)],
        ..Op::PURE
    },
];

/// Sparse outputs, dense ones, then ragged ones; `batch` is absent for a single example.
fn set_shapes(context: &mut ShapeContext, batch: Option<i64>, sparse: usize, ragged: usize) -> Result<()> {
    let rank = if batch.is_some() { 2 } else { 1 };
    set_sparse_shapes(context, 0, sparse, rank);
    let shapes = context.attrs().shapes("dense_shapes")?;
    for (i, shape) in shapes.iter().enumerate() {
        let shape = dense_shape(batch, shape);
        context.set_output(3 * sparse + i, shape);
    }
    let first = 3 * sparse + shapes.len();
    let edges = match batch {
        Some(batch) => dim::add(batch, 1)?,
        None => 0,
    };
    for i in 0..ragged {
        context.set_output(first + i, PartialShape::new(&[dim::UNKNOWN]));
        context.set_output(first + ragged + i, PartialShape::new(&[edges]));
    }
    Ok(())
}

/// The features of serialized examples.
fn parse(serialized: &[TString]) -> Result<Vec<Option<Features>>> {
    serialized
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let example = Example::decode(text.as_bytes()).map_err(|_| {
                status!(
                    InvalidArgument,
                    "Error parsing example {index}. Could not parse example input, value: '{}'",
                    text.to_str_lossy()
                )
            })?;
            Ok(example.features)
        })
        .collect()
}

/// What is asked of the examples.
struct Request<'a> {
    sparse: Vec<(String, DataType)>,
    dense: Vec<Dense<'a>>,
    ragged: Vec<(String, DataType, DataType)>,
}

impl<'a> Request<'a> {
    /// Dense features, whose defaults are inputs from `first` on.
    fn dense(context: &'a KernelContext, keys: Vec<String>, first: usize) -> Result<Vec<Dense<'a>>> {
        let (types, shapes) = (
            context.attrs().types("Tdense")?,
            context.attrs().shapes("dense_shapes")?,
        );
        ensure!(
            keys.len() == types.len() && keys.len() == shapes.len(),
            InvalidArgument,
            "len(dense_keys) != len(dense_types): {} vs. {}",
            keys.len(),
            types.len()
        );
        keys.into_iter()
            .enumerate()
            .map(|(i, key)| Dense::new(key, types[i], &shapes[i], context.input(first + i)?))
            .collect()
    }

    fn sparse(context: &KernelContext, keys: Vec<String>) -> Result<Vec<(String, DataType)>> {
        let types = context.attrs().types("sparse_types")?;
        ensure!(
            keys.len() == types.len(),
            InvalidArgument,
            "len(sparse_keys) != len(sparse_types): {} vs. {}",
            keys.len(),
            types.len()
        );
        Ok(keys.into_iter().zip(types.iter().copied()).collect())
    }

    /// The outputs, in order.
    fn collect(
        &self,
        batch: &[Option<Features>],
        names: &Names,
        single: bool,
    ) -> Result<Vec<ff_tensor::Tensor>> {
        let (mut indices, mut values, mut extents) = (Vec::new(), Vec::new(), Vec::new());
        for (key, dtype) in &self.sparse {
            let made: Sparse = collect_sparse(batch, names, key, *dtype, single)?;
            indices.push(made.indices);
            values.push(made.values);
            extents.push(made.shape);
        }
        let mut outputs = indices;
        outputs.append(&mut values);
        outputs.append(&mut extents);
        for dense in &self.dense {
            outputs.push(dense.collect(batch, names, single)?);
        }
        let mut all_edges = Vec::new();
        for (key, dtype, splits) in &self.ragged {
            let (values, edges) = collect_ragged(batch, names, key, *dtype, *splits, single)?;
            outputs.push(values);
            all_edges.push(edges);
        }
        outputs.append(&mut all_edges);
        Ok(outputs)
    }
}

fn set_all(context: &mut KernelContext, outputs: Vec<ff_tensor::Tensor>) -> Result<()> {
    for (index, output) in outputs.into_iter().enumerate() {
        context.set_output(index, output)?;
    }
    Ok(())
}

fn first(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (sparse, dense) = (attrs.int("Nsparse")? as usize, attrs.int("Ndense")? as usize);
    let batch = parse(context.input(0)?.strings()?)?;
    let names = Names::of_input(context, 1, batch.len())?;
    let request = Request {
        sparse: Request::sparse(context, string_list(context, 2, sparse)?)?,
        dense: Request::dense(
            context,
            string_list(context, 2 + sparse, dense)?,
            2 + sparse + dense,
        )?,
        ragged: Vec::new(),
    };
    let outputs = request.collect(&batch, &names, false)?;
    set_all(context, outputs)
}

fn second(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let single = context.input(0)?.rank() == 0;
    let batch = parse(context.input(0)?.strings()?)?;
    let names = Names::of_input(context, 1, batch.len())?;
    let (types, splits) = (
        attrs.types("ragged_value_types")?,
        attrs.types("ragged_split_types")?,
    );
    let ragged = strings_of(context, 4)?;
    ensure!(
        ragged.len() == types.len() && ragged.len() == splits.len(),
        InvalidArgument,
        "len(ragged_keys) != len(ragged_value_types): {} vs. {}",
        ragged.len(),
        types.len()
    );
    let request = Request {
        sparse: Request::sparse(context, strings_of(context, 2)?)?,
        dense: Request::dense(context, strings_of(context, 3)?, 5)?,
        ragged: ragged
            .into_iter()
            .enumerate()
            .map(|(i, key)| (key, types[i], splits[i]))
            .collect(),
    };
    let outputs = request.collect(&batch, &names, single)?;
    set_all(context, outputs)
}

fn single(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let input = context.input(0)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "Expected serialized to be a scalar, got shape: {}",
        input.shape()
    );
    let batch = parse(input.strings()?)?;
    let request = Request {
        sparse: Request::sparse(context, string_attr(attrs, "sparse_keys")?)?,
        dense: Request::dense(context, string_attr(attrs, "dense_keys")?, 1)?,
        ragged: Vec::new(),
    };
    let outputs = request.collect(&batch, &Names::none(), true)?;
    set_all(context, outputs)
}

/// Serialized examples for cases.
#[cfg(test)]
pub mod made {
    use ff_proto::{BytesList, Example, Feature, Features, FloatList, Int64List, Message, feature::Kind};
    use ff_tensor::{Shape, Tensor};

    /// A feature of integers.
    pub fn ints(values: &[i64]) -> Feature {
        Feature {
            kind: Some(Kind::Int64List(Int64List {
                value: values.to_vec(),
            })),
        }
    }

    /// A feature of floats.
    pub fn floats(values: &[f32]) -> Feature {
        Feature {
            kind: Some(Kind::FloatList(FloatList {
                value: values.to_vec(),
            })),
        }
    }

    /// A feature of strings.
    pub fn texts(values: &[&str]) -> Feature {
        let value = values
            .iter()
            .map(|text| text.as_bytes().to_vec().into())
            .collect();
        Feature {
            kind: Some(Kind::BytesList(BytesList { value })),
        }
    }

    /// Features by name.
    pub fn features(list: &[(&str, Feature)]) -> Features {
        let mut features = Features::default();
        for (name, feature) in list {
            features.feature.insert(name.to_string(), feature.clone());
        }
        features
    }

    /// Examples as a tensor of strings of this shape.
    pub fn examples(dims: &[i64], all: &[Features]) -> Tensor {
        let strings = all
            .iter()
            .map(|features| {
                let example = Example {
                    features: Some(features.clone()),
                };
                example.encode_to_vec().as_slice().into()
            })
            .collect();
        let shape = Shape::new(dims).expect("extents of a case");
        Tensor::from_strings(shape, strings).expect("elements of a case")
    }
}

#[cfg(test)]
use made::{examples, features, floats, ints, texts};

#[cfg(test)]
fn two(dims: &[i64]) -> ff_tensor::Tensor {
    let all = [
        features(&[
            ("age", ints(&[3])),
            ("size", floats(&[1.5, 2.5])),
            ("words", texts(&["a", "bc"])),
            ("row", floats(&[1.0, 2.0, 3.0, 4.0])),
            ("more", ints(&[1, 2, 3])),
        ]),
        features(&[("size", floats(&[0.5, -2.5])), ("row", floats(&[9.0, 8.0]))]),
    ];
    let count = dims.iter().product::<i64>() as usize;
    examples(dims, &all[..count])
}

/// Attributes of: sparse `words`, dense `age` (by default 7), `size`, and `row` of any length.
#[cfg(test)]
fn asked(case: crate::testing::Case) -> crate::testing::Case {
    case.attr("sparse_types", vec![DataType::STRING])
        .attr("Tdense", vec![DataType::INT64, DataType::FLOAT, DataType::FLOAT])
        .attr(
            "dense_shapes",
            vec![
                PartialShape::new(&[]),
                PartialShape::new(&[2]),
                PartialShape::new(&[-1, 2]),
            ],
        )
}

#[cfg(test)]
fn defaults() -> [ff_tensor::Tensor; 3] {
    use crate::testing::{scalar, t, vector};
    [scalar(7i64), vector::<f32>(&[]), t(&[1, 1], &[-1.0f32])]
}

crate::op_cases! {
    batch: asked(Case::op("ParseExample").inputs([two(&[2]), strings(&[0], &[]), strings(&[], &["words"]), strings(&[], &["age"]), strings(&[], &["size"]), strings(&[], &["row"])])
        .inputs(defaults()).attr("Nsparse", 1i64).attr("Ndense", 3i64));
    missing: asked(Case::op("ParseExample").inputs([examples(&[1], &[features(&[])]), strings(&[1], &["name"]), strings(&[], &["words"])])
        .inputs([strings(&[], &["age"]), strings(&[], &["size"]), strings(&[], &["row"])])
        .inputs(defaults()).attr("Nsparse", 1i64).attr("Ndense", 3i64)).fails(Code::InvalidArgument);
    second: asked(Case::op("ParseExampleV2").inputs([two(&[2]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[3], &["age", "size", "row"]), strings(&[1], &["more"])])
        .inputs(defaults()).attr("num_sparse", 1i64).attr("ragged_value_types", vec![DataType::INT64]).attr("ragged_split_types", vec![DataType::INT32]));
    second_single: asked(Case::op("ParseExampleV2").inputs([two(&[]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[3], &["age", "size", "row"]), strings(&[1], &["more"])])
        .inputs(defaults()).attr("num_sparse", 1i64).attr("ragged_value_types", vec![DataType::INT64]).attr("ragged_split_types", vec![DataType::INT32]));
    second_of_none: asked(Case::op("ParseExampleV2").inputs([two(&[0]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[3], &["age", "size", "row"]), strings(&[0], &[])])
        .inputs(defaults()).attr("num_sparse", 1i64).attr("ragged_value_types", Vec::<DataType>::new()).attr("ragged_split_types", Vec::<DataType>::new()));
    second_of_type: asked(Case::op("ParseExampleV2").inputs([two(&[2]), strings(&[0], &[]), strings(&[1], &["age"]), strings(&[3], &["age", "size", "row"]), strings(&[0], &[])])
        .inputs(defaults()).attr("num_sparse", 1i64).attr("ragged_value_types", Vec::<DataType>::new()).attr("ragged_split_types", Vec::<DataType>::new())).fails(Code::InvalidArgument);
    second_of_count: asked(Case::op("ParseExampleV2").inputs([two(&[2]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[3], &["age", "row", "row"]), strings(&[0], &[])])
        .inputs(defaults()).attr("num_sparse", 1i64).attr("ragged_value_types", Vec::<DataType>::new()).attr("ragged_split_types", Vec::<DataType>::new())).fails(Code::InvalidArgument);
    second_damaged: asked(Case::op("ParseExampleV2").inputs([strings(&[1], &["\u{1}\u{2}"]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[3], &["age", "size", "row"]), strings(&[0], &[])])
        .inputs(defaults()).attr("num_sparse", 1i64).attr("ragged_value_types", Vec::<DataType>::new()).attr("ragged_split_types", Vec::<DataType>::new())).fails(Code::InvalidArgument);
    one: asked(Case::op("ParseSingleExample").input(two(&[])).inputs(defaults()).attr("num_sparse", 1i64)
        .attr("sparse_keys", vec![ff_proto::Bytes::from_static(b"words")])
        .attr("dense_keys", ["age", "size", "row"].map(|key| ff_proto::Bytes::from_static(key.as_bytes())).to_vec()));
    one_of_many: asked(Case::op("ParseSingleExample").input(two(&[2])).inputs(defaults()).attr("num_sparse", 1i64)
        .attr("sparse_keys", vec![ff_proto::Bytes::from_static(b"words")])
        .attr("dense_keys", ["age", "size", "row"].map(|key| ff_proto::Bytes::from_static(key.as_bytes())).to_vec())).fails(Code::InvalidArgument);
}
