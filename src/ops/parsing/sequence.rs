//! Sequence examples to tensors: features of the whole, and lists of features, one for each step.

use super::features::{
    Column, Dense, Names, Place, collect_ragged, collect_sparse, dense_shape, set_sparse_shapes,
    splits_tensor, string_attr, string_list, strings_of,
};
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_proto::{FeatureList, Features, Message, SequenceExample};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ParseSequenceExample",
        shape: |context| {
            let batch = context.input_with_rank(0, 1)?.dim(0);
            set_shapes(context, Some(batch), true)
        },
        kernels: &[Kernel::native(|context| run(context, Form::First))],
        ..Op::PURE
    },
    &Op {
        name: "ParseSequenceExampleV2",
        shape: |context| {
            let serialized = context.input_with_rank_at_most(0, 1)?;
            match serialized.rank() {
                Some(0) => set_shapes(context, None, true),
                Some(_) => set_shapes(context, Some(serialized.dim(0)), true),
                None => Ok(()),
            }
        },
        kernels: &[Kernel::native(|context| run(context, Form::Second))],
        ..Op::PURE
    },
    &Op {
        name: "ParseSingleSequenceExample",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            set_shapes(context, None, false)
        },
        kernels: &[Kernel::native(|context| run(context, Form::Single))],
        ..Op::PURE
    },
];

/// The numbers of outputs of each sort.
struct Counts {
    context_sparse: usize,
    context_dense: usize,
    context_ragged: usize,
    sparse: usize,
    dense: usize,
    ragged: usize,
}

impl Counts {
    fn of(attrs: &ff_op::Attrs) -> Result<Counts> {
        let types = |name: &str| attrs.types(name).map_or(0, |list| list.len());
        Ok(Counts {
            context_sparse: types("context_sparse_types"),
            context_dense: types("Tcontext_dense"),
            context_ragged: types("context_ragged_value_types"),
            sparse: types("feature_list_sparse_types"),
            dense: types("feature_list_dense_types"),
            ragged: types("feature_list_ragged_value_types"),
        })
    }
}

/// Checks that attributes which say how many features there are say what the lists of their types do.
fn check_counts(context: &ShapeContext) -> Result<()> {
    for (number, list) in [
        ("Ncontext_sparse", "context_sparse_types"),
        ("Nfeature_list_sparse", "feature_list_sparse_types"),
        ("Nfeature_list_dense", "feature_list_dense_types"),
        ("Ncontext_dense", "Tcontext_dense"),
    ] {
        let (Ok(number), Ok(types)) = (context.attrs().int(number), context.attrs().types(list)) else {
            continue;
        };
        ensure!(
            number == types.len() as i64,
            InvalidArgument,
            "num_{} ({number}) must match the size of {list} ({})",
            list.trim_end_matches("_types"),
            types.len()
        );
    }
    Ok(())
}

fn set_shapes(context: &mut ShapeContext, batch: Option<i64>, lengths: bool) -> Result<()> {
    check_counts(context)?;
    let counts = Counts::of(context.attrs())?;
    let rank = i64::from(batch.is_some());
    let unknown = PartialShape::new(&[dim::UNKNOWN]);
    set_sparse_shapes(context, 0, counts.context_sparse, rank + 1);
    let mut next = 3 * counts.context_sparse;
    for shape in context.attrs().shapes("context_dense_shapes")?.to_vec() {
        context.set_output(next, dense_shape(batch, &shape));
        next += 1;
    }
    let edges = match batch {
        Some(batch) => dim::add(batch, 1)?,
        None => 0,
    };
    for i in 0..counts.context_ragged {
        context.set_output(next + i, unknown.clone());
        context.set_output(next + counts.context_ragged + i, PartialShape::new(&[edges]));
    }
    next += 2 * counts.context_ragged;
    set_sparse_shapes(context, next, counts.sparse, rank + 2);
    next += 3 * counts.sparse;
    for shape in context.attrs().shapes("feature_list_dense_shapes")?.to_vec() {
        let steps = unknown.concat(&shape);
        context.set_output(next, dense_shape(batch, &steps));
        next += 1;
    }
    if lengths {
        let shape = batch.map_or(PartialShape::scalar(), |batch| PartialShape::new(&[batch]));
        for i in 0..counts.dense {
            context.set_output(next + i, shape.clone());
        }
        next += counts.dense;
    }
    for i in 0..counts.ragged {
        context.set_output(next + i, unknown.clone());
        context.set_output(next + counts.ragged + i, PartialShape::new(&[edges]));
        context.set_output(next + 2 * counts.ragged + i, unknown.clone());
    }
    Ok(())
}

