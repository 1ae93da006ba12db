//! Attributes of a node: values known when the graph is built.
//!
//! Values are held decoded; nothing parses a message while a step runs. Strings are bytes, as on the wire.

use bytes::Bytes;
use ff_tensor::{DataType, PartialShape, Result, Tensor, status};
use smol_str::SmolStr;

/// A function named by an attribute, with the values of its own attributes.
#[derive(Clone, Debug, Default)]
pub struct FunctionRef {
    /// Name in the function library.
    pub name: String,
    /// Values for the function's attributes.
    pub attrs: Attrs,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each variant is the kind of attribute that it is named after
pub enum AttrValue {
    String(Bytes),
    Int(i64),
    Float(f32),
    Bool(bool),
    Type(DataType),
    Shape(PartialShape),
    Tensor(Tensor),
    Func(FunctionRef),
    /// The name of an attribute of the surrounding function, whose value this will be.
    Placeholder(String),
    Strings(Vec<Bytes>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Bools(Vec<bool>),
    Types(Vec<DataType>),
    Shapes(Vec<PartialShape>),
    Tensors(Vec<Tensor>),
    Funcs(Vec<FunctionRef>),
    /// A list without elements; the wire does not say of what.
    EmptyList,
    /// An attribute that was named without a value.
    Unset,
}

/// Attributes by name, in the order in which they were set.
#[derive(Clone, Debug, Default)]
pub struct Attrs(Vec<(SmolStr, AttrValue)>);

impl Attrs {
    /// No attributes.
    pub fn new() -> Attrs {
        Attrs::default()
    }

    /// The value of an attribute, if set.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets or replaces an attribute.
    pub fn set(&mut self, name: impl Into<SmolStr>, value: impl Into<AttrValue>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some((_, slot)) => *slot = value,
            None => self.push(name, value),
        }
    }

    fn push(&mut self, name: SmolStr, value: AttrValue) {
        // Most nodes have one or two; a vector's own growth starts with four.
        const GROW_BY_ONE: usize = 3;
        if self.0.len() < GROW_BY_ONE {
            self.0.reserve_exact(1);
        }
        self.0.push((name, value));
    }

    /// The same attributes with one more; for building lists in one expression.
    pub fn with(mut self, name: &str, value: impl Into<AttrValue>) -> Attrs {
        self.set(name, value);
        self
    }

    /// Takes an attribute out.
    pub fn remove(&mut self, name: &str) -> Option<AttrValue> {
        let index = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(index).1)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttrValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn typed<'a, T>(
        &'a self,
        name: &str,
        kind: &str,
        pick: impl Fn(&'a AttrValue) -> Option<T>,
    ) -> Result<T> {
        let value = self
            .get(name)
            .ok_or_else(|| status!(NotFound, "No attr named '{name}' in NodeDef"))?;
        pick(value).ok_or_else(|| {
            status!(
                InvalidArgument,
                "AttrValue had value with type '{}' when '{kind}' expected\n\t for attr '{name}'",
                value.kind()
            )
        })
    }

    /// An integer. NOT_FOUND when not set, INVALID_ARGUMENT when of another kind; so for all that follow.
    pub fn int(&self, name: &str) -> Result<i64> {
        self.typed(name, "int", |value| {
            if let AttrValue::Int(x) = value {
                Some(*x)
            } else {
                None
            }
        })
    }

    /// A float.
    pub fn float(&self, name: &str) -> Result<f32> {
        self.typed(name, "float", |value| {
            if let AttrValue::Float(x) = value {
                Some(*x)
            } else {
                None
            }
        })
    }

    /// A bool.
    pub fn bool(&self, name: &str) -> Result<bool> {
        self.typed(name, "bool", |value| {
            if let AttrValue::Bool(x) = value {
                Some(*x)
            } else {
                None
            }
        })
    }

    /// A type.
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        self.typed(name, "type", |value| {
            if let AttrValue::Type(x) = value {
                Some(*x)
            } else {
                None
            }
        })
    }

    /// A string's bytes.
    pub fn bytes(&self, name: &str) -> Result<&[u8]> {
        self.typed(name, "string", |value| {
            if let AttrValue::String(x) = value {
                Some(&x[..])
            } else {
                None
            }
        })
    }

