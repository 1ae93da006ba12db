//! Attributes to and from their wire messages, and the attributes of a node completed from its schema.

use crate::{AttrValue, Attrs, FunctionRef};
use ff_proto::attr_value::{ListValue, Value};
use ff_proto::op_def::ArgDef;
use ff_proto::{NameAttrList, OpDef};
use ff_tensor::{DataType, PartialShape, Result, Tensor, bail, ensure, status};

fn shapes(protos: &[ff_proto::TensorShapeProto]) -> Result<Vec<PartialShape>> {
    protos.iter().map(PartialShape::from_proto).collect()
}

fn list_from_proto(list: &ListValue) -> Result<AttrValue> {
    Ok(if !list.s.is_empty() {
        AttrValue::Strings(list.s.clone())
    } else if !list.i.is_empty() {
        AttrValue::Ints(list.i.clone())
    } else if !list.f.is_empty() {
        AttrValue::Floats(list.f.clone())
    } else if !list.b.is_empty() {
        AttrValue::Bools(list.b.clone())
    } else if !list.r#type.is_empty() {
        AttrValue::Types(list.r#type.iter().map(|&number| DataType(number)).collect())
    } else if !list.shape.is_empty() {
        AttrValue::Shapes(shapes(&list.shape)?)
    } else if !list.tensor.is_empty() {
        AttrValue::Tensors(
            list.tensor
                .iter()
                .map(Tensor::from_proto)
                .collect::<Result<_>>()?,
        )
    } else if !list.func.is_empty() {
        AttrValue::Funcs(
            list.func
                .iter()
                .map(FunctionRef::from_proto)
                .collect::<Result<_>>()?,
        )
    } else {
        AttrValue::EmptyList
    })
}

/// Bytes above which a tensor of repeated elements is written without the repeats.
const LARGE: usize = 1024;

/// The message of a tensor: strings in their own field, which every reader knows; large ones without repeats.
fn tensor_to_proto(tensor: &Tensor) -> ff_proto::TensorProto {
    if !tensor.dtype().is_plain() {
        tensor.to_proto_fields()
    } else if tensor.byte_size() > LARGE {
        tensor.to_proto_compressed()
    } else {
        tensor.to_attr_proto()
    }
}

impl AttrValue {
    /// The value in a message. INVALID_ARGUMENT when there is none, or a shape or tensor in it is malformed.
    pub fn from_proto(proto: &ff_proto::AttrValue) -> Result<AttrValue> {
        Ok(match &proto.value {
            Some(Value::S(bytes)) => AttrValue::String(bytes.clone()),
            Some(Value::I(int)) => AttrValue::Int(*int),
            Some(Value::F(float)) => AttrValue::Float(*float),
            Some(Value::B(bool)) => AttrValue::Bool(*bool),
            Some(Value::Type(number)) => AttrValue::Type(DataType(*number)),
            Some(Value::Shape(shape)) => AttrValue::Shape(PartialShape::from_proto(shape)?),
            Some(Value::Tensor(tensor)) => AttrValue::Tensor(Tensor::from_proto(tensor)?),
            Some(Value::List(list)) => list_from_proto(list)?,
            Some(Value::Func(function)) => AttrValue::Func(FunctionRef::from_proto(function)?),
            Some(Value::Placeholder(name)) => AttrValue::Placeholder(name.clone()),
            None => bail!(InvalidArgument, "AttrValue missing value"),
        })
    }

    /// The value as a message.
    pub fn to_proto(&self) -> ff_proto::AttrValue {
        let value = match self {
            AttrValue::String(bytes) => Value::S(bytes.clone()),
            AttrValue::Int(int) => Value::I(*int),
            AttrValue::Float(float) => Value::F(*float),
            AttrValue::Bool(bool) => Value::B(*bool),
            AttrValue::Type(dtype) => Value::Type(dtype.0),
            AttrValue::Shape(shape) => Value::Shape(shape.to_proto()),
            AttrValue::Tensor(tensor) => Value::Tensor(Box::new(tensor_to_proto(tensor))),
            AttrValue::Func(function) => Value::Func(Box::new(function.to_proto())),
            AttrValue::Placeholder(name) => Value::Placeholder(name.clone()),
            AttrValue::Unset => return ff_proto::AttrValue::default(),
            list => Value::List(Box::new(list.list_to_proto())),
        };
        ff_proto::AttrValue { value: Some(value) }
    }

