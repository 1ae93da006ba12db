//! The judge of gradients: what an op's gradient function gives, against finite differences of the op itself.
//!
//! A [`Tape`] stands in for a graph: nodes that the gradient function adds run at once. Inputs in single precision are
//! widened where the op takes doubles. Each element of each input that can have a derivative is moved a little to both sides,
//! and the change of a weighted sum of all outputs is compared with the gradient for those weights; complex numbers
//! count as pairs of reals. Elements where the op has a kink, leaves its domain, or is not finite are passed over.
//!
//! [`crate::UNCHECKED_GRADIENTS`] lists the ops that cannot be judged so. With `FF_CASES_DUMP` the ops of which something
//! was compared are appended to that file's name with `.gradients`, for `cargo xtask coverage --cases`.

use super::node_of_types;
use ff_op::{
    AttrValue, Attrs, Differentiated, FunctionRef, Gradient, GradientContext, GradientHost, NodeInfo,
    OutputRef, RunOneHost, run_one,
};
use ff_proto::FunctionDef;
use ff_tensor::{Code, Complex64, Complex128, DataType, PartialShape, Result, Tensor, bail};
use std::sync::Arc;

/// Ops whose gradient, as the reference defines it, looks at the gradients of these outputs only.
const OUTPUTS_SEEN: &[(&str, &[usize])] = &[
    ("BlockLSTM", &[1, 6]),
    ("BlockLSTMV2", &[1, 6]),
    ("CTCLoss", &[0]),
    ("CTCLossV2", &[0]),
    ("FusedBatchNorm", &[0]),
    ("FusedBatchNormV2", &[0]),
    ("FusedBatchNormV3", &[0]),
    ("SoftmaxCrossEntropyWithLogits", &[0]),
    ("SparseSoftmaxCrossEntropyWithLogits", &[0]),
];

/// Inputs that the reference lets nothing flow to, though outputs depend on them: statistics, paddings, labels.
const NOTHING_FLOWS: &[(&str, &[usize])] = &[
    ("Betainc", &[0, 1]),
    ("FusedBatchNorm", &[3, 4]),
    ("FusedBatchNormV2", &[3, 4]),
    ("FusedBatchNormV3", &[3, 4]),
    ("MatrixDiagV2", &[4]),
    ("MatrixDiagV3", &[4]),
    ("MatrixDiagPartV2", &[2]),
    ("MatrixDiagPartV3", &[2]),
    ("MatrixSolveLs", &[2]),
    ("PadV2", &[2]),
    ("ScaleAndTranslate", &[2, 3]),
    ("SoftmaxCrossEntropyWithLogits", &[1]),
    ("Zeta", &[0]),
];

/// Ops whose gradient is zero by definition where the element is, whatever the limit.
const ZERO_AT_ZERO: &[&str] = &["Cumprod", "Xlogy", "Xlog1py", "Xdivy"];

/// Ops that are no analytic functions of complex numbers, or whose gradient does not conjugate them, as the reference's
/// does not.
const REAL_ONLY: &[&str] = &[
    "Cumprod",
    "LogMatrixDeterminant",
    "MatrixDeterminant",
    "SegmentProd",
    "Sign",
    "SquaredDifference",
    "UnsortedSegmentProd",
];

/// At most this many elements of an input are moved.
const MAX_ELEMENTS: usize = 32;

struct Entry {
    info: Arc<NodeInfo>,
    inputs: Vec<OutputRef>,
    values: Vec<Tensor>,
}

/// Nodes with the values of their outputs.
struct Tape {
    entries: Vec<Entry>,
    /// Whether shapes are told, or have to be found at run time.
    shapes_known: bool,
}

impl Tape {
    fn value(&self, output: OutputRef) -> &Tensor {
        &self.entries[output.node as usize].values[output.index as usize]
    }

    fn push(&mut self, info: NodeInfo, inputs: Vec<OutputRef>, values: Vec<Tensor>) -> u32 {
        self.entries.push(Entry {
            info: Arc::new(info),
            inputs,
            values,
        });
        self.entries.len() as u32 - 1
    }

    fn leaf(&mut self, value: Tensor) -> Result<OutputRef> {
        let attrs = Attrs::new().with("dtype", value.dtype());
        let info = node_of_types("Placeholder", "input", &[], attrs)?;
        let node = self.push(info, Vec::new(), vec![value]);
        Ok(OutputRef { node, index: 0 })
    }
}