/// Which of the three ops.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Keys are attributes.
    First,
    /// Keys are vectors.
    Second,
    /// Keys are lists of scalars.
    Single,
}

/// The names of the features of each sort, of lists that may be missing, and where the defaults start.
struct Keys {
    context_sparse: Vec<String>,
    context_dense: Vec<String>,
    context_ragged: Vec<String>,
    sparse: Vec<String>,
    dense: Vec<String>,
    ragged: Vec<String>,
    may_miss: Vec<bool>,
    defaults: usize,
    names: usize,
}

impl Keys {
    fn of(context: &KernelContext, form: Form, counts: &Counts) -> Result<Keys> {
        match form {
            Form::First => Keys::from_attrs(context),
            Form::Second => Keys::from_vectors(context),
            Form::Single => Keys::from_scalars(context, counts),
        }
    }

    fn from_attrs(context: &KernelContext) -> Result<Keys> {
        let attrs = context.attrs();
        let dense = string_attr(attrs, "feature_list_dense_keys")?;
        let missing = string_attr(attrs, "feature_list_dense_missing_assumed_empty")?;
        Ok(Keys {
            context_sparse: string_attr(attrs, "context_sparse_keys")?,
            context_dense: string_attr(attrs, "context_dense_keys")?,
            context_ragged: Vec::new(),
            sparse: string_attr(attrs, "feature_list_sparse_keys")?,
            may_miss: dense.iter().map(|key| missing.contains(key)).collect(),
            dense,
            ragged: Vec::new(),
            defaults: 2,
            names: 1,
        })
    }

    fn from_vectors(context: &KernelContext) -> Result<Keys> {
        let dense = strings_of(context, 6)?;
        let missing = context.input_slice::<ff_tensor::Bool>(8)?;
        ensure!(
            missing.is_empty() || missing.len() == dense.len(),
            InvalidArgument,
            "Expected len(feature_list_dense_missing_assumed_empty) == {}, got {}",
            dense.len(),
            missing.len()
        );
        Ok(Keys {
            context_sparse: strings_of(context, 2)?,
            context_dense: strings_of(context, 3)?,
            context_ragged: strings_of(context, 4)?,
            sparse: strings_of(context, 5)?,
            may_miss: (0..dense.len())
                .map(|i| missing.get(i).is_some_and(|missing| missing.get()))
                .collect(),
            dense,
            ragged: strings_of(context, 7)?,
            defaults: 9,
            names: 1,
        })
    }

    fn from_scalars(context: &KernelContext, counts: &Counts) -> Result<Keys> {
        let missing = strings_of(context, 1)?;
        let mut next = 2;
        let mut take = |count: usize| {
            next += count;
            string_list(context, next - count, count)
        };
        let (context_sparse, context_dense) = (take(counts.context_sparse)?, take(counts.context_dense)?);
        let (sparse, dense) = (take(counts.sparse)?, take(counts.dense)?);
        Ok(Keys {
            context_sparse,
            context_dense,
            context_ragged: Vec::new(),
            sparse,
            may_miss: dense.iter().map(|key| missing.contains(key)).collect(),
            dense,
            ragged: Vec::new(),
            defaults: next,
            names: next + counts.context_dense,
        })
    }

    /// INVALID_ARGUMENT unless there is a name for every type.
    fn check(&self, counts: &Counts) -> Result<()> {
        for (keys, count) in [
            (&self.context_sparse, counts.context_sparse),
            (&self.context_dense, counts.context_dense),
            (&self.context_ragged, counts.context_ragged),
            (&self.sparse, counts.sparse),
            (&self.dense, counts.dense),
            (&self.ragged, counts.ragged),
        ] {
            ensure!(
                keys.len() == count,
                InvalidArgument,
                "Expected {count} keys, got {keys:?}"
            );
        }
        Ok(())
    }
}

/// The lists of a name, one for each example.
fn lists<'a>(batch: &'a [SequenceExample], key: &str) -> Vec<Option<&'a FeatureList>> {
    let list = |example: &'a SequenceExample| example.feature_lists.as_ref()?.feature_list.get(key);
    batch.iter().map(list).collect()
}

