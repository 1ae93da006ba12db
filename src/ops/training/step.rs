//! What an optimizer is: a rule for one element. Here it meets whole variables, or the rows that indices name.

use super::slots::{self, update};
use crate::math::number::{Number, Ordered};
use ff_kernels::elementwise::cost;
use ff_kernels::math::Real;
use ff_kernels::memory::SharedMut;
use ff_kernels::{ThreadPool, optimizers};
use ff_op::{Gradient, KernelContext, Op};
use ff_tensor::{Complex64, Complex128, Result, Tensor, bf16, ensure, f16, status};

/// A number that variables are trained in.
pub trait Trained: Number + Send + Sync {
    /// The square root.
    fn root(self) -> Self;

    /// `1 / sqrt(x)`.
    fn inverse_root(self) -> Self {
        Self::one().div(self.root())
    }

    /// Changes every element of the variables by a rule.
    fn all<R: Rule<Self, N>, const N: usize>(
        pool: &ThreadPool,
        states: [&mut [Self]; N],
        gradient: &[Self],
        rule: &R,
    ) {
        let states = states.map(SharedMut::new);
        pool.parallel_for(gradient.len(), N as f64 * cost::SIMPLE, |range| {
            // SAFETY: the ranges of a loop are disjoint.
            let states = states.map(|state| unsafe { state.range(range.clone()) });
            each(states, &gradient[range], rule);
        });
    }
}

/// A real number that variables are trained in.
pub trait TrainedReal: Trained + Ordered + Real {
    /// -1, 0 or 1.
    fn sign(self) -> Self {
        let zero = Self::default();
        let positive = if self > zero { Self::one() } else { zero };
        if self < zero {
            zero.sub(Self::one())
        } else {
            positive
        }
    }

    /// Without its sign.
    fn magnitude(self) -> Self {
        let zero = Self::default();
        if self < zero { zero.sub(self) } else { self }
    }

    /// The larger of two.
    fn larger(self, other: Self) -> Self {
        if self < other { other } else { self }
    }

    /// Nearest value of a small number.
    fn of(number: f64) -> Self {
        Self::from_f64(number)
    }
}

impl Trained for f32 {
    #[inline(always)]
    fn root(self) -> f32 {
        self.sqrt()
    }

    // Worth loops for every level of processor: the others use what runs everywhere.
    fn all<R: Rule<f32, N>, const N: usize>(
        pool: &ThreadPool,
        states: [&mut [f32]; N],
        gradient: &[f32],
        rule: &R,
    ) {
        let rule = *rule;
        optimizers::update(pool, states, gradient, move |states, gradient| {
            rule.step(states, gradient)
        });
    }
}

impl Trained for f64 {
    #[inline(always)]
    fn root(self) -> f64 {
        self.sqrt()
    }
}

impl Trained for f16 {
    #[inline(always)]
    fn root(self) -> f16 {
        Real::square_root(self)
    }
}

impl Trained for bf16 {
    #[inline(always)]
    fn root(self) -> bf16 {
        Real::square_root(self)
    }
}

impl Trained for Complex64 {
    #[inline(always)]
    fn root(self) -> Complex64 {
        self.sqrt()
    }
}

impl Trained for Complex128 {
    #[inline(always)]
    fn root(self) -> Complex128 {
        self.sqrt()
    }
}

impl<T: Trained + Ordered + Real> TrainedReal for T {}

/// An optimizer: what one step does to one element of the variable and of its slots.
pub trait Rule<T, const N: usize>: Copy + Send + Sync {
    /// Reads the step's numbers.
    fn read(numbers: &Numbers) -> Result<Self>;

    /// The element's new states (the variable's first) from the old ones and the gradient.
    fn step(&self, states: [T; N], gradient: T) -> [T; N];
}

/// The numbers that a step is given besides variables and gradient.
pub struct Numbers<'a, 'b> {
    context: &'a KernelContext<'b>,
}

impl Numbers<'_, '_> {
    fn input(&self, name: &str) -> Result<&Tensor> {
        let range = self.context.node().input_range_of(name)?;
        self.context.input(range.start)
    }

