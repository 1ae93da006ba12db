//! What an eager call gives: a tensor, or one that an executor has yet to make.

use ff_tensor::{DataType, Result, Tensor};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// A tensor that may not be there yet. Cloning shares it.
#[derive(Clone)]
pub enum EagerTensor {
    /// It is there.
    Ready(Tensor),
    /// It is there once a call has run.
    Pending(Arc<Pending>),
}

/// The place where an output of a call will be.
pub struct Pending {
    dtype: DataType,
    result: Mutex<Option<Result<Tensor>>>,
    ready: Condvar,
}

impl Pending {
    /// A place for a tensor of this type.
    pub fn new(dtype: DataType) -> Arc<Pending> {
        Arc::new(Pending {
            dtype,
            result: Mutex::new(None),
            ready: Condvar::new(),
        })
    }

    /// Puts the result there and wakes who waits for it. The first result stays.
    pub fn set(&self, result: Result<Tensor>) {
        self.result.lock().get_or_insert(result);
        self.ready.notify_all();
    }

    fn wait(&self) -> Result<Tensor> {
        let mut result = self.result.lock();
        loop {
            match &*result {
                Some(result) => return result.clone(),
                None => self.ready.wait(&mut result),
            }
        }
    }
}

impl EagerTensor {
    /// The element type; known before the tensor is there.
    #[inline]
    pub fn dtype(&self) -> DataType {
        match self {
            EagerTensor::Ready(tensor) => tensor.dtype(),
            EagerTensor::Pending(pending) => pending.dtype,
        }
    }

    /// The tensor, once it is there. The error of the call that should have made it.
    #[inline]
    pub fn wait(&self) -> Result<Tensor> {
        match self {
            EagerTensor::Ready(tensor) => Ok(tensor.clone()),
            EagerTensor::Pending(pending) => pending.wait(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_another_thread_and_keeps_the_first_result() {
        let pending = Pending::new(DataType::FLOAT);
        let tensor = EagerTensor::Pending(pending.clone());
        let setter = std::thread::spawn(move || {
            pending.set(Tensor::scalar(3.0f32));
            pending.set(Tensor::scalar(4.0f32));
        });
        assert_eq!(tensor.wait().unwrap().as_slice::<f32>().unwrap(), [3.0]);
        assert_eq!(tensor.dtype(), DataType::FLOAT);
        setter.join().unwrap();
    }
}
