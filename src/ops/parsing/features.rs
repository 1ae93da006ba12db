//! Features of examples as columns: what all the parsing ops share.

use crate::wide::reserve;
use ff_op::{KernelContext, ShapeContext};
use ff_proto::{Bytes, Feature, Features, feature::Kind};
use ff_tensor::{DataType, PartialShape, Result, Shape, Status, TString, Tensor, bail, dim, ensure, status};

/// Elements of one of the three types that features have.
pub enum Column {
    /// int64
    Ints(Vec<i64>),
    /// float
    Floats(Vec<f32>),
    /// string
    Strings(Vec<TString>),
}

impl Column {
    /// An empty column. INVALID_ARGUMENT for another type.
    pub fn new(dtype: DataType) -> Result<Column> {
        Ok(match dtype {
            DataType::INT64 => Column::Ints(Vec::new()),
            DataType::FLOAT => Column::Floats(Vec::new()),
            DataType::STRING => Column::Strings(Vec::new()),
            other => bail!(InvalidArgument, "Invalid input type: {other}"),
        })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Column::Ints(values) => values.len(),
            Column::Floats(values) => values.len(),
            Column::Strings(values) => values.len(),
        }
    }

    /// Adds the elements of a feature; how many there were. INVALID_ARGUMENT for elements of another type.
    pub fn push(&mut self, feature: &Feature, key: &Place) -> Result<usize> {
        match (self, &feature.kind) {
            (_, None) => return Ok(0),
            (Column::Ints(values), Some(Kind::Int64List(list))) => values.extend_from_slice(&list.value),
            (Column::Floats(values), Some(Kind::FloatList(list))) => values.extend_from_slice(&list.value),
            (Column::Strings(values), Some(Kind::BytesList(list))) => {
                values.extend(list.value.iter().map(|value: &Bytes| TString::from(&value[..])));
            }
            (column, Some(kind)) => {
                let expected = column.type_name();
                return Err(key.wrong_type(kind, expected));
            }
        }
        Ok(count_of(feature))
    }

    fn type_name(&self) -> &'static str {
        match self {
            Column::Ints(_) => "int64",
            Column::Floats(_) => "float",
            Column::Strings(_) => "string",
        }
    }

    /// Adds all elements of a tensor.
    pub fn push_tensor(&mut self, tensor: &Tensor) -> Result<()> {
        match self {
            Column::Ints(values) => values.extend_from_slice(tensor.as_slice()?),
            Column::Floats(values) => values.extend_from_slice(tensor.as_slice()?),
            Column::Strings(values) => values.extend_from_slice(tensor.strings()?),
        }
        Ok(())
    }

    /// Adds `count` times the only element of a tensor; zeros or empty strings if it has none.
    pub fn pad(&mut self, count: usize, with: Option<&Tensor>) -> Result<()> {
        let with = with.filter(|tensor| tensor.num_elements() > 0);
        match self {
            Column::Ints(values) => {
                let value = with.map_or(Ok(0), |tensor| tensor.as_slice::<i64>().map(|values| values[0]))?;
                reserve(values, count)?;
                values.resize(values.len() + count, value);
            }
            Column::Floats(values) => {
                let value =
                    with.map_or(Ok(0.0), |tensor| tensor.as_slice::<f32>().map(|values| values[0]))?;
                reserve(values, count)?;
                values.resize(values.len() + count, value);
            }
            Column::Strings(values) => {
                let value = match with {
                    Some(tensor) => tensor.strings()?[0].clone(),
                    None => TString::default(),
                };
                reserve(values, count)?;
                values.resize(values.len() + count, value);
            }
        }
        Ok(())
    }

    /// The elements as a tensor.
    pub fn finish(self, dims: &[i64]) -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        match self {
            Column::Ints(values) => Tensor::from_slice(shape, &values),
            Column::Floats(values) => Tensor::from_slice(shape, &values),
            Column::Strings(values) => Tensor::from_strings(shape, values),
        }
    }
}

/// The number of elements of a feature.
fn count_of(feature: &Feature) -> usize {
    match &feature.kind {
        None => 0,
        Some(Kind::Int64List(list)) => list.value.len(),
        Some(Kind::FloatList(list)) => list.value.len(),
        Some(Kind::BytesList(list)) => list.value.len(),
    }
}

/// The feature of a name, unless it is missing or has no kind.
pub fn find<'a>(features: Option<&'a Features>, key: &str) -> Option<&'a Feature> {
    let feature = features?.feature.get(key)?;
    feature.kind.is_some().then_some(feature)
}

/// Which feature of which example an error is about.
pub struct Place<'a> {
    /// Name of the example; empty if it has none.
    pub name: &'a str,
    /// Name of the feature.
    pub key: &'a str,
    /// Number of the example.
    pub index: usize,
}

