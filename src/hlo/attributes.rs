//! What instructions carry beside their operands.

use crate::module::ComputationId;
use crate::shape::Dims;
use ff_tensor::{Code, Tensor};
use smallvec::SmallVec;
use std::sync::Arc;

/// The attributes of an instruction; which variant is decided by the opcode.
#[derive(Clone, Debug)]
pub enum Attributes {
    /// Most elementwise opcodes.
    None,
    /// `parameter`: its number.
    Parameter(usize),
    /// `constant`: its value, of a plain element type.
    Constant(Tensor),
    /// `broadcast` (result axis of each operand axis), `transpose` (operand axis of each result axis), `reverse`, `map`.
    Dimensions(Dims),
    /// `iota`, `concatenate`, `get-dimension-size`.
    Dimension(i64),
    /// `compare`.
    Compare(Direction),
    /// `reduce-precision`.
    Precision {
        /// Bits of the exponent, at least 1.
        exponent_bits: u32,
        /// Bits of the mantissa.
        mantissa_bits: u32,
    },
    /// `slice`.
    Slice {
        /// First index of each axis.
        start: Dims,
        /// One past the last index of each axis.
        limit: Dims,
        /// Step of each axis, at least 1.
        stride: Dims,
    },
    /// `dynamic-slice`: extents of the result.
    SliceSizes(Dims),
    /// `pad`.
    Pad(PadConfig),
    /// `gather`.
    Gather(GatherDims),
    /// `scatter`.
    Scatter {
        /// Meaning of the axes.
        dims: ScatterDims,
        /// Combines an old and a new value.
        computation: ComputationId,
    },
    /// `dot`.
    Dot(DotDims),
    /// `convolution`.
    Convolution(ConvolutionConfig),
    /// `reduce`.
    Reduce {
        /// The axes that go.
        dimensions: Dims,
        /// Combines two values.
        computation: ComputationId,
    },
    /// `reduce-window`.
    ReduceWindow {
        /// The window, over every axis.
        window: Window,
        /// Combines two values.
        computation: ComputationId,
    },
    /// `select-and-scatter`.
    SelectAndScatter {
        /// The window, over every axis.
        window: Window,
        /// Whether the first value stays selected.
        select: ComputationId,
        /// Combines two values that go to one place.
        scatter: ComputationId,
    },
    /// `sort`.
    Sort {
        /// The axis.
        dimension: i64,
        /// Whether equal elements keep their order.
        stable: bool,
        /// Whether the first element comes before the second; parameters 2i and 2i+1 are of operand i.
        computation: ComputationId,
    },
    /// `topk`.
    TopK {
        /// How many elements of the last axis.
        k: i64,
        /// The largest or the smallest.
        largest: bool,
    },
    /// `rng-bit-generator`.
    Rng(RngAlgorithm),
    /// `fft`.
    Fft {
        /// Direction and type.
        kind: FftKind,
        /// Extents of the transformed (last) axes, of the real array for real transforms.
        lengths: Dims,
    },
    /// `cholesky`: whether the factor is lower triangular.
    Cholesky {
        /// Lower or upper.
        lower: bool,
    },
    /// `triangular-solve`.
    TriangularSolve(TriangularSolveOptions),
    /// `while`.
    While {
        /// From the state to a pred scalar.
        condition: ComputationId,
        /// From the state to the next.
        body: ComputationId,
    },
    /// `scan`.
    Scan(ScanConfig),
    /// `conditional`: a branch for each value of the index; true, then false for a pred.
    Branches(Vec<ComputationId>),
    /// `call`, `fusion`: what is called.
    Call(ComputationId),
    /// `map`.
    Map(ComputationId),
    /// `get-tuple-element`: which.
    TupleIndex(usize),
    /// `custom-call`.
    CustomCall {
        /// Name of the function.
        target: Arc<str>,
        /// What it is told, in a form of its own.
        config: Arc<str>,
    },
    /// `check`.
    Check(CheckConfig),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the definition
pub enum Direction {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Padding of one axis; `low` and `high` may be negative, which cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PadDimension {
    /// Elements before the first.
    pub low: i64,
    /// Elements after the last.
    pub high: i64,
    /// Elements between two, at least 0.
    pub interior: i64,
}

/// Padding of every axis.
pub type PadConfig = SmallVec<[PadDimension; 4]>;

/// Axes of `gather`, as XLA's GatherDimensionNumbers and slice sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct GatherDims {
    /// Result axes that lie within a slice.
    pub offset_dims: Dims,
    /// Operand axes of extent 1 in the slice that the result drops.
    pub collapsed_slice_dims: Dims,
    /// Operand axis that each component of an index means.
    pub start_index_map: Dims,
    /// Axis of the indices that holds the components; the rank of the indices when they are scalars.
    pub index_vector_dim: i64,
    /// Operand axes that run along with `start_indices_batching_dims`.
    pub operand_batching_dims: Dims,
    /// Axes of the indices that run along with `operand_batching_dims`.
    pub start_indices_batching_dims: Dims,
    /// Extent of the slice in each operand axis.
    pub slice_sizes: Dims,
    /// A promise that the indices ascend.
    pub indices_are_sorted: bool,
}

/// Axes of `scatter`, as XLA's ScatterDimensionNumbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ScatterDims {
    /// Axes of the updates that lie within a window.
    pub update_window_dims: Dims,
    /// Operand axes of extent 1 in the window that the updates lack.
    pub inserted_window_dims: Dims,
    /// Operand axis that each component of an index means.
    pub scatter_dims_to_operand_dims: Dims,
    /// Axis of the indices that holds the components; the rank of the indices when they are scalars.
    pub index_vector_dim: i64,
    /// Operand axes that run along with `scatter_indices_batching_dims`.
    pub input_batching_dims: Dims,
    /// Axes of the indices that run along with `input_batching_dims`.
    pub scatter_indices_batching_dims: Dims,
    /// A promise that the indices ascend.
    pub indices_are_sorted: bool,
    /// A promise that no place is written twice.
    pub unique_indices: bool,
}

