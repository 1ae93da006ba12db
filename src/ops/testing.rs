//! Cases of ops, and the judges that each case is put before.
//!
//! A [`Case`] is an input, not a procedure: an op, its inputs and attributes, and what is known of the outcome. One
//! runner ([`Case::run`]) gives it to every judge that applies:
//!
//! - the shape function, told everything and told nothing, must agree with the tensors that come out;
//! - the kernel must give the literal result, or the error code, that the case states;
//! - the lowering, evaluated, must give what the kernel gives;
//! - the gradient must be what finite differences say (`testing/gradients.rs`);
//! - with the environment variable `FF_CASES_DUMP`, node, inputs and outcome are appended to that file, for
//!   `tools/reference/run_cases.py` to compare with the reference.
//!
//! The first inputs of a case can be variables ([`Case::variable`]); their values afterwards are the outcome, before the
//! outputs of the op itself.
//!
//! [`OpRunner`] runs single ops one after the other on shared state, for ops on variables, queues and tables.

use ff_hlo::{ArrayShape, Builder, Program};
use ff_op::{
    AttrValue, Attrs, KernelBody, KernelHost, KernelRecord, LowerContext, NodeInfo, RunOneHost, ShapeContext,
    ShapeHost, Value, run_one,
};
use ff_proto::{Message, NodeDef};
use ff_tensor::{
    Code, DataType, Element, PartialShape, Result, Shape, Status, TString, Tensor, bail, status,
};
use std::io::Write;
use std::sync::Arc;

mod gradients;
mod variables;
mod whole_graphs;

pub use whole_graphs::Steps;

/// A tensor of these extents and elements.
pub fn t<T: Element>(dims: &[i64], values: &[T]) -> Tensor {
    let shape = Shape::new(dims).expect("extents of a case");
    Tensor::from_slice(shape, values).expect("elements of a case")
}

/// A scalar.
pub fn scalar<T: Element>(value: T) -> Tensor {
    t(&[], &[value])
}

/// A vector.
pub fn vector<T: Element>(values: &[T]) -> Tensor {
    t(&[values.len() as i64], values)
}

/// A tensor of strings.
pub fn strings(dims: &[i64], values: &[&str]) -> Tensor {
    let shape = Shape::new(dims).expect("extents of a case");
    let values = values.iter().map(|&text| TString::from(text)).collect();
    Tensor::from_strings(shape, values).expect("elements of a case")
}

/// A tensor of truth values.
pub fn bools(dims: &[i64], values: &[bool]) -> Tensor {
    let values: Vec<ff_tensor::Bool> = values.iter().map(|&value| value.into()).collect();
    t(dims, &values)
}

/// The numbers 0, 1, 2, .. of any plain type, in this shape: every element differs as far as the type allows.
pub fn counting(dtype: DataType, dims: &[i64]) -> Tensor {
    let shape = Shape::new(dims).expect("extents of a case");
    if dtype == DataType::STRING {
        let values = (0..shape.num_elements()).map(|i| i.to_string().into()).collect();
        return Tensor::from_strings(shape, values).expect("elements of a case");
    }
    let mut tensor = Tensor::zeros(dtype, shape).expect("elements of a case");
    let size = dtype.size();
    let bytes = tensor.bytes_mut().expect("a fresh tensor");
    for (i, element) in bytes.chunks_mut(size).enumerate() {
        match dtype {
            DataType::FLOAT => element.copy_from_slice(&(i as f32).to_le_bytes()),
            DataType::DOUBLE => element.copy_from_slice(&(i as f64).to_le_bytes()),
            DataType::HALF => element.copy_from_slice(&ff_tensor::f16::from_f32(i as f32).to_le_bytes()),
            DataType::BFLOAT16 => element.copy_from_slice(&ff_tensor::bf16::from_f32(i as f32).to_le_bytes()),
            DataType::COMPLEX64 => element[..4].copy_from_slice(&(i as f32).to_le_bytes()),
            DataType::COMPLEX128 => element[..8].copy_from_slice(&(i as f64).to_le_bytes()),
            DataType::BOOL => element[0] = (i % 2) as u8,
            _ => element[0] = i as u8,
        }
    }
    tensor
}

