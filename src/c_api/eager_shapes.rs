//! `TFE_InferShapes`: the shapes of a call before it is executed.

use crate::TF_Status;
use crate::datatype::data_type;
use crate::eager_op::TFE_Op;
use crate::ffi::{Array, Handle, Room, given, missing};
use crate::guard::guard;
use crate::shape_list::{
    TF_NewShapeAndTypeList, TF_ShapeAndType, TF_ShapeAndTypeList, TF_ShapeAndTypeListSetShape,
};
use crate::tensor::TF_Tensor;
use ff_graph::lone_node;
use ff_op::{AttrValue, NodeInfo, ShapeContext, ShapeHost, shape_from_value};
use ff_tensor::{DataType, PartialShape, Result, Tensor, ensure, status};
use std::ffi::c_int;

/// What the program knows of the inputs.
struct Known<'a> {
    shapes: &'a [PartialShape],
    values: Vec<Option<Tensor>>,
}

impl ShapeHost for Known<'_> {
    fn input_value(&self, index: usize) -> Option<Tensor> {
        self.values.get(index).cloned().flatten()
    }

    /// Of a vector of extents whose values are not known, its length tells the rank.
    fn input_as_shape(&self, index: usize) -> Result<PartialShape> {
        if let Some(value) = self.input_value(index) {
            return shape_from_value(&value);
        }
        Ok(match self.shapes.get(index).and_then(PartialShape::dims) {
            Some(&[rank]) if (0..=254).contains(&rank) => PartialShape::new(&vec![-1; rank as usize]),
            _ => PartialShape::unknown(),
        })
    }
}

/// The shapes in a list. INVALID_ARGUMENT for NULL.
fn shapes_of(list: Option<&TF_ShapeAndTypeList>) -> Result<Vec<(PartialShape, DataType)>> {
    let list = given(list, "input_shapes")?;
    let count = usize::try_from(list.num_items).unwrap_or(0);
    ensure!(
        count == 0 || !list.items.is_null(),
        InvalidArgument,
        "the items of input_shapes are NULL"
    );
    let items = match count {
        0 => &[],
        // SAFETY: a list has as many items as it says.
        _ => unsafe { std::slice::from_raw_parts(list.items, count) },
    };
    let shape = |item: &TF_ShapeAndType| {
        let rank = usize::try_from(item.num_dims);
        let shape = match rank {
            Err(_) => PartialShape::unknown(),
            Ok(0) => PartialShape::new(&[]),
            Ok(_) if item.dims.is_null() => return Err(missing("dims")),
            // SAFETY: an item has as many extents as it says.
            Ok(rank) => PartialShape::new(unsafe { std::slice::from_raw_parts(item.dims, rank) }),
        };
        Ok((shape, data_type(item.dtype)))
    };
    items.iter().map(shape).collect()
}

/// The type that an attribute has by default, if any.
fn default_type(op: &TFE_Op, name: &str) -> Option<DataType> {
    let attr = op.op.record.def.attr.iter().find(|attr| attr.name == name)?;
    match AttrValue::from_proto(attr.default_value.as_ref()?) {
        Ok(AttrValue::Type(dtype)) => Some(dtype),
        _ => None,
    }
}

/// The call as a node. Types that do not follow from attributes are those of the list, or else float.
fn node_of(op: &TFE_Op, shapes: &[(PartialShape, DataType)]) -> Result<NodeInfo> {
    let dtype = |(index, (_, dtype)): (usize, &(PartialShape, DataType))| {
        if *dtype != DataType::INVALID {
            return *dtype;
        }
        let arg = op.op.record.def.input_arg.get(index);
        let fixed = arg
            .map(|arg| DataType(arg.r#type))
            .filter(|dtype| *dtype != DataType::INVALID);
        let named = arg.and_then(|arg| op.attrs.dtype(&arg.type_attr).ok());
        fixed
            .or(named)
            .or_else(|| default_type(op, &arg?.type_attr))
            .unwrap_or(DataType::FLOAT)
    };
    let types: Vec<DataType> = shapes.iter().enumerate().map(dtype).collect();
    let name = op.op_name().to_string();
    lone_node(op.op.record.clone(), name, op.attrs.clone(), &types)
}

/// Infers the shapes of a call's outputs from those of its inputs, and from the values of inputs where `input_tensors` has
/// them: it may be NULL, and have NULLs. `input_tensor_as_shapes`, `input_resource_shapes_and_types` and
/// `output_resource_shapes_and_types` are not used. Free what is put in `output_shapes` with `TF_DeleteShapeAndTypeList`.
///
/// INVALID_ARGUMENT when shapes or attributes do not fit the op.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_InferShapes(
    op: Option<&mut TFE_Op>,
    input_shapes: Option<&mut TF_ShapeAndTypeList>,
    input_tensors: Room<*mut TF_Tensor>,
    _input_tensor_as_shapes: *mut TF_ShapeAndTypeList,
    _input_resource_shapes_and_types: *mut *mut TF_ShapeAndTypeList,
    output_shapes: Room<*mut TF_ShapeAndTypeList>,
    _output_resource_shapes_and_types: *mut *mut *mut TF_ShapeAndTypeList,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let op = given(op.as_deref(), "op")?;
        let shapes = shapes_of(input_shapes.as_deref())?;
        let node = node_of(op, &shapes)?;
        let count = c_int::try_from(shapes.len()).unwrap_or(0);
        let values = match input_tensors.is_null() {
            true => Vec::new(),
            false => input_tensors.handles(count, "input_tensors")?,
        };
        let value = |tensor: Handle<TF_Tensor>| tensor.map(TF_Tensor::tensor).transpose();
        let inputs: Vec<PartialShape> = shapes.into_iter().map(|(shape, _)| shape).collect();
        let known = Known {
            shapes: &inputs,
            values: values.into_iter().map(value).collect::<Result<_>>()?,
        };
        let mut context = ShapeContext::new(&node, &inputs, &known);
        (node.op.shape)(&mut context).map_err(|error| described(error, &node, &inputs))?;
        let (outputs, _) = context.finish();
        let mut list = TF_NewShapeAndTypeList(c_int::try_from(outputs.len()).unwrap_or(0))
            .ok_or_else(|| status!(ResourceExhausted, "OOM when allocating shapes"))?;
        for (index, shape) in outputs.iter().enumerate() {
            if let Some(dims) = shape.dims() {
                let (index, rank) = (c_int::try_from(index).unwrap_or(0), dims.len());
                let rank = c_int::try_from(rank).unwrap_or(0);
                TF_ShapeAndTypeListSetShape(Some(&mut list), index, Array::new(dims), rank);
            }
        }
        output_shapes.write(1, [Box::into_raw(list)]);
        Ok(())
    });
}

/// The error with the node and the shapes that it came from.
fn described(error: ff_tensor::Status, node: &NodeInfo, inputs: &[PartialShape]) -> ff_tensor::Status {
    let shapes: Vec<String> = inputs.iter().map(PartialShape::to_string).collect();
    let dummies = vec!["dummy_input".to_string(); inputs.len()];
    error.suffixed(&format!(
        " for '{}' with input shapes: {}.",
        ff_graph::node_summary(node, &dummies),
        shapes.join(", ")
    ))
}
