//! The element of a variant tensor: a shared object of any type, such as a tensor list.

use ff_proto::VariantTensorDataProto;
use std::any::Any;
use std::cell::RefCell;
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

thread_local! {
    /// Values whose last owner went while another was being dropped on this thread; none while none is.
    static WAITING: RefCell<Option<Vec<Arc<dyn VariantObject>>>> = const { RefCell::new(None) };
}

/// Values may hold variants that hold values, to any depth: those within are dropped one after the other by the outermost
/// drop, so that no stack runs out.
impl Drop for VariantValue {
    fn drop(&mut self) {
        let Some(object) = self.0.take() else { return };
        if Arc::strong_count(&object) > 1 {
            return;
        }
        let mut object = Some(object);
        // A thread that ends has no list any more; then drops nest.
        let _ = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            match &mut *waiting {
                None => *waiting = Some(Vec::new()),
                Some(list) => {
                    if list.try_reserve(1).is_ok() {
                        list.extend(object.take());
                    }
                }
            }
        });
        let Some(object) = object else { return };
        drop(object);
        while let Ok(Some(next)) = WAITING.try_with(|waiting| waiting.borrow_mut().as_mut()?.pop()) {
            drop(next);
        }
        let _ = WAITING.try_with(|waiting| waiting.borrow_mut().take());
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Layer {
        _inner: [VariantValue; 2],
        dropped: Arc<AtomicUsize>,
    }

    impl VariantObject for Layer {
        fn type_name(&self) -> &str {
            "layer"
        }
    }

    impl Drop for Layer {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn deep_values_are_dropped_once_each() {
        const DEPTH: usize = 500_000;
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut value = VariantValue::default();
        for _ in 0..DEPTH {
            value = VariantValue::new(Layer {
                _inner: [value.clone(), value],
                dropped: dropped.clone(),
            });
        }
        let kept = value.clone();
        drop(value);
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        drop(kept);
        assert_eq!(dropped.load(Ordering::Relaxed), DEPTH);
    }
}