/// Numbers of any type for numbers; those that it cannot hold are cut off as a conversion does.
pub fn numbers(dtype: DataType, dims: &[i64], values: &[f64]) -> Tensor {
    use ff_tensor::{Complex64, Complex128, bf16, f16};
    fn of<T: Element>(dims: &[i64], values: &[f64], f: impl Fn(f64) -> T) -> Tensor {
        t(dims, &values.iter().map(|&x| f(x)).collect::<Vec<T>>())
    }
    // Complex numbers get an imaginary part, so that it is looked at too.
    match dtype {
        DataType::FLOAT => of(dims, values, |x| x as f32),
        DataType::DOUBLE => of(dims, values, |x| x),
        DataType::HALF => of(dims, values, f16::from_f64),
        DataType::BFLOAT16 => of(dims, values, bf16::from_f64),
        DataType::COMPLEX64 => of(dims, values, |x| Complex64::new(x as f32, 0.5 - 0.25 * x as f32)),
        DataType::COMPLEX128 => of(dims, values, |x| Complex128::new(x, 0.5 - 0.25 * x)),
        DataType::INT8 => of(dims, values, |x| x as i8),
        DataType::INT16 => of(dims, values, |x| x as i16),
        DataType::INT32 => of(dims, values, |x| x as i32),
        DataType::INT64 => of(dims, values, |x| x as i64),
        DataType::UINT8 => of(dims, values, |x| x as u8),
        DataType::UINT16 => of(dims, values, |x| x as u16),
        DataType::UINT32 => of(dims, values, |x| x as u32),
        DataType::UINT64 => of(dims, values, |x| x as u64),
        DataType::BOOL => of(dims, values, |x| ff_tensor::Bool::from(x != 0.0)),
        other => panic!("no numbers of type {other}"),
    }
}

/// The numbers 0, 1, .. 6, 0, .. in this shape.
pub fn cycle(dtype: DataType, dims: &[i64]) -> Tensor {
    let count = dims.iter().product::<i64>();
    let values: Vec<f64> = (0..count).map(|i| (i % 7) as f64).collect();
    numbers(dtype, dims, &values)
}

/// A case for each of some ops and types.
pub struct Family(Vec<(String, Case)>);