impl Place<'_> {
    fn name(&self) -> &str {
        if self.name.is_empty() {
            "<unknown>"
        } else {
            self.name
        }
    }

    fn wrong_type(&self, kind: &Kind, expected: &str) -> Status {
        let actual = match kind {
            Kind::Int64List(_) => "int64",
            Kind::FloatList(_) => "float",
            Kind::BytesList(_) => "string",
        };
        status!(
            InvalidArgument,
            "Name: {}, Key: {}, Index: {}.  Data types don't match. Data type: {actual} but expected type: {expected}",
            self.name(),
            self.key,
            self.index
        )
    }

    /// INVALID_ARGUMENT: the feature is not there.
    pub fn missing(&self, dtype: DataType) -> Status {
        status!(
            InvalidArgument,
            "Name: {}, Feature: {} (data type: {dtype}) is required but could not be found.",
            self.name(),
            self.key
        )
    }

    /// INVALID_ARGUMENT: the feature has another number of elements.
    pub fn wrong_count(&self, dtype: DataType, count: usize, shape: &PartialShape) -> Status {
        status!(
            InvalidArgument,
            "Name: {}, Key: {}, Index: {}.  Number of {dtype} values != expected.  Values size: {count} but output shape: {shape}",
            self.name(),
            self.key,
            self.index
        )
    }
}

/// A dense feature: its name, type, shape and default.
pub struct Dense<'a> {
    /// Name.
    pub key: String,
    /// Type.
    pub dtype: DataType,
    /// Shape; its first extent may be unknown.
    pub shape: PartialShape,
    /// Value where the feature is missing; none where it must be there.
    pub default: Option<&'a Tensor>,
}

impl<'a> Dense<'a> {
    /// A feature with its default. INVALID_ARGUMENT for shapes unknown beyond the first extent, and defaults that do
    /// not fit.
    pub fn new(key: String, dtype: DataType, shape: &PartialShape, default: &'a Tensor) -> Result<Dense<'a>> {
        ensure!(
            shape
                .dims()
                .is_some_and(|dims| dims.iter().skip(1).all(|&extent| extent >= 0)),
            InvalidArgument,
            "dense_shapes must be known beyond the first extent, got {shape} for {key}"
        );
        ensure!(
            default.dtype() == dtype,
            InvalidArgument,
            "dense_defaults of {key} has type {}, not {dtype}",
            default.dtype()
        );
        let dense = Dense {
            key,
            dtype,
            shape: shape.clone(),
            default: (default.num_elements() > 0).then_some(default),
        };
        if let Some(default) = dense.default {
            if dense.is_variable() {
                ensure!(
                    default.num_elements() == 1,
                    InvalidArgument,
                    "dense_shape of {} is a variable length shape: {shape}, therefore its default must have one element",
                    dense.key
                );
            } else {
                ensure!(
                    shape.is_compatible_with(&default.partial_shape()),
                    InvalidArgument,
                    "The shape {} of the default of {} does not fit {shape}",
                    default.shape(),
                    dense.key
                );
            }
        }
        Ok(dense)
    }

    /// Whether the first extent differs from example to example.
    pub fn is_variable(&self) -> bool {
        self.shape
            .dims()
            .is_some_and(|dims| dims.first() == Some(&dim::UNKNOWN))
    }

    /// The extents but, if it is variable, the first.
    fn known(&self) -> &[i64] {
        let dims = self.shape.dims().unwrap_or(&[]);
        if self.is_variable() { &dims[1..] } else { dims }
    }

    /// Elements of one example, or of one row of a variable feature.
    pub fn stride(&self) -> usize {
        self.known().iter().product::<i64>() as usize
    }

    /// The values of all examples, `[batch, shape..]` (without the batch for a single one); variable ones are filled
    /// up with the default.
    pub fn collect(&self, batch: &[Option<Features>], names: &Names, single: bool) -> Result<Tensor> {
        let stride = self.stride();
        let mut rows = Vec::new();
        for (index, features) in batch.iter().enumerate() {
            let place = Place {
                name: names.of(index),
                key: &self.key,
                index,
            };
            let mut column = Column::new(self.dtype)?;
            match find(features.as_ref(), &self.key) {
                Some(feature) => {
                    let count = column.push(feature, &place)?;
                    let fits = if self.is_variable() {
                        stride > 0 && count % stride == 0
                    } else {
                        count == stride
                    };
                    if !fits {
                        return Err(place.wrong_count(self.dtype, count, &self.shape));
                    }
                }
                None if self.is_variable() => {}
                None => {
                    let default = self.default.ok_or_else(|| place.missing(self.dtype))?;
                    column.push_tensor(default)?;
                }
            }
            rows.push(column);
        }
        let longest = rows.iter().map(Column::len).max().unwrap_or(0);
        let mut all = Column::new(self.dtype)?;
        for row in rows {
            let short = longest - row.len();
            let count = row.len() as i64;
            all.push_tensor(&row.finish(&[count])?)?;
            all.pad(short, self.default)?;
        }
        let mut dims = if single { vec![] } else { vec![batch.len() as i64] };
        if self.is_variable() {
            dims.push((longest / stride.max(1)) as i64);
        }
        dims.extend_from_slice(self.known());
        all.finish(&dims)
    }
}

/// A sparse feature of all examples.
pub struct Sparse {
    /// Places of the values.
    pub indices: Tensor,
    /// The values.
    pub values: Tensor,
    /// Extents: examples, and the longest feature.
    pub shape: Tensor,
}

/// The values of a feature with their places: `[example, number]`, or for a single example `[number]`.
pub fn collect_sparse(
    batch: &[Option<Features>],
    names: &Names,
    key: &str,
    dtype: DataType,
    single: bool,
) -> Result<Sparse> {
    let mut column = Column::new(dtype)?;
    let (mut indices, mut longest) = (Vec::new(), 0);
    for (index, features) in batch.iter().enumerate() {
        let place = Place {
            name: names.of(index),
            key,
            index,
        };
        let Some(feature) = find(features.as_ref(), key) else {
            continue;
        };
        let count = column.push(feature, &place)?;
        longest = longest.max(count as i64);
        for i in 0..count as i64 {
            if !single {
                indices.push(index as i64);
            }
            indices.push(i);
        }
    }
    let count = column.len() as i64;
    let rank = if single { 1 } else { 2 };
    let extents = if single {
        vec![longest]
    } else {
        vec![batch.len() as i64, longest]
    };
    Ok(Sparse {
        indices: Tensor::from_slice(Shape::new(&[count, rank])?, &indices)?,
        values: column.finish(&[count])?,
        shape: Tensor::vector(&extents)?,
    })
}

/// The values of a feature, and where each example's begin; for a single example no such boundaries.
pub fn collect_ragged(
    batch: &[Option<Features>],
    names: &Names,
    key: &str,
    dtype: DataType,
    splits: DataType,
    single: bool,
) -> Result<(Tensor, Tensor)> {
    let mut column = Column::new(dtype)?;
    let mut edges = vec![0];
    for (index, features) in batch.iter().enumerate() {
        let place = Place {
            name: names.of(index),
            key,
            index,
        };
        if let Some(feature) = find(features.as_ref(), key) {
            column.push(feature, &place)?;
        }
        edges.push(column.len() as i64);
    }
    let count = column.len() as i64;
    let edges = if single { Vec::new() } else { edges };
    Ok((column.finish(&[count])?, splits_tensor(splits, &edges)?))
}

/// Boundaries as an int32 or int64 vector.
pub fn splits_tensor(dtype: DataType, edges: &[i64]) -> Result<Tensor> {
    if dtype == DataType::INT64 {
        return Tensor::vector(edges);
    }
    let edges: Vec<i32> = edges.iter().map(|&edge| edge as i32).collect();
    Tensor::vector(&edges)
}

/// Names of examples, for errors.
pub struct Names(Vec<String>);

impl Names {
    /// From an input: none, or one for each example. INVALID_ARGUMENT otherwise.
    pub fn of_input(context: &KernelContext, index: usize, count: usize) -> Result<Names> {
        let names = strings_of(context, index)?;
        ensure!(
            names.is_empty() || names.len() == count,
            InvalidArgument,
            "Expected len(names) == len(serialized), but got: {} vs. {count}",
            names.len()
        );
        Ok(Names(names))
    }

