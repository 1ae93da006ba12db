//! The opcodes: one list, sorted by text name, with the operand count, class and element types of each.
//!
//! Names and meanings are XLA's; the few that XLA lacks are `atan`, `check`, `digamma`, `erf-inv`, `erfc`,
//! `log-gamma` and `next-after`. What each takes beyond its operands is in [`crate::Attributes`]; what shape it
//! has is in `shape_rules`.

use ff_tensor::DataType;
use std::fmt;

/// How many operands an opcode takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// This many.
    Exactly(usize),
    /// This many or more.
    AtLeast(usize),
}

impl Arity {
    /// Whether `count` operands are right.
    pub fn accepts(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n,
            Arity::AtLeast(n) => count >= n,
        }
    }
}

/// What kind of work an opcode does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One operand; each element of the result depends on the element at its place.
    Unary,
    /// Two operands of the same shape, element by element.
    Binary,
    /// Element by element with operands of several types (`select`, `clamp`, `convert`...).
    Elementwise,
    /// Elements move but keep their values.
    Movement,
    /// Elements are combined across places.
    Contraction,
    /// Calls computations.
    Control,
    /// Values from nowhere: parameters, constants, counters.
    Source,
    /// Tuples, checks, calls out of the module.
    Structure,
}

/// Element types that an opcode accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// Every type.
    Any,
    /// Integers, floating-point and complex numbers.
    Number,
    /// Integers, floating-point and complex numbers, and truth values.
    NumberOrPred,
    /// Integers and floating-point numbers.
    Real,
    /// Integers, floating-point numbers and truth values.
    RealOrPred,
    /// Floating-point numbers.
    Float,
    /// Floating-point and complex numbers.
    Inexact,
    /// Integers.
    Integer,
    /// Integers and truth values.
    Bits,
    /// Complex numbers, and floating-point numbers as complex ones without imaginary part.
    ComplexParts,
}

impl Types {
    /// Whether `dtype` is one of these.
    pub fn accept(self, dtype: DataType) -> bool {
        let (integer, float, complex) = (dtype.is_integer(), dtype.is_floating(), dtype.is_complex());
        let pred = dtype == DataType::BOOL;
        match self {
            Types::Any => dtype.is_plain(),
            Types::Number => integer || float || complex,
            Types::NumberOrPred => integer || float || complex || pred,
            Types::Real => integer || float,
            Types::RealOrPred => integer || float || pred,
            Types::Float => float,
            Types::Inexact | Types::ComplexParts => float || complex,
            Types::Integer => integer,
            Types::Bits => integer || pred,
        }
    }

    /// The types in words, for error texts.
    pub fn describe(self) -> &'static str {
        match self {
            Types::Any => "plain",
            Types::Number => "integral, floating-point or complex",
            Types::NumberOrPred => "integral, floating-point, complex or pred",
            Types::Real => "integral or floating-point",
            Types::RealOrPred => "integral, floating-point or pred",
            Types::Float => "floating-point",
            Types::Inexact | Types::ComplexParts => "floating-point or complex",
            Types::Integer => "integral",
            Types::Bits => "integral or pred",
        }
    }
}

struct Row {
    name: &'static str,
    arity: Arity,
    class: Class,
    types: Types,
}

/// Makes the enum, the list of all opcodes and their rows from one table.
macro_rules! opcodes {
    ($($variant:ident $name:literal $arity:ident($count:literal) $class:ident $types:ident;)*) => {
        /// An operation of the IR.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs)] // the names are the definition
        pub enum Opcode { $($variant),* }

        /// Every opcode, sorted by its text name.
        pub const ALL: &[Opcode] = &[$(Opcode::$variant),*];

        const ROWS: &[Row] = &[$(Row {
            name: $name,
            arity: Arity::$arity($count),
            class: Class::$class,
            types: Types::$types,
        }),*];
    };
}