/// A case for each of some ops and types, made by a rule.
pub fn family(
    ops: &[&'static str],
    types: &[DataType],
    rule: impl Fn(&'static str, DataType) -> Case,
) -> Family {
    let pairs = ops
        .iter()
        .flat_map(|op| types.iter().map(move |dtype| (*op, *dtype)));
    Family(
        pairs
            .map(|(op, dtype)| (format!("{op}::{dtype}"), rule(op, dtype)))
            .collect(),
    )
}

impl Family {
    /// Runs all cases; see [`Case::run`].
    pub fn run(self, name: &str) {
        for (member, case) in self.0 {
            case.run(&format!("{name}::{member}"));
        }
    }
}

/// Floating-point types.
pub const FLOATS: &[DataType] = crate::dispatch::FLOATS;
/// Floating-point and complex types.
pub const FRACTIONS: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
    DataType::COMPLEX64,
    DataType::COMPLEX128,
];
/// Integers, the signed ones first.
pub const INTEGERS: &[DataType] = crate::dispatch::INTEGERS;
/// Signed integers.
pub const SIGNED: &[DataType] = &[DataType::INT8, DataType::INT16, DataType::INT32, DataType::INT64];

/// What is known of a case's outcome.
enum Expected {
    /// The judges have to agree with each other and with the reference.
    Agreement,
    Outputs(Vec<Tensor>),
    Error(Code),
}

/// One input to an op.
pub struct Case {
    op: &'static str,
    inputs: Vec<Tensor>,
    /// How many inputs, from the first on, are variables.
    variables: usize,
    has_no_gradient: bool,
    attrs: Attrs,
    expected: Expected,
}

impl Case {
    /// A case of this op.
    pub fn op(op: &'static str) -> Case {
        Case {
            op,
            inputs: Vec::new(),
            variables: 0,
            has_no_gradient: false,
            attrs: Attrs::new(),
            expected: Expected::Agreement,
        }
    }

    /// Adds an input that is a variable with this value. Variables come before all other inputs.
    pub fn variable(mut self, value: Tensor) -> Case {
        self.inputs.push(value);
        self.variables += 1;
        self
    }

    /// Adds an input.
    pub fn input(mut self, tensor: Tensor) -> Case {
        self.inputs.push(tensor);
        self
    }

    /// Adds inputs.
    pub fn inputs(mut self, tensors: impl IntoIterator<Item = Tensor>) -> Case {
        self.inputs.extend(tensors);
        self
    }

    /// Sets an attribute; those that follow from the inputs, or have a default, need not be said.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Case {
        self.attrs.set(name, value);
        self
    }

    /// States that the gradient is not judged: the op has no derivative here, as with ties, or the gradient function
    /// overlooks what the case is about, as the reference's does.
    pub fn without_gradient(mut self) -> Case {
        self.has_no_gradient = true;
        self
    }

    /// States an output; call it once per output.
    pub fn gives(mut self, output: Tensor) -> Case {
        match &mut self.expected {
            Expected::Outputs(outputs) => outputs.push(output),
            _ => self.expected = Expected::Outputs(vec![output]),
        }
        self
    }

    /// States that the op fails with this code.
    pub fn fails(mut self, code: Code) -> Case {
        self.expected = Expected::Error(code);
        self
    }

    /// Puts the case before all judges. Panics when one disagrees.
    pub fn run(self, name: &str) {
        let types = variables::input_types(self.op, &self.inputs, self.variables);
        let node = match node_of_types(self.op, "case", &types, self.attrs.clone()) {
            Ok(node) => Arc::new(node),
            Err(error) => panic!("{name}: {error}"),
        };
        let outcome = match self.variables {
            0 if node.op.kernels.iter().any(KernelRecord::may_wait) => {
                OpRunner::new().run(self.op, &self.inputs, self.attrs.clone())
            }
            0 => run_one(&node, self.inputs.clone(), &RunOneHost::new()),
            count => variables::run(&node, &self.inputs, count),
        };
        dump(name, &node, &self.inputs, self.variables, &outcome);
        match (&self.expected, &outcome) {
            (Expected::Error(code), Err(error)) => assert_eq!(*code, error.code(), "{name}: {error}"),
            (Expected::Error(code), Ok(outputs)) => panic!("{name}: expected {code:?}, got {outputs:?}"),
            (_, Err(error)) => panic!("{name}: {error}"),
            (Expected::Outputs(expected), Ok(outputs)) => compare(name, "expected", expected, outputs),
            (Expected::Agreement, Ok(_)) => {}
        }
        if self.variables > 0 {
            return;
        }
        judge_shapes(name, &node, &self.inputs, &outcome);
        judge_lowering(name, &node, &self.inputs, &outcome);
        if outcome.is_ok() && !self.has_no_gradient {
            gradients::judge(name, &node, &self.inputs, &self.attrs);
        }
    }
}

/// The node of an op with these inputs.
pub fn node(op: &str, name: &str, inputs: &[Tensor], attrs: Attrs) -> Result<NodeInfo> {
    let types: Vec<DataType> = inputs.iter().map(Tensor::dtype).collect();
    node_of_types(op, name, &types, attrs)
}

fn node_of_types(op: &str, name: &str, types: &[DataType], attrs: Attrs) -> Result<NodeInfo> {
    let record = crate::registry().find(op)?;
    let attrs = attrs.complete(&record.def, types)?;
    NodeInfo::new(name.to_string(), record, String::new(), attrs)
}

