//! `TFE_Op`: a call of an op, to be executed eagerly.

use crate::TF_Status;
use crate::attr_type::TF_AttrType;
use crate::eager_context::TFE_Context;
use crate::eager_tensor::TFE_TensorHandle;
use crate::ffi::{Enum, Handle, Out, Room, Text, c_count, c_string, given, given_mut, put};
use crate::guard::{guard, guard_or, quiet};
use ff_op::{AttrValue, Attrs, NodeInfo, OpRecord, Value};
use ff_proto::op_def::{ArgDef, AttrDef};
use ff_runtime::{Call, EagerContext};
use ff_tensor::{DataType, Result, Tensor, bail, ensure, status};
use std::ffi::{CString, c_char, c_int, c_uchar};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// A call of an op or function: its inputs, attributes and device. One thread at a time may use it.
pub struct TFE_Op {
    context: Arc<EagerContext>,
    /// The handle that the call was made with, to give it back.
    handle: *mut TFE_Context,
    op: Arc<OpRecord>,
    name: CString,
    /// Attributes that were set, or that follow from lists of inputs.
    pub attrs: Attrs,
    /// Boxes, because C code may ask for them.
    inputs: Vec<Box<TFE_TensorHandle>>,
    /// How many input arguments of the op have their inputs.
    arguments: usize,
    device: CString,
}

impl TFE_Op {
    /// The name of the op.
    pub fn op_name(&self) -> &str {
        &self.op.def.name
    }

    /// The input argument that the next input is for. INVALID_ARGUMENT when all have theirs.
    fn next_argument(&mut self) -> Result<&ArgDef> {
        let args = &self.op.def.input_arg;
        ensure!(
            self.arguments < args.len(),
            InvalidArgument,
            "expected {} inputs, got more",
            args.len()
        );
        self.arguments += 1;
        Ok(&args[self.arguments - 1])
    }

    fn add_list(&mut self, inputs: &[Handle<TFE_TensorHandle>]) -> Result<()> {
        let given: Vec<_> = inputs
            .iter()
            .map(|input| Ok(given(*input, "an input")?.share()))
            .collect::<Result<_>>()?;
        let arg = self.next_argument()?.clone();
        let types = || given.iter().map(|input| input.tensor.dtype());
        if !arg.type_list_attr.is_empty() {
            self.infer(&arg.type_list_attr, types().collect::<Vec<_>>());
        } else if arg.number_attr.is_empty() {
            bail!(
                InvalidArgument,
                "Input '{}' takes one tensor, not a list",
                arg.name
            );
        } else {
            self.infer(&arg.number_attr, given.len() as i64);
            if let (false, Some(dtype)) = (arg.type_attr.is_empty(), types().next()) {
                self.infer(&arg.type_attr, dtype);
            }
        }
        self.inputs.extend(given);
        Ok(())
    }

    fn infer(&mut self, name: &str, value: impl Into<AttrValue>) {
        if self.attrs.get(name).is_none() {
            self.attrs.set(name, value);
        }
    }

    fn types(&self) -> Vec<DataType> {
        self.inputs.iter().map(|input| input.tensor.dtype()).collect()
    }

    /// The call as a node.
    fn node(&self) -> Result<NodeInfo> {
        self.context.node(&self.op, &self.attrs, &self.types())
    }

    fn check_count(&self) -> Result<()> {
        let args = &self.op.def.input_arg;
        let is_list = |arg: &ArgDef| !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty();
        ensure!(
            args.iter().any(is_list) || args.len() == self.inputs.len(),
            InvalidArgument,
            "expected {} inputs, got {}",
            args.len(),
            self.inputs.len()
        );
        Ok(())
    }