    /// The message of a list; an empty one for other values.
    fn list_to_proto(&self) -> ListValue {
        let mut list = ListValue::default();
        match self {
            AttrValue::Strings(values) => list.s = values.clone(),
            AttrValue::Ints(values) => list.i = values.clone(),
            AttrValue::Floats(values) => list.f = values.clone(),
            AttrValue::Bools(values) => list.b = values.clone(),
            AttrValue::Types(values) => list.r#type = values.iter().map(|dtype| dtype.0).collect(),
            AttrValue::Shapes(values) => list.shape = values.iter().map(PartialShape::to_proto).collect(),
            AttrValue::Tensors(values) => list.tensor = values.iter().map(tensor_to_proto).collect(),
            AttrValue::Funcs(values) => list.func = values.iter().map(FunctionRef::to_proto).collect(),
            _ => {}
        }
        list
    }
}

impl FunctionRef {
    /// The function named in a message.
    pub fn from_proto(proto: &NameAttrList) -> Result<FunctionRef> {
        let attr = |(name, value): (&String, _)| Ok((name.clone(), AttrValue::from_proto(value)?));
        Ok(FunctionRef {
            name: proto.name.clone(),
            attrs: proto.attr.iter().map(attr).collect::<Result<_>>()?,
        })
    }

    /// The message that names the function.
    pub fn to_proto(&self) -> NameAttrList {
        let attr = |(name, value): (&str, &AttrValue)| (name.to_string(), value.to_proto());
        NameAttrList {
            name: self.name.clone(),
            attr: self.attrs.iter().map(attr).collect(),
        }
    }
}

impl Attrs {
    /// These attributes with those added that follow from the types of the inputs, then the schema's defaults: what
    /// is said once need not be said again. The length of a list argument follows where one list takes what the
    /// single arguments leave. INVALID_ARGUMENT when inputs do not fit the schema.
    pub fn complete(mut self, def: &OpDef, input_types: &[DataType]) -> Result<Attrs> {
        let lists = def.input_arg.iter().filter(|arg| is_list(arg)).count();
        let single = def.input_arg.len() - lists;
        let mut next = 0;
        for arg in &def.input_arg {
            let count = match self.list_length(arg) {
                Some(count) => count,
                None if lists == 1 => input_types.len().saturating_sub(single),
                None => bail!(
                    InvalidArgument,
                    "Op {} needs the length of '{}'",
                    def.name,
                    arg.name
                ),
            };
            let types = input_types
                .get(next..next + count)
                .ok_or_else(|| status!(InvalidArgument, "Op {} lacks input '{}'", def.name, arg.name))?;
            self.infer(arg, types);
            next += count;
        }
        ensure!(
            next == input_types.len(),
            InvalidArgument,
            "Op {} has {} inputs, expected {next}",
            def.name,
            input_types.len()
        );
        for attr in &def.attr {
            if let (None, Some(default)) = (self.get(&attr.name), &attr.default_value) {
                self.set(attr.name.as_str(), AttrValue::from_proto(default)?);
            }
        }
        Ok(self)
    }

    /// How many inputs an argument has, as far as these attributes say.
    fn list_length(&self, arg: &ArgDef) -> Option<usize> {
        if !arg.number_attr.is_empty() {
            self.int(&arg.number_attr).ok().map(|count| count.max(0) as usize)
        } else if !arg.type_list_attr.is_empty() {
            self.types(&arg.type_list_attr).ok().map(<[DataType]>::len)
        } else {
            Some(1)
        }
    }

    fn infer(&mut self, arg: &ArgDef, types: &[DataType]) {
        if !arg.number_attr.is_empty() && self.get(&arg.number_attr).is_none() {
            self.set(arg.number_attr.as_str(), types.len() as i64);
        }
        if !arg.type_list_attr.is_empty() && self.get(&arg.type_list_attr).is_none() {
            let types: Vec<DataType> = types.iter().map(|dtype| dtype.base()).collect();
            self.set(arg.type_list_attr.as_str(), types);
        }
        if let (false, Some(dtype)) = (arg.type_attr.is_empty(), types.first())
            && self.get(&arg.type_attr).is_none()
        {
            self.set(arg.type_attr.as_str(), dtype.base());
        }
    }
}

fn is_list(arg: &ArgDef) -> bool {
    !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty()
}
