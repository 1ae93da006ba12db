//! Shapes and resource handles to and from their wire messages.

use crate::{DataType, HandleInfo, PartialShape, ResourceHandle, Result, Shape, ensure};
use ff_proto::resource_handle_proto::DtypeAndShape;
use ff_proto::tensor_shape_proto::Dim;
use ff_proto::{ResourceHandleProto, TensorShapeProto};

const MAX_RANK: usize = 254;

/// The shape as error messages print it: `[2,?,-7]`.
fn printed(proto: &TensorShapeProto) -> String {
    if proto.unknown_rank {
        return "<unknown>".to_string();
    }
    let mut text = String::from("[");
    for (i, dim) in proto.dim.iter().enumerate() {
        text.push_str(if i > 0 { "," } else { "" });
        match dim.size {
            -1 => text.push('?'),
            size => text.push_str(&size.to_string()),
        }
    }
    text.push(']');
    text
}

fn extents(proto: &TensorShapeProto) -> Vec<i64> {
    proto.dim.iter().map(|dim| dim.size).collect()
}

/// Checks that hold for full and partial shapes: the rank, and the product of what is known.
fn check_size(proto: &TensorShapeProto) -> Result<()> {
    ensure!(
        proto.dim.len() <= MAX_RANK,
        InvalidArgument,
        "Shape {} has too many dimensions",
        printed(proto)
    );
    let mut elements = Some(1i64);
    for dim in proto.dim.iter().take_while(|dim| dim.size >= 0) {
        elements = elements.and_then(|elements| elements.checked_mul(dim.size));
        ensure!(
            elements.is_some(),
            InvalidArgument,
            "Shape {} is too large (more than 2**63 - 1 entries)",
            printed(proto)
        );
    }
    Ok(())
}

fn to_proto(dims: &[i64]) -> TensorShapeProto {
    TensorShapeProto {
        dim: dims
            .iter()
            .map(|&size| Dim {
                size,
                name: String::new(),
            })
            .collect(),
        unknown_rank: false,
    }
}

impl Shape {
    /// The shape of a message. INVALID_ARGUMENT unless it is full, of at most 254 dimensions, and small enough.
    /// `unknown_rank` is not looked at, as in the reference.
    pub fn from_proto(proto: &TensorShapeProto) -> Result<Shape> {
        check_size(proto)?;
        ensure!(
            proto.dim.iter().all(|dim| dim.size >= 0),
            InvalidArgument,
            "Shape {} is not fully defined",
            printed(proto)
        );
        Shape::new(&extents(proto))
    }

    /// The message of the shape.
    pub fn to_proto(&self) -> TensorShapeProto {
        to_proto(self.dims())
    }
}

impl PartialShape {
    /// The shape of a message; extents of -1 are unknown. INVALID_ARGUMENT for an unknown rank with dimensions, extents
    /// below -1, more than 254 dimensions, or a known number of elements that does not fit `i64`.
    pub fn from_proto(proto: &TensorShapeProto) -> Result<PartialShape> {
        if proto.unknown_rank {
            ensure!(
                proto.dim.is_empty(),
                InvalidArgument,
                "An unknown shape must not have any dimensions set."
            );
            return Ok(PartialShape::unknown());
        }
        check_size(proto)?;
        ensure!(
            proto.dim.iter().all(|dim| dim.size >= -1),
            InvalidArgument,
            "Shape {} has dimensions with values below -1 (where -1 means unknown)",
            printed(proto)
        );
        Ok(PartialShape::new(&extents(proto)))
    }

    /// The message of the shape.
    pub fn to_proto(&self) -> TensorShapeProto {
        match self.dims() {
            Some(dims) => to_proto(dims),
            None => TensorShapeProto {
                dim: Vec::new(),
                unknown_rank: true,
            },
        }
    }
}

impl ResourceHandle {
    /// The handle of a message: it names its resource and does not hold it. INVALID_ARGUMENT for a bad shape.
    pub fn from_proto(proto: &ResourceHandleProto) -> Result<ResourceHandle> {
        let mut dtypes_and_shapes = Vec::with_capacity(proto.dtypes_and_shapes.len());
        for item in &proto.dtypes_and_shapes {
            let shape = match &item.shape {
                Some(shape) => PartialShape::from_proto(shape)?,
                None => PartialShape::scalar(),
            };
            dtypes_and_shapes.push((DataType(item.dtype), shape));
        }
        Ok(ResourceHandle::new(HandleInfo {
            device: proto.device.clone(),
            container: proto.container.clone(),
            name: proto.name.clone(),
            hash_code: proto.hash_code,
            type_name: proto.maybe_type_name.clone(),
            dtypes_and_shapes,
            object: None,
        }))
    }

    /// The message of the handle. A resource that the handle holds is not part of it.
    pub fn to_proto(&self) -> ResourceHandleProto {
        let item = |(dtype, shape): &(DataType, PartialShape)| DtypeAndShape {
            dtype: dtype.0,
            shape: Some(shape.to_proto()),
        };
        ResourceHandleProto {
            device: self.device.clone(),
            container: self.container.clone(),
            name: self.name.clone(),
            hash_code: self.hash_code,
            maybe_type_name: self.type_name.clone(),
            dtypes_and_shapes: self.dtypes_and_shapes.iter().map(item).collect(),
        }
    }
}
