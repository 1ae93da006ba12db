//! Resource variables: making a handle, reading, assigning, destroying.

use ff_op::{
    Gradient, GradientContext, HandleShapes, Kernel, KernelContext, Op, PrepareContext, Prepared,
    ShapeContext, Variable, shapes,
};
use ff_tensor::{
    Bool, DataType, HandleInfo, PartialShape, ResourceHandle, Result, Shape, Tensor, bail, ensure,
};
use std::sync::{Arc, OnceLock};

static VAR_HANDLE: Op = Op {
    name: "VarHandleOp",
    shape: handle_shape,
    prepare: Some(|_: &PrepareContext| {
        let cell: Prepared = Arc::new(OnceLock::<Tensor>::new());
        Ok(cell)
    }),
    kernels: &[Kernel::native(make_handle)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
static READ: Op = Op {
    name: "ReadVariableOp",
    shape: read_shape,
    kernels: &[Kernel::native(read)],
    gradient: Gradient::Fn(read_gradient),
    ..Op::READS
};
static ASSIGN: Op = Op {
    name: "AssignVariableOp",
    shape: assign_shape,
    kernels: &[Kernel::native(assign)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static IS_INITIALIZED: Op = Op {
    name: "VarIsInitializedOp",
    shape: shapes::scalar,
    kernels: &[Kernel::native(is_initialized)],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
static VARIABLE_SHAPE: Op = Op {
    name: "VariableShape",
    shape: |context| {
        let rank = held(context, 0)
            .and_then(|(_, shape)| shape.rank())
            .map_or(-1, |rank| rank as i64);
        context.set_output(0, PartialShape::new(&[rank]));
        Ok(())
    },
    kernels: &[Kernel::native(|context| {
        let value = context.resource::<Variable>(0)?.read()?;
        let shape = crate::array::shape_value(context.output_type(0), value.dims())?;
        context.set_output(0, shape)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
static DESTROY: Op = Op {
    name: "DestroyResourceOp",
    shape: shapes::none,
    kernels: &[Kernel::native(destroy)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static READ_MANY: Op = Op {
    name: "_ReadVariablesOp",
    shape: |_| Ok(()),
    kernels: &[Kernel::native(|context| {
        (0..context.num_outputs()).try_for_each(|index| read_at(context, index))
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
static DISABLE_COPY_ON_READ: Op = Op {
    name: "DisableCopyOnRead",
    shape: shapes::none,
    // Variables here are copy-on-write: a read is never a copy, so there is nothing to switch off.
    kernels: &[Kernel::native(|context| match context.resource::<Variable>(0) {
        Ok(_) => Ok(()),
        Err(error) if error.code() == ff_tensor::Code::NotFound => Ok(()),
        Err(error) => Err(error),
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &VAR_HANDLE,
    &READ,
    &READ_MANY,
    &ASSIGN,
    &IS_INITIALIZED,
    &VARIABLE_SHAPE,
    &DESTROY,
    &DISABLE_COPY_ON_READ,
];

/// Type and shape of what a handle at an input holds, if known.
pub fn held(context: &ShapeContext, index: usize) -> Option<(DataType, PartialShape)> {
    context.input_handle(index)?.into_iter().next()
}

/// Shape of the variable that a handle at input 0 means, if known. INVALID_ARGUMENT when its type is known and is not the
/// attribute `dtype`.
pub fn held_shape(context: &ShapeContext) -> Result<Option<PartialShape>> {
    let Some((dtype, shape)) = held(context, 0) else {
        return Ok(None);
    };
    let wanted = context.attrs().dtype("dtype")?;
    ensure!(
        dtype == wanted,
        InvalidArgument,
        "Trying to read variable with wrong dtype. Expected {dtype} got {wanted}"
    );
    Ok(Some(shape))
}

fn handle_shape(context: &mut ShapeContext) -> Result<()> {
    let attrs = context.attrs();
    let held: HandleShapes = vec![(attrs.dtype("dtype")?, attrs.shape("shape")?.clone())];
    context.set_output(0, PartialShape::scalar());
    context.set_output_handle(0, held);
    Ok(())
}

/// The handle names the variable by `shared_name`, or else by the node's name; it is made once per plan.
fn make_handle(context: &mut KernelContext) -> Result<()> {
    let cell = context.prepared::<OnceLock<Tensor>>()?;
    if let Some(handle) = cell.get() {
        return context.set_output(0, handle.clone());
    }
    let attrs = context.attrs();
    let shared = attrs.string("shared_name")?;
    let name = if shared.is_empty() {
        context.node().name.as_str()
    } else {
        shared
    };
    let container = context.resources().container(attrs.string("container")?);
    let handle = ResourceHandle::new(HandleInfo {
        device: context.host().device_name().to_string(),
        container: container.to_string(),
        name: name.to_string(),
        type_name: "tensorflow::Var".to_string(),
        dtypes_and_shapes: vec![(attrs.dtype("dtype")?, attrs.shape("shape")?.clone())],
        ..HandleInfo::default()
    });
    let tensor = Tensor::from_resources(Shape::scalar(), vec![handle])?;
    context.set_output(0, cell.get_or_init(|| tensor).clone())
}

fn read_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 0)?;
    if let Some(shape) = held_shape(context)? {
        context.set_output(0, shape);
    }
    Ok(())
}

/// The variable that a handle means; the reference's text when there is none.
pub fn variable(context: &KernelContext, index: usize) -> Result<Arc<Variable>> {
    context.resource::<Variable>(index).map_err(|error| match (error.code(), context.handle(index)) {
        (ff_tensor::Code::NotFound, Ok(handle)) => ff_tensor::status!(
            FailedPrecondition,
            "Could not find variable {}. This could mean that the variable has been deleted. In TF1, it can also mean the variable is uninitialized. Debug info: container={}, status error message={}",
            handle.name,
            handle.container,
            error.message()
        ),
        _ => error,
    })
}

fn read(context: &mut KernelContext) -> Result<()> {
    read_at(context, 0)
}

/// Gives the value of the variable at an input as the output of the same number.
fn read_at(context: &mut KernelContext, index: usize) -> Result<()> {
    let value = variable(context, index)?.read()?;
    let wanted = context.output_type(index);
    ensure!(
        value.dtype() == wanted,
        InvalidArgument,
        "Trying to read variable with wrong dtype. Expected {wanted} got {}",
        value.dtype()
    );
    context.set_output(index, value)
}

fn read_gradient(context: &mut GradientContext) -> Result<()> {
    if let Some(incoming) = context.incoming(0) {
        context.set(0, incoming);
    }
    Ok(())
}

fn assign_shape(context: &mut ShapeContext) -> Result<()> {
    let Some(shape) = held_shape(context)? else {
        return Ok(());
    };
    // The kernel looks at shapes where its node asks for it.
    if !context.in_step() {
        shape.merge(&context.input(1))?;
    }
    Ok(())
}

/// Makes the variable if it is not there, and gives it the value; the value's memory is shared until one changes.
fn assign(context: &mut KernelContext) -> Result<()> {
    let handle = context.handle(0)?.clone();
    let value = context.take_input(1)?;
    let dtype = value.dtype();
    if let Some((declared, shape)) = handle.dtypes_and_shapes.first() {
        ensure!(
            *declared == dtype,
            InvalidArgument,
            "Trying to initialize handle for variable with wrong dtype. Expected {declared} got {dtype}"
        );
        let validate = context.attrs().bool("validate_shape").unwrap_or(false);
        ensure!(
            !validate || shape.is_compatible_with(&value.partial_shape()),
            InvalidArgument,
            "Trying to assign to variable with tensor with wrong shape. Expected {shape} got {}",
            value.shape()
        );
    }
    let variable =
        match context.host().find_by_handle::<Variable>(&handle) {
            Ok(variable) => variable,
            Err(_) => context.host().resources_of(&handle).find_or_create(
                &handle.container,
                &handle.name,
                || Ok(Variable::new(handle.name.clone(), dtype)),
            )?,
        };
    variable.assign(value)
}

fn is_initialized(context: &mut KernelContext) -> Result<()> {
    let initialized = context
        .resource::<Variable>(0)
        .is_ok_and(|variable| variable.is_initialized());
    context.set_output(0, Tensor::scalar(Bool::from(initialized))?)
}

fn destroy(context: &mut KernelContext) -> Result<()> {
    let handle = context.handle(0)?.clone();
    let resources = context.host().resources_of(&handle);
    if let Ok(variable) = resources.find_by_handle::<Variable>(&handle) {
        variable.clear();
    }
    match resources.delete(&handle.container, &handle.name) {
        Err(error) if !context.attrs().bool("ignore_lookup_error").unwrap_or(true) => {
            bail!(NotFound, "{}", error.message())
        }
        _ => Ok(()),
    }
}
