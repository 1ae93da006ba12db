//! Pooling: windows over one to three neighbouring axes with channels behind them, on the kernels' loops.

use crate::attributes::WindowDimension;
use crate::evaluator::code::{Kernel, StepContext};
use crate::opcode::Opcode;
use crate::shape::ArrayShape;
use ff_kernels::ThreadPool;
use ff_kernels::conv::Axis;
use ff_kernels::reduce::Accumulate;
use ff_kernels::window::{Windows, greatest_of_window, max_pool, max_pool_gradient, reduce_window};
use ff_tensor::{DataType, Result, Tensor, bf16, f16};

/// Reduces windows of an operand into results.
///
/// # Safety
/// The operand and the result hold the elements that the windows say, of the function's type.
type PoolFn = unsafe fn(&ThreadPool, &Windows, *const u8, *mut u8);

/// The windows as images with channels, if they have that form.
fn images(operand: &ArrayShape, places: &[i64], window: &[WindowDimension]) -> Option<Windows> {
    let plain = |axis: usize| window[axis] == WindowDimension::new(1) && places[axis] == operand.dims[axis];
    let rank = operand.rank();
    let first = (0..rank).position(|axis| !plain(axis))?;
    let end = rank - (0..rank).rev().position(|axis| !plain(axis))?;
    let reversed = window.iter().any(|window| window.window_reversal);
    if end - first > 3 || reversed {
        return None;
    }
    let axes: Vec<Axis> = (first..end)
        .map(|axis| Axis {
            input: operand.dims[axis] as usize,
            output: places[axis] as usize,
            window: window[axis].size as usize,
            stride: window[axis].stride as usize,
            low: window[axis].padding_low as isize,
            input_dilation: window[axis].base_dilation as usize,
            window_dilation: window[axis].window_dilation as usize,
        })
        .collect();
    let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
    Some(Windows::new(
        product(&operand.dims[..first]),
        &axes,
        product(&operand.dims[end..]),
    ))
}

/// Operand and result as elements.
///
/// # Safety
/// As for [`PoolFn`].
unsafe fn slices<'a, T>(windows: &Windows, x: *const u8, out: *mut u8) -> (&'a [T], &'a mut [T]) {
    // SAFETY: passed on to the caller.
    unsafe {
        (
            std::slice::from_raw_parts(x.cast(), windows.input_len()),
            std::slice::from_raw_parts_mut(out.cast(), windows.output_len()),
        )
    }
}

/// # Safety
/// As for [`PoolFn`].
unsafe fn sum<T: Accumulate>(pool: &ThreadPool, windows: &Windows, x: *const u8, out: *mut u8) {
    // SAFETY: passed on to the caller.
    let (x, out) = unsafe { slices::<T>(windows, x, out) };
    reduce_window(pool, windows, x, out, T::ZERO, T::widen, T::add, |sum, _| {
        T::narrow(sum)
    });
}

/// The reduction by an opcode for a type, if the kernels have it.
fn find(opcode: Opcode, dtype: DataType) -> Option<PoolFn> {
    /// The largest of each window.
    macro_rules! largest {
        ($t:ty) => {{
            unsafe fn run(pool: &ThreadPool, windows: &Windows, x: *const u8, out: *mut u8) {
                // SAFETY: passed on to the caller.
                let (x, out) = unsafe { slices::<$t>(windows, x, out) };
                max_pool(pool, windows, x, out, <$t>::NEG_INFINITY);
            }
            Some(run)
        }};
    }
    match (opcode, dtype) {
        (Opcode::Add, DataType::FLOAT) => Some(sum::<f32>),
        (Opcode::Add, DataType::DOUBLE) => Some(sum::<f64>),
        (Opcode::Add, DataType::HALF) => Some(sum::<f16>),
        (Opcode::Add, DataType::BFLOAT16) => Some(sum::<bf16>),
        (Opcode::Maximum, DataType::FLOAT) => largest!(f32),
        (Opcode::Maximum, DataType::DOUBLE) => largest!(f64),
        (Opcode::Maximum, DataType::HALF) => largest!(f16),
        (Opcode::Maximum, DataType::BFLOAT16) => largest!(bf16),
        _ => None,
    }
}

struct Pool {
    windows: Windows,
    function: PoolFn,
}

/// The kernel of a reduction over windows that starts from the opcode's identity; none where the general one must do.
pub(super) fn reduction(
    opcode: Opcode,
    operand: &ArrayShape,
    places: &[i64],
    window: &[WindowDimension],
) -> Option<Box<dyn Kernel>> {
    let function = find(opcode, operand.dtype)?;
    let windows = images(operand, places, window)?;
    Some(Box::new(Pool { windows, function }))
}