opcodes! {
    Abs "abs" Exactly(1) Unary Number;
    Acos "acos" Exactly(1) Unary Inexact;
    Acosh "acosh" Exactly(1) Unary Inexact;
    Add "add" Exactly(2) Binary NumberOrPred;
    And "and" Exactly(2) Binary Bits;
    Asin "asin" Exactly(1) Unary Inexact;
    Asinh "asinh" Exactly(1) Unary Inexact;
    Atan "atan" Exactly(1) Unary Inexact;
    Atan2 "atan2" Exactly(2) Binary Inexact;
    Atanh "atanh" Exactly(1) Unary Inexact;
    BitcastConvert "bitcast-convert" Exactly(1) Elementwise Any;
    Broadcast "broadcast" Exactly(1) Movement Any;
    Call "call" AtLeast(0) Control Any;
    Cbrt "cbrt" Exactly(1) Unary Float;
    Ceil "ceil" Exactly(1) Unary Float;
    Check "check" AtLeast(1) Structure Any;
    Cholesky "cholesky" Exactly(1) Contraction Inexact;
    Clamp "clamp" Exactly(3) Elementwise RealOrPred;
    Compare "compare" Exactly(2) Elementwise NumberOrPred;
    Complex "complex" Exactly(2) Elementwise Float;
    Concatenate "concatenate" AtLeast(1) Movement Any;
    Conditional "conditional" AtLeast(2) Control Any;
    Constant "constant" Exactly(0) Source Any;
    Convert "convert" Exactly(1) Elementwise NumberOrPred;
    Convolution "convolution" Exactly(2) Contraction Number;
    Copy "copy" Exactly(1) Elementwise Any;
    Cosh "cosh" Exactly(1) Unary Inexact;
    Cosine "cosine" Exactly(1) Unary Inexact;
    CountLeadingZeros "count-leading-zeros" Exactly(1) Unary Integer;
    CustomCall "custom-call" AtLeast(0) Structure Any;
    Digamma "digamma" Exactly(1) Unary Float;
    Divide "divide" Exactly(2) Binary Number;
    Dot "dot" Exactly(2) Contraction NumberOrPred;
    DynamicSlice "dynamic-slice" AtLeast(1) Movement Any;
    DynamicUpdateSlice "dynamic-update-slice" AtLeast(2) Movement Any;
    Erf "erf" Exactly(1) Unary Float;
    ErfInv "erf-inv" Exactly(1) Unary Float;
    Erfc "erfc" Exactly(1) Unary Float;
    Exponential "exponential" Exactly(1) Unary Inexact;
    ExponentialMinusOne "exponential-minus-one" Exactly(1) Unary Inexact;
    Fft "fft" Exactly(1) Contraction Inexact;
    Floor "floor" Exactly(1) Unary Float;
    Fusion "fusion" AtLeast(0) Control Any;
    Gather "gather" Exactly(2) Movement Any;
    GetDimensionSize "get-dimension-size" Exactly(1) Source Any;
    GetTupleElement "get-tuple-element" Exactly(1) Structure Any;
    Imag "imag" Exactly(1) Unary ComplexParts;
    Iota "iota" Exactly(0) Source Number;
    IsFinite "is-finite" Exactly(1) Unary Float;
    Log "log" Exactly(1) Unary Inexact;
    LogGamma "log-gamma" Exactly(1) Unary Float;
    LogPlusOne "log-plus-one" Exactly(1) Unary Inexact;
    Logistic "logistic" Exactly(1) Unary Inexact;
    Map "map" AtLeast(1) Control Any;
    Maximum "maximum" Exactly(2) Binary RealOrPred;
    Minimum "minimum" Exactly(2) Binary RealOrPred;
    Multiply "multiply" Exactly(2) Binary NumberOrPred;
    Negate "negate" Exactly(1) Unary Number;
    NextAfter "next-after" Exactly(2) Binary Float;
    Not "not" Exactly(1) Unary Bits;
    OptBarrier "opt-barrier" Exactly(1) Structure Any;
    Or "or" Exactly(2) Binary Bits;
    Pad "pad" Exactly(2) Movement Any;
    Parameter "parameter" Exactly(0) Source Any;
    Popcnt "popcnt" Exactly(1) Unary Integer;
    Power "power" Exactly(2) Binary Number;
    Real "real" Exactly(1) Unary ComplexParts;
    Reduce "reduce" AtLeast(2) Contraction Any;
    ReducePrecision "reduce-precision" Exactly(1) Elementwise Float;
    ReduceWindow "reduce-window" AtLeast(2) Contraction Any;
    Remainder "remainder" Exactly(2) Binary Real;
    Reshape "reshape" Exactly(1) Movement Any;
    Reverse "reverse" Exactly(1) Movement Any;
    RngBitGenerator "rng-bit-generator" Exactly(1) Source Integer;
    RoundNearestAfz "round-nearest-afz" Exactly(1) Unary Float;
    RoundNearestEven "round-nearest-even" Exactly(1) Unary Float;
    Rsqrt "rsqrt" Exactly(1) Unary Inexact;
    Scan "scan" AtLeast(1) Control Any;
    Scatter "scatter" AtLeast(3) Movement Any;
    Select "select" Exactly(3) Elementwise Any;
    SelectAndScatter "select-and-scatter" Exactly(3) Contraction Any;
    ShiftLeft "shift-left" Exactly(2) Binary Integer;
    ShiftRightArithmetic "shift-right-arithmetic" Exactly(2) Binary Integer;
    ShiftRightLogical "shift-right-logical" Exactly(2) Binary Integer;
    Sign "sign" Exactly(1) Unary Number;
    Sine "sine" Exactly(1) Unary Inexact;
    Sinh "sinh" Exactly(1) Unary Inexact;
    Slice "slice" Exactly(1) Movement Any;
    Sort "sort" AtLeast(1) Movement Any;
    Sqrt "sqrt" Exactly(1) Unary Inexact;
    Subtract "subtract" Exactly(2) Binary Number;
    Tan "tan" Exactly(1) Unary Inexact;
    Tanh "tanh" Exactly(1) Unary Inexact;
    TopK "topk" Exactly(1) Movement Real;
    Transpose "transpose" Exactly(1) Movement Any;
    TriangularSolve "triangular-solve" Exactly(2) Contraction Inexact;
    Tuple "tuple" AtLeast(0) Structure Any;
    While "while" Exactly(1) Control Any;
    Xor "xor" Exactly(2) Binary Bits;
}