/// Axes of `dot`: the result has the batch axes, then the free axes of the left, then those of the right operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct DotDims {
    /// Batch axes of the left operand.
    pub lhs_batch: Dims,
    /// Batch axes of the right operand, in the same order.
    pub rhs_batch: Dims,
    /// Summed axes of the left operand.
    pub lhs_contracting: Dims,
    /// Summed axes of the right operand, in the same order.
    pub rhs_contracting: Dims,
}

impl DotDims {
    /// A matrix product of two matrices, either of them transposed.
    pub fn matmul(transpose_lhs: bool, transpose_rhs: bool) -> DotDims {
        DotDims {
            lhs_contracting: Dims::from_slice(&[i64::from(!transpose_lhs)]),
            rhs_contracting: Dims::from_slice(&[i64::from(transpose_rhs)]),
            ..DotDims::default()
        }
    }

    /// Matrix products over `batch` leading axes, either operand transposed.
    pub fn batch_matmul(batch: usize, transpose_lhs: bool, transpose_rhs: bool) -> DotDims {
        let axes: Dims = (0..batch as i64).collect();
        DotDims {
            lhs_contracting: Dims::from_slice(&[batch as i64 + i64::from(!transpose_lhs)]),
            rhs_contracting: Dims::from_slice(&[batch as i64 + i64::from(transpose_rhs)]),
            lhs_batch: axes.clone(),
            rhs_batch: axes,
        }
    }
}

/// A sliding window along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDimension {
    /// Extent of the window, at least 1.
    pub size: i64,
    /// Step of the window, at least 1.
    pub stride: i64,
    /// Padding before the first element; may be negative.
    pub padding_low: i64,
    /// Padding after the last element; may be negative.
    pub padding_high: i64,
    /// Distance of elements within the window, at least 1.
    pub window_dilation: i64,
    /// Distance of elements of the base, at least 1; what lies between is padding.
    pub base_dilation: i64,
    /// Whether the window is read backwards.
    pub window_reversal: bool,
}

impl WindowDimension {
    /// A window of this size with step 1 and no padding.
    pub fn new(size: i64) -> WindowDimension {
        WindowDimension {
            size,
            stride: 1,
            padding_low: 0,
            padding_high: 0,
            window_dilation: 1,
            base_dilation: 1,
            window_reversal: false,
        }
    }
}

/// A sliding window, one entry for each axis it slides along.
pub type Window = SmallVec<[WindowDimension; 4]>;

/// Meaning of the axes of a convolution.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ConvolutionDims {
    /// Batch axis of the input.
    pub input_batch: i64,
    /// Feature axis of the input.
    pub input_feature: i64,
    /// Spatial axes of the input.
    pub input_spatial: Dims,
    /// Input feature axis of the kernel.
    pub kernel_input_feature: i64,
    /// Output feature axis of the kernel.
    pub kernel_output_feature: i64,
    /// Spatial axes of the kernel.
    pub kernel_spatial: Dims,
    /// Batch axis of the output.
    pub output_batch: i64,
    /// Feature axis of the output.
    pub output_feature: i64,
    /// Spatial axes of the output.
    pub output_spatial: Dims,
}

impl ConvolutionDims {
    /// Input and output with features last (`NHWC`), kernel `HWIO`, for any number of spatial axes.
    pub fn channels_last(spatial: usize) -> ConvolutionDims {
        let n = spatial as i64;
        ConvolutionDims {
            input_batch: 0,
            input_feature: n + 1,
            input_spatial: (1..=n).collect(),
            kernel_input_feature: n,
            kernel_output_feature: n + 1,
            kernel_spatial: (0..n).collect(),
            output_batch: 0,
            output_feature: n + 1,
            output_spatial: (1..=n).collect(),
        }
    }