    /// The number of the device to run on.
    fn device_number(&self) -> Result<usize> {
        let context = &self.context;
        let name = self.device.to_string_lossy();
        if name.is_empty() {
            return Ok(0);
        }
        let names = || {
            let names = context.devices().iter().map(|device| device.name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        context.device(&name).map_err(|_| {
            status!(
                InvalidArgument,
                "Could not satisfy device specification '{name}'. enable_soft_placement=0. Supported device types [CPU]. All available devices [{}].",
                names()
            )
        })
    }

    fn execute(&mut self) -> Result<Vec<Box<TFE_TensorHandle>>> {
        self.check_count()?;
        let device = self.device_number()?;
        let inputs = self
            .inputs
            .iter()
            .map(|input| Value::Tensor(input.tensor.clone()));
        let outputs = self.context.execute(Call {
            op: &self.op,
            attrs: &self.attrs,
            device,
            inputs: inputs.collect(),
            cancellation: None,
        })?;
        let device = Arc::new(c_string(&self.context.devices()[device].name));
        self.device = (*device).clone();
        self.inputs.clear();
        self.arguments = 0;
        let handle = |tensor: Tensor| TFE_TensorHandle::boxed(tensor, device.clone());
        Ok(outputs.into_iter().map(handle).collect())
    }

    /// How many outputs a call gives.
    fn num_outputs(&self) -> Result<usize> {
        let args = &self.op.def.output_arg;
        let is_list = |arg: &ArgDef| !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty();
        if args.iter().any(is_list) {
            return Ok(self.node()?.output_types.len());
        }
        Ok(args.len())
    }
}

/// A call of the op or function with this name, to be given inputs and attributes. Free it with `TFE_DeleteOp`. NULL with
/// NOT_FOUND when there is no such op.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewOp(
    ctx: Handle<TFE_Context>,
    op_or_function_name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_Op>> {
    guard_or(status, None, || new_op(ctx, op_or_function_name).map(Some))
}

fn new_op(ctx: Handle<TFE_Context>, name: Text) -> Result<Box<TFE_Op>> {
    let context = given(ctx, "ctx")?;
    let name = name.text("op_or_function_name")?;
    Ok(Box::new(TFE_Op {
        context: context.context.clone(),
        handle: (&raw const *context).cast_mut(),
        op: context.context.find_op(&name)?,
        name: c_string(&name),
        attrs: Attrs::new(),
        inputs: Vec::new(),
        arguments: 0,
        device: CString::default(),
    }))
}

/// Frees a call; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteOp(op: Option<Box<TFE_Op>>) {
    quiet((), || {
        drop(op);
        Ok(())
    });
}

/// The name of the op. The string lives as long as the call.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetName(op: Option<&TFE_Op>, status: Option<&mut TF_Status>) -> *const c_char {
    guard_or(status, null(), || Ok(given(op, "op")?.name.as_ptr()))
}

/// The context that the call was made with.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetContext(op: Option<&TFE_Op>, status: Option<&mut TF_Status>) -> *mut TFE_Context {
    guard_or(status, null_mut(), || Ok(given(op, "op")?.handle))
}

/// Asks for a device by its name, in full or from `/device:` on; empty for any. INVALID_ARGUMENT when it is not of that form;
/// whether there is such a device is found out by `TFE_Execute`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetDevice(
    op: Option<&mut TFE_Op>,
    device_name: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let op = given_mut(op, "op")?;
        let name = device_name.text("device_name")?;
        ensure!(
            name.is_empty() || (name.starts_with('/') && ff_runtime::is_device_name(&name)),
            InvalidArgument,
            "Malformed device specification '{name}' in eager op: {}",
            op.op_name()
        );
        op.device = c_string(&name);
        Ok(())
    });
}

/// The device asked for, or after `TFE_Execute` the one it ran on. The string lives until the device changes.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetDevice(op: Option<&TFE_Op>, status: Option<&mut TF_Status>) -> *const c_char {
    guard_or(status, null(), || Ok(given(op, "op")?.device.as_ptr()))
}

/// Adds an input, for an input argument that takes one tensor; or one of a list. The handle may be deleted before the call
/// is executed. INVALID_ARGUMENT when all arguments have their inputs.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpAddInput(
    op: Option<&mut TFE_Op>,
    input: Handle<TFE_TensorHandle>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let (op, input) = (given_mut(op, "op")?, given(input, "input")?);
        let args = &op.op.def.input_arg;
        let next = args.get(op.arguments).or(args.last());
        let in_list = next.is_some_and(|arg| !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty());
        if !in_list {
            op.next_argument()?;
        }
        op.inputs.push(input.share());
        Ok(())
    });
}

/// Adds all inputs of an input argument that takes a list.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpAddInputList(
    op: Option<&mut TFE_Op>,
    inputs: Room<*mut TFE_TensorHandle>,
    num_inputs: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let inputs = inputs.handles(num_inputs, "inputs")?;
        given_mut(op, "op")?.add_list(&inputs)
    });
}

/// The number of inputs, those of lists counted one by one.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetFlatInputCount(op: Option<&TFE_Op>, status: Option<&mut TF_Status>) -> c_int {
    guard_or(status, 0, || Ok(c_count(given(op, "op")?.inputs.len())))
}

/// An input, those of lists counted one by one. It belongs to the call. NULL with INVALID_ARGUMENT when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetFlatInput(
    op: Option<&TFE_Op>,
    index: c_int,
    status: Option<&mut TF_Status>,
) -> *mut TFE_TensorHandle {
    guard_or(status, null_mut(), || {
        let inputs = &given(op, "op")?.inputs;
        let found = usize::try_from(index).ok().and_then(|index| inputs.get(index));
        let found = found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "input {index} is out of range: there are {}",
                inputs.len()
            )
        })?;
        Ok((&raw const **found).cast_mut())
    })
}

/// The kind of an attribute of the op; `is_list` becomes 1 if it is a list, else 0. INVALID_ARGUMENT when the op has no such
/// attribute.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetAttrType(
    op: Handle<TFE_Op>,
    attr_name: Text,
    is_list: Out<c_uchar>,
    status: Option<&mut TF_Status>,
) -> Enum<TF_AttrType> {
    let otherwise = Enum::new(TF_AttrType::TF_ATTR_INT as i32);
    guard_or(status, otherwise, || {
        attr_kind(&given(op, "op")?.op, attr_name, is_list)
    })
}

