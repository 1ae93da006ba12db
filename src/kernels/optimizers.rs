//! One step of the usual optimizers, each as one loop over the variable and its slots, by TensorFlow's formulas.
//!
//! All slices of a call have equal lengths.

use crate::cpu::{self, Vectorized};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;

/// A type that variables are updated in.
pub trait Float:
    Copy
    + Send
    + Sync
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// One.
    const ONE: Self;
    /// The square root.
    fn root(self) -> Self;
}
impl Float for f32 {
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn root(self) -> f32 {
        self.sqrt()
    }
}
impl Float for f64 {
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn root(self) -> f64 {
        self.sqrt()
    }
}

/// Time of an element in nanoseconds.
const COST: f64 = 0.8;

/// The variable with its slots, element by element.
struct Update<'a, T, const SLOTS: usize, F> {
    states: [&'a mut [T]; SLOTS],
    gradient: &'a [T],
    f: F,
}

impl<T: Copy, const SLOTS: usize, F: Fn([T; SLOTS], T) -> [T; SLOTS]> Vectorized for Update<'_, T, SLOTS, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.gradient.len();
        let states = self.states.map(|state| &mut state[..n]);
        for (i, &gradient) in self.gradient.iter().enumerate() {
            let mut values = [gradient; SLOTS];
            for s in 0..SLOTS {
                values[s] = states[s][i];
            }
            let values = (self.f)(values, gradient);
            for s in 0..SLOTS {
                states[s][i] = values[s];
            }
        }
    }
}

/// `states = f(states, gradient)` for every element: any optimizer's step.
pub fn update<T: Float, const SLOTS: usize>(
    pool: &ThreadPool,
    states: [&mut [T]; SLOTS],
    gradient: &[T],
    f: impl Fn([T; SLOTS], T) -> [T; SLOTS] + Sync + Copy,
) {
    assert!(
        states.iter().all(|state| state.len() == gradient.len()),
        "unequal lengths"
    );
    let states = states.map(SharedMut::new);
    pool.parallel_for(gradient.len(), COST, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let states = states.map(|state| unsafe { state.range(range.clone()) });
        cpu::dispatch(Update {
            states,
            gradient: &gradient[range],
            f,
        });
    });
}

/// `variable -= rate * gradient`.
pub fn gradient_descent<T: Float>(pool: &ThreadPool, variable: &mut [T], rate: T, gradient: &[T]) {
    update(pool, [variable], gradient, |[v], g| [v - rate * g]);
}

/// `accumulator = momentum * accumulator + gradient; variable -= rate * accumulator`, or with Nesterov's look
/// ahead.
pub fn momentum<T: Float>(
    pool: &ThreadPool,
    [variable, accumulator]: [&mut [T]; 2],
    rate: T,
    momentum: T,
    nesterov: bool,
    gradient: &[T],
) {
    if nesterov {
        update(pool, [variable, accumulator], gradient, |[v, a], g| {
            let a = a * momentum + g;
            [v - (g * rate + a * momentum * rate), a]
        });
    } else {
        update(pool, [variable, accumulator], gradient, |[v, a], g| {
            let a = a * momentum + g;
            [v - a * rate, a]
        });
    }
}

/// Keras's momentum: `accumulator = momentum * accumulator - rate * gradient; variable += accumulator`.
pub fn keras_momentum<T: Float>(
    pool: &ThreadPool,
    [variable, accumulator]: [&mut [T]; 2],
    rate: T,
    momentum: T,
    nesterov: bool,
    gradient: &[T],
) {
    if nesterov {
        update(pool, [variable, accumulator], gradient, |[v, a], g| {
            let a = a * momentum - g * rate;
            [v + (a * momentum - g * rate), a]
        });
    } else {
        update(pool, [variable, accumulator], gradient, |[v, a], g| {
            let a = a * momentum - g * rate;
            [v + a, a]
        });
    }
}

/// The numbers of Adam (Kingma and Ba, 2015).
#[derive(Clone, Copy, Debug)]
pub struct Adam<T> {
    /// Learning rate.
    pub rate: T,
    /// Decay of the first moment, and its power by the steps so far.
    pub beta1: (T, T),
    /// Decay of the second moment, and its power by the steps so far.
    pub beta2: (T, T),
    /// Added to the root of the second moment.
    pub epsilon: T,
    /// Nesterov's look ahead.
    pub nesterov: bool,
}

/// Adam's step on the variable and its two moments.
pub fn adam<T: Float>(pool: &ThreadPool, states: [&mut [T]; 3], adam: &Adam<T>, gradient: &[T]) {
    let Adam {
        rate,
        beta1: (beta1, power1),
        beta2: (beta2, power2),
        epsilon,
        nesterov,
    } = *adam;
    let alpha = rate * (T::ONE - power2).root() / (T::ONE - power1);
    let (rest1, rest2) = (T::ONE - beta1, T::ONE - beta2);
    if nesterov {
        update(pool, states, gradient, |[x, m, v], g| {
            let m = m + (g - m) * rest1;
            let v = v + (g * g - v) * rest2;
            [x - (g * rest1 + beta1 * m) * alpha / (v.root() + epsilon), m, v]
        });
    } else {
        update(pool, states, gradient, |[x, m, v], g| {
            let m = m + (g - m) * rest1;
            let v = v + (g * g - v) * rest2;
            [x - m * alpha / (v.root() + epsilon), m, v]
        });
    }
}

