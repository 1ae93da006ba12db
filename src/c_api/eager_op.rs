//! `TFE_Op`: a call of an op, to be executed eagerly.

use crate::TF_Status;
use crate::attr_type::TF_AttrType;
use crate::eager_context::{ContextState, TFE_Context};
use crate::eager_execute;
use crate::eager_op_attrs::TFE_OpAttrs;
use crate::eager_tensor::TFE_TensorHandle;
use crate::ffi::{Enum, Handle, Out, Room, Text, c_count, given, given_mut, put};
use crate::guard::{guard, guard_or, quiet};
use ff_op::{AttrValue, Attrs, Cancellation, OpRecord};
use ff_proto::op_def::{ArgDef, AttrDef};
use ff_runtime::{DeviceName, EagerOp, is_list};
use ff_tensor::{DataType, Result, bail, ensure, status};
use smallvec::SmallVec;
use std::cell::{OnceCell, RefCell};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// A call of an op or function: its inputs, attributes and device. One thread at a time may use it.
pub struct TFE_Op {
    /// The context that the call was made with, and its handle, to give it back.
    pub state: Arc<ContextState>,
    handle: *mut TFE_Context,
    /// The op.
    pub op: Arc<EagerOp>,
    /// Attributes that were set, or that follow from lists of inputs.
    pub attrs: Attrs,
    inputs: SmallVec<[TFE_TensorHandle; 2]>,
    /// How many input arguments of the op have their inputs.
    arguments: usize,
    /// The device that is asked for, as it was named; after the call the one that it ran on.
    device: Option<DeviceName>,
    /// What ends the call early.
    pub cancellation: Option<Cancellation>,
    /// Inputs that C code has asked for, by their numbers.
    seen: RefCell<Vec<(usize, Box<TFE_TensorHandle>)>>,
    /// The attributes that C code has asked for.
    pub snapshot: OnceCell<Box<TFE_OpAttrs>>,
}

impl TFE_Op {
    /// A call of this op on any device.
    pub fn new(context: &TFE_Context, name: &str) -> Result<Box<TFE_Op>> {
        let op = context.state.context.find_op(name)?;
        // Built where it stays: it is large enough for moves to be felt.
        Ok(Box::new(TFE_Op {
            state: context.state.clone(),
            handle: (&raw const *context).cast_mut(),
            op,
            attrs: Attrs::new(),
            inputs: SmallVec::new(),
            arguments: 0,
            device: None,
            cancellation: None,
            seen: RefCell::default(),
            snapshot: OnceCell::new(),
        }))
    }

    /// Makes it a new call of another op, on any device.
    pub fn reset(&mut self, name: &str) -> Result<()> {
        self.op = self.state.context.find_op(name)?;
        self.attrs = Attrs::new();
        self.device = None;
        self.cancellation = None;
        drop(self.drain_inputs());
        Ok(())
    }

    /// The name of the op.
    pub fn op_name(&self) -> &str {
        &self.op.record.def.name
    }

    /// The inputs, flat.
    pub fn inputs(&self) -> &[TFE_TensorHandle] {
        &self.inputs
    }

    /// The inputs, to be replaced by others.
    pub fn inputs_mut(&mut self) -> &mut [TFE_TensorHandle] {
        self.seen.get_mut().clear();
        &mut self.inputs
    }

    /// Takes the inputs out one by one; the call has none then.
    pub fn drain_inputs(&mut self) -> impl Iterator<Item = TFE_TensorHandle> {
        self.seen.get_mut().clear();
        self.arguments = 0;
        self.inputs.drain(..)
    }

    /// The device that is asked for, as it was named.
    pub fn device(&self) -> Option<DeviceName> {
        self.device
    }

    /// Says which device it runs on.
    pub fn set_device(&mut self, device: DeviceName) {
        self.device = Some(device);
    }

    /// Asks for a device. INVALID_ARGUMENT when the name is not of the form of one.
    pub fn ask_for_device(&mut self, name: &str) -> Result<()> {
        ensure!(
            name.is_empty() || (name.starts_with('/') && ff_runtime::is_device_name(name)),
            InvalidArgument,
            "Malformed device specification '{name}' in eager op: {}",
            self.op_name()
        );
        self.device = (!name.is_empty()).then(|| DeviceName::of(name));
        Ok(())
    }

