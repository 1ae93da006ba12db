//! The tensor list: a variant that holds tensors of one type and (partly known) shape, as loops build them up.
//!
//! It is here, below the ops, because the compiler and gradients of loops know it too.

use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, VariantObject, VariantValue, ensure, status};

/// A list of tensors. Lists are values: an op that changes one makes another, or changes the one that nobody shares.
#[derive(Clone, Debug)]
pub struct TensorList {
    /// Type of the elements.
    pub element_type: DataType,
    /// What is known of the elements' shapes.
    pub element_shape: PartialShape,
    /// The most elements that it may hold; -1 for no limit.
    pub max_elements: i64,
    /// The elements; none where nothing has been set.
    pub elements: Vec<Option<Tensor>>,
}

impl VariantObject for TensorList {
    fn type_name(&self) -> &str {
        "tensorflow::TensorList"
    }

    fn describe(&self) -> String {
        format!(
            "TensorList of {} elements of {} {}",
            self.elements.len(),
            self.element_type,
            self.element_shape
        )
    }
}

impl TensorList {
    /// The list in a variant tensor with one element. INVALID_ARGUMENT when there is none.
    pub fn of(handle: &Tensor) -> Result<&TensorList> {
        let [variant] = handle.variants()? else {
            ff_tensor::bail!(
                InvalidArgument,
                "Input list must be a scalar saw: {}",
                handle.shape()
            );
        };
        variant
            .get()
            .ok_or_else(|| status!(InvalidArgument, "Input handle is not a list. Saw: '{variant:?}'"))
    }

    /// The list as a scalar variant tensor.
    pub fn into_tensor(self) -> Result<Tensor> {
        Tensor::from_variants(Shape::scalar(), vec![VariantValue::new(self)])
    }

    /// Makes the list this long, with elements that are not set at its end. RESOURCE_EXHAUSTED when memory is out.
    pub fn set_len(&mut self, size: usize) -> Result<()> {
        let more = size.saturating_sub(self.elements.len());
        self.elements
            .try_reserve(more)
            .map_err(|_| status!(ResourceExhausted, "OOM when allocating a list of {size} elements"))?;
        self.elements.resize(size, None);
        Ok(())
    }

    /// Fails unless the tensor may be an element. INVALID_ARGUMENT.
    pub fn check(&self, tensor: &Tensor) -> Result<()> {
        ensure!(
            tensor.dtype() == self.element_type,
            InvalidArgument,
            "Invalid data types; list elements {} but tried to write {}",
            self.element_type,
            tensor.dtype()
        );
        ensure!(
            self.element_shape.is_compatible_with(&tensor.partial_shape()),
            InvalidArgument,
            "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} list shape: {}",
            tensor.shape(),
            self.element_shape
        );
        Ok(())
    }

    /// What `shape`, the list and its elements say together of an element's shape. INVALID_ARGUMENT where they
    /// contradict each other.
    pub fn common_shape(&self, shape: &PartialShape) -> Result<PartialShape> {
        let mut common = shape.merge(&self.element_shape)?;
        for element in self.elements.iter().flatten() {
            if common.is_fully_known() {
                break;
            }
            common = common.merge(&element.partial_shape())?;
        }
        Ok(common)
    }

    /// An element; zeros of `shape` where nothing has been set. INVALID_ARGUMENT for an index out of range, or where
    /// the shape of zeros is not known.
    pub fn element(&self, index: i64, shape: &PartialShape) -> Result<Tensor> {
        let count = self.elements.len();
        let slot = usize::try_from(index)
            .ok()
            .and_then(|index| self.elements.get(index));
        let slot = slot.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Trying to access element {index} in a list with {count} elements."
            )
        })?;
        if let Some(tensor) = slot {
            ensure!(
                shape.is_compatible_with(&tensor.partial_shape()),
                InvalidArgument,
                "Incompatible shapes: the element at {index} has shape {}, expected {shape}",
                tensor.shape()
            );
            return Ok(tensor.clone());
        }
        let known = self.common_shape(shape)?;
        let shape = known.to_shape().ok_or_else(|| {
            status!(
                InvalidArgument,
                "Trying to read an uninitialized tensor but element_shape is not fully defined: {known} and no list element is set."
            )
        })?;
        Tensor::zeros(self.element_type, shape)
    }

    /// The same list with every element zero.
    pub fn zeros_like(&self) -> Result<TensorList> {
        let zeros = |element: &Option<Tensor>| {
            let zeros = |tensor: &Tensor| Tensor::zeros(tensor.dtype(), tensor.shape().clone());
            element.as_ref().map(zeros).transpose()
        };
        Ok(TensorList {
            elements: self.elements.iter().map(zeros).collect::<Result<_>>()?,
            ..self.clone()
        })
    }
}
