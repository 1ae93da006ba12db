//! What travels along an edge while a step runs, and the two kinds of variables.

use ff_tensor::{DataType, Result, Tensor, bail, ensure, status};
use parking_lot::{RwLock, RwLockWriteGuard};
use std::sync::Arc;

/// A value on an edge.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing: not computed, already taken, or dead.
    #[default]
    Absent,
    /// A tensor.
    Tensor(Tensor),
    /// A reference to a variable, for inputs of reference types.
    Ref(Arc<RefVariable>),
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

/// A reference variable (`VariableV2`): ops get the variable itself along a reference edge.
#[derive(Debug)]
pub struct RefVariable {
    /// Name for error messages.
    pub name: String,
    /// Element type.
    pub dtype: DataType,
    value: RwLock<Option<Tensor>>,
}

impl RefVariable {
    /// A variable without a value.
    pub fn new(name: impl Into<String>, dtype: DataType) -> RefVariable {
        RefVariable {
            name: name.into(),
            dtype,
            value: RwLock::new(None),
        }
    }

    /// A snapshot of the value. FAILED_PRECONDITION when there is none.
    pub fn read(&self) -> Result<Tensor> {
        self.value.read().clone().ok_or_else(|| {
            status!(
                FailedPrecondition,
                "Attempting to use uninitialized value {}",
                self.name
            )
        })
    }

    /// Whether there is a value.
    pub fn is_initialized(&self) -> bool {
        self.value.read().is_some()
    }

    /// Replaces the value. INVALID_ARGUMENT for another type.
    pub fn assign(&self, tensor: Tensor) -> Result<()> {
        ensure!(
            tensor.dtype() == self.dtype,
            InvalidArgument,
            "Cannot assign {} to variable '{}' of type {}",
            tensor.dtype(),
            self.name,
            self.dtype
        );
        *self.value.write() = Some(tensor);
        Ok(())
    }

    /// Changes the value under the variable's lock. `update` gets the tensor and may write to it in place once it
    /// has made it writable; tensors read before never change. FAILED_PRECONDITION when there is no value.
    pub fn update(&self, update: impl FnOnce(&mut Tensor) -> Result<()>) -> Result<()> {
        match &mut *self.value.write() {
            Some(tensor) => update(tensor),
            None => bail!(
                FailedPrecondition,
                "Attempting to use uninitialized value {}",
                self.name
            ),
        }
    }

    /// Locks the value for changing it together with others. Whoever locks several must do so in the order of
    /// their addresses.
    pub fn lock(&self) -> RwLockWriteGuard<'_, Option<Tensor>> {
        self.value.write()
    }
}

/// A resource variable (`VarHandleOp`): copy-on-write, so a tensor that was read never changes.
#[derive(Debug)]
pub struct Variable {
    /// Name for error messages.
    pub name: String,
    /// Element type.
    pub dtype: DataType,
    value: RwLock<Option<Tensor>>,
}

impl Variable {
    /// A variable without a value.
    pub fn new(name: impl Into<String>, dtype: DataType) -> Variable {
        Variable {
            name: name.into(),
            dtype,
            value: RwLock::new(None),
        }
    }

    /// The value. FAILED_PRECONDITION when there is none.
    pub fn read(&self) -> Result<Tensor> {
        self.value.read().clone().ok_or_else(|| self.uninitialized())
    }

    fn uninitialized(&self) -> ff_tensor::Status {
        status!(
            FailedPrecondition,
            "Error while reading resource variable {} from Container: localhost. This could mean that the variable was uninitialized.",
            self.name
        )
    }

    /// Whether there is a value.
    pub fn is_initialized(&self) -> bool {
        self.value.read().is_some()
    }

    /// Replaces the value. INVALID_ARGUMENT for another type.
    pub fn assign(&self, tensor: Tensor) -> Result<()> {
        ensure!(
            tensor.dtype() == self.dtype,
            InvalidArgument,
            "Trying to assign variable with wrong dtype. Expected {} got {}",
            self.dtype,
            tensor.dtype()
        );
        *self.value.write() = Some(tensor);
        Ok(())
    }

    /// Takes the value away, as `DestroyResourceOp` does.
    pub fn clear(&self) {
        *self.value.write() = None;
    }

    /// Changes the value under the variable's lock; see [`RefVariable::update`].
    pub fn update(&self, update: impl FnOnce(&mut Tensor) -> Result<()>) -> Result<()> {
        match &mut *self.value.write() {
            Some(tensor) => update(tensor),
            None => Err(self.uninitialized()),
        }
    }

    /// Locks the value for changing it together with others. Whoever locks several must do so in the order of
    /// their addresses.
    pub fn lock(&self) -> RwLockWriteGuard<'_, Option<Tensor>> {
        self.value.write()
    }
}