    /// Input and output with features second (`NCHW`), kernel `HWIO`, for any number of spatial axes.
    pub fn channels_first(spatial: usize) -> ConvolutionDims {
        let n = spatial as i64;
        ConvolutionDims {
            input_feature: 1,
            input_spatial: (2..n + 2).collect(),
            output_feature: 1,
            output_spatial: (2..n + 2).collect(),
            ..ConvolutionDims::channels_last(spatial)
        }
    }
}

/// A convolution.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ConvolutionConfig {
    /// The window, over the spatial axes in the order of `dims`.
    pub window: Window,
    /// Meaning of the axes.
    pub dims: ConvolutionDims,
    /// Groups of input and output features that do not mix, at least 1.
    pub feature_group_count: i64,
    /// Groups of the batch that become output features, at least 1.
    pub batch_group_count: i64,
}

/// A counter-based random generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RngAlgorithm {
    /// Philox 4x32-10; the state is `u64[3]`: key, counter low, counter high.
    Philox,
    /// Threefry 2x32-20; the state is `u64[2]`: key, counter.
    ThreeFry,
}

impl RngAlgorithm {
    /// Elements of a state.
    pub fn state_words(self) -> usize {
        match self {
            RngAlgorithm::Philox => 3,
            RngAlgorithm::ThreeFry => 2,
        }
    }

    /// Bytes that one value of the counter gives.
    pub fn block_bytes(self) -> usize {
        match self {
            RngAlgorithm::Philox => 16,
            RngAlgorithm::ThreeFry => 8,
        }
    }
}

/// Direction and element types of a Fourier transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftKind {
    /// Forward, complex to complex.
    Fft,
    /// Inverse (scaled by 1/n), complex to complex.
    Ifft,
    /// Forward, real to half of the complex spectrum.
    Rfft,
    /// Inverse of `Rfft` (scaled by 1/n).
    Irfft,
}

/// Which system a `triangular-solve` solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TriangularSolveOptions {
    /// `op(a) x = b` rather than `x op(a) = b`.
    pub left_side: bool,
    /// Which triangle of `a` is read.
    pub lower: bool,
    /// Whether the diagonal is taken as ones.
    pub unit_diagonal: bool,
    /// What `op` does.
    pub transpose: TransposeKind,
}

/// What is done to a matrix before use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransposeKind {
    /// Nothing.
    None,
    /// Transpose.
    Transpose,
    /// Conjugate transpose.
    Adjoint,
}

/// The error of a failed `check`.
///
/// In the message `{index}` stands for the place of the first false predicate (`[1,0]`, empty for a scalar), and
/// `{0}`, `{1}`... for the values of the further operands there, `{0*}`, `{1*}`... for all values of those operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CheckConfig {
    /// The code of the error.
    pub code: Code,
    /// Its message.
    pub message: Arc<str>,
}

/// A loop over one axis of arrays.
///
/// The computation takes the slices of all arrays at one place (without the axis), then the carried values; it gives
/// slices of the results, then the next carried values, as a tuple unless it is a single array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScanConfig {
    /// The axis of the operands, and the one that the results get.
    pub dimension: i64,
    /// How many of the operands, the last ones, are values carried from place to place.
    pub num_carries: i64,
    /// From the last place to the first.
    pub reverse: bool,
    /// What is done at each place.
    pub computation: ComputationId,
}

impl Attributes {
    /// The computations that are called.
    pub fn called_computations(&self) -> SmallVec<[ComputationId; 2]> {
        match self {
            Attributes::Scatter { computation, .. }
            | Attributes::Reduce { computation, .. }
            | Attributes::ReduceWindow { computation, .. }
            | Attributes::Sort { computation, .. }
            | Attributes::Scan(ScanConfig { computation, .. })
            | Attributes::Call(computation)
            | Attributes::Map(computation) => SmallVec::from_slice(&[*computation]),
            Attributes::SelectAndScatter { select, scatter, .. } => {
                SmallVec::from_slice(&[*select, *scatter])
            }
            Attributes::While { condition, body } => SmallVec::from_slice(&[*condition, *body]),
            Attributes::Branches(branches) => SmallVec::from_slice(branches),
            _ => SmallVec::new(),
        }
    }

    /// Replaces each called computation.
    pub fn map_called_computations(&mut self, replace: impl Fn(ComputationId) -> ComputationId) {
        match self {
            Attributes::Scatter { computation, .. }
            | Attributes::Reduce { computation, .. }
            | Attributes::ReduceWindow { computation, .. }
            | Attributes::Sort { computation, .. }
            | Attributes::Scan(ScanConfig { computation, .. })
            | Attributes::Call(computation)
            | Attributes::Map(computation) => *computation = replace(*computation),
            Attributes::SelectAndScatter { select, scatter, .. } => {
                *select = replace(*select);
                *scatter = replace(*scatter);
            }
            Attributes::While { condition, body } => {
                *condition = replace(*condition);
                *body = replace(*body);
            }
            Attributes::Branches(branches) => {
                branches.iter_mut().for_each(|branch| *branch = replace(*branch))
            }
            _ => {}
        }
    }
}
