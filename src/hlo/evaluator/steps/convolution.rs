//! `convolution`, on the kernels' convolutions of channels-last arrays.
//!
//! Other layouts, reversed windows and batch groups are brought into that form by one copy; a batch group is a feature
//! group whose features come from the batch.

use super::matrix::{Preparation, contraction_type, finish, out_of_memory};
use super::operands;
use super::packed::{self, Form, Packed, Panels};
use crate::attributes::ConvolutionConfig;
use crate::evaluator::code::{Kernel, StepContext};
use crate::evaluator::tile::Strided;
use crate::module::{Computation, Instruction};
use crate::shape::{ArrayShape, Dims};
use ff_kernels::ThreadPool;
use ff_kernels::conv::{Axis, Convolution as Extents, PackedFilter, conv, conv_any, conv_packed};
use ff_kernels::gemm::Epilogue;
use ff_tensor::{Complex64, Complex128, DataType, Element, Result, Shape, Tensor, bail, ensure};
use std::sync::Arc;

struct Convolution {
    extents: Extents,
    input: Option<Preparation>,
    kernel: Option<Preparation>,
    /// The filter, if it is a constant that was packed.
    packed: Option<Arc<Packed>>,
    /// Where the elements of the result lie in `[batch, spatial.., features]`, if not in this order.
    order: Option<Strided>,
    computed: DataType,
    result: ArrayShape,
}

/// Axes with the strides by which a source is walked.
#[derive(Default)]
struct Walk {
    dims: Dims,
    strides: Dims,
    offset: i64,
}

impl Walk {
    fn push(&mut self, extent: i64, stride: i64) {
        self.dims.push(extent);
        self.strides.push(stride);
    }

    /// A preparation unless the walk is the source as it is, in the type that is wanted.
    fn prepare(&self, source: &ArrayShape, dtype: DataType) -> Result<Option<Preparation>> {
        let walk = Strided::new(&self.dims, &self.strides, self.offset);
        if walk.is_dense() && walk.offset() == 0 && source.dtype == dtype {
            return Ok(None);
        }
        Preparation::along(source, walk, dtype).map(Some)
    }
}

/// The kernel of a convolution.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    config: &ConvolutionConfig,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let (input, filter) = (&shapes[0], &shapes[1]);
    let result = instruction.array_shape()?.clone();
    let dims = &config.dims;
    let spatial = config.window.len();
    ensure!(
        spatial <= 3,
        Unimplemented,
        "A convolution over {spatial} dimensions is not implemented"
    );
    let computed = match contraction_type(input.dtype, filter.dtype, result.dtype) {
        DataType::HALF | DataType::BFLOAT16 => DataType::FLOAT,
        other => other,
    };
    let axes: Vec<Axis> = (0..spatial)
        .map(|i| {
            let window = &config.window[i];
            Axis {
                input: input.dims[dims.input_spatial[i] as usize] as usize,
                output: result.dims[dims.output_spatial[i] as usize] as usize,
                window: window.size as usize,
                stride: window.stride as usize,
                low: window.padding_low as isize,
                input_dilation: window.base_dilation as usize,
                window_dilation: window.window_dilation as usize,
            }
        })
        .collect();
    let features = input.dims[dims.input_feature as usize];
    let out_features = filter.dims[dims.kernel_output_feature as usize];
    let batch = input.dims[dims.input_batch as usize] / config.batch_group_count;
    let groups = config.feature_group_count * config.batch_group_count;
    let extents = Extents::new(
        batch as usize,
        &axes,
        (features * config.batch_group_count) as usize,
        out_features as usize,
        groups as usize,
    );
    let kernel = kernel_walk(filter, config).prepare(filter, computed)?;
    let packed = match packed::constant(computation, instruction.operands[1]) {
        Some(constant) if kernel.is_none() && result.num_elements() > 0 => pack(constant, &extents, groups)?,
        _ => None,
    };
    Ok(Box::new(Convolution {
        input: input_walk(input, config).prepare(input, computed)?,
        extents,
        kernel,
        packed,
        order: output_order(&result, config),
        computed,
        result,
    }))
}

/// Packs a filter that is read as it is, where that changes no bits.
fn pack(constant: &Tensor, extents: &Extents, groups: i64) -> Result<Option<Arc<Packed>>> {
    if extents.filter_len() == 0 || !extents.takes_packed() {
        return Ok(None);
    }
    let form = Form::Filter {
        rows: extents.filter_len() / extents.out_channels,
        out: extents.out_channels,
        groups: groups as usize,
    };
    packed::pack(constant, form)
}

/// `[batch, spatial.., batch group, feature]`.
fn input_walk(input: &ArrayShape, config: &ConvolutionConfig) -> Walk {
    let (dims, strides) = (&config.dims, input.strides());
    let (batch, feature) = (dims.input_batch as usize, dims.input_feature as usize);
    let each = input.dims[batch] / config.batch_group_count;
    let mut walk = Walk::default();
    walk.push(each, strides[batch]);
    for &axis in &dims.input_spatial {
        walk.push(input.dims[axis as usize], strides[axis as usize]);
    }
    walk.push(config.batch_group_count, strides[batch] * each);
    walk.push(input.dims[feature], strides[feature]);
    walk
}

