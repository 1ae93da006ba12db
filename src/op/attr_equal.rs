//! Equality and hashing of attributes by value: floats by their bits, tensors by type, shape and elements.

use crate::{AttrValue, Attrs, FunctionRef};
use ff_proto::Message;
use ff_tensor::{DataType, Tensor};
use std::hash::{Hash, Hasher};

/// Attributes are equal whatever the order in which they were set.
impl PartialEq for Attrs {
    fn eq(&self, other: &Attrs) -> bool {
        self.len() == other.len() && self.iter().all(|(name, value)| other.get(name) == Some(value))
    }
}

impl PartialEq for FunctionRef {
    fn eq(&self, other: &FunctionRef) -> bool {
        self.name == other.name && self.attrs == other.attrs
    }
}

impl Eq for Attrs {}
impl Eq for FunctionRef {}
impl Eq for AttrValue {}

/// A list without elements equals any other list without elements.
impl PartialEq for AttrValue {
    fn eq(&self, other: &AttrValue) -> bool {
        use AttrValue::*;
        match (self, other) {
            (String(a), String(b)) => a == b,
            (Int(a), Int(b)) => a == b,
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (Bool(a), Bool(b)) => a == b,
            (Type(a), Type(b)) => a == b,
            (Shape(a), Shape(b)) => a == b,
            (Tensor(a), Tensor(b)) => same_tensor(a, b),
            (Func(a), Func(b)) => a == b,
            (Placeholder(a), Placeholder(b)) => a == b,
            (Strings(a), Strings(b)) => a == b,
            (Ints(a), Ints(b)) => a == b,
            (Floats(a), Floats(b)) => a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits())),
            (Bools(a), Bools(b)) => a == b,
            (Types(a), Types(b)) => a == b,
            (Shapes(a), Shapes(b)) => a == b,
            (Tensors(a), Tensors(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_tensor(a, b)),
            (Funcs(a), Funcs(b)) => a == b,
            (Unset, Unset) => true,
            (a, b) => a.is_empty_list() && b.is_empty_list(),
        }
    }
}

impl AttrValue {
    /// Whether this is a list, of any kind, without elements.
    pub fn is_empty_list(&self) -> bool {
        use AttrValue::*;
        match self {
            EmptyList => true,
            Strings(list) => list.is_empty(),
            Ints(list) => list.is_empty(),
            Floats(list) => list.is_empty(),
            Bools(list) => list.is_empty(),
            Types(list) => list.is_empty(),
            Shapes(list) => list.is_empty(),
            Tensors(list) => list.is_empty(),
            Funcs(list) => list.is_empty(),
            _ => false,
        }
    }
}

/// Whether two tensors have the same type, shape and elements.
fn same_tensor(a: &Tensor, b: &Tensor) -> bool {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    if a.data_ptr() == b.data_ptr() && a.shares_buffer(b) {
        return true;
    }
    match a.dtype() {
        DataType::STRING => a.strings().ok() == b.strings().ok(),
        dtype if dtype.is_plain() => a.bytes() == b.bytes(),
        _ => a.to_proto() == b.to_proto(),
    }
}

/// Hashes what equality compares; in any order of the attributes.
impl Hash for Attrs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let one = |(name, value): (&str, &AttrValue)| {
            let mut hasher = rustc_hash::FxHasher::default();
            name.hash(&mut hasher);
            value.hash(&mut hasher);
            hasher.finish()
        };
        self.iter().map(one).fold(0, u64::wrapping_add).hash(state);
    }
}

impl Hash for FunctionRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.attrs.hash(state);
    }
}

impl Hash for AttrValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        use AttrValue::*;
        if self.is_empty_list() {
            return state.write_u8(0);
        }
        match self {
            String(x) => x.hash(state),
            Int(x) => x.hash(state),
            Float(x) => x.to_bits().hash(state),
            Bool(x) => x.hash(state),
            Type(x) => x.hash(state),
            Shape(x) => x.hash(state),
            Tensor(x) => hash_tensor(x, state),
            Func(x) => x.hash(state),
            Placeholder(x) => x.hash(state),
            Strings(x) => x.hash(state),
            Ints(x) => x.hash(state),
            Floats(x) => x.iter().for_each(|x| x.to_bits().hash(state)),
            Bools(x) => x.hash(state),
            Types(x) => x.hash(state),
            Shapes(x) => x.hash(state),
            Tensors(x) => x.iter().for_each(|x| hash_tensor(x, state)),
            Funcs(x) => x.hash(state),
            EmptyList | Unset => {}
        }
    }
}

fn hash_tensor<H: Hasher>(tensor: &Tensor, state: &mut H) {
    tensor.dtype().hash(state);
    tensor.shape().hash(state);
    match tensor.dtype() {
        DataType::STRING => tensor
            .strings()
            .unwrap_or(&[])
            .iter()
            .for_each(|string| string.as_bytes().hash(state)),
        dtype if dtype.is_plain() => tensor.bytes().hash(state),
        _ => tensor.to_proto().encode_to_vec().hash(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(attrs: &Attrs) -> u64 {
        let mut hasher = rustc_hash::FxHasher::default();
        attrs.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn order_does_not_matter_and_values_do() {
        let value = |x: f32| Tensor::vector(&[x]).unwrap();
        let a = Attrs::new().with("a", 1i64).with("v", value(2.0));
        let b = Attrs::new().with("v", value(2.0)).with("a", 1i64);
        assert_eq!(a, b);
        assert_eq!(hash(&a), hash(&b));
        assert_ne!(a, b.clone().with("v", value(3.0)));
        assert_ne!(a, b.with("w", true));
        assert_eq!(AttrValue::EmptyList, AttrValue::Ints(vec![]));
        assert_eq!(AttrValue::Float(f32::NAN), AttrValue::Float(f32::NAN));
        assert_ne!(AttrValue::Int(1), AttrValue::Bool(true));
    }
}
