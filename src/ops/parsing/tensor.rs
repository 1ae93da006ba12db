//! Tensors as serialized messages.

use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_proto::{Message, TensorProto};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ParseTensor",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            Ok(())
        },
        kernels: &[Kernel::native(parse)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "SerializeTensor",
        shape: |context| {
            context.set_output(0, PartialShape::scalar());
            Ok(())
        },
        kernels: &[Kernel::native(serialize)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn parse(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "Expected `serialized` to be a scalar, got shape: {}",
        input.shape()
    );
    let bytes = input.strings()?[0].as_bytes();
    let proto = TensorProto::decode(bytes).map_err(|_| {
        status!(
            InvalidArgument,
            "Could not parse `serialized` as TensorProto: '{}'",
            String::from_utf8_lossy(bytes)
        )
    })?;
    let tensor = Tensor::from_proto(&proto)?;
    let wanted = context.output_type(0);
    ensure!(
        tensor.dtype() == wanted,
        InvalidArgument,
        "Type mismatch between parsed tensor ({}) and dtype ({wanted})",
        tensor.dtype()
    );
    context.set_output(0, tensor)
}

fn serialize(context: &mut KernelContext) -> Result<()> {
    let tensor = context.input(0)?;
    let proto = if tensor.dtype() == DataType::STRING {
        tensor.to_proto_fields()
    } else {
        tensor.to_proto()
    };
    let bytes = proto.encode_to_vec();
    let output = Tensor::from_strings(Shape::scalar(), vec![bytes.as_slice().into()])?;
    context.set_output(0, output)
}

#[cfg(test)]
fn serialized(tensor: &Tensor) -> Tensor {
    let bytes = tensor.to_proto().encode_to_vec();
    Tensor::from_strings(Shape::scalar(), vec![bytes.as_slice().into()]).expect("elements of a case")
}

crate::op_cases! {
    parsed: family(&["ParseTensor"], &[FRACTIONS, INTEGERS, &[DataType::BOOL, DataType::STRING]].concat(), |op, dtype| {
        Case::op(op).input(serialized(&counting(dtype, &[2, 3]))).attr("out_type", dtype).gives(counting(dtype, &[2, 3]))
    });
    parsed_empty: Case::op("ParseTensor").input(serialized(&counting(DataType::FLOAT, &[0, 3]))).attr("out_type", DataType::FLOAT);
    of_other_type: Case::op("ParseTensor").input(serialized(&counting(DataType::FLOAT, &[3]))).attr("out_type", DataType::INT32).fails(Code::InvalidArgument);
    damaged: Case::op("ParseTensor").input(strings(&[], &["no tensor"])).attr("out_type", DataType::INT32).fails(Code::InvalidArgument);
    written: family(&["SerializeTensor"], &[FRACTIONS, INTEGERS, &[DataType::BOOL, DataType::STRING]].concat(), |op, dtype| Case::op(op).input(counting(dtype, &[2, 3])));
    written_scalar: family(&["SerializeTensor"], &[DataType::FLOAT, DataType::STRING], |op, dtype| Case::op(op).input(counting(dtype, &[])));
}