/// As `TFE_OpGetAttrType`, by the name of the op.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpNameGetAttrType(
    ctx: Handle<TFE_Context>,
    op_or_function_name: Text,
    attr_name: Text,
    is_list: Out<c_uchar>,
    status: Option<&mut TF_Status>,
) -> Enum<TF_AttrType> {
    let otherwise = Enum::new(TF_AttrType::TF_ATTR_INT as i32);
    guard_or(status, otherwise, || {
        attr_kind(&new_op(ctx, op_or_function_name)?.op, attr_name, is_list)
    })
}

fn attr_kind(op: &OpRecord, name: Text, is_list: Out<c_uchar>) -> Result<Enum<TF_AttrType>> {
    let name = name.text("attr_name")?;
    let attr: Option<&AttrDef> = op.def.attr.iter().find(|attr| attr.name == *name);
    let Some(attr) = attr else {
        bail!(
            InvalidArgument,
            "Attribute '{name}' does not exist for this operation"
        );
    };
    let element = attr
        .r#type
        .strip_prefix("list(")
        .and_then(|kind| kind.strip_suffix(')'));
    let kind = match element.unwrap_or(&attr.r#type) {
        "string" => TF_AttrType::TF_ATTR_STRING,
        "int" => TF_AttrType::TF_ATTR_INT,
        "float" => TF_AttrType::TF_ATTR_FLOAT,
        "bool" => TF_AttrType::TF_ATTR_BOOL,
        "type" => TF_AttrType::TF_ATTR_TYPE,
        "shape" => TF_AttrType::TF_ATTR_SHAPE,
        "tensor" => TF_AttrType::TF_ATTR_TENSOR,
        "func" => TF_AttrType::TF_ATTR_FUNC,
        other => bail!(
            InvalidArgument,
            "attribute '{name}' is of the unknown kind '{other}'"
        ),
    };
    put(is_list, element.is_some().into(), "is_list")?;
    Ok(Enum::new(kind as i32))
}

/// The number of inputs of an input argument: 1 unless it takes a list. -1 with INVALID_ARGUMENT when the op has no such
/// argument, or the number is not known yet.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetInputLength(
    op: Handle<TFE_Op>,
    input_name: Text,
    status: Option<&mut TF_Status>,
) -> c_int {
    guard_or(status, -1, || {
        let op = given(op, "op")?;
        let name = input_name.text("input_name")?;
        let arg = op.op.def.input_arg.iter().find(|arg| arg.name == *name);
        let arg = arg.ok_or_else(|| status!(InvalidArgument, "Input '{name}' not found"))?;
        length(op, arg)
    })
}

/// The number of outputs of an output argument: 1 unless it is a list. -1 with INVALID_ARGUMENT when the op has no such
/// argument, or the number is not known yet.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetOutputLength(
    op: Handle<TFE_Op>,
    output_name: Text,
    status: Option<&mut TF_Status>,
) -> c_int {
    guard_or(status, -1, || {
        let op = given(op, "op")?;
        let name = output_name.text("output_name")?;
        let arg = op.op.def.output_arg.iter().find(|arg| arg.name == *name);
        let arg = arg.ok_or_else(|| status!(InvalidArgument, "Output '{name}' not found"))?;
        length(op, arg)
    })
}

fn length(op: &TFE_Op, arg: &ArgDef) -> Result<c_int> {
    if !arg.number_attr.is_empty() {
        return Ok(op.attrs.int(&arg.number_attr)? as c_int);
    }
    if !arg.type_list_attr.is_empty() {
        return Ok(c_count(op.attrs.types(&arg.type_list_attr)?.len()));
    }
    Ok(1)
}

/// Runs the call and puts its outputs, to be freed with `TFE_DeleteTensorHandle`, in `retvals`. `num_retvals` says how many
/// there is room for, and becomes their number. The call has no inputs then, and can be given new ones.
///
/// INVALID_ARGUMENT when inputs or attributes do not fit the op, or there is too little room; otherwise what the op says.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_Execute(
    op: Option<&mut TFE_Op>,
    retvals: Room<*mut TFE_TensorHandle>,
    num_retvals: Option<&mut c_int>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let op = given_mut(op, "op")?;
        let room = given_mut(num_retvals, "num_retvals")?;
        op.check_count()?;
        let count = op.num_outputs()?;
        ensure!(
            usize::try_from(*room).is_ok_and(|room| room >= count),
            InvalidArgument,
            "Expecting {count} outputs, but *num_retvals is {room}"
        );
        ensure!(
            count == 0 || !retvals.is_null(),
            InvalidArgument,
            "retvals must not be NULL"
        );
        let outputs = op.execute()?;
        *room = c_count(outputs.len());
        retvals.write(*room, outputs.into_iter().map(Box::into_raw));
        Ok(())
    });
}
