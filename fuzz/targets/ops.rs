//! Target `ops`: one op with attributes and inputs by choice, built, inferred and run.
//!
//! Inputs are placeholders or constants, so that shape functions see values and not, and kernels run in sessions and in
//! constant folding. Types follow the schema, so that most choices reach the kernel.

use super::graph_use::{at, deadline, is_ok};
use super::{Form, Target};
use crate::random::{Choices, Random, TELLING};
use ff_c_api::ffi::{Array, Blob, Enum, Room, Text};
use ff_c_api::*;
use ff_op::schema;
use ff_proto::op_def::{ArgDef, AttrDef};
use ff_proto::{AttrValue, Message, NameAttrList, OpDef, attr_value};
use ff_tensor::{DataType, Shape, TString, Tensor};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Ops. An input is the name of an op, a zero byte, and choices.
pub static OPS: Target = Target {
    name: "ops",
    about: "one op by choice: build, infer, run",
    form: Form::Bytes,
    from: &[],
    make,
    run,
};

/// Ops that do what they are asked to: end the process, wait, or write to a file.
const LEFT_OUT: &[&str] = &["Abort", "_Arg", "_Retval"];

/// Types of tensors, common ones first and often.
const TYPES: &[i32] = &[
    1, 3, 9, 1, 3, 7, 10, 2, 19, 14, 8, 18, 4, 6, 5, 17, 22, 23, 1, 11, 12, 13, 20, 21, 24, 29,
];

const STRINGS: &[&str] = &[
    "",
    "a",
    "1",
    "-1.5",
    "a b,c",
    "%s",
    "NHWC",
    "SAME",
    "VALID",
    "\u{e9}\u{4e2d}",
    "sum",
    "a/b",
    "[0-9]+",
    "(",
    "\\1",
    "ij,jk->ik",
    "...a->a",
    "2 2 0,1:0,2",
    "{}",
    "UTF-8",
    "1e400",
    "0x7f",
    "//",
    "\0",
];

/// Names of ops that can run, in order.
fn implemented() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names: Vec<&str> = ff_ops::registry().implemented().collect();
        names.sort_unstable();
        names.retain(|name| !LEFT_OUT.contains(name));
        names
    })
}

fn make(_seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.pick(implemented()).as_bytes().to_vec();
    input.push(0);
    let length = 16 + random.below(400);
    input.extend(random.bytes(length));
    input
}

/// A graph being built by choice.
struct Maker<'a, 'b> {
    graph: &'a TF_Graph,
    choices: &'a mut Choices<'b>,
    /// The shape that most inputs have.
    dims: Vec<i64>,
    attributes: BTreeMap<String, attr_value::Value>,
    feeds: Vec<TF_Output>,
    values: Vec<Box<TF_Tensor>>,
    /// Operations to run before.
    first: Vec<*mut TF_Operation>,
    count: usize,
}

