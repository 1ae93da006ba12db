//! Values that may be missing, as variants.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{Bool, PartialShape, Result, Shape, Tensor, VariantObject, VariantValue, ensure, status};

const OPTIONAL: Op = Op {
    shape: shapes::scalar,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "OptionalNone",
        kernels: &[Kernel::native(|context| give(context, None))],
        ..OPTIONAL
    },
    &Op {
        name: "OptionalFromValue",
        kernels: &[Kernel::native(|context| {
            let range = 0..context.num_inputs();
            let tensors = range
                .map(|index| context.take_input(index))
                .collect::<Result<_>>()?;
            give(context, Some(tensors))
        })],
        ..OPTIONAL
    },
    &Op {
        name: "OptionalHasValue",
        kernels: &[Kernel::native(|context| {
            let has = optional(context)?.0.is_some();
            context.set_output(0, Tensor::scalar(Bool::from(has))?)
        })],
        ..OPTIONAL
    },
    &Op {
        name: "OptionalGetValue",
        shape: value_shape,
        kernels: &[Kernel::native(get_value)],
        ..OPTIONAL
    },
];

/// A tuple, or none.
pub struct Optional(pub Option<Vec<Tensor>>);

impl VariantObject for Optional {
    fn type_name(&self) -> &str {
        "tensorflow::data::Optional"
    }
}

/// Sets output 0 to an optional.
pub fn give(context: &mut KernelContext, value: Option<Vec<Tensor>>) -> Result<()> {
    let variant = VariantValue::new(Optional(value));
    context.set_output(0, Tensor::from_variants(Shape::scalar(), vec![variant])?)
}

fn optional<'a>(context: &'a KernelContext) -> Result<&'a Optional> {
    let input = context.input(0)?;
    let found = match input.variants()? {
        [variant] => variant.get(),
        _ => None,
    };
    found.ok_or_else(|| {
        status!(
            InvalidArgument,
            "Input to OptionalHasValue must be a scalar tensor containing an OptionalVariant object."
        )
    })
}

fn value_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 0)?;
    let shapes = context.attrs().shapes("output_shapes")?;
    ensure!(
        shapes.len() == context.num_outputs(),
        InvalidArgument,
        "`output_shapes` must be the same length as `output_types` ({} vs. {})",
        shapes.len(),
        context.num_outputs()
    );
    for (index, shape) in shapes.iter().enumerate() {
        context.set_output(index, shape.clone());
    }
    Ok(())
}

fn get_value(context: &mut KernelContext) -> Result<()> {
    let tensors = optional(context)?
        .0
        .clone()
        .ok_or_else(|| status!(InvalidArgument, "The given optional does not have a value."))?;
    let (types, shapes) = (
        &context.node().output_types,
        context.attrs().shapes("output_shapes")?,
    );
    ensure!(
        tensors.len() == types.len(),
        InvalidArgument,
        "The given optional has {} components, expected {}",
        tensors.len(),
        types.len()
    );
    for (index, tensor) in tensors.into_iter().enumerate() {
        ensure!(
            tensor.dtype() == types[index],
            InvalidArgument,
            "The given optional does not match the expected type for component {index}. Expected: {}. Actual: {}.",
            types[index],
            tensor.dtype()
        );
        let any = PartialShape::unknown();
        let shape = shapes.get(index).unwrap_or(&any);
        ensure!(
            shape.is_compatible_with(&tensor.partial_shape()),
            InvalidArgument,
            "The given optional does not match the expected shape for component {index}. Expected: {shape}. Actual: {}.",
            tensor.shape()
        );
        context.set_output(index, tensor)?;
    }
    Ok(())
}