struct Nothing;

impl ShapeHost for Nothing {
    fn input_value(&self, _: usize) -> Option<Tensor> {
        None
    }
}

struct Everything<'a>(&'a [Tensor]);

impl ShapeHost for Everything<'_> {
    fn input_value(&self, index: usize) -> Option<Tensor> {
        self.0.get(index).cloned()
    }
}

/// Shapes inferred from nothing, from shapes alone, and from shapes and values must allow for the outputs.
fn judge_shapes(name: &str, node: &NodeInfo, inputs: &[Tensor], outcome: &Result<Vec<Tensor>>) {
    let Ok(outputs) = outcome else { return };
    let shapes: Vec<PartialShape> = inputs.iter().map(Tensor::partial_shape).collect();
    let unknown = vec![PartialShape::unknown(); inputs.len()];
    let views: [(&[PartialShape], &dyn ShapeHost); 3] = [
        (&unknown, &Nothing),
        (&shapes, &Nothing),
        (&shapes, &Everything(inputs)),
    ];
    for (shapes, host) in views {
        let mut context = ShapeContext::new(node, shapes, host);
        if let Err(error) = (node.op.shape)(&mut context) {
            panic!("{name}: shape function: {error}");
        }
        for (inferred, output) in context.finish().0.iter().zip(outputs) {
            let actual = output.partial_shape();
            assert!(
                inferred.is_compatible_with(&actual),
                "{name}: inferred {inferred}, got {actual}"
            );
        }
    }
}

/// Whether the shape function, told everything, has no objection.
fn shapes_fit(node: &NodeInfo, inputs: &[Tensor]) -> bool {
    let shapes: Vec<PartialShape> = inputs.iter().map(Tensor::partial_shape).collect();
    let host = Everything(inputs);
    let mut context = ShapeContext::new(node, &shapes, &host);
    (node.op.shape)(&mut context).is_ok()
}

/// The evaluated lowering of a node.
fn evaluate(node: &NodeInfo, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let lower = node
        .op
        .lower
        .ok_or_else(|| status!(Unimplemented, "{} has no lowering", node.op_name()))?;
    let mut builder = Builder::new(node.op_name());
    let mut operands = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        operands.push(builder.parameter(index, ArrayShape::new(input.dtype(), input.dims()), "")?);
    }
    let constants: Vec<Option<Tensor>> = inputs.iter().cloned().map(Some).collect();
    let mut context = LowerContext::new(node, &mut builder, &operands, &constants, None);
    lower(&mut context)?;
    let outputs = context.finish()?;
    let root = builder.tuple(&outputs)?;
    let program = Program::compile(&builder.finish(root)?)?;
    program.run(ff_kernels::ThreadPool::serial(), inputs.to_vec())
}

fn judge_lowering(name: &str, node: &NodeInfo, inputs: &[Tensor], outcome: &Result<Vec<Tensor>>) {
    let native = node.op.kernels.iter().any(|kernel| match kernel {
        KernelRecord::Static(kernel) => !matches!(kernel.body, KernelBody::FromLowering),
        KernelRecord::Dynamic { .. } => true,
    });
    let plain = |tensor: &Tensor| tensor.dtype().is_plain();
    let types_fit = inputs.iter().all(plain) && node.output_types.iter().all(|dtype| dtype.is_plain());
    // A lowering may rely on the shape function's checks.
    if !native || node.op.lower.is_none() || !types_fit || !shapes_fit(node, inputs) {
        return;
    }
    match (evaluate(node, inputs), outcome) {
        (Ok(lowered), Ok(outputs)) if outputs.iter().all(plain) => {
            compare(name, "lowered", outputs, &lowered)
        }
        (Err(lowered), Ok(_)) if lowered.code() != Code::Unimplemented => {
            panic!("{name}: lowering: {lowered}")
        }
        (Err(lowered), Err(error)) if lowered.code() != Code::Unimplemented => {
            assert_eq!(
                lowered.code(),
                error.code(),
                "{name}: lowering: {lowered}, kernel: {error}"
            )
        }
        _ => {}
    }
}