/// The numbers of RMSProp.
#[derive(Clone, Copy, Debug)]
pub struct RmsProp<T> {
    /// Learning rate.
    pub rate: T,
    /// Decay of the mean square.
    pub rho: T,
    /// Momentum.
    pub momentum: T,
    /// Added under the root.
    pub epsilon: T,
}

/// RMSProp's step on the variable, mean square and momentum.
pub fn rms_prop<T: Float>(pool: &ThreadPool, states: [&mut [T]; 3], rms: &RmsProp<T>, gradient: &[T]) {
    let RmsProp {
        rate,
        rho,
        momentum,
        epsilon,
    } = *rms;
    update(pool, states, gradient, |[x, square, moment], g| {
        let square = square + (g * g - square) * (T::ONE - rho);
        let moment = moment * momentum + rate * g / (square + epsilon).root();
        [x - moment, square, moment]
    });
}

/// Centered RMSProp's step on the variable, mean gradient, mean square and momentum.
pub fn centered_rms_prop<T: Float>(
    pool: &ThreadPool,
    states: [&mut [T]; 4],
    rms: &RmsProp<T>,
    gradient: &[T],
) {
    let RmsProp {
        rate,
        rho,
        momentum,
        epsilon,
    } = *rms;
    update(pool, states, gradient, |[x, mean, square, moment], g| {
        let square = square + (g * g - square) * (T::ONE - rho);
        let mean = mean + (g - mean) * (T::ONE - rho);
        let moment = moment * momentum + rate * g / (square - mean * mean + epsilon).root();
        [x - moment, mean, square, moment]
    });
}

/// Adagrad's step on the variable and the sum of squares, which grows if `grow`; `epsilon` is added to the root.
pub fn adagrad<T: Float>(
    pool: &ThreadPool,
    states: [&mut [T]; 2],
    rate: T,
    epsilon: T,
    grow: bool,
    gradient: &[T],
) {
    update(pool, states, gradient, |[x, sum], g| {
        let sum = if grow { sum + g * g } else { sum };
        [x - g * rate / (sum.root() + epsilon), sum]
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_of_each() {
        let pool = ThreadPool::serial();
        let mut x = [1.0_f64];
        gradient_descent(pool, &mut x, 0.1, &[2.0]);
        assert_eq!(x, [0.8]);
        let (mut x, mut a) = ([1.0], [0.5]);
        momentum(pool, [&mut x, &mut a], 0.1, 0.9, false, &[2.0]);
        assert!((a[0] - 2.45_f64).abs() < 1e-15 && (x[0] - 0.755_f64).abs() < 1e-15);
        let (mut x, mut a) = ([1.0], [0.5]);
        momentum(pool, [&mut x, &mut a], 0.1, 0.9, true, &[2.0]);
        assert!((x[0] - (1.0 - 0.2 - 0.2205_f64)).abs() < 1e-15);
        let (mut x, mut a) = ([1.0], [0.5]);
        keras_momentum(pool, [&mut x, &mut a], 0.1, 0.9, false, &[2.0]);
        assert!((a[0] - 0.25_f64).abs() < 1e-15 && (x[0] - 1.25_f64).abs() < 1e-15);
        let (mut x, mut m, mut v) = ([1.0], [0.0], [0.0]);
        let numbers = Adam {
            rate: 0.1,
            beta1: (0.9, 0.9),
            beta2: (0.999, 0.999),
            epsilon: 1e-8,
            nesterov: false,
        };
        adam(pool, [&mut x, &mut m, &mut v], &numbers, &[2.0]);
        // The first step moves by the rate.
        assert!(
            (x[0] - 0.9_f64).abs() < 1e-6
                && (m[0] - 0.2_f64).abs() < 1e-15
                && (v[0] - 0.004_f64).abs() < 1e-15
        );
        let (mut x, mut s, mut m) = ([1.0], [1.0], [0.0]);
        let numbers = RmsProp {
            rate: 0.1,
            rho: 0.9,
            momentum: 0.0,
            epsilon: 0.0,
        };
        rms_prop(pool, [&mut x, &mut s, &mut m], &numbers, &[2.0]);
        assert!((s[0] - 1.3_f64).abs() < 1e-15 && (x[0] - (1.0 - 0.2 / 1.3_f64.sqrt())).abs() < 1e-15);
        let (mut x, mut g, mut s, mut m) = ([1.0], [0.0], [1.0], [0.0]);
        centered_rms_prop(pool, [&mut x, &mut g, &mut s, &mut m], &numbers, &[2.0]);
        assert!((x[0] - (1.0 - 0.2 / 1.26_f64.sqrt())).abs() < 1e-15);
        let (mut x, mut s) = ([1.0], [5.0]);
        adagrad(pool, [&mut x, &mut s], 0.3, 0.0, true, &[2.0]);
        assert!((x[0] - 0.8_f64).abs() < 1e-15 && s == [9.0]);
    }

    #[test]
    fn long_variables() {
        let n = 100_001;
        let (mut x, mut a) = (vec![1.0_f32; n], vec![0.0; n]);
        let gradient: Vec<f32> = (0..n).map(|i| i as f32).collect();
        momentum(&ThreadPool::new(2), [&mut x, &mut a], 0.5, 0.9, false, &gradient);
        assert!((0..n).all(|i| a[i] == i as f32 && x[i] == 1.0 - 0.5 * i as f32));
    }
}