/// `[spatial.., in, out]`, reversed where the window is.
fn kernel_walk(filter: &ArrayShape, config: &ConvolutionConfig) -> Walk {
    let (dims, strides) = (&config.dims, filter.strides());
    let mut walk = Walk::default();
    for (&axis, window) in dims.kernel_spatial.iter().zip(&config.window) {
        let (extent, stride) = (filter.dims[axis as usize], strides[axis as usize]);
        if window.window_reversal {
            walk.offset += (extent - 1) * stride;
            walk.push(extent, -stride);
        } else {
            walk.push(extent, stride);
        }
    }
    for axis in [
        dims.kernel_input_feature as usize,
        dims.kernel_output_feature as usize,
    ] {
        walk.push(filter.dims[axis], strides[axis]);
    }
    walk
}

/// How the result walks what the kernels make.
fn output_order(result: &ArrayShape, config: &ConvolutionConfig) -> Option<Strided> {
    let dims = &config.dims;
    let mut order: Vec<usize> = vec![dims.output_batch as usize];
    order.extend(dims.output_spatial.iter().map(|&axis| axis as usize));
    order.push(dims.output_feature as usize);
    let made: Dims = order.iter().map(|&axis| result.dims[axis]).collect();
    let made_strides = ArrayShape::new(result.dtype, &made).strides();
    let mut strides = Dims::from_elem(0, result.rank());
    for (place, &axis) in order.iter().enumerate() {
        strides[axis] = made_strides[place];
    }
    let walk = Strided::new(&result.dims, &strides, 0);
    if walk.is_dense() { None } else { Some(walk) }
}

impl Kernel for Convolution {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let prepare = |preparation: &Option<Preparation>, operand: usize| match preparation {
            Some(preparation) => preparation.run(step, operand),
            None => step.input(operand).cloned(),
        };
        let (input, filter) = (prepare(&self.input, 0)?, prepare(&self.kernel, 1)?);
        let allocate = step.environment().allocate;
        let shape = step.output(0).shape.clone();
        let elements = self.result.num_elements();
        let mut made = allocate(self.computed, Shape::vector(elements))?;
        if elements > 0 {
            if input.num_elements() == 0 || filter.num_elements() == 0 {
                made.bytes_mut().unwrap_or_default().fill(0);
            } else {
                self.convolve(step.pool(), &input, &filter, &mut made)?;
            }
        }
        if let Some(walk) = &self.order {
            let ordered = allocate(self.computed, Shape::vector(elements))?;
            // SAFETY: the walk visits each element of what was made once.
            unsafe { super::copy::run(step.pool(), walk, self.computed.size(), elements, &made, &ordered) };
            made = ordered;
        }
        let result = finish(step, made, self.result.dtype, &shape)?;
        step.set(0, result);
        Ok(())
    }
}

impl Convolution {
    fn convolve(&self, pool: &ThreadPool, input: &Tensor, filter: &Tensor, made: &mut Tensor) -> Result<()> {
        fn slice<T: Element>(tensor: &Tensor) -> &[T] {
            super::dot::elements::<T>(tensor)
        }
        match self.packed.as_ref().map(|packed| &packed.panels) {
            Some(Panels::SingleFilter(filter)) => return self.convolve_packed(pool, input, filter, made),
            Some(Panels::DoubleFilter(filter)) => return self.convolve_packed(pool, input, filter, made),
            _ => {}
        }
        /// Convolutions on microkernels.
        macro_rules! fast {
            ($t:ty) => {
                conv(
                    pool,
                    &self.extents,
                    slice::<$t>(input),
                    slice::<$t>(filter),
                    made.as_mut_slice::<$t>()?,
                    &Epilogue::default(),
                )
                .map_err(out_of_memory)
            };
        }
        /// Convolutions by the definition.
        macro_rules! any {
            ($t:ty) => {{
                let out = made.as_mut_slice::<$t>()?;
                conv_any(
                    pool,
                    &self.extents,
                    slice::<$t>(input),
                    slice::<$t>(filter),
                    out,
                );
                Ok(())
            }};
        }
        match self.computed {
            DataType::FLOAT => fast!(f32),
            DataType::DOUBLE => fast!(f64),
            DataType::INT8 => any!(i8),
            DataType::INT16 => any!(i16),
            DataType::INT32 => any!(i32),
            DataType::INT64 => any!(i64),
            DataType::UINT8 => any!(u8),
            DataType::UINT16 => any!(u16),
            DataType::UINT32 => any!(u32),
            DataType::UINT64 => any!(u64),
            DataType::COMPLEX64 => any!(Complex64),
            DataType::COMPLEX128 => any!(Complex128),
            other => bail!(Unimplemented, "A convolution of type {other} is not implemented"),
        }
    }

    fn convolve_packed<T: Element + ff_kernels::gemm::Element>(
        &self,
        pool: &ThreadPool,
        input: &Tensor,
        filter: &PackedFilter<T>,
        made: &mut Tensor,
    ) -> Result<()> {
        let (input, made) = (super::dot::elements(input), made.as_mut_slice()?);
        conv_packed(pool, &self.extents, input, filter, made, &Epilogue::default()).map_err(out_of_memory)
    }
}
