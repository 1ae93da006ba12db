//! A tensor array: tensors by number, each written once (or summed up, in arrays of gradients) and read.

use super::rows;
use crate::math::number::Number;
use ff_kernels::ThreadPool;
use ff_kernels::elementwise::{binary_in_place, cost};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, ensure, status};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an array is made with.
#[derive(Clone)]
pub struct Settings {
    /// Name, for messages.
    pub name: String,
    /// Element type.
    pub dtype: DataType,
    /// Whether writing beyond the end makes it larger.
    pub dynamic: bool,
    /// Whether an element is dropped when it is read.
    pub clear_after_read: bool,
    /// Whether the first element decides the shape of all.
    pub identical_shapes: bool,
    /// Whether elements written twice are summed up.
    pub adds_up: bool,
}

/// A tensor array. All operations may be called from any thread.
pub struct TensorArray {
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    element_shape: PartialShape,
    elements: Vec<Element>,
    /// Whether it may still grow.
    fixed: bool,
    closed: bool,
    gradients: BTreeMap<String, Arc<TensorArray>>,
}

#[derive(Clone, Default)]
struct Element {
    /// The value; zeros of `shape` where only that is known.
    value: Option<Tensor>,
    /// The shape, once written.
    shape: Option<Shape>,
    read: bool,
    cleared: bool,
}

impl TensorArray {
    /// An array of this size. RESOURCE_EXHAUSTED when memory is out.
    pub fn new(settings: Settings, size: usize, element_shape: PartialShape) -> Result<TensorArray> {
        let state = State {
            element_shape,
            elements: crate::wide::zeros(size)?,
            ..State::default()
        };
        Ok(TensorArray {
            settings,
            state: Mutex::new(state),
        })
    }

    /// Name, for messages.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Element type.
    pub fn dtype(&self) -> DataType {
        self.settings.dtype
    }

