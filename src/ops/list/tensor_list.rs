//! The value: an immutable list of tensors of one type. Ops that change a list make another, which shares the tensors.

use ff_op::{HandleShapes, KernelContext, ShapeContext, shape_from_value};
use ff_tensor::{
    DataType, PartialShape, Result, Shape, Tensor, VariantObject, VariantValue, bail, ensure, status,
};

/// A list of tensors; an element that was never set is none.
#[derive(Clone, Debug)]
pub struct TensorList {
    /// Element type.
    pub dtype: DataType,
    /// What is known of the elements' shapes.
    pub shape: PartialShape,
    /// The most elements it may have; negative for any.
    pub max_elements: i64,
    /// The elements.
    pub tensors: Vec<Option<Tensor>>,
}

impl VariantObject for TensorList {
    fn type_name(&self) -> &str {
        "tensorflow::TensorList"
    }

    fn describe(&self) -> String {
        format!(
            "TensorList<{} {} x {}>",
            self.dtype,
            self.shape,
            self.tensors.len()
        )
    }
}

impl TensorList {
    /// An element; zeros where none was set. INVALID_ARGUMENT when its shape is not known then, or out of range.
    pub fn element(&self, index: i64, shape: &PartialShape) -> Result<Tensor> {
        let length = self.tensors.len();
        let slot = usize::try_from(index)
            .ok()
            .and_then(|index| self.tensors.get(index));
        let slot = slot.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Trying to access element {index} in a list with {length} elements."
            )
        })?;
        match slot {
            Some(tensor) => Ok(tensor.clone()),
            None => Tensor::zeros(self.dtype, self.element_shape(shape)?),
        }
    }

    /// The full shape of an element that was not set: from what the list and the op know, and from other elements.
    pub fn element_shape(&self, shape: &PartialShape) -> Result<Shape> {
        let mut known = self.shape.merge(shape)?;
        for tensor in self.tensors.iter().flatten() {
            if known.is_fully_known() {
                break;
            }
            known = known.merge(&tensor.partial_shape())?;
        }
        known.to_shape().ok_or_else(|| {
            status!(InvalidArgument, "Trying to read an uninitialized tensor but element_shape is not fully defined{known} and no list element is set.")
        })
    }

    /// The list as a scalar variant tensor.
    pub fn into_tensor(self) -> Result<Tensor> {
        Tensor::from_variants(Shape::scalar(), vec![VariantValue::new(self)])
    }
}

/// The list at an input. INVALID_ARGUMENT when there is none.
pub fn list_at(tensor: &Tensor) -> Result<&TensorList> {
    let [value] = tensor.variants()? else {
        bail!(
            InvalidArgument,
            "Input handle is not a scalar, saw shape {}",
            tensor.shape()
        );
    };
    value
        .get::<TensorList>()
        .ok_or_else(|| status!(InvalidArgument, "Input handle is not a list. Saw: '{value:?}'"))
}

/// The list at an input, to be changed: the value itself if nobody else holds it, else a copy that shares tensors.
pub fn take_list(context: &mut KernelContext, index: usize) -> Result<TensorList> {
    let tensor = context.take_input(index)?;
    Ok(list_at(&tensor)?.clone())
}

/// INVALID_ARGUMENT unless a list holds this type.
pub fn check_type(list: &TensorList, dtype: DataType) -> Result<()> {
    ensure!(
        list.dtype == dtype,
        InvalidArgument,
        "Invalid data types; op elements {dtype} but list elements {}",
        list.dtype
    );
    Ok(())
}

/// The shape that an int32 or int64 input says: a vector, or a scalar -1 for an unknown one.
pub fn shape_at(context: &KernelContext, index: usize) -> Result<PartialShape> {
    shape_from_value(context.input(index)?)
}

/// What is known of the elements of a list at an input while shapes are inferred.
pub fn held(context: &ShapeContext, index: usize) -> PartialShape {
    match context.input_handle(index).as_deref() {
        Some([(_, shape)]) => shape.clone(),
        _ => PartialShape::unknown(),
    }
}

/// Sets an output to a scalar handle of lists with these elements.
pub fn set_handle(context: &mut ShapeContext, index: usize, dtype: DataType, shape: PartialShape) {
    let holds: HandleShapes = vec![(dtype, shape)];
    context.set_output(index, PartialShape::scalar());
    context.set_output_handle(index, holds);
}
