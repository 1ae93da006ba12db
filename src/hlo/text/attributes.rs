//! Prints attributes, each as `, key=value`.

use super::printer::{computation_name, quoted};
use crate::attributes::{
    Attributes, ConvolutionConfig, ConvolutionDims, Direction, FftKind, GatherDims, RngAlgorithm,
    ScatterDims, TransposeKind, WindowDimension,
};
use crate::module::{ComputationId, Instruction, Module};
use crate::opcode::Opcode;
use ff_tensor::Code;
use std::fmt::{Display, Write};

/// Error codes by name.
pub(super) const CODES: [(Code, &str); 16] = [
    (Code::Cancelled, "CANCELLED"),
    (Code::Unknown, "UNKNOWN"),
    (Code::InvalidArgument, "INVALID_ARGUMENT"),
    (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
    (Code::NotFound, "NOT_FOUND"),
    (Code::AlreadyExists, "ALREADY_EXISTS"),
    (Code::PermissionDenied, "PERMISSION_DENIED"),
    (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    (Code::FailedPrecondition, "FAILED_PRECONDITION"),
    (Code::Aborted, "ABORTED"),
    (Code::OutOfRange, "OUT_OF_RANGE"),
    (Code::Unimplemented, "UNIMPLEMENTED"),
    (Code::Internal, "INTERNAL"),
    (Code::Unavailable, "UNAVAILABLE"),
    (Code::DataLoss, "DATA_LOSS"),
    (Code::Unauthenticated, "UNAUTHENTICATED"),
];

/// Comparisons by name.
pub(super) const DIRECTIONS: [(Direction, &str); 6] = [
    (Direction::Eq, "EQ"),
    (Direction::Ne, "NE"),
    (Direction::Lt, "LT"),
    (Direction::Le, "LE"),
    (Direction::Gt, "GT"),
    (Direction::Ge, "GE"),
];

/// Fourier transforms by name.
pub(super) const FFT_KINDS: [(FftKind, &str); 4] = [
    (FftKind::Fft, "FFT"),
    (FftKind::Ifft, "IFFT"),
    (FftKind::Rfft, "RFFT"),
    (FftKind::Irfft, "IRFFT"),
];

/// Generators by name.
pub(super) const ALGORITHMS: [(RngAlgorithm, &str); 2] = [
    (RngAlgorithm::Philox, "rng_philox"),
    (RngAlgorithm::ThreeFry, "rng_three_fry"),
];

/// Transpositions by name.
pub(super) const TRANSPOSES: [(TransposeKind, &str); 3] = [
    (TransposeKind::None, "NO_TRANSPOSE"),
    (TransposeKind::Transpose, "TRANSPOSE"),
    (TransposeKind::Adjoint, "ADJOINT"),
];

/// The name of a value in one of the lists.
fn name_of<T: PartialEq + Copy>(list: &[(T, &'static str)], value: T) -> &'static str {
    list.iter()
        .find(|(known, _)| *known == value)
        .map_or("?", |(_, name)| name)
}

/// Writes `, key=value`.
struct Writer<'a> {
    out: &'a mut String,
    module: &'a Module,
}

/// `{0,1}`.
fn list(values: &[i64]) -> String {
    let texts: Vec<String> = values.iter().map(i64::to_string).collect();
    format!("{{{}}}", texts.join(","))
}

impl Writer<'_> {
    fn put(&mut self, key: &str, value: impl Display) {
        let _ = write!(self.out, ", {key}={value}");
    }

    fn list(&mut self, key: &str, values: &[i64]) {
        self.put(key, list(values));
    }

    /// A list that is left out when it is empty.
    fn list_unless_empty(&mut self, key: &str, values: &[i64]) {
        if !values.is_empty() {
            self.list(key, values);
        }
    }

    /// A truth value that is left out when false.
    fn flag(&mut self, key: &str, value: bool) {
        if value {
            self.put(key, "true");
        }
    }

    fn computation(&mut self, key: &str, id: ComputationId) {
        let name = computation_name(self.module, id);
        self.put(key, name);
    }
}

/// Prints the attributes of an instruction other than `parameter` and `constant`.
pub(super) fn print_attributes(out: &mut String, module: &Module, instruction: &Instruction) {
    let mut w = Writer { out, module };
    match &instruction.attributes {
        Attributes::None | Attributes::Parameter(_) | Attributes::Constant(_) => {}
        Attributes::Dimensions(dims) => w.list("dimensions", dims),
        Attributes::Dimension(dim) if instruction.opcode == Opcode::Iota => w.put("iota_dimension", dim),
        Attributes::Dimension(dim) => w.list("dimensions", &[*dim]),
        Attributes::Compare(direction) => w.put("direction", name_of(&DIRECTIONS, *direction)),
        Attributes::Precision {
            exponent_bits,
            mantissa_bits,
        } => {
            w.put("exponent_bits", exponent_bits);
            w.put("mantissa_bits", mantissa_bits);
        }
        Attributes::Slice { start, limit, stride } => {
            let ranges: Vec<String> = (0..start.len())
                .map(|i| match stride[i] {
                    1 => format!("[{}:{}]", start[i], limit[i]),
                    step => format!("[{}:{}:{step}]", start[i], limit[i]),
                })
                .collect();
            w.put("slice", format!("{{{}}}", ranges.join(", ")));
        }
        Attributes::SliceSizes(sizes) => w.list("dynamic_slice_sizes", sizes),
        Attributes::Pad(config) => {
            let texts: Vec<String> = config
                .iter()
                .map(|pad| format!("{}_{}_{}", pad.low, pad.high, pad.interior))
                .collect();
            w.put("padding", texts.join("x"));
        }
        Attributes::Gather(dims) => print_gather(&mut w, dims),
        Attributes::Scatter { dims, computation } => {
            print_scatter(&mut w, dims);
            w.computation("to_apply", *computation);
        }
        Attributes::Dot(dims) => {
            w.list_unless_empty("lhs_batch_dims", &dims.lhs_batch);
            w.list("lhs_contracting_dims", &dims.lhs_contracting);
            w.list_unless_empty("rhs_batch_dims", &dims.rhs_batch);
            w.list("rhs_contracting_dims", &dims.rhs_contracting);
        }
        Attributes::Convolution(config) => print_convolution(&mut w, config),
        Attributes::Reduce {
            dimensions,
            computation,
        } => {
            w.list("dimensions", dimensions);
            w.computation("to_apply", *computation);
        }
        Attributes::ReduceWindow { window, computation } => {
            w.put("window", window_text(window));
            w.computation("to_apply", *computation);
        }
        Attributes::SelectAndScatter {
            window,
            select,
            scatter,
        } => {
            w.put("window", window_text(window));
            w.computation("select", *select);
            w.computation("scatter", *scatter);
        }
        other => print_others(&mut w, instruction.opcode, other),
    }
}

fn print_others(w: &mut Writer, opcode: Opcode, attributes: &Attributes) {
    match attributes {
        Attributes::Sort {
            dimension,
            stable,
            computation,
        } => {
            w.list("dimensions", &[*dimension]);
            w.flag("is_stable", *stable);
            w.computation("to_apply", *computation);
        }
        Attributes::TopK { k, largest } => {
            w.put("k", k);
            w.put("largest", largest);
        }
        Attributes::Rng(algorithm) => w.put("algorithm", name_of(&ALGORITHMS, *algorithm)),
        Attributes::Fft { kind, lengths } => {
            w.put("fft_type", name_of(&FFT_KINDS, *kind));
            w.list("fft_length", lengths);
        }
        Attributes::Cholesky { lower } => w.put("lower", lower),
        Attributes::TriangularSolve(options) => {
            w.put("left_side", options.left_side);
            w.put("lower", options.lower);
            w.put("unit_diagonal", options.unit_diagonal);
            w.put("transpose_a", name_of(&TRANSPOSES, options.transpose));
        }
        Attributes::While { condition, body } => {
            w.computation("condition", *condition);
            w.computation("body", *body);
        }
        Attributes::Scan(config) => {
            w.list("dimensions", &[config.dimension]);
            w.put("num_carries", config.num_carries);
            w.flag("is_reverse", config.reverse);
            w.computation("to_apply", config.computation);
        }
        Attributes::Branches(branches) => {
            let names: Vec<String> = branches
                .iter()
                .map(|&id| computation_name(w.module, id))
                .collect();
            w.put("branch_computations", format!("{{{}}}", names.join(", ")));
        }
        Attributes::Call(computation) if opcode == Opcode::Fusion => w.computation("calls", *computation),
        Attributes::Call(computation) | Attributes::Map(computation) => {
            w.computation("to_apply", *computation)
        }
        Attributes::TupleIndex(index) => w.put("index", index),
        Attributes::CustomCall { target, config } => {
            w.put("custom_call_target", quoted(target));
            if !config.is_empty() {
                w.put("backend_config", quoted(config));
            }
        }
        Attributes::Check(config) => {
            w.put("code", name_of(&CODES, config.code));
            w.put("message", quoted(&config.message));
        }
        _ => {}
    }
}

fn print_gather(w: &mut Writer, dims: &GatherDims) {
    w.list("offset_dims", &dims.offset_dims);
    w.list("collapsed_slice_dims", &dims.collapsed_slice_dims);
    w.list("start_index_map", &dims.start_index_map);
    w.list_unless_empty("operand_batching_dims", &dims.operand_batching_dims);
    w.list_unless_empty("start_indices_batching_dims", &dims.start_indices_batching_dims);
    w.put("index_vector_dim", dims.index_vector_dim);
    w.list("slice_sizes", &dims.slice_sizes);
    w.flag("indices_are_sorted", dims.indices_are_sorted);
}

fn print_scatter(w: &mut Writer, dims: &ScatterDims) {
    w.list("update_window_dims", &dims.update_window_dims);
    w.list("inserted_window_dims", &dims.inserted_window_dims);
    w.list("scatter_dims_to_operand_dims", &dims.scatter_dims_to_operand_dims);
    w.list_unless_empty("input_batching_dims", &dims.input_batching_dims);
    w.list_unless_empty(
        "scatter_indices_batching_dims",
        &dims.scatter_indices_batching_dims,
    );
    w.put("index_vector_dim", dims.index_vector_dim);
    w.flag("indices_are_sorted", dims.indices_are_sorted);
    w.flag("unique_indices", dims.unique_indices);
}

fn print_convolution(w: &mut Writer, config: &ConvolutionConfig) {
    w.put("window", window_text(&config.window));
    w.put("dim_labels", dim_labels(&config.dims));
    if config.feature_group_count != 1 {
        w.put("feature_group_count", config.feature_group_count);
    }
    if config.batch_group_count != 1 {
        w.put("batch_group_count", config.batch_group_count);
    }
}

/// `b01f_01io->b01f`.
fn dim_labels(dims: &ConvolutionDims) -> String {
    let label = |first: (i64, char), second: (i64, char), spatial: &[i64]| -> String {
        let mut text = vec!['?'; spatial.len() + 2];
        let mut put = |axis: i64, c: char| {
            if let Some(place) = usize::try_from(axis).ok().and_then(|axis| text.get_mut(axis)) {
                *place = c;
            }
        };
        put(first.0, first.1);
        put(second.0, second.1);
        for (number, &axis) in spatial.iter().enumerate() {
            put(axis, char::from_digit(number as u32 % 10, 10).unwrap_or('?'));
        }
        text.into_iter().collect()
    };
    format!(
        "{}_{}->{}",
        label(
            (dims.input_batch, 'b'),
            (dims.input_feature, 'f'),
            &dims.input_spatial
        ),
        label(
            (dims.kernel_input_feature, 'i'),
            (dims.kernel_output_feature, 'o'),
            &dims.kernel_spatial
        ),
        label(
            (dims.output_batch, 'b'),
            (dims.output_feature, 'f'),
            &dims.output_spatial
        )
    )
}

/// `{size=3x3 stride=2x2 pad=0_1x0_1}`, with only what differs from a plain window.
fn window_text(window: &[WindowDimension]) -> String {
    let join = |text: &dyn Fn(&WindowDimension) -> String| -> String {
        window.iter().map(text).collect::<Vec<String>>().join("x")
    };
    let mut parts = Vec::new();
    if !window.is_empty() {
        parts.push(format!("size={}", join(&|w| w.size.to_string())));
    }
    if window.iter().any(|w| w.stride != 1) {
        parts.push(format!("stride={}", join(&|w| w.stride.to_string())));
    }
    if window.iter().any(|w| w.padding_low != 0 || w.padding_high != 0) {
        parts.push(format!(
            "pad={}",
            join(&|w| format!("{}_{}", w.padding_low, w.padding_high))
        ));
    }
    if window.iter().any(|w| w.base_dilation != 1) {
        parts.push(format!("lhs_dilate={}", join(&|w| w.base_dilation.to_string())));
    }
    if window.iter().any(|w| w.window_dilation != 1) {
        parts.push(format!("rhs_dilate={}", join(&|w| w.window_dilation.to_string())));
    }
    if window.iter().any(|w| w.window_reversal) {
        parts.push(format!(
            "rhs_reversal={}",
            join(&|w| u8::from(w.window_reversal).to_string())
        ));
    }
    format!("{{{}}}", parts.join(" "))
}