    fn open(&self) -> Result<parking_lot::MutexGuard<'_, State>> {
        let state = self.state.lock();
        ensure!(
            !state.closed,
            InvalidArgument,
            "TensorArray {} has already been closed.",
            self.settings.name
        );
        Ok(state)
    }

    /// Number of elements.
    pub fn len(&self) -> Result<usize> {
        Ok(self.open()?.elements.len())
    }

    /// Whether writing beyond the end makes it larger.
    pub fn may_grow(&self) -> bool {
        self.settings.dynamic && !self.state.lock().fixed
    }

    /// What is known of the elements' shapes.
    pub fn element_shape(&self) -> PartialShape {
        self.state.lock().element_shape.clone()
    }

    /// Takes in what an op knows of the elements' shapes. INVALID_ARGUMENT when that does not fit.
    pub fn learn_shape(&self, shape: &PartialShape) -> Result<()> {
        let mut state = self.open()?;
        let merged = state.element_shape.merge(shape);
        state.element_shape = merged.map_err(|_| {
            status!(
                InvalidArgument,
                "TensorArray {}: element_shape {shape} is not compatible with {}",
                self.settings.name,
                state.element_shape
            )
        })?;
        Ok(())
    }

    /// Drops all elements; no operation is possible afterwards.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let dropped = (
            std::mem::take(&mut state.elements),
            std::mem::take(&mut state.gradients),
        );
        drop(state);
        drop(dropped);
    }

    /// Writes an element. INVALID_ARGUMENT for an index outside, another type or shape, and for one that was written (in
    /// an array that does not add up) or read.
    pub fn write(&self, pool: &ThreadPool, index: i64, value: Tensor) -> Result<()> {
        let mut state = self.open()?;
        let (name, size) = (&self.settings.name, state.elements.len());
        let grows = self.settings.dynamic && !state.fixed;
        ensure!(
            index >= 0 && (grows || (index as usize) < size),
            InvalidArgument,
            "TensorArray {name}: Tried to write to index {index} but array is not resizeable and size is: {size}"
        );
        ensure!(
            value.dtype() == self.settings.dtype,
            InvalidArgument,
            "TensorArray {name}: Could not write to TensorArray index {index} because the value dtype is {} but TensorArray dtype is {}.",
            value.dtype(),
            self.settings.dtype
        );
        ensure!(
            state.element_shape.is_compatible_with(&value.partial_shape()),
            InvalidArgument,
            "TensorArray {name}: Could not write to TensorArray index {index} because the value shape is {} which is incompatible with the TensorArray's inferred element shape: {} (consider setting infer_shape=False).",
            value.shape(),
            state.element_shape
        );
        if self.settings.identical_shapes {
            state.element_shape = value.partial_shape();
        }
        let index = index as usize;
        if index >= size {
            let more = index + 1 - size;
            state.elements.try_reserve(more).map_err(|_| {
                status!(
                    ResourceExhausted,
                    "TensorArray {name} cannot have {} elements",
                    index + 1
                )
            })?;
            state.elements.resize(index + 1, Element::default());
        }
        let element = &mut state.elements[index];
        ensure!(
            !element.read,
            InvalidArgument,
            "TensorArray {name}: Could not write to TensorArray index {index} because it has already been read."
        );
        let Some(shape) = &element.shape else {
            element.shape = Some(value.shape().clone());
            element.value = Some(value);
            return Ok(());
        };
        ensure!(
            self.settings.adds_up,
            InvalidArgument,
            "TensorArray {name}: Could not write to TensorArray index {index} because it has already been written to."
        );
        ensure!(
            shape == value.shape(),
            InvalidArgument,
            "TensorArray {name}: Could not aggregate to TensorArray index {index} because the existing shape is {shape} but the new input shape is {}.",
            value.shape()
        );
        match &mut element.value {
            None => element.value = Some(value),
            Some(sum) => add(pool, sum, &value)?,
        }
        Ok(())
    }

    /// Reads elements, all or none. INVALID_ARGUMENT for an index outside, and for elements that were not written or are
    /// gone.
    pub fn read(&self, indices: impl IntoIterator<Item = i64>) -> Result<Vec<Tensor>> {
        let mut state = self.open()?;
        let mut values = Vec::new();
        for index in indices {
            values.push(self.read_one(&mut state, index)?);
        }
        Ok(values)
    }

    fn read_one(&self, state: &mut State, index: i64) -> Result<Tensor> {
        let (name, size) = (&self.settings.name, state.elements.len());
        ensure!(
            (0..size as i64).contains(&index),
            InvalidArgument,
            "Tried to read from index {index} but array size is: {size}"
        );
        let element_shape = state.element_shape.to_shape();
        let element = &mut state.elements[index as usize];
        if element.shape.is_none() {
            let Some(shape) = element_shape else {
                bail!(
                    InvalidArgument,
                    "TensorArray {name}: Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully defined: {}.  It is possible you are working with a resizeable TensorArray and stop_gradients is not allowing the gradients to be written.  If you set the full element_shape property on the forward TensorArray, the proper all-zeros tensor will be returned instead of incurring this error.",
                    state.element_shape
                );
            };
            element.shape = Some(shape);
        }
        ensure!(
            !element.cleared,
            InvalidArgument,
            "TensorArray {name}: Could not read index {index} twice because it was cleared after a previous read (perhaps try setting clear_after_read = false?)."
        );
        let shape = element.shape.clone().unwrap_or_else(Shape::scalar);
        let value = match &element.value {
            Some(value) => value.clone(),
            None => Tensor::zeros(self.settings.dtype, shape)?,
        };
        element.read = true;
        if self.settings.clear_after_read {
            element.value = None;
            element.cleared = true;
        }
        Ok(value)
    }

    /// Elements as one tensor with a first axis over them. INVALID_ARGUMENT when their shapes differ, UNIMPLEMENTED for no
    /// elements of a shape that is not known.
    pub fn gather(&self, indices: &[i64]) -> Result<Tensor> {
        if indices.is_empty() {
            let shape = self.element_shape();
            let row = shape.to_shape().ok_or_else(|| {
                status!(
                    Unimplemented,
                    "TensorArray has size zero, but element shape {shape} is not fully defined. Currently only static shapes are supported when packing zero-size TensorArrays."
                )
            })?;
            return Tensor::zeros(self.settings.dtype, Shape::new(&[&[0], row.dims()].concat())?);
        }
        let values = self.read(indices.iter().copied())?;
        for (index, value) in values.iter().enumerate() {
            ensure!(
                value.shape() == values[0].shape(),
                InvalidArgument,
                "TensorArray has inconsistent shapes.  Index 0 has shape: {} but index {index} has shape: {}",
                values[0].shape(),
                value.shape()
            );
        }
        rows::stack(self.settings.dtype, values[0].dims(), &values)
    }

    /// The array of gradients for `source`, made on first use: as large, with the shapes of what has been written, and
    /// `prepended` before them. This array does not grow any more.
    pub fn gradient(&self, source: &str, prepended: &[i64]) -> Result<Arc<TensorArray>> {
        let mut state = self.open()?;
        state.fixed = true;
        if let Some(found) = state.gradients.get(source) {
            return Ok(found.clone());
        }
        let before = PartialShape::new(prepended);
        let mut gradient = State {
            element_shape: before.concat(&state.element_shape),
            ..State::default()
        };
        for element in &state.elements {
            let shape = element.shape.as_ref();
            let shape = shape.map(|shape| Shape::new(&[prepended, shape.dims()].concat()));
            gradient.elements.push(Element {
                shape: shape.transpose()?,
                ..Element::default()
            });
        }
        let made = Arc::new(TensorArray {
            settings: Settings {
                name: format!("{}_{source}", self.settings.name),
                dynamic: false,
                clear_after_read: true,
                adds_up: true,
                ..self.settings.clone()
            },
            state: Mutex::new(gradient),
        });
        state.gradients.insert(source.to_string(), made.clone());
        Ok(made)
    }
}

fn add(pool: &ThreadPool, sum: &mut Tensor, value: &Tensor) -> Result<()> {
    sum.make_writable()?;
    crate::match_number!(sum.dtype(), T => {
        binary_in_place(pool, sum.as_mut_slice()?, value.as_slice()?, cost::SIMPLE, |a: T, b: T| a.add(b));
        Ok(())
    })
}