/// The values of lists, `[batch, steps, shape..]`, short ones filled up, and the number of steps of each.
fn dense_lists(
    batch: &[SequenceExample],
    names: &Names,
    key: &str,
    (dtype, shape, may_miss): (DataType, &PartialShape, bool),
    single: bool,
) -> Result<(Tensor, Tensor)> {
    let Some(extents) = shape.to_shape() else {
        ff_tensor::bail!(
            InvalidArgument,
            "feature_list_dense_shapes of {key} must be known, got {shape}"
        );
    };
    let each = extents.num_elements();
    let (mut columns, mut lengths) = (Vec::new(), Vec::new());
    for (index, list) in lists(batch, key).into_iter().enumerate() {
        let place = Place {
            name: names.of(index),
            key,
            index,
        };
        let mut column = Column::new(dtype)?;
        match list {
            None if may_miss => {}
            None => {
                return Err(status!(
                    InvalidArgument,
                    "Name: {}, Feature list '{key}' is required but could not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
                    if names.of(index).is_empty() {
                        "<unknown>"
                    } else {
                        names.of(index)
                    }
                ));
            }
            Some(list) => {
                for feature in &list.feature {
                    let count = column.push(feature, &place)?;
                    if count != each {
                        return Err(place.wrong_count(dtype, count, shape));
                    }
                }
            }
        }
        lengths.push(list.map_or(0, |list| list.feature.len()) as i64);
        columns.push(column);
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut all = Column::new(dtype)?;
    for column in columns {
        let count = column.len();
        all.push_tensor(&column.finish(&[count as i64])?)?;
        all.pad((longest as usize * each).saturating_sub(count), None)?;
    }
    let mut dims = if single { vec![] } else { vec![batch.len() as i64] };
    dims.push(longest);
    dims.extend_from_slice(extents.dims());
    let shape = if single {
        Shape::scalar()
    } else {
        Shape::vector(lengths.len())
    };
    Ok((all.finish(&dims)?, Tensor::from_slice(shape, &lengths)?))
}

/// The values of lists with their places: `[example, step, number]`, or for a single example `[step, number]`.
fn sparse_lists(
    batch: &[SequenceExample],
    names: &Names,
    key: &str,
    dtype: DataType,
    single: bool,
) -> Result<[Tensor; 3]> {
    let mut column = Column::new(dtype)?;
    let (mut indices, mut steps, mut longest) = (Vec::new(), 0, 0);
    for (index, list) in lists(batch, key).into_iter().enumerate() {
        let place = Place {
            name: names.of(index),
            key,
            index,
        };
        let list = list.map_or(&[][..], |list| &list.feature);
        steps = steps.max(list.len() as i64);
        for (step, feature) in list.iter().enumerate() {
            let count = column.push(feature, &place)? as i64;
            longest = longest.max(count);
            for i in 0..count {
                if !single {
                    indices.push(index as i64);
                }
                indices.extend([step as i64, i]);
            }
        }
    }
    let rank = if single { 2 } else { 3 };
    let count = column.len() as i64;
    let extents = if single {
        vec![steps, longest]
    } else {
        vec![batch.len() as i64, steps, longest]
    };
    Ok([
        Tensor::from_slice(Shape::new(&[count, rank])?, &indices)?,
        column.finish(&[count])?,
        Tensor::vector(&extents)?,
    ])
}

/// The values of lists, the steps at which examples begin, and the values at which steps begin.
fn ragged_lists(
    batch: &[SequenceExample],
    names: &Names,
    key: &str,
    (dtype, splits): (DataType, DataType),
    single: bool,
) -> Result<[Tensor; 3]> {
    let mut column = Column::new(dtype)?;
    let (mut outer, mut inner) = (vec![0], vec![0]);
    for (index, list) in lists(batch, key).into_iter().enumerate() {
        let place = Place {
            name: names.of(index),
            key,
            index,
        };
        for feature in list.map_or(&[][..], |list| &list.feature) {
            column.push(feature, &place)?;
            inner.push(column.len() as i64);
        }
        outer.push(inner.len() as i64 - 1);
    }
    let count = column.len() as i64;
    let outer = if single { Vec::new() } else { outer };
    Ok([
        column.finish(&[count])?,
        splits_tensor(splits, &outer)?,
        splits_tensor(splits, &inner)?,
    ])
}

fn run(context: &mut KernelContext, form: Form) -> Result<()> {
    let outputs = collect(context, form)?;
    for (index, output) in outputs.into_iter().enumerate() {
        context.set_output(index, output)?;
    }
    Ok(())
}

/// `count` groups of `N` tensors, as `N` lists one after the other.
fn side_by_side<const N: usize>(outputs: &mut Vec<Tensor>, groups: Vec<[Tensor; N]>) {
    for place in 0..N {
        outputs.extend(groups.iter().map(|group| group[place].clone()));
    }
}

fn collect(context: &KernelContext, form: Form) -> Result<Vec<Tensor>> {
    let attrs = context.attrs();
    let counts = Counts::of(attrs)?;
    let single = context.input(0)?.rank() == 0;
    ensure!(
        single || form != Form::Single,
        InvalidArgument,
        "Expected serialized to be a scalar, got shape: {}",
        context.input(0)?.shape()
    );
    let mut batch = Vec::new();
    for text in context.input(0)?.strings()? {
        batch.push(SequenceExample::decode(text.as_bytes()).map_err(|_| {
            status!(
                InvalidArgument,
                "Could not parse example input, value: '{}'",
                text.to_str_lossy()
            )
        })?);
    }
    let keys = Keys::of(context, form, &counts)?;
    keys.check(&counts)?;
    let names = Names::of_input(context, keys.names, batch.len())?;
    let features: Vec<Option<Features>> = batch.iter().map(|example| example.context.clone()).collect();
    let mut outputs = Vec::new();
    let types = |name: &str| attrs.types(name).unwrap_or(&[]);

    let mut groups = Vec::new();
    for (key, &dtype) in keys.context_sparse.iter().zip(types("context_sparse_types")) {
        let made = collect_sparse(&features, &names, key, dtype, single)?;
        groups.push([made.indices, made.values, made.shape]);
    }
    side_by_side(&mut outputs, groups);
    let shapes = attrs.shapes("context_dense_shapes")?;
    for (i, key) in keys.context_dense.iter().enumerate() {
        let (dtype, shape) = (types("Tcontext_dense")[i], &shapes[i]);
        let default = context.input(keys.defaults + i)?;
        let dense = Dense::new(key.clone(), dtype, shape, default)?;
        outputs.push(dense.collect(&features, &names, single)?);
    }
    let mut groups = Vec::new();
    for (i, key) in keys.context_ragged.iter().enumerate() {
        let dtype = types("context_ragged_value_types")[i];
        let splits = types("context_ragged_split_types")[i];
        let (values, edges) = collect_ragged(&features, &names, key, dtype, splits, single)?;
        groups.push([values, edges]);
    }
    side_by_side(&mut outputs, groups);

    let mut groups = Vec::new();
    for (key, &dtype) in keys.sparse.iter().zip(types("feature_list_sparse_types")) {
        groups.push(sparse_lists(&batch, &names, key, dtype, single)?);
    }
    side_by_side(&mut outputs, groups);
    let (shapes, mut groups) = (attrs.shapes("feature_list_dense_shapes")?, Vec::new());
    for (i, key) in keys.dense.iter().enumerate() {
        let what = (types("feature_list_dense_types")[i], &shapes[i], keys.may_miss[i]);
        let (values, lengths) = dense_lists(&batch, &names, key, what, single)?;
        groups.push([values, lengths]);
    }
    if form == Form::Single {
        outputs.extend(groups.into_iter().map(|[values, _]| values));
    } else {
        side_by_side(&mut outputs, groups);
    }
    let mut groups = Vec::new();
    for (i, key) in keys.ragged.iter().enumerate() {
        let what = (
            types("feature_list_ragged_value_types")[i],
            types("feature_list_ragged_split_types")[i],
        );
        groups.push(ragged_lists(&batch, &names, key, what, single)?);
    }
    side_by_side(&mut outputs, groups);
    Ok(outputs)
}

#[cfg(test)]
use super::example::made::{features, floats, ints, texts};

#[cfg(test)]
fn two(dims: &[i64]) -> Tensor {
    use ff_proto::{Feature, FeatureLists};
    let example = |context: Features, lists: &[(&str, Vec<Feature>)]| {
        let mut all = FeatureLists::default();
        for (name, list) in lists {
            let list = FeatureList {
                feature: list.clone(),
            };
            all.feature_list.insert(name.to_string(), list);
        }
        SequenceExample {
            context: Some(context),
            feature_lists: Some(all),
        }
    };
    let all = [
        example(
            features(&[
                ("age", ints(&[3])),
                ("words", texts(&["a", "bc"])),
                ("more", texts(&["d"])),
            ]),
            &[
                ("frames", vec![floats(&[1.0, 2.0]), floats(&[3.0, 4.0])]),
                ("tags", vec![texts(&["x"]), texts(&[]), texts(&["y", "z"])]),
            ],
        ),
        example(
            features(&[("age", ints(&[5]))]),
            &[
                ("frames", vec![floats(&[5.0, 6.0])]),
                ("tags", vec![texts(&["w"])]),
                ("steps", vec![texts(&["p", "q"]), texts(&["r"])]),
            ],
        ),
    ];
    let count = dims.iter().product::<i64>() as usize;
    let strings = all[..count]
        .iter()
        .map(|example| example.encode_to_vec().as_slice().into())
        .collect();
    Tensor::from_strings(Shape::new(dims).expect("extents of a case"), strings).expect("elements of a case")
}

/// Attributes of: sparse `words` and dense `age` of the whole, sparse `tags` and dense `frames` of the steps.
#[cfg(test)]
fn asked(case: crate::testing::Case) -> crate::testing::Case {
    case.attr("context_sparse_types", vec![DataType::STRING])
        .attr("Tcontext_dense", vec![DataType::INT64])
        .attr("context_dense_shapes", vec![PartialShape::new(&[])])
        .attr("feature_list_sparse_types", vec![DataType::STRING])
        .attr("feature_list_dense_types", vec![DataType::FLOAT])
        .attr("feature_list_dense_shapes", vec![PartialShape::new(&[2])])
        .attr("Ncontext_sparse", 1i64)
        .attr("Nfeature_list_sparse", 1i64)
        .attr("Nfeature_list_dense", 1i64)
}

#[cfg(test)]
fn bytes(list: &[&'static str]) -> Vec<ff_proto::Bytes> {
    list.iter()
        .map(|text| ff_proto::Bytes::from_static(text.as_bytes()))
        .collect()
}

crate::op_cases! {
    batch: asked(Case::op("ParseSequenceExample").inputs([two(&[2]), strings(&[0], &[]), vector::<i64>(&[])]).attr("Ncontext_dense", 1i64)
        .attr("context_sparse_keys", bytes(&["words"])).attr("context_dense_keys", bytes(&["age"])).attr("feature_list_sparse_keys", bytes(&["tags"]))
        .attr("feature_list_dense_keys", bytes(&["frames"])).attr("feature_list_dense_missing_assumed_empty", bytes(&[])));
    batch_missing: asked(Case::op("ParseSequenceExample").inputs([two(&[2]), strings(&[0], &[]), vector::<i64>(&[])]).attr("Ncontext_dense", 1i64)
        .attr("context_sparse_keys", bytes(&["words"])).attr("context_dense_keys", bytes(&["age"])).attr("feature_list_sparse_keys", bytes(&["tags"]))
        .attr("feature_list_dense_keys", bytes(&["other"])).attr("feature_list_dense_missing_assumed_empty", bytes(&[]))).fails(Code::InvalidArgument);
    second: asked(Case::op("ParseSequenceExampleV2").inputs([two(&[2]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[1], &["age"]), strings(&[1], &["more"])])
        .inputs([strings(&[1], &["tags"]), strings(&[1], &["frames"]), strings(&[1], &["steps"]), bools(&[1], &[false]), vector::<i64>(&[])])
        .attr("context_ragged_value_types", vec![DataType::STRING]).attr("context_ragged_split_types", vec![DataType::INT32])
        .attr("feature_list_ragged_value_types", vec![DataType::STRING]).attr("feature_list_ragged_split_types", vec![DataType::INT64]));
    second_missing: asked(Case::op("ParseSequenceExampleV2").inputs([two(&[2]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[1], &["age"]), strings(&[0], &[])])
        .inputs([strings(&[1], &["tags"]), strings(&[1], &["other"]), strings(&[0], &[]), bools(&[1], &[true]), vector::<i64>(&[])]));
    second_required: asked(Case::op("ParseSequenceExampleV2").inputs([two(&[2]), strings(&[0], &[]), strings(&[1], &["words"]), strings(&[1], &["other"]), strings(&[0], &[])])
        .inputs([strings(&[1], &["tags"]), strings(&[1], &["frames"]), strings(&[0], &[]), bools(&[1], &[true]), vector::<i64>(&[])])).fails(Code::InvalidArgument);
    single: asked(Case::op("ParseSingleSequenceExample").inputs([two(&[]), strings(&[0], &[]), strings(&[], &["words"]), strings(&[], &["age"])])
        .inputs([strings(&[], &["tags"]), strings(&[], &["frames"]), scalar(7i64), strings(&[], &["name"])]).attr("Ncontext_dense", 1i64));
    single_missing: asked(Case::op("ParseSingleSequenceExample").inputs([two(&[]), strings(&[0], &[]), strings(&[], &["words"]), strings(&[], &["age"])])
        .inputs([strings(&[], &["tags"]), strings(&[], &["other"]), scalar(7i64), strings(&[], &["name"])]).attr("Ncontext_dense", 1i64)).fails(Code::InvalidArgument);
}