fn run(bytes: &[u8]) {
    let (name, rest) = bytes.split_at(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    let name = String::from_utf8_lossy(name);
    let mut choices = Choices::new(rest.get(1..).unwrap_or_default());
    let Some(def) = schema::find(&name).filter(|def| !LEFT_OUT.contains(&def.name.as_str())) else {
        return;
    };
    let graph = TF_NewGraph();
    if let Some(graph) = graph.as_deref() {
        let mut maker = Maker {
            graph,
            dims: Vec::new(),
            attributes: BTreeMap::new(),
            feeds: Vec::new(),
            values: Vec::new(),
            first: Vec::new(),
            count: 0,
            choices: &mut choices,
        };
        maker.dims = maker.any_dims();
        let operation = maker.build(&def);
        if !operation.is_null() {
            maker.run(operation);
        }
        maker
            .values
            .into_iter()
            .for_each(|value| TF_DeleteTensor(Some(value)));
    }
    TF_DeleteGraph(graph);
}

impl Maker<'_, '_> {
    fn any_dims(&mut self) -> Vec<i64> {
        let rank = *self.choices.pick(&[2, 1, 2, 3, 4, 0, 1, 5, 2, 4, 4, 8]);
        let mut dims: Vec<i64> = (0..rank)
            .map(|_| *self.choices.pick(&[2, 3, 1, 4, 2, 3, 0, 5, 2, 8, 16, 33]))
            .collect();
        // No elements, but an extent that no loop should follow.
        if dims.contains(&0) && self.choices.below(4) == 0 {
            let place = self.choices.below(dims.len());
            dims[place] = if dims[place] == 0 { 0 } else { 1 << 40 };
        }
        dims
    }

    fn name(&mut self) -> CString {
        self.count += 1;
        CString::new(format!("n{}", self.count)).unwrap_or_default()
    }

    /// Chooses attributes, makes inputs, adds the node; NULL when it is refused.
    fn build(&mut self, def: &OpDef) -> *mut TF_Operation {
        for attr in &def.attr {
            if let Some(value) = self.attribute(attr) {
                self.attributes.insert(attr.name.clone(), value);
            }
        }
        // Millions of outputs are allowed, and slow.
        for arg in &def.output_arg {
            if let Some(attr_value::Value::I(number)) = self.attributes.get_mut(&arg.number_attr) {
                *number = (*number).min(100);
            }
        }
        let inputs: Vec<(Vec<TF_Output>, bool)> =
            def.input_arg.iter().map(|arg| self.argument(arg)).collect();
        let op = CString::new(def.name.as_str()).unwrap_or_default();
        let name = self.name();
        let mut node = TF_NewOperation(Some(self.graph), Text::new(&op), Text::new(&name));
        for (outputs, is_list) in &inputs {
            if *is_list {
                TF_AddInputList(node.as_deref_mut(), Array::new(outputs), outputs.len() as i32);
            } else if let Some(output) = outputs.first() {
                TF_AddInput(node.as_deref_mut(), *output);
            }
        }
        let mut status = TF_NewStatus();
        for (name, value) in &self.attributes {
            let name = CString::new(name.as_str()).unwrap_or_default();
            let bytes = AttrValue {
                value: Some(value.clone()),
            }
            .encode_to_vec();
            TF_SetAttrValueProto(
                node.as_deref_mut(),
                Text::new(&name),
                Blob::new(&bytes),
                bytes.len(),
                Some(&mut status),
            );
        }
        let operation = TF_FinishOperation(node, Some(&mut status));
        TF_DeleteStatus(Some(status));
        operation
    }

    /// A value for an attribute; none leaves the default.
    fn attribute(&mut self, def: &AttrDef) -> Option<attr_value::Value> {
        use attr_value::Value;
        let has_default = def.default_value.is_some();
        if has_default && !def.r#type.contains("type") && self.choices.below(2) == 0 {
            return def.default_value.as_ref().and_then(|value| value.value.clone());
        }
        let allowed = def
            .allowed_values
            .as_ref()
            .and_then(|allowed| match &allowed.value {
                Some(Value::List(list)) => Some(list.clone()),
                _ => None,
            });
        if let Some(inner) = def.r#type.strip_prefix("list(") {
            let list = self.list(inner.trim_end_matches(')'), def, allowed.as_deref());
            return Some(Value::List(Box::new(list)));
        }
        let least = if def.has_minimum { def.minimum } else { i64::MIN };
        Some(match def.r#type.as_str() {
            "type" => Value::Type(self.dtype(allowed.as_deref())),
            "int" => Value::I(self.choices.number().max(least)),
            "float" => Value::F(
                *self
                    .choices
                    .pick(&[0.5, 1.0, 0.0, -1.0, 2.0, f32::NAN, f32::INFINITY]),
            ),
            "bool" => Value::B(self.choices.below(2) == 1),
            "string" => match allowed {
                Some(allowed) if !allowed.s.is_empty() => Value::S(self.choices.pick(&allowed.s).clone()),
                _ => Value::S(self.choices.pick(STRINGS).as_bytes().to_vec().into()),
            },
            "shape" => Value::Shape(self.shape_proto()),
            "func" => Value::Func(Box::new(NameAttrList {
                name: "missing".into(),
                ..Default::default()
            })),
            "tensor" => {
                let dtype = match self.attributes.get("dtype") {
                    Some(Value::Type(dtype)) => *dtype,
                    _ => 1,
                };
                let tensor = self.tensor(DataType(dtype))?;
                Value::Tensor(Box::new(tensor.to_proto()))
            }
            _ => return None,
        })
    }

    fn dtype(&mut self, allowed: Option<&attr_value::ListValue>) -> i32 {
        match allowed {
            Some(allowed) if !allowed.r#type.is_empty() => *self.choices.pick(&allowed.r#type),
            _ => *self.choices.pick(TYPES),
        }
    }

    fn shape_proto(&mut self) -> ff_proto::TensorShapeProto {
        let dims = if self.choices.below(3) == 0 {
            self.any_dims()
        } else {
            self.dims.clone()
        };
        let extent = |size| ff_proto::tensor_shape_proto::Dim {
            size,
            ..Default::default()
        };
        let mut dim: Vec<_> = dims.into_iter().map(extent).collect();
        if !dim.is_empty() && self.choices.one_in(4) {
            let place = self.choices.below(dim.len());
            dim[place].size = self.choices.number().max(-1);
        }
        ff_proto::TensorShapeProto {
            dim,
            unknown_rank: self.choices.one_in(10),
        }
    }

    fn list(
        &mut self,
        kind: &str,
        def: &AttrDef,
        allowed: Option<&attr_value::ListValue>,
    ) -> attr_value::ListValue {
        let mut list = attr_value::ListValue::default();
        let least = if def.has_minimum {
            def.minimum.clamp(0, 8) as usize
        } else {
            0
        };
        let length = least.max(*self.choices.pick(&[2, 1, 4, 0, 3, 4, 5]));
        for _ in 0..length {
            match kind {
                "type" => list.r#type.push(self.dtype(allowed)),
                "int" => list.i.push(self.choices.number()),
                "float" => list.f.push(self.choices.number() as f32),
                "bool" => list.b.push(self.choices.below(2) == 1),
                "string" => list.s.push(self.choices.pick(STRINGS).as_bytes().to_vec().into()),
                "shape" => list.shape.push(self.shape_proto()),
                _ => {}
            }
        }
        list
    }

    /// Inputs for an argument, and whether it is a list.
    fn argument(&mut self, arg: &ArgDef) -> (Vec<TF_Output>, bool) {
        use attr_value::Value;
        if !arg.type_list_attr.is_empty() {
            let types = match self.attributes.get(&arg.type_list_attr) {
                Some(Value::List(list)) => list.r#type.clone(),
                _ => Vec::new(),
            };
            return (types.into_iter().map(|dtype| self.input(dtype)).collect(), true);
        }
        let dtype = match self.attributes.get(&arg.type_attr) {
            Some(Value::Type(dtype)) => *dtype,
            _ => arg.r#type,
        };
        if arg.number_attr.is_empty() {
            return (vec![self.input(dtype)], false);
        }
        let number = match self.attributes.get(&arg.number_attr) {
            Some(Value::I(number)) => (*number).clamp(0, 6),
            _ => 1,
        };
        self.attributes.insert(arg.number_attr.clone(), Value::I(number));
        ((0..number).map(|_| self.input(dtype)).collect(), true)
    }

    /// An operation with one output of this type.
    fn input(&mut self, dtype: i32) -> TF_Output {
        let dtype = DataType(dtype);
        if dtype == DataType::RESOURCE {
            return self.resource();
        }
        if dtype == DataType::VARIANT {
            return self.tensor_list();
        }
        let Some(tensor) = self
            .tensor(dtype)
            .and_then(|tensor| TF_Tensor::boxed(tensor).ok())
        else {
            return TF_Output::NONE;
        };
        let constant = self.choices.below(3) == 0;
        let output = self.source(&tensor, constant);
        if constant || output.oper.is_null() {
            TF_DeleteTensor(Some(tensor));
        } else {
            self.feeds.push(output);
            self.values.push(tensor);
        }
        output
    }

    /// A constant with this value, or a placeholder for it.
    fn source(&mut self, tensor: &TF_Tensor, constant: bool) -> TF_Output {
        let mut status = TF_NewStatus();
        let name = self.name();
        let op = if constant { c"Const" } else { c"Placeholder" };
        let mut node = TF_NewOperation(Some(self.graph), Text::new(op), Text::new(&name));
        TF_SetAttrType(
            node.as_deref_mut(),
            Text::new(c"dtype"),
            TF_TensorType(Some(tensor)),
        );
        if constant {
            TF_SetAttrTensor(
                node.as_deref_mut(),
                Text::new(c"value"),
                Some(tensor),
                Some(&mut status),
            );
        } else if self.choices.below(2) == 0 {
            let dims: Vec<i64> = (0..TF_NumDims(Some(tensor)))
                .map(|axis| TF_Dim(Some(tensor), axis))
                .collect();
            TF_SetAttrShape(
                node.as_deref_mut(),
                Text::new(c"shape"),
                Array::new(&dims),
                dims.len() as i32,
            );
        }
        let oper = TF_FinishOperation(node, Some(&mut status));
        TF_DeleteStatus(Some(status));
        TF_Output { oper, index: 0 }
    }

    /// A tensor by choice; none for types without values.
    fn tensor(&mut self, dtype: DataType) -> Option<Tensor> {
        let dims = match self.choices.below(8) {
            0 => self.any_dims(),
            1 => vec![self.choices.below(6) as i64],
            2 => Vec::new(),
            _ if matches!(dtype, DataType::INT32 | DataType::INT64) && self.choices.below(2) == 0 => {
                vec![self.choices.below(5) as i64]
            }
            _ => self.dims.clone(),
        };
        let shape = Shape::new(&dims)
            .ok()
            .filter(|shape| shape.num_elements() <= 1 << 14)?;
        if dtype == DataType::STRING {
            let strings = (0..shape.num_elements())
                .map(|_| TString::from(*self.choices.pick(STRINGS)))
                .collect();
            return Tensor::from_strings(shape, strings).ok();
        }
        if !dtype.is_plain() || dtype.is_ref() {
            return None;
        }
        let telling = self.choices.one_in(4);
        let mut tensor = Tensor::zeros(dtype, shape).ok()?;
        let size = dtype.size();
        for element in tensor.bytes_mut()?.chunks_exact_mut(size) {
            let small = self.choices.below(5) as i64 - i64::from(self.choices.one_in(3));
            let number = if telling {
                *self.choices.pick(&TELLING)
            } else {
                small
            };
            write_number(element, dtype, number);
        }
        Some(tensor)
    }

    /// A variable that was assigned, or another resource.
    fn resource(&mut self) -> TF_Output {
        const KINDS: &[(&str, &[u8])] = &[
            ("VarHandleOp", b"dtype"),
            ("VarHandleOp", b"dtype"),
            ("VarHandleOp", b"dtype"),
            ("HashTableV2", b"key_dtype"),
            ("MutableHashTableV2", b"key_dtype"),
            ("FIFOQueueV2", b"component_types"),
            ("StackV2", b"elem_type"),
            ("TensorArrayV3", b"dtype"),
        ];
        let (op, _) = *self.choices.pick(KINDS);
        let dtype = match self.attributes.get("dtype").or_else(|| self.attributes.get("T")) {
            Some(attr_value::Value::Type(dtype)) => *dtype,
            _ => 1,
        };
        let value = self
            .tensor(DataType(dtype))
            .and_then(|tensor| TF_Tensor::boxed(tensor).ok());
        let value = value.map(|value| {
            let output = self.source(&value, true);
            TF_DeleteTensor(Some(value));
            output
        });
        let size = Tensor::scalar(3i32)
            .ok()
            .and_then(|tensor| TF_Tensor::boxed(tensor).ok());
        let size = size.map(|tensor| {
            let output = self.source(&tensor, true);
            TF_DeleteTensor(Some(tensor));
            output
        });
        let mut status = TF_NewStatus();
        let (name, op_name) = (self.name(), CString::new(op).unwrap_or_default());
        let mut node = TF_NewOperation(Some(self.graph), Text::new(&op_name), Text::new(&name));
        let one = Enum::new(dtype);
        match op {
            "VarHandleOp" => {
                TF_SetAttrType(node.as_deref_mut(), Text::new(c"dtype"), one);
                TF_SetAttrShape(node.as_deref_mut(), Text::new(c"shape"), Array::new(&[]), -1);
            }
            "HashTableV2" | "MutableHashTableV2" => {
                TF_SetAttrType(node.as_deref_mut(), Text::new(c"key_dtype"), Enum::new(9));
                TF_SetAttrType(node.as_deref_mut(), Text::new(c"value_dtype"), one);
            }
            "FIFOQueueV2" => {
                TF_SetAttrTypeList(
                    node.as_deref_mut(),
                    Text::new(c"component_types"),
                    Array::new(&[one]),
                    1,
                );
            }
            _ => {
                let attr = if op == "StackV2" { c"elem_type" } else { c"dtype" };
                TF_AddInput(node.as_deref_mut(), size.unwrap_or(TF_Output::NONE));
                TF_SetAttrType(node.as_deref_mut(), Text::new(attr), one);
            }
        }
        let handle = TF_Output {
            oper: TF_FinishOperation(node, Some(&mut status)),
            index: 0,
        };
        if let ("VarHandleOp", Some(value)) = (op, value) {
            let name = self.name();
            let mut assign =
                TF_NewOperation(Some(self.graph), Text::new(c"AssignVariableOp"), Text::new(&name));
            TF_AddInput(assign.as_deref_mut(), handle);
            TF_AddInput(assign.as_deref_mut(), value);
            let assign = TF_FinishOperation(assign, Some(&mut status));
            if !assign.is_null() {
                self.first.push(assign);
            }
        }
        TF_DeleteStatus(Some(status));
        handle
    }

    /// A list of tensors, as a variant.
    fn tensor_list(&mut self) -> TF_Output {
        let dims = self.dims.clone();
        let mut status = TF_NewStatus();
        let mut inputs = Vec::new();
        for tensor in [Tensor::vector(&dims), Tensor::scalar(2i32)] {
            let Some(tensor) = tensor.ok().and_then(|tensor| TF_Tensor::boxed(tensor).ok()) else {
                return TF_Output::NONE;
            };
            inputs.push(self.source(&tensor, true));
            TF_DeleteTensor(Some(tensor));
        }
        let name = self.name();
        let mut node = TF_NewOperation(
            Some(self.graph),
            Text::new(c"TensorListReserve"),
            Text::new(&name),
        );
        inputs
            .iter()
            .for_each(|input| TF_AddInput(node.as_deref_mut(), *input));
        let dtype = match self.attributes.get("element_dtype") {
            Some(attr_value::Value::Type(dtype)) => *dtype,
            _ => 1,
        };
        TF_SetAttrType(node.as_deref_mut(), Text::new(c"element_dtype"), Enum::new(dtype));
        TF_SetAttrType(node.as_deref_mut(), Text::new(c"shape_type"), Enum::new(9));
        let oper = TF_FinishOperation(node, Some(&mut status));
        TF_DeleteStatus(Some(status));
        TF_Output { oper, index: 0 }
    }

    /// Initializes variables, then runs the operation twice.
    fn run(&mut self, operation: *mut TF_Operation) {
        let mut status = TF_NewStatus();
        let session = TF_NewSession(Some(self.graph), None, Some(&mut status));
        if let Some(session) = session.as_deref() {
            let first: Vec<Option<&TF_Operation>> = self.first.iter().map(|&oper| at(oper)).collect();
            if !first.is_empty() {
                self.step(session, &[], &first);
            }
            let fetches: Vec<TF_Output> = (0..TF_OperationNumOutputs(at(operation)))
                .map(|index| TF_Output {
                    oper: operation,
                    index,
                })
                .filter(|output| !matches!(TF_OperationOutputType(*output).0, 20 | 21))
                .collect();
            for _ in 0..2 {
                self.step(session, &fetches, &[at(operation)]);
            }
        }
        TF_DeleteSession(session, Some(&mut status));
        TF_DeleteStatus(Some(status));
    }

    fn step(&self, session: &TF_Session, fetches: &[TF_Output], targets: &[Option<&TF_Operation>]) {
        let mut status = TF_NewStatus();
        let options = deadline();
        let handles: Vec<Option<&TF_Tensor>> = self.values.iter().map(|value| Some(&**value)).collect();
        let mut results = vec![null_mut(); fetches.len()];
        TF_SessionRun(
            Some(session),
            options.as_deref(),
            Array::new(&self.feeds),
            Array::new(&handles),
            self.feeds.len() as i32,
            Array::new(fetches),
            Room::new(&mut results),
            fetches.len() as i32,
            Array::new(targets),
            targets.len() as i32,
            None,
            Some(&mut status),
        );
        if !is_ok(&status) && std::env::var_os("FF_FUZZ_SHOW").is_some() {
            // SAFETY: the message of a live status.
            eprintln!("{:?}", unsafe {
                std::ffi::CStr::from_ptr(TF_Message(Some(&status)))
            });
        }
        for result in results {
            // SAFETY: NULL, or a tensor that the run gave us.
            TF_DeleteTensor((!result.is_null()).then(|| unsafe { Box::from_raw(result) }));
        }
        TF_DeleteBuffer(options);
        TF_DeleteStatus(Some(status));
    }
}

/// Writes a number as an element of this type.
fn write_number(element: &mut [u8], dtype: DataType, number: i64) {
    let float = number as f64;
    match dtype {
        DataType::FLOAT | DataType::COMPLEX64 => element[..4].copy_from_slice(&(float as f32).to_ne_bytes()),
        DataType::DOUBLE | DataType::COMPLEX128 => element[..8].copy_from_slice(&float.to_ne_bytes()),
        DataType::BOOL => element[0] = number as u8 & 1,
        DataType::BFLOAT16 => element.copy_from_slice(&(float as f32).to_ne_bytes()[2..]),
        DataType::HALF => element.copy_from_slice(&(((float as f32).to_bits() >> 13) as u16).to_ne_bytes()),
        DataType::INT4 | DataType::UINT4 => element[0] = number as u8 & 15,
        _ => {
            let length = element.len().min(8);
            element[..length].copy_from_slice(&number.to_ne_bytes()[..length]);
        }
    }
}