    /// Adds an input, for an argument that takes one tensor; or one of a list.
    pub fn add_input(&mut self, input: TFE_TensorHandle) -> Result<()> {
        let args = &self.op.record.def.input_arg;
        let next = args.get(self.arguments).or(args.last());
        if !next.is_some_and(is_list) {
            ensure!(
                self.arguments < args.len(),
                InvalidArgument,
                "expected {} inputs, got more",
                args.len()
            );
            self.arguments += 1;
        }
        self.inputs.push(input);
        Ok(())
    }

    fn add_list(&mut self, inputs: &[Handle<TFE_TensorHandle>]) -> Result<()> {
        let given: Vec<_> = inputs
            .iter()
            .map(|input| Ok(given(*input, "an input")?.clone()))
            .collect::<Result<_>>()?;
        let op = self.op.clone();
        let args = &op.record.def.input_arg;
        ensure!(
            self.arguments < args.len(),
            InvalidArgument,
            "expected {} inputs, got more",
            args.len()
        );
        let arg = &args[self.arguments];
        self.arguments += 1;
        let types = || given.iter().map(TFE_TensorHandle::dtype);
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

    /// Types of the inputs.
    pub fn types(&self) -> SmallVec<[DataType; 4]> {
        self.inputs.iter().map(TFE_TensorHandle::dtype).collect()
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
    TFE_Op::new(context, &name.text("op_or_function_name")?)
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
    guard_or(status, null(), || Ok(given(op, "op")?.op.name.as_ptr()))
}

/// The context that the call was made with; it belongs to who made it.
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
        given_mut(op, "op")?.ask_for_device(&device_name.text("device_name")?)
    });
}

/// The device asked for, or after `TFE_Execute` the one it ran on. Empty for any. The string is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetDevice(op: Option<&TFE_Op>, status: Option<&mut TF_Status>) -> *const c_char {
    guard_or(status, null(), || {
        let device = given(op, "op")?.device;
        Ok(device.map_or(c"".as_ptr(), |device| device.as_c().as_ptr()))
    })
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
        given_mut(op, "op")?.add_input(given(input, "input")?.clone())
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

/// An input, those of lists counted one by one. It belongs to the call, and lives until inputs change. NULL with INVALID_ARGUMENT when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetFlatInput(
    op: Option<&TFE_Op>,
    index: c_int,
    status: Option<&mut TF_Status>,
) -> *mut TFE_TensorHandle {
    guard_or(status, null_mut(), || {
        let op = given(op, "op")?;
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let found = op.inputs.get(place).ok_or_else(|| {
            status!(
                InvalidArgument,
                "input {index} is out of range: there are {}",
                op.inputs.len()
            )
        })?;
        let mut seen = op.seen.borrow_mut();
        if let Some((_, handle)) = seen.iter().find(|(number, _)| *number == place) {
            return Ok((&raw const **handle).cast_mut());
        }
        seen.push((place, Box::new(found.clone())));
        Ok(seen
            .last()
            .map_or(null_mut(), |(_, handle)| (&raw const **handle).cast_mut()))
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
        attr_kind(&given(op, "op")?.op.record, attr_name, is_list)
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
        attr_kind(&new_op(ctx, op_or_function_name)?.op.record, attr_name, is_list)
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
        let arg = op.op.record.def.input_arg.iter().find(|arg| arg.name == *name);
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
        let arg = op.op.record.def.output_arg.iter().find(|arg| arg.name == *name);
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
/// With an asynchronous executor the call is queued; what uses its outputs waits for it, and finds its error.
///
/// INVALID_ARGUMENT when inputs or attributes do not fit the op, there is no such device, or there is too little room;
/// otherwise what the op says, or the error that is pending.
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
        let outputs = eager_execute::execute(op, *room)?;
        ensure!(
            outputs.is_empty() || !retvals.is_null(),
            InvalidArgument,
            "retvals must not be NULL"
        );
        *room = c_count(outputs.len());
        retvals.write(*room, outputs.into_iter().map(Box::into_raw));
        Ok(())
    });
}
