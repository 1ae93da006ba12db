//! Builds tile programs: instructions in any number of values, then registers for them.

use super::program::{Arg, Input, IotaFn, Kind, Output, TileOp};
use super::{Access, TileProgram, compute_type, convert, map_function};
use crate::attributes::Attributes;
use crate::opcode::{Class, Opcode};
use ff_tensor::{Complex64, Complex128, DataType, Result, status};
use smallvec::SmallVec;

/// A value in a program being built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::evaluator) struct ValueId(usize);

struct Value {
    dtype: DataType,
    /// An input that is read in place, or the result of an instruction.
    origin: Origin,
    /// The same for all tiles.
    invariant: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Input { index: u16, splat: bool },
    Op(usize),
}

/// An instruction before it has registers.
struct PendingOp {
    kind: Kind,
    args: SmallVec<[ValueId; 3]>,
    result: ValueId,
    size: usize,
    /// The output that it stores, where that is all it does.
    stores: Option<u16>,
}

/// Collects the instructions of a fusion.
#[derive(Default)]
pub(in crate::evaluator) struct TileBuilder {
    inputs: Vec<Input>,
    values: Vec<Value>,
    ops: Vec<PendingOp>,
    outputs: Vec<(ValueId, DataType)>,
    cost: f64,
}

/// Bytes of registers that a tile's instructions may touch.
const TILE_BYTES: usize = 16 << 10;

impl TileBuilder {
    /// An input of elements of a type. The n-th call makes input `n`.
    pub fn input(&mut self, dtype: DataType, access: Access) -> ValueId {
        let index = self.inputs.len() as u16;
        let splat = matches!(access, Access::Splat(_));
        let strided = matches!(access, Access::Strided(_));
        let size = dtype.size();
        self.inputs.push(Input { size, access });
        self.cost += 0.05 * size as f64;
        let raw = self.value(dtype, Origin::Input { index, splat }, splat);
        let raw = if strided {
            self.push(Kind::Load { input: index }, &[], dtype, size, false)
        } else {
            raw
        };
        match convert::stored(dtype) {
            None => {
                self.values[raw.0].dtype = compute_type(dtype);
                raw
            }
            Some(functions) => {
                let raw = self.filled(raw, size);
                let kind = Kind::Map {
                    function: functions.load,
                    splat: 0,
                    parameter: 0,
                };
                let computed = compute_type(dtype);
                self.push(kind, &[raw], computed, computed.size(), splat)
            }
        }
    }

    fn value(&mut self, dtype: DataType, origin: Origin, invariant: bool) -> ValueId {
        self.values.push(Value {
            dtype,
            origin,
            invariant,
        });
        ValueId(self.values.len() - 1)
    }

    fn push(
        &mut self,
        kind: Kind,
        args: &[ValueId],
        dtype: DataType,
        size: usize,
        invariant: bool,
    ) -> ValueId {
        let result = self.value(dtype, Origin::Op(self.ops.len()), invariant);
        self.ops.push(PendingOp {
            kind,
            args: SmallVec::from_slice(args),
            result,
            size,
            stores: None,
        });
        result
    }

    fn is_splat(&self, value: ValueId) -> bool {
        matches!(self.values[value.0].origin, Origin::Input { splat: true, .. })
    }

    /// The value as a whole tile, if it is a single element.
    fn filled(&mut self, value: ValueId, size: usize) -> ValueId {
        if !self.is_splat(value) {
            return value;
        }
        let dtype = self.values[value.0].dtype;
        self.push(Kind::Fill, &[value], dtype, size, true)
    }

    /// Counts along an axis of `extent` with `inner` elements behind each count.
    pub fn iota(&mut self, dtype: DataType, inner: usize, extent: usize) -> Result<ValueId> {
        let computed = compute_type(dtype);
        let function = iota_function(computed)
            .ok_or_else(|| status!(Unimplemented, "iota of type {dtype} is not implemented"))?;
        let kind = Kind::Iota {
            function,
            inner,
            extent,
        };
        self.cost += 0.5;
        let value = self.push(kind, &[], computed, computed.size(), false);
        Ok(self.rounded(value, dtype))
    }