    /// The scalar input of this name.
    pub fn scalar<T: Number>(&self, name: &str) -> Result<T> {
        self.input(name)?
            .single()
            .map_err(|_| status!(InvalidArgument, "{name} is not a scalar"))
    }

    /// The scalar input of this name, which must not be negative. INVALID_ARGUMENT, calling it this, otherwise.
    pub fn not_negative<T: TrainedReal>(&self, name: &str, called: &str) -> Result<T> {
        let number: T = self.scalar(name)?;
        ensure!(
            number >= T::default(),
            InvalidArgument,
            "{called} is not a non-negative scalar: []"
        );
        Ok(number)
    }

    /// The attribute of this name; `otherwise` where the op has none.
    pub fn flag(&self, name: &str, otherwise: bool) -> bool {
        self.context.attrs().bool(name).unwrap_or(otherwise)
    }

    /// Whether the op has an input of this name.
    pub fn has(&self, name: &str) -> bool {
        self.context.node().input_range_of(name).is_ok()
    }
}

/// The base of all records.
pub const STEP: Op = Op {
    shape: slots::shape,
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// The ops of an optimizer: `optimizer!(Rule, number of variables, (element types), [names of ops])`.
macro_rules! optimizer {
    ($rule:ident, $n:literal, ($($element:ty),+), [$($name:literal),+ $(,)?]) => {
        {
            const BASE: ff_op::Op = ff_op::Op {
                kernels: &[ff_op::Kernel::native(|context| {
                    let gradient = $crate::training::slots::Places::of(context.node())?.gradient;
                    $crate::match_type!(context.input(gradient)?.dtype(), ($($element),+), T => {
                        $crate::training::step::apply::<T, $rule<T>, $n>(context)
                    })
                })
                .for_types(&[("T", &[$(<$element as ff_tensor::Element>::DTYPE),+])])],
                ..$crate::training::step::STEP
            };
            &[$(&ff_op::Op { name: $name, ..BASE }),+]
        }
    };
}
pub(crate) use optimizer;

/// Runs a step of an op whose first `N` inputs are variables.
pub fn apply<T: Trained, R: Rule<T, N>, const N: usize>(context: &mut KernelContext) -> Result<()> {
    let rule = R::read(&Numbers { context })?;
    update(context, |context, places, variables: [&mut Tensor; N]| {
        let gradient = context.input_slice::<T>(places.gradient)?;
        let mut states = Vec::with_capacity(N);
        let row = variables[0].num_elements()
            / variables[0]
                .dims()
                .first()
                .map_or(1, |&rows| rows.max(1) as usize);
        for variable in variables {
            states.push(variable.as_mut_slice::<T>()?);
        }
        let states: [&mut [T]; N] = states
            .try_into()
            .map_err(|_| status!(Internal, "wrong number of variables"))?;
        match places.indices {
            None => T::all(context.pool(), states, gradient, &rule),
            Some(indices) => rows(states, row, &context.input_i64s(indices)?, gradient, &rule)?,
        }
        Ok(())
    })
}

fn each<T: Trained, R: Rule<T, N>, const N: usize>(states: [&mut [T]; N], gradient: &[T], rule: &R) {
    let mut states = states.map(|state| &mut state[..gradient.len()]);
    for (index, &gradient) in gradient.iter().enumerate() {
        let mut values = [gradient; N];
        for (value, state) in values.iter_mut().zip(&states) {
            *value = state[index];
        }
        for (state, value) in states.iter_mut().zip(rule.step(values, gradient)) {
            state[index] = value;
        }
    }
}

/// Changes the rows that `indices` name, in their order, so that a row named twice is changed twice.
fn rows<T: Trained, R: Rule<T, N>, const N: usize>(
    mut states: [&mut [T]; N],
    row: usize,
    indices: &[i64],
    gradient: &[T],
    rule: &R,
) -> Result<()> {
    let count = states[0].len() / row.max(1);
    for (position, &index) in indices.iter().enumerate() {
        ensure!(
            (0..count as i64).contains(&index),
            InvalidArgument,
            "Index {index} at offset {position} in indices is out of range"
        );
        let start = index as usize * row;
        let parts = states.each_mut().map(|state| &mut state[start..start + row]);
        each(parts, &gradient[position * row..(position + 1) * row], rule);
    }
    Ok(())
}