impl Kernel for Pool {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        if result.num_elements() > 0 {
            // SAFETY: operand and result have the extents that the windows were made for.
            unsafe { (self.function)(step.pool(), &self.windows, step.input_ptr(0)?, result.data_ptr()) };
        }
        step.set(0, result);
        Ok(())
    }
}

struct Greatest {
    windows: Windows,
    dtype: DataType,
    init: Tensor,
}

/// The kernel of a reduction over windows to what is greater than `init` and all elements before it; none where the
/// general one must do.
pub(super) fn greatest(
    init: &Tensor,
    operand: &ArrayShape,
    places: &[i64],
    window: &[WindowDimension],
) -> Option<Box<dyn Kernel>> {
    let known = [
        DataType::FLOAT,
        DataType::DOUBLE,
        DataType::HALF,
        DataType::BFLOAT16,
    ];
    if init.dtype() != operand.dtype || !known.contains(&operand.dtype) {
        return None;
    }
    Some(Box::new(Greatest {
        windows: images(operand, places, window)?,
        dtype: operand.dtype,
        init: init.clone(),
    }))
}

impl Greatest {
    /// # Safety
    /// The pointers are those of operand and result with the extents of the windows, of type `T`, as is `init`.
    unsafe fn run_as<T: PartialOrd + Copy + Send + Sync>(
        &self,
        pool: &ThreadPool,
        x: *const u8,
        out: *mut u8,
    ) {
        // SAFETY: passed on to the caller.
        let (x, out) = unsafe { slices::<T>(&self.windows, x, out) };
        // SAFETY: `init` holds one element of this type.
        let init = unsafe { self.init.data_ptr().cast_const().cast::<T>().read_unaligned() };
        greatest_of_window(pool, &self.windows, x, out, init);
    }
}

impl Kernel for Greatest {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        if result.num_elements() > 0 {
            let (x, out) = (step.input_ptr(0)?, result.data_ptr());
            // SAFETY: operand and result have the extents that the windows were made for, and the type that is asked.
            unsafe {
                match self.dtype {
                    DataType::FLOAT => self.run_as::<f32>(step.pool(), x, out),
                    DataType::DOUBLE => self.run_as::<f64>(step.pool(), x, out),
                    DataType::HALF => self.run_as::<f16>(step.pool(), x, out),
                    _ => self.run_as::<bf16>(step.pool(), x, out),
                }
            }
        }
        step.set(0, result);
        Ok(())
    }
}

struct MaxPoolGradient {
    windows: Windows,
    single: bool,
}

/// The kernel of a scatter of each source element to the first largest element of its window; none where the general
/// one must do.
pub(super) fn max_gradient(
    operand: &ArrayShape,
    places: &[i64],
    window: &[WindowDimension],
) -> Option<Box<dyn Kernel>> {
    if !matches!(operand.dtype, DataType::FLOAT | DataType::DOUBLE) {
        return None;
    }
    Some(Box::new(MaxPoolGradient {
        windows: images(operand, places, window)?,
        single: operand.dtype == DataType::FLOAT,
    }))
}

impl MaxPoolGradient {
    /// # Safety
    /// The pointers are those of operand, source and result with the extents of the windows.
    unsafe fn run_as<T: Accumulate<Wide = T> + PartialOrd>(
        &self,
        pool: &ThreadPool,
        x: *const u8,
        source: *const u8,
        out: *mut u8,
    ) {
        // SAFETY: passed on to the caller.
        let (x, source, out) = unsafe {
            (
                std::slice::from_raw_parts(x.cast::<T>(), self.windows.input_len()),
                std::slice::from_raw_parts(source.cast::<T>(), self.windows.output_len()),
                std::slice::from_raw_parts_mut(out.cast::<T>(), self.windows.input_len()),
            )
        };
        max_pool_gradient(pool, &self.windows, x, source, out);
    }
}

impl Kernel for MaxPoolGradient {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        if result.num_elements() > 0 {
            let (x, source, out) = (step.input_ptr(0)?, step.input_ptr(1)?, result.data_ptr());
            // SAFETY: operand, source and result have the extents that the windows were made for.
            unsafe {
                if self.single {
                    self.run_as::<f32>(step.pool(), x, source, out);
                } else {
                    self.run_as::<f64>(step.pool(), x, source, out);
                }
            }
        }
        step.set(0, result);
        Ok(())
    }
}