impl GradientHost for Tape {
    fn add_node(&mut self, op: &str, hint: &str, inputs: &[OutputRef], attrs: Attrs) -> Result<u32> {
        let values: Vec<Tensor> = inputs.iter().map(|input| self.value(*input).clone()).collect();
        let types: Vec<DataType> = values.iter().map(Tensor::dtype).collect();
        let info = node_of_types(op, hint, &types, attrs)?;
        let outputs = run_one(&Arc::new(info.clone()), values, &RunOneHost::new())?;
        Ok(self.push(info, inputs.to_vec(), outputs))
    }

    fn node(&self, node: u32) -> Arc<NodeInfo> {
        self.entries[node as usize].info.clone()
    }

    fn inputs(&self, node: u32) -> Vec<OutputRef> {
        self.entries[node as usize].inputs.clone()
    }

    fn shape(&self, output: OutputRef) -> PartialShape {
        match self.shapes_known {
            true => self.value(output).partial_shape(),
            false => PartialShape::unknown(),
        }
    }

    fn function(&self, name: &str) -> Result<Arc<FunctionDef>> {
        bail!(NotFound, "no function {name}")
    }

    fn add_function(&mut self, hint: &str, _: FunctionDef) -> Result<String> {
        bail!(Unimplemented, "no functions such as {hint}")
    }

    fn differentiate(&mut self, function: &FunctionRef) -> Result<Differentiated> {
        bail!(Unimplemented, "no functions such as {}", function.name)
    }

    fn replace_node(&mut self, _: u32, op: &str, _: &[OutputRef], _: Attrs) -> Result<()> {
        bail!(Unimplemented, "nodes stay as they are, {op} too")
    }
}

/// The elements as reals, complex numbers as two; none for types without derivatives.
fn reals(tensor: &Tensor) -> Option<Vec<f64>> {
    match tensor.dtype() {
        DataType::FLOAT => Some(tensor.as_slice::<f32>().ok()?.iter().map(|&x| x.into()).collect()),
        DataType::DOUBLE => Some(tensor.as_slice::<f64>().ok()?.to_vec()),
        DataType::COMPLEX64 => {
            let elements = tensor.as_slice::<Complex64>().ok()?;
            Some(elements.iter().flat_map(|z| [z.re.into(), z.im.into()]).collect())
        }
        DataType::COMPLEX128 => {
            let elements = tensor.as_slice::<Complex128>().ok()?;
            Some(elements.iter().flat_map(|z| [z.re, z.im]).collect())
        }
        _ => None,
    }
}