impl Opcode {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The opcode with this text name.
    pub fn from_name(name: &str) -> Option<Opcode> {
        let index = ROWS.binary_search_by(|row| row.name.cmp(name)).ok()?;
        ALL.get(index).copied()
    }

    /// How many operands it takes.
    pub fn arity(self) -> Arity {
        self.row().arity
    }

    /// What kind of work it does.
    pub fn class(self) -> Class {
        self.row().class
    }

    /// The element types of its first array operand.
    pub fn types(self) -> Types {
        self.row().types
    }

    /// Whether each element of the result depends only on the elements at its place.
    pub fn is_elementwise(self) -> bool {
        matches!(self.class(), Class::Unary | Class::Binary | Class::Elementwise)
    }

    /// Whether swapping the two operands changes nothing.
    pub fn is_commutative(self) -> bool {
        use Opcode::*;
        matches!(self, Add | And | Multiply | Or | Xor)
    }

    /// Whether swapping the two operands changes nothing but the sign of zeros: of equal ones, extremes are the second.
    pub fn is_symmetric(self) -> bool {
        self.is_commutative() || matches!(self, Opcode::Maximum | Opcode::Minimum)
    }

    /// Whether the instruction must stay although nobody reads its result.
    pub fn has_side_effect(self) -> bool {
        matches!(self, Opcode::Check | Opcode::CustomCall)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_sorted_and_names_are_found() {
        for pair in ROWS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} {}", pair[0].name, pair[1].name);
        }
        for &opcode in ALL {
            assert_eq!(Opcode::from_name(opcode.name()), Some(opcode));
        }
        assert_eq!(Opcode::from_name("nonsense"), None);
    }
}