    /// The value rounded to what its type can store.
    fn rounded(&mut self, value: ValueId, dtype: DataType) -> ValueId {
        let Some(functions) = convert::stored(dtype) else {
            return value;
        };
        let kind = Kind::Map {
            function: functions.round,
            splat: 0,
            parameter: 0,
        };
        let computed = compute_type(dtype);
        let invariant = self.values[value.0].invariant;
        self.cost += 0.5;
        self.push(kind, &[value], computed, computed.size(), invariant)
    }

    /// An elementwise instruction; `operand` is the element type of its first operand that is not a predicate.
    pub fn map(
        &mut self,
        opcode: Opcode,
        attributes: &Attributes,
        args: &[ValueId],
        operand: DataType,
        result: DataType,
    ) -> Result<ValueId> {
        if let (Opcode::Clamp, [min, value, max]) = (opcode, args) {
            let bounded = self.map(Opcode::Maximum, attributes, &[*min, *value], operand, result)?;
            return self.map(Opcode::Minimum, attributes, &[*max, bounded], operand, result);
        }
        let unknown = || status!(Unimplemented, "{opcode} of type {operand} is not implemented");
        if opcode == Opcode::NextAfter && convert::stored(operand).is_some() {
            return Err(unknown());
        }
        let computed = compute_type(result);
        let function =
            map_function(opcode, attributes, compute_type(operand), computed).ok_or_else(unknown)?;
        let mut args: SmallVec<[ValueId; 3]> = SmallVec::from_slice(args);
        let invariant = args.iter().all(|arg| self.values[arg.0].invariant);
        let splat = self.spread(&mut args);
        let parameter = match attributes {
            Attributes::Precision {
                exponent_bits,
                mantissa_bits,
            } => u64::from(*exponent_bits) << 32 | u64::from(*mantissa_bits),
            _ => 0,
        };
        let kind = Kind::Map {
            function,
            splat,
            parameter,
        };
        if !invariant {
            self.cost += element_cost(opcode, compute_type(operand));
        }
        let value = self.push(kind, &args, computed, computed.size(), invariant);
        Ok(if is_exact(opcode) {
            value
        } else {
            self.rounded(value, result)
        })
    }

    /// Makes whole tiles of single elements where the function takes none; the rest as bits.
    fn spread(&mut self, args: &mut [ValueId]) -> u8 {
        let splats = args.iter().filter(|&&arg| self.is_splat(arg)).count();
        if args.len() == 2 && splats == 1 {
            return if self.is_splat(args[0]) { 1 } else { 2 };
        }
        for arg in args {
            let size = self.values[arg.0].dtype.size();
            *arg = self.filled(*arg, size);
        }
        0
    }

    /// Makes a value an output of elements of a type. The n-th call makes output `n`.
    pub fn output(&mut self, value: ValueId, dtype: DataType) {
        self.cost += 0.05 * dtype.size() as f64;
        self.outputs.push((value, dtype));
    }

    /// The program.
    pub fn finish(mut self) -> TileProgram {
        let outputs = self.store_outputs();
        let uses = self.last_uses();
        let mut allocator = Registers::default();
        let mut places: Vec<Option<Place>> = vec![None; self.values.len()];
        let mut program = TileProgram {
            inputs: Vec::new(),
            outputs,
            prologue: Vec::new(),
            body: Vec::new(),
            tile: 0,
            scratch_bytes: 0,
            cost: self.cost.max(0.02),
        };
        for (position, op) in self.ops.iter().enumerate() {
            let place = match op.stores {
                Some(output) => Place::Output(output),
                None if self.values[op.result.0].invariant => Place::Register(allocator.fresh(op.size)),
                None => Place::Register(allocator.take(op.size)),
            };
            places[op.result.0] = Some(place);
            let mut args = [Arg::None; 3];
            for (slot, arg) in args.iter_mut().zip(&op.args) {
                *slot = self.argument(*arg, &places);
            }
            for &arg in &op.args {
                let value = &self.values[arg.0];
                if let (Some(Place::Register(register)), false) = (places[arg.0], value.invariant)
                    && uses[arg.0] == position
                {
                    allocator.give_back(register);
                }
            }
            let compiled = TileOp {
                kind: op.kind,
                args,
                target: place.as_arg(),
                size: op.size,
            };
            let is_store = op.stores.is_some();
            if self.values[op.result.0].invariant && !is_store {
                program.prologue.push(compiled);
            } else {
                program.body.push(compiled);
            }
        }
        program.inputs = self.inputs;
        lay_out(&mut program, &allocator);
        program
    }