    /// No names.
    pub fn none() -> Names {
        Names(Vec::new())
    }

    /// The name of an example.
    pub fn of(&self, index: usize) -> &str {
        self.0.get(index).map_or("", String::as_str)
    }
}

/// The strings of an input, in Unicode.
pub fn strings_of(context: &KernelContext, index: usize) -> Result<Vec<String>> {
    let strings = context.input(index)?.strings()?;
    Ok(strings
        .iter()
        .map(|text| text.to_str_lossy().into_owned())
        .collect())
}

/// The strings of `count` scalar inputs.
pub fn string_list(context: &KernelContext, first: usize, count: usize) -> Result<Vec<String>> {
    let mut list = Vec::new();
    for index in first..first + count {
        let mut one = strings_of(context, index)?;
        ensure!(
            one.len() == 1,
            InvalidArgument,
            "Expected input {index} to be a scalar, got shape {}",
            context.input(index)?.shape()
        );
        list.append(&mut one);
    }
    Ok(list)
}

/// The strings of an attribute.
pub fn string_attr(attrs: &ff_op::Attrs, name: &str) -> Result<Vec<String>> {
    let list = attrs.strings(name)?;
    Ok(list
        .iter()
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect())
}

/// The shape of a dense output: `batch` (none for a single example) and the feature's own.
pub fn dense_shape(batch: Option<i64>, shape: &PartialShape) -> PartialShape {
    match batch {
        Some(batch) => PartialShape::new(&[batch]).concat(shape),
        None => shape.clone(),
    }
}

/// Sets the shapes of `count` sparse outputs of this rank, from output `first` on: indices, values, extents.
pub fn set_sparse_shapes(context: &mut ShapeContext, first: usize, count: usize, rank: i64) {
    for i in 0..count {
        context.set_output(first + i, PartialShape::new(&[dim::UNKNOWN, rank]));
        context.set_output(first + count + i, PartialShape::new(&[dim::UNKNOWN]));
        context.set_output(first + 2 * count + i, PartialShape::new(&[rank]));
    }
}
