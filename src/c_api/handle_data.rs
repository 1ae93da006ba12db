//! What the handles of resource and variant outputs hold, as a message.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, decode};
use crate::ffi::{Blob, Handle};
use crate::graph::{TF_Graph, state};
use crate::guard::{guard, quiet};
use crate::operation::TF_Output;
use ff_op::HandleShapes;
use ff_proto::TensorShapeProto;
use ff_tensor::{DataType, PartialShape, Result};

/// `CppShapeInferenceResult.HandleData` on the wire.
#[derive(Clone, PartialEq, prost::Message)]
struct HandleData {
    #[prost(bool, tag = "1")]
    is_set: bool,
    #[prost(message, repeated, tag = "2")]
    shape_and_type: Vec<ShapeAndType>,
}

/// `CppShapeInferenceResult.HandleShapeAndType` on the wire.
#[derive(Clone, PartialEq, prost::Message)]
struct ShapeAndType {
    #[prost(message, optional, tag = "1")]
    shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "2")]
    dtype: i32,
    #[prost(message, optional, tag = "4")]
    full_type: Option<FullType>,
}

/// A full type of which nothing is said.
#[derive(Clone, PartialEq, prost::Message)]
struct FullType {}

/// What the resource or variant at an output holds, as a serialized `CppShapeInferenceResult.HandleData`; NULL when that
/// is not known, or on an error. Free it with `TF_DeleteBuffer`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetHandleShapeAndType(
    graph: Handle<TF_Graph>,
    output: TF_Output,
) -> Option<Box<TF_Buffer>> {
    quiet(None, || {
        let (graph, output) = state(graph)?.lock_output(output)?;
        let handles = &graph.node(output.node).handles;
        let Some(Some(shapes)) = handles.get(output.index as usize) else {
            return Ok(None);
        };
        let data = HandleData {
            is_set: true,
            shape_and_type: shapes.iter().map(to_message).collect(),
        };
        Ok(Some(Box::new(TF_Buffer::of_message(&data)?)))
    })
}

fn to_message((dtype, shape): &(DataType, PartialShape)) -> ShapeAndType {
    ShapeAndType {
        shape: Some(shape.to_proto()),
        dtype: dtype.0,
        full_type: Some(FullType {}),
    }
}

/// Says what the resource or variant at an output holds: a serialized `CppShapeInferenceResult.HandleData` of `proto_len`
/// bytes. INVALID_ARGUMENT for other bytes and for an output that is not there.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetHandleShapeAndType(
    graph: Handle<TF_Graph>,
    output: TF_Output,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let text = "Couldn't deserialize HandleData proto";
        let data: HandleData = decode(proto.bytes(proto_len, "proto")?, text)?;
        let shapes: HandleShapes = data
            .shape_and_type
            .iter()
            .map(|it| {
                let shape = PartialShape::from_proto(&it.shape.clone().unwrap_or_default())?;
                Ok((DataType(it.dtype), shape))
            })
            .collect::<Result<_>>()?;
        let (mut graph, output) = state(graph)?.lock_output(output)?;
        let (node, index) = (graph.node(output.node), output.index as usize);
        let (outputs, mut handles) = (node.shapes.clone(), node.handles.clone());
        handles.resize(handles.len().max(index + 1), None);
        handles[index] = Some(shapes);
        graph.set_shapes(output.node, outputs, handles);
        Ok(())
    });
}