    /// Where an operand lies; registers still by number.
    fn argument(&self, value: ValueId, places: &[Option<Place>]) -> Arg {
        match (self.values[value.0].origin, places[value.0]) {
            (Origin::Input { index, .. }, _) => Arg::Input(index),
            (Origin::Op(_), Some(place)) => place.as_arg(),
            (Origin::Op(_), None) => Arg::None,
        }
    }

    /// Lets instructions write outputs where they can, and adds copies and conversions where they cannot.
    fn store_outputs(&mut self) -> Vec<Output> {
        let wanted = std::mem::take(&mut self.outputs);
        let mut outputs = Vec::with_capacity(wanted.len());
        for (index, &(value, dtype)) in wanted.iter().enumerate() {
            let stored = convert::stored(dtype);
            let producer = match self.values[value.0].origin {
                Origin::Op(position) => Some(position),
                Origin::Input { .. } => None,
            };
            let direct = stored.is_none() && !self.values[value.0].invariant;
            match producer {
                Some(producer) if direct && self.ops[producer].stores.is_none() => {
                    self.ops[producer].stores = Some(index as u16);
                }
                _ => {
                    let size = self.values[value.0].dtype.size();
                    let value = self.filled(value, size);
                    let kind = match stored {
                        Some(functions) => Kind::Map {
                            function: functions.store,
                            splat: 0,
                            parameter: 0,
                        },
                        None => Kind::Copy,
                    };
                    self.push(kind, &[value], dtype, dtype.size(), false);
                    if let Some(op) = self.ops.last_mut() {
                        op.stores = Some(index as u16);
                    }
                }
            }
            outputs.push(Output {
                size: dtype.size(),
                bounce: 0,
                inputs_read_later: 0,
            });
        }
        self.note_later_reads(&mut outputs);
        outputs
    }

    /// For each output: which inputs are read after it is written.
    fn note_later_reads(&self, outputs: &mut [Output]) {
        let mut read: u64 = 0;
        for op in self.ops.iter().rev() {
            if let Some(output) = op.stores {
                outputs[output as usize].inputs_read_later = read;
            }
            let mut note = |index: u16| read |= 1u64.checked_shl(u32::from(index)).unwrap_or(0);
            if let Kind::Load { input } = op.kind {
                note(input);
            }
            for arg in &op.args {
                if let Origin::Input { index, .. } = self.values[arg.0].origin {
                    note(index);
                }
            }
        }
    }

    /// The last instruction that reads each value.
    fn last_uses(&self) -> Vec<usize> {
        let mut uses = vec![usize::MAX; self.values.len()];
        for (position, op) in self.ops.iter().enumerate() {
            for arg in &op.args {
                uses[arg.0] = position;
            }
        }
        uses
    }
}

#[derive(Clone, Copy)]
enum Place {
    /// A register by number.
    Register(u32),
    Output(u16),
}

impl Place {
    fn as_arg(self) -> Arg {
        match self {
            Place::Register(number) => Arg::Register(number),
            Place::Output(index) => Arg::Output(index),
        }
    }
}

/// Registers by the bytes of their elements.
#[derive(Default)]
struct Registers {
    sizes: Vec<usize>,
    free: Vec<u32>,
}

impl Registers {
    fn take(&mut self, size: usize) -> u32 {
        if let Some(at) = self
            .free
            .iter()
            .position(|&register| self.sizes[register as usize] == size)
        {
            return self.free.swap_remove(at);
        }
        self.fresh(size)
    }

    /// A register that nothing else ever used: what the prologue leaves in it stays.
    fn fresh(&mut self, size: usize) -> u32 {
        self.sizes.push(size);
        self.sizes.len() as u32 - 1
    }

    fn give_back(&mut self, register: u32) {
        if !self.free.contains(&register) {
            self.free.push(register);
        }
    }
}

