//! The vector operations that the gemm microkernels are written in, per instruction set.

/// One vector register of elements.
///
/// # Safety
/// The methods need the instruction set of the implementor; pointers need `LANES` accessible elements.
pub unsafe trait Simd {
    /// The element.
    type Element: Copy;
    /// The register.
    type Vector: Copy;
    /// Elements per register.
    const LANES: usize;
    /// # Safety
    /// See the trait.
    unsafe fn splat(x: Self::Element) -> Self::Vector;
    /// # Safety
    /// See the trait.
    unsafe fn load(from: *const Self::Element) -> Self::Vector;
    /// # Safety
    /// See the trait.
    unsafe fn store(to: *mut Self::Element, x: Self::Vector);
    /// `a * b + c`, fused where the instruction set has it.
    /// # Safety
    /// See the trait.
    unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// # Safety
    /// See the trait.
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The larger; `b` if either is not a number.
    /// # Safety
    /// See the trait.
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The smaller; `b` if either is not a number.
    /// # Safety
    /// See the trait.
    unsafe fn min(a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

macro_rules! intrinsics {
    ($(#[$doc:meta])* $name:ident, $element:ty, $vector:ident, $lanes:literal,
     $splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident, $max:ident, $min:ident) => {
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        #[derive(Debug)]
        pub struct $name;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: plain wrappers of the instructions; the caller guarantees that the processor has them.
        unsafe impl Simd for $name {
            type Element = $element;
            type Vector = std::arch::x86_64::$vector;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(x: $element) -> Self::Vector {
                // SAFETY: the trait's contract.
                unsafe { std::arch::x86_64::$splat(x) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self::Vector {
                // SAFETY: the trait's contract.
                unsafe { std::arch::x86_64::$load(from) }
            }
            #[inline(always)]
            unsafe fn store(to: *mut $element, x: Self::Vector) {
                // SAFETY: the trait's contract.
                unsafe { std::arch::x86_64::$store(to, x) }
            }
            #[inline(always)]
            unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                // SAFETY: the trait's contract.
                unsafe { std::arch::x86_64::$fma(a, b, c) }
            }
            #[inline(always)]
            unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: the trait's contract.
                unsafe { std::arch::x86_64::$add(a, b) }
            }
            #[inline(always)]
            unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: the trait's contract.
                unsafe { std::arch::x86_64::$max(a, b) }
            }
            #[inline(always)]
            unsafe fn min(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: the trait's contract.
                unsafe { std::arch::x86_64::$min(a, b) }
            }
        }
    };
}

intrinsics!(
    /// 8 single-precision lanes.
    Avx2F32, f32, __m256, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps,
    _mm256_add_ps, _mm256_max_ps, _mm256_min_ps
);
intrinsics!(
    /// 4 double-precision lanes.
    Avx2F64, f64, __m256d, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd,
    _mm256_add_pd, _mm256_max_pd, _mm256_min_pd
);
intrinsics!(
    /// 16 single-precision lanes.
    Avx512F32, f32, __m512, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps,
    _mm512_add_ps, _mm512_max_ps, _mm512_min_ps
);
intrinsics!(
    /// 8 double-precision lanes.
    Avx512F64, f64, __m512d, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd,
    _mm512_add_pd, _mm512_max_pd, _mm512_min_pd
);

/// What every processor has: four lanes that the compiler maps to the baseline's registers; not fused.
#[derive(Debug)]
pub struct Portable<T>(std::marker::PhantomData<T>);

macro_rules! portable {
    ($($element:ty),*) => {
        $(
            // SAFETY: plain Rust; pointers as the trait demands.
            unsafe impl Simd for Portable<$element> {
                type Element = $element;
                type Vector = [$element; 4];
                const LANES: usize = 4;
                #[inline(always)]
                unsafe fn splat(x: $element) -> Self::Vector {
                    [x; 4]
                }
                #[inline(always)]
                unsafe fn load(from: *const $element) -> Self::Vector {
                    // SAFETY: the trait's contract.
                    unsafe { from.cast::<[$element; 4]>().read_unaligned() }
                }
                #[inline(always)]
                unsafe fn store(to: *mut $element, x: Self::Vector) {
                    // SAFETY: the trait's contract.
                    unsafe { to.cast::<[$element; 4]>().write_unaligned(x) }
                }
                #[inline(always)]
                unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                    std::array::from_fn(|i| a[i] * b[i] + c[i])
                }
                #[inline(always)]
                unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    std::array::from_fn(|i| a[i] + b[i])
                }
                #[inline(always)]
                unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
                }
                #[inline(always)]
                unsafe fn min(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                    std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
                }
            }
        )*
    };
}
portable!(f32, f64);