    /// A string as text. INVALID_ARGUMENT when it is not UTF-8.
    pub fn string(&self, name: &str) -> Result<&str> {
        std::str::from_utf8(self.bytes(name)?)
            .map_err(|_| status!(InvalidArgument, "attr '{name}' is not UTF-8"))
    }

    /// A shape.
    pub fn shape(&self, name: &str) -> Result<&PartialShape> {
        self.typed(name, "shape", |value| {
            if let AttrValue::Shape(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        self.typed(name, "tensor", |value| {
            if let AttrValue::Tensor(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A function.
    pub fn func(&self, name: &str) -> Result<&FunctionRef> {
        self.typed(name, "func", |value| {
            if let AttrValue::Func(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    fn list<'a, T>(
        &'a self,
        name: &str,
        kind: &str,
        pick: impl Fn(&'a AttrValue) -> Option<&'a [T]>,
    ) -> Result<&'a [T]> {
        self.typed(name, kind, |value| {
            if let AttrValue::EmptyList = value {
                Some(&[][..])
            } else {
                pick(value)
            }
        })
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Result<&[i64]> {
        self.list(name, "list(int)", |value| {
            if let AttrValue::Ints(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A list of floats.
    pub fn floats(&self, name: &str) -> Result<&[f32]> {
        self.list(name, "list(float)", |value| {
            if let AttrValue::Floats(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A list of bools.
    pub fn bools(&self, name: &str) -> Result<&[bool]> {
        self.list(name, "list(bool)", |value| {
            if let AttrValue::Bools(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A list of types.
    pub fn types(&self, name: &str) -> Result<&[DataType]> {
        self.list(name, "list(type)", |value| {
            if let AttrValue::Types(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A list of strings.
    pub fn strings(&self, name: &str) -> Result<&[Bytes]> {
        self.list(name, "list(string)", |value| {
            if let AttrValue::Strings(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A list of shapes.
    pub fn shapes(&self, name: &str) -> Result<&[PartialShape]> {
        self.list(name, "list(shape)", |value| {
            if let AttrValue::Shapes(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }

    /// A list of functions.
    pub fn funcs(&self, name: &str) -> Result<&[FunctionRef]> {
        self.list(name, "list(func)", |value| {
            if let AttrValue::Funcs(x) = value {
                Some(x)
            } else {
                None
            }
        })
    }
}

impl<N: Into<SmolStr>> FromIterator<(N, AttrValue)> for Attrs {
    fn from_iter<I: IntoIterator<Item = (N, AttrValue)>>(iter: I) -> Attrs {
        Attrs(
            iter.into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        )
    }
}

impl AttrValue {
    /// The kind of the value in the words of op schemas: `int`, `list(type)`.
    pub fn kind(&self) -> &'static str {
        match self {
            AttrValue::String(_) => "string",
            AttrValue::Int(_) => "int",
            AttrValue::Float(_) => "float",
            AttrValue::Bool(_) => "bool",
            AttrValue::Type(_) => "type",
            AttrValue::Shape(_) => "shape",
            AttrValue::Tensor(_) => "tensor",
            AttrValue::Func(_) => "func",
            AttrValue::Placeholder(_) => "placeholder",
            AttrValue::Strings(_) => "list(string)",
            AttrValue::Ints(_) => "list(int)",
            AttrValue::Floats(_) => "list(float)",
            AttrValue::Bools(_) => "list(bool)",
            AttrValue::Types(_) => "list(type)",
            AttrValue::Shapes(_) => "list(shape)",
            AttrValue::Tensors(_) => "list(tensor)",
            AttrValue::Funcs(_) => "list(func)",
            AttrValue::EmptyList => "list",
            AttrValue::Unset => "",
        }
    }
}

macro_rules! conversions {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for AttrValue {
            fn from(value: $from) -> AttrValue { AttrValue::$variant(value.into()) }
        })*
    };
}

conversions! {
    i64 => Int, f32 => Float, bool => Bool, DataType => Type, PartialShape => Shape, Tensor => Tensor,
    FunctionRef => Func, Vec<i64> => Ints, Vec<f32> => Floats, Vec<bool> => Bools, Vec<DataType> => Types,
    Vec<PartialShape> => Shapes, Vec<Bytes> => Strings, Vec<FunctionRef> => Funcs, Bytes => String, String => String,
}

impl From<&str> for AttrValue {
    fn from(value: &str) -> AttrValue {
        AttrValue::String(Bytes::copy_from_slice(value.as_bytes()))
    }
}