/// The elements as `f64`, for types that are compared with a tolerance; complex numbers are two each.
fn as_f64s(tensor: &Tensor) -> Option<Vec<f64>> {
    fn convert<T: Element>(tensor: &Tensor, f: impl Fn(T) -> f64) -> Option<Vec<f64>> {
        Some(tensor.as_slice::<T>().ok()?.iter().map(|&x| f(x)).collect())
    }
    match tensor.dtype() {
        DataType::FLOAT => convert::<f32>(tensor, f64::from),
        DataType::DOUBLE => convert::<f64>(tensor, |x| x),
        DataType::HALF => convert::<ff_tensor::f16>(tensor, f64::from),
        DataType::BFLOAT16 => convert::<ff_tensor::bf16>(tensor, f64::from),
        DataType::COMPLEX64 => {
            let values = tensor.as_slice::<ff_tensor::Complex64>().ok()?;
            Some(
                values
                    .iter()
                    .flat_map(|x| [f64::from(x.re), f64::from(x.im)])
                    .collect(),
            )
        }
        DataType::COMPLEX128 => {
            let values = tensor.as_slice::<ff_tensor::Complex128>().ok()?;
            Some(values.iter().flat_map(|x| [x.re, x.im]).collect())
        }
        _ => None,
    }
}

fn compare(name: &str, what: &str, expected: &[Tensor], actual: &[Tensor]) {
    assert_eq!(expected.len(), actual.len(), "{name}: number of outputs, {what}");
    for (index, (a, b)) in expected.iter().zip(actual).enumerate() {
        assert_eq!(a.dtype(), b.dtype(), "{name}: type of output {index}, {what}");
        assert_eq!(a.dims(), b.dims(), "{name}: shape of output {index}, {what}");
        if let (Some(x), Some(y)) = (as_f64s(a), as_f64s(b)) {
            let epsilon = match a.dtype() {
                DataType::FLOAT | DataType::COMPLEX64 => 1e-6,
                DataType::DOUBLE | DataType::COMPLEX128 => 1e-13,
                _ => 1e-2,
            };
            let near = |(x, y): (&f64, &f64)| {
                x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= epsilon * x.abs().max(1.0)
            };
            assert!(
                x.iter().zip(&y).all(near),
                "{name}: output {index}, {what}: {x:?}, got {y:?}"
            );
        } else if a.dtype() == DataType::STRING {
            assert_eq!(a.strings(), b.strings(), "{name}: output {index}, {what}");
        } else {
            assert_eq!(a.bytes(), b.bytes(), "{name}: bytes of output {index}, {what}");
        }
    }
}

/// Appends an op's name to the file beside the dump of cases, if there is one.
fn record(kind: &str, op: &str) {
    let Ok(path) = std::env::var("FF_CASES_DUMP") else {
        return;
    };
    let path = format!("{path}.{kind}");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(format!("{op}\n").as_bytes()))
        .expect("the record can be written");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex_tensors(tensors: &[Tensor]) -> String {
    let encoded: Vec<String> = tensors
        .iter()
        .map(|tensor| hex(&tensor.to_proto_fields().encode_to_vec()))
        .collect();
    encoded.join(",")
}

/// One line: name, node, inputs, and either outputs or the error's code and message. Messages are in hexadecimal.
fn dump(name: &str, node: &NodeInfo, inputs: &[Tensor], variables: usize, outcome: &Result<Vec<Tensor>>) {
    record("ops", node.op_name());
    let Ok(path) = std::env::var("FF_CASES_DUMP") else {
        return;
    };
    let def = NodeDef {
        name: node.name.clone(),
        op: node.op_name().to_string(),
        input: (0..inputs.len())
            .map(|index| match index < variables {
                true => format!("variable{index}"),
                false => format!("input{index}"),
            })
            .collect(),
        attr: node
            .attrs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_proto()))
            .collect(),
        ..NodeDef::default()
    };
    let outcome = match outcome {
        Ok(outputs) => format!("ok\t{}", hex_tensors(outputs)),
        Err(error) => format!(
            "{}\t{}",
            error.code() as i32,
            error.message().replace(['\t', '\n'], " ")
        ),
    };
    let line = format!(
        "{name}\t{}\t{}\t{outcome}\n",
        hex(&def.encode_to_vec()),
        hex_tensors(inputs)
    );
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("the dump can be written");
}

