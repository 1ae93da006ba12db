//! The element of a variant tensor: a shared object of any type, such as a tensor list.

use ff_proto::VariantTensorDataProto;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A value that a variant can hold. Values are immutable; an op that changes one makes another.
pub trait VariantObject: Any + Send + Sync {
    /// The registered type name, as on the wire (`tensorflow::TensorList`).
    fn type_name(&self) -> &str;

    /// For people: what the value holds.
    fn describe(&self) -> String {
        self.type_name().to_string()
    }

    /// The value as a message; none where the type has no wire form.
    fn to_proto(&self) -> Option<VariantTensorDataProto> {
        None
    }
}

/// A variant: nothing, or a shared value. Cloning is cheap.
#[derive(Clone, Default)]
pub struct VariantValue(Option<Arc<dyn VariantObject>>);

impl VariantValue {
    /// A variant that holds `value`.
    pub fn new<T: VariantObject>(value: T) -> VariantValue {
        VariantValue(Some(Arc::new(value)))
    }

    /// The value, if it is of this type.
    pub fn get<T: VariantObject>(&self) -> Option<&T> {
        let object: &dyn Any = self.0.as_deref()?;
        object.downcast_ref()
    }

    /// The value for changing it, if it is of this type and nobody shares it.
    pub fn get_mut<T: VariantObject>(&mut self) -> Option<&mut T> {
        let object: &mut dyn Any = Arc::get_mut(self.0.as_mut()?)?;
        object.downcast_mut()
    }

    /// The value as a shared object of this type, if it is one.
    pub fn get_shared<T: VariantObject>(&self) -> Option<Arc<T>> {
        let object: Arc<dyn Any + Send + Sync> = self.0.clone()?;
        object.downcast().ok()
    }

    /// The value, whatever its type; none for an empty variant.
    pub fn object(&self) -> Option<&Arc<dyn VariantObject>> {
        self.0.as_ref()
    }
}

impl fmt::Debug for VariantValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(object) => f.write_str(&object.describe()),
            None => f.write_str("<empty variant>"),
        }
    }
}