/// Chooses the tile's length and turns register numbers into offsets.
fn lay_out(program: &mut TileProgram, registers: &Registers) {
    let bounces: usize = program.outputs.iter().map(|output| output.size).sum();
    let bytes = registers.sizes.iter().sum::<usize>() + bounces;
    let tile = (TILE_BYTES / bytes.max(1)).next_multiple_of(64).clamp(256, 4096);
    let mut next = 0;
    let mut place = |size: usize| -> u32 {
        let offset = next;
        next += (size * tile).next_multiple_of(64);
        offset as u32
    };
    let offsets: Vec<u32> = registers.sizes.iter().map(|&size| place(size)).collect();
    for output in &mut program.outputs {
        output.bounce = place(output.size);
    }
    let fix = |arg: &mut Arg| {
        if let Arg::Register(number) = arg {
            *number = offsets[*number as usize];
        }
    };
    for op in program.prologue.iter_mut().chain(&mut program.body) {
        op.args.iter_mut().for_each(fix);
        fix(&mut op.target);
    }
    program.tile = tile;
    program.scratch_bytes = next;
}

/// Whether the result of an opcode on stored values can always be stored.
fn is_exact(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Abs | Ceil
            | Compare
            | Copy
            | Floor
            | IsFinite
            | Maximum
            | Minimum
            | RoundNearestAfz
            | RoundNearestEven
            | Select
            | Sign
            | Real
    )
}

/// Nanoseconds for one element in a tile.
fn element_cost(opcode: Opcode, dtype: DataType) -> f64 {
    use Opcode::*;
    let single = dtype == DataType::FLOAT;
    match opcode {
        Exponential | ExponentialMinusOne | Log | LogPlusOne | Logistic | Tanh | Erf | Sine | Cosine
            if single =>
        {
            0.8
        }
        Exponential | ExponentialMinusOne | Log | LogPlusOne | Logistic | Tanh | Erf | Sine | Cosine
        | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Atan2
            if single || dtype == DataType::DOUBLE =>
        {
            2.0
        }
        Power if single || dtype == DataType::DOUBLE => 4.0,
        Sqrt | Rsqrt | Divide if !dtype.is_complex() => 0.4,
        Power | Atan2 | Remainder | Digamma | LogGamma | ErfInv => 20.0,
        _ if opcode.class() == Class::Unary
            && !is_exact(opcode)
            && opcode != Negate
            && !dtype.is_integer() =>
        {
            10.0
        }
        _ => 0.03 * dtype.size() as f64,
    }
}

/// Writes runs of equal counts.
///
/// # Safety
/// As for [`IotaFn`].
unsafe fn write_counts<T: Copy>(
    out: *mut u8,
    start: usize,
    len: usize,
    (inner, extent): (usize, usize),
    make: impl Fn(usize) -> T,
) {
    // SAFETY: passed on to the caller.
    let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), len) };
    let (mut count, mut within) = (start / inner % extent, start % inner);
    let mut rest = out;
    while !rest.is_empty() {
        if inner == 1 {
            let run = (extent - count).min(rest.len());
            let (now, later) = rest.split_at_mut(run);
            for (i, slot) in now.iter_mut().enumerate() {
                *slot = make(count + i);
            }
            count = 0;
            rest = later;
        } else {
            let run = (inner - within).min(rest.len());
            let (now, later) = rest.split_at_mut(run);
            now.fill(make(count));
            within = 0;
            count = (count + 1) % extent;
            rest = later;
        }
    }
}

/// The counting function of a computed type.
fn iota_function(dtype: DataType) -> Option<IotaFn> {
    /// A function that counts in a number type.
    macro_rules! count {
        ($t:ty, $make:expr) => {{
            unsafe fn run(out: *mut u8, start: usize, len: usize, inner: usize, extent: usize) {
                // SAFETY: passed on to the caller.
                unsafe { write_counts::<$t>(out, start, len, (inner, extent), $make) }
            }
            run
        }};
    }
    Some(match dtype {
        DataType::INT8 | DataType::UINT8 => count!(u8, |i| i as u8),
        DataType::INT16 | DataType::UINT16 => count!(u16, |i| i as u16),
        DataType::INT32 | DataType::UINT32 => count!(u32, |i| i as u32),
        DataType::INT64 | DataType::UINT64 => count!(u64, |i| i as u64),
        DataType::FLOAT => count!(f32, |i| i as f32),
        DataType::DOUBLE => count!(f64, |i| i as f64),
        DataType::COMPLEX64 => count!(Complex64, |i| Complex64::new(i as f32, 0.0)),
        DataType::COMPLEX128 => count!(Complex128, |i| Complex128::new(i as f64, 0.0)),
        _ => return None,
    })
}