/// Runs ops one after the other on shared resources.
#[derive(Default)]
pub struct OpRunner {
    host: Arc<RunOneHost>,
}

impl OpRunner {
    /// A runner with empty resources.
    pub fn new() -> OpRunner {
        OpRunner::default()
    }

    /// Where its ops run.
    pub fn host(&self) -> &dyn KernelHost {
        &*self.host
    }

    /// Runs a node with this name and gives its outputs. UNAVAILABLE when it has to wait.
    pub fn run_named(&self, op: &str, name: &str, inputs: &[Value], attrs: Attrs) -> Result<Vec<Value>> {
        let waits = || Err(status!(Unavailable, "{op} waits"));
        let ended = self.start(op, name, inputs, attrs)?;
        ended.try_recv().unwrap_or_else(|_| waits())
    }

    /// Starts a node, which may wait for others; its end comes through the channel.
    pub fn start(
        &self,
        op: &str,
        name: &str,
        inputs: &[Value],
        attrs: Attrs,
    ) -> Result<std::sync::mpsc::Receiver<Result<Vec<Value>>>> {
        record("ops", op);
        let record = crate::registry().find(op)?;
        let dtype = |value: &Value| match value {
            Value::Tensor(tensor) => tensor.dtype(),
            Value::Ref(variable) => variable.dtype,
            Value::Absent => DataType::INVALID,
        };
        let types: Vec<DataType> = inputs.iter().map(dtype).collect();
        let attrs = attrs.complete(&record.def, &types)?;
        let node = Arc::new(NodeInfo::new(name.to_string(), record, String::new(), attrs)?);
        let constants = vec![None; inputs.len()];
        let executable = ff_op::Executable::new(node.clone(), "CPU", &constants, &*self.host)?;
        let mut inputs = inputs.to_vec();
        let specialization = executable.specialize(&inputs, &*self.host)?;
        let (sender, receiver) = std::sync::mpsc::channel();
        if executable.is_asynchronous() {
            let send = Box::new(move |result| drop(sender.send(result)));
            executable.start(inputs, self.host.clone(), Arc::new(NoDriver), send);
            return Ok(receiver);
        }
        let mut outputs = vec![Value::Absent; node.output_types.len()];
        let result = executable.run(&specialization, &mut inputs, &mut outputs, &*self.host);
        drop(sender.send(result.map(|()| outputs)));
        Ok(receiver)
    }

    /// Runs an op on tensors and gives its outputs as tensors; references are read.
    pub fn run(&self, op: &str, inputs: &[Tensor], attrs: Attrs) -> Result<Vec<Tensor>> {
        let inputs: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
        let outputs = self.run_named(op, op, &inputs, attrs)?;
        outputs.into_iter().map(tensor_of).collect()
    }
}

/// Does what goes on later at once, on the thread that asks for it.
pub struct NoDriver;

impl ff_op::Relay for NoDriver {
    fn post(&self, work: ff_op::Work) {
        work();
    }
}

/// The tensor in a value; a reference is read.
pub fn tensor_of(value: Value) -> Result<Tensor> {
    match value {
        Value::Tensor(tensor) => Ok(tensor),
        Value::Ref(variable) => variable.read(),
        Value::Absent => bail!(Internal, "no value"),
    }
}

/// The code of an error.
pub fn code<T>(result: Result<T>) -> Option<Code> {
    result.err().map(|error: Status| error.code())
}