/// A tensor of a shape and type with these reals.
fn of_reals(dtype: DataType, like: &Tensor, reals: &[f64]) -> Tensor {
    let pairs = || reals.chunks_exact(2);
    let dims = like.dims();
    match dtype {
        DataType::FLOAT => super::t(dims, &reals.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        DataType::DOUBLE => super::t(dims, reals),
        DataType::COMPLEX64 => {
            let of = |z: &[f64]| Complex64::new(z[0] as f32, z[1] as f32);
            super::t(dims, &pairs().map(of).collect::<Vec<_>>())
        }
        _ => super::t(
            dims,
            &pairs().map(|z| Complex128::new(z[0], z[1])).collect::<Vec<_>>(),
        ),
    }
}

fn widened_type(dtype: DataType) -> DataType {
    match dtype {
        DataType::FLOAT => DataType::DOUBLE,
        DataType::COMPLEX64 => DataType::COMPLEX128,
        other => other,
    }
}

/// The node and inputs in double precision. INVALID_ARGUMENT, or what the op says, if it does not take that.
fn widened(op: &str, inputs: &[Tensor], attrs: &Attrs) -> Result<(Arc<NodeInfo>, Vec<Tensor>)> {
    let mut wide_attrs = attrs.clone();
    for (name, value) in attrs.iter() {
        if let AttrValue::Type(dtype) = value {
            wide_attrs.set(name, widened_type(*dtype));
        }
    }
    let types: Vec<DataType> = inputs.iter().map(|input| widened_type(input.dtype())).collect();
    let node = Arc::new(node_of_types(op, "case", &types, wide_attrs)?);
    // Inputs of a fixed type stay as they are.
    let input = |(input, wanted): (&Tensor, &DataType)| match reals(input) {
        Some(values) if *wanted == widened_type(input.dtype()) => of_reals(*wanted, input, &values),
        _ => input.clone(),
    };
    let inputs = inputs.iter().zip(&node.input_types).map(input).collect();
    Ok((node.clone(), inputs))
}

fn listed<'a>(list: &'a [(&str, &'a [usize])], op: &str) -> Option<&'a [usize]> {
    list.iter()
        .find(|(name, _)| *name == op)
        .map(|(_, indices)| *indices)
}

/// The weight of an output's element: of no pattern, away from zero.
fn weight(index: usize) -> f64 {
    let fraction = (index as f64 * 0.618_033_988_749_895).fract();
    if index.is_multiple_of(3) {
        -0.5 - fraction
    } else {
        0.4 + fraction
    }
}

/// What is differentiated: the weighted sum of an op's outputs.
struct Weighted {
    node: Arc<NodeInfo>,
    /// By output; none for those without derivatives, and for those that the gradient does not look at.
    weights: Vec<Option<Vec<f64>>>,
}

impl Weighted {
    /// Elements of `outputs` that are not finite get no weight.
    fn new(node: &Arc<NodeInfo>, outputs: &[Tensor]) -> Weighted {
        let seen = listed(OUTPUTS_SEEN, node.op_name());
        let weights = |(index, output): (usize, &Tensor)| {
            let values = reals(output).filter(|_| seen.is_none_or(|seen| seen.contains(&index)))?;
            let weight = |(i, x): (usize, &f64)| if x.is_finite() { weight(i) } else { 0.0 };
            Some(values.iter().enumerate().map(weight).collect())
        };
        Weighted {
            node: node.clone(),
            weights: outputs.iter().enumerate().map(weights).collect(),
        }
    }

    /// The sum; none where the op fails or is not finite.
    fn at(&self, inputs: &[Tensor]) -> Option<f64> {
        let outputs = run_one(&self.node, inputs.to_vec(), &RunOneHost::new()).ok()?;
        let mut sum = 0.0;
        for (output, weights) in outputs.iter().zip(&self.weights) {
            let Some(weights) = weights else { continue };
            let values = reals(output)?;
            let weighted = values.iter().zip(weights).filter(|(_, weight)| **weight != 0.0);
            sum += weighted.map(|(x, weight)| x * weight).sum::<f64>();
        }
        sum.is_finite().then_some(sum)
    }

    /// The gradients by the op's gradient function, one per input.
    fn gradients(
        &self,
        inputs: &[Tensor],
        outputs: &[Tensor],
        shapes_known: bool,
    ) -> Result<Vec<Option<Tensor>>> {
        let Gradient::Fn(function) = self.node.op.gradient else {
            return Ok(Vec::new());
        };
        let mut tape = Tape {
            entries: Vec::new(),
            shapes_known,
        };
        let leaves: Vec<OutputRef> = inputs
            .iter()
            .map(|input| tape.leaf(input.clone()))
            .collect::<Result<_>>()?;
        let forward = tape.push((*self.node).clone(), leaves, outputs.to_vec());
        let mut incoming = vec![None; outputs.len()];
        for (index, weights) in self.weights.iter().enumerate() {
            if let Some(weights) = weights {
                let output = &outputs[index];
                incoming[index] = Some(tape.leaf(of_reals(output.dtype(), output, weights))?);
            }
        }
        let mut context = GradientContext::new(&mut tape, forward, incoming);
        function(&mut context)?;
        let outgoing = context.finish();
        let value = |output: Option<OutputRef>| output.map(|output| tape.value(output).clone());
        Ok(outgoing.into_iter().map(value).collect())
    }
}

/// How far an element is moved, and how near derivatives must be, by type.
struct Steps {
    step: f64,
    tolerance: f64,
    kink: f64,
}

impl Steps {
    fn of(inputs: &[Tensor], outputs: &[Tensor]) -> Steps {
        let single = |tensor: &Tensor| matches!(tensor.dtype(), DataType::FLOAT | DataType::COMPLEX64);
        match inputs.iter().chain(outputs).any(single) {
            true => Steps {
                step: 4e-3,
                tolerance: 2e-2,
                kink: 0.2,
            },
            false => Steps {
                step: 1e-5,
                tolerance: 2e-5,
                kink: 1e-2,
            },
        }
    }
}

/// Compares one input's gradient; gives how many elements were compared.
fn compare(
    name: &str,
    f: &Weighted,
    inputs: &[Tensor],
    index: usize,
    gradient: &[f64],
    steps: &Steps,
) -> usize {
    let Some(values) = reals(&inputs[index]) else {
        return 0;
    };
    let Some(middle) = f.at(inputs) else { return 0 };
    let every = values.len().div_ceil(MAX_ELEMENTS).max(1);
    let skips_zero = ZERO_AT_ZERO.contains(&f.node.op_name());
    let mut compared = 0;
    for at in (0..values.len()).step_by(every) {
        if skips_zero && values[at] == 0.0 {
            continue;
        }
        let h = steps.step * values[at].abs().max(1.0);
        let moved = |by: f64| {
            let mut values = values.clone();
            values[at] += by;
            let mut inputs = inputs.to_vec();
            inputs[index] = of_reals(inputs[index].dtype(), &inputs[index], &values);
            f.at(&inputs)
        };
        let (Some(above), Some(below)) = (moved(h), moved(-h)) else {
            continue;
        };
        let (right, left) = ((above - middle) / h, (middle - below) / h);
        let size = 1.0 + right.abs().max(left.abs());
        if (right - left).abs() > steps.kink * size || !gradient[at].is_finite() {
            continue;
        }
        let wide = (above - below) / (2.0 * h);
        let (Some(above), Some(below)) = (moved(h / 2.0), moved(-h / 2.0)) else {
            continue;
        };
        let close = (above - below) / h;
        if (close - wide).abs() > steps.kink * size {
            continue;
        }
        // The error of each is a multiple of the square of its step.
        let expected = (4.0 * close - wide) / 3.0;
        let near = steps.tolerance * (size + middle.abs() * 1e-3);
        assert!(
            (gradient[at] - expected).abs() <= near,
            "{name}: gradient of input {index} at {at}: {}, by finite differences {expected}",
            gradient[at]
        );
        compared += 1;
    }
    compared
}

/// Puts the gradient of a case before finite differences. Panics when they disagree.
pub fn judge(name: &str, node: &Arc<NodeInfo>, inputs: &[Tensor], attrs: &Attrs) {
    let op = node.op_name();
    let is_half = |tensor: &Tensor| matches!(tensor.dtype(), DataType::HALF | DataType::BFLOAT16);
    let is_complex = inputs.iter().any(|input| input.dtype().is_complex());
    if !matches!(node.op.gradient, Gradient::Fn(_))
        || crate::UNCHECKED_GRADIENTS.iter().any(|(listed, _)| *listed == op)
        || inputs.iter().any(is_half)
        || inputs
            .iter()
            .all(|input| reals(input).is_none_or(|values| values.is_empty()))
        || (is_complex && REAL_ONLY.contains(&op))
    {
        return;
    }
    let compared = match widened(op, inputs, attrs).and_then(|(node, wide)| compare_all(name, &node, &wide)) {
        Ok(compared) => Ok(compared),
        Err(_) => compare_all(name, node, inputs),
    };
    match compared {
        Ok(0) => {}
        Ok(_) => super::record("gradients", op),
        // Gradients may use ops that are not there yet; `cargo xtask coverage --cases` says which are unchecked.
        Err(error) if error.code() == Code::NotFound && error.message().contains("OpKernel") => {}
        Err(error) => panic!("{name}: gradient: {error}"),
    }
}

/// Compares the gradients of all inputs; gives how many elements were compared.
fn compare_all(name: &str, node: &Arc<NodeInfo>, inputs: &[Tensor]) -> Result<usize> {
    let outputs = run_one(node, inputs.to_vec(), &RunOneHost::new())?;
    let f = Weighted::new(node, &outputs);
    let steps = Steps::of(inputs, &outputs);
    let stops = listed(NOTHING_FLOWS, node.op_name()).unwrap_or_default();
    let mut compared = 0;
    for shapes_known in [true, false] {
        let gradients = match f.gradients(inputs, &outputs, shapes_known) {
            // An answer, as the reference gives it: the attributes, or what is known of shapes, do not allow for one.
            Err(error) if error.code() == Code::Unimplemented => continue,
            gradients => gradients?,
        };
        for (index, gradient) in gradients.iter().enumerate() {
            let Some(values) = reals(&inputs[index]) else {
                continue;
            };
            let gradient = match gradient {
                Some(gradient) => {
                    assert_eq!(
                        gradient.dims(),
                        inputs[index].dims(),
                        "{name}: shape of gradient {index}"
                    );
                    assert_eq!(
                        gradient.dtype(),
                        inputs[index].dtype(),
                        "{name}: type of gradient {index}"
                    );
                    reals(gradient).unwrap_or_default()
                }
                None if stops.contains(&index) => continue,
                None => vec![0.0; values.len()],
            };
            compared += compare(name, &f, inputs, index, &gradient, &steps);
        }
    }
    Ok(compared)
}
