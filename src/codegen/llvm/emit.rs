//! LLVM IR of elementwise kernels.
//!
//! For the host: a loop over vectors and a loop over the elements that are left. Both compute the same bits, as no
//! operation depends on its lane and none is contracted. For the GPU: one element for each thread.

use crate::{Elementwise, Instruction};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, FloatMathValue, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};

type Emitted<T> = Result<T, Box<dyn std::error::Error>>;

/// LLVM's number of the calling convention of GPU entries.
const PTX_KERNEL: u32 = 71;

/// What the emitters pass around.
struct Emitter<'c, 'k> {
    context: &'c Context,
    builder: Builder<'c>,
    kernel: &'k Elementwise,
}

/// A module with the kernel as a C function `(output, inputs, elements)`.
pub fn host_module<'c>(context: &'c Context, kernel: &Elementwise, lanes: u32) -> Emitted<Module<'c>> {
    let module = context.create_module(&kernel.name);
    let (pointer, long) = (context.ptr_type(AddressSpace::default()), context.i64_type());
    let signature = context
        .void_type()
        .fn_type(&[pointer.into(), pointer.into(), long.into()], false);
    let function = module.add_function(&kernel.name, signature, None);
    let emitter = Emitter {
        context,
        builder: context.create_builder(),
        kernel,
    };
    emitter.host_function(function, lanes)?;
    Ok(module)
}

/// A module with the kernel as a GPU entry `(output, input0, .., elements)`.
pub fn gpu_module<'c>(context: &'c Context, kernel: &Elementwise) -> Emitted<Module<'c>> {
    let module = context.create_module(&kernel.name);
    let global = context.ptr_type(AddressSpace::from(1));
    let mut parameters = vec![global.into(); 1 + kernel.inputs];
    parameters.push(context.i64_type().into());
    let function = module.add_function(
        &kernel.name,
        context.void_type().fn_type(&parameters, false),
        None,
    );
    function.set_call_conventions(PTX_KERNEL);
    let emitter = Emitter {
        context,
        builder: context.create_builder(),
        kernel,
    };
    emitter.gpu_function(&module, function)?;
    Ok(module)
}

impl<'c> Emitter<'c, '_> {
    fn host_function(&self, function: FunctionValue<'c>, lanes: u32) -> Emitted<()> {
        let long = self.context.i64_type();
        let entry = self.context.append_basic_block(function, "entry");
        self.builder.position_at_end(entry);
        let output = parameter(function, 0)?.into_pointer_value();
        let table = parameter(function, 1)?.into_pointer_value();
        let elements = parameter(function, 2)?.into_int_value();
        let pointer = self.context.ptr_type(AddressSpace::default());
        let mut inputs = Vec::new();
        for number in 0..self.kernel.inputs {
            let index = long.const_int(number as u64, false);
            // SAFETY: the table has a pointer for each input.
            let slot = unsafe {
                self.builder
                    .build_in_bounds_gep(pointer, table, &[index], "slot")?
            };
            inputs.push(
                self.builder
                    .build_load(pointer, slot, "input")?
                    .into_pointer_value(),
            );
        }
        let scalar = self.context.f32_type();
        let vector = scalar.vec_type(lanes);
        let mask = long.const_int(!(u64::from(lanes) - 1), false);
        let whole = self.builder.build_and(elements, mask, "whole")?;
        let start = long.const_zero();
        let block = self.count_loop(function, entry, (start, whole, u64::from(lanes)), |index| {
            self.element(vector.into(), index, output, &inputs)
        })?;
        self.count_loop(function, block, (whole, elements, 1), |index| {
            self.element(scalar.into(), index, output, &inputs)
        })?;
        self.builder.build_return(None)?;
        Ok(())
    }

    fn gpu_function(&self, module: &Module<'c>, function: FunctionValue<'c>) -> Emitted<()> {
        let entry = self.context.append_basic_block(function, "entry");
        let body = self.context.append_basic_block(function, "body");
        let done = self.context.append_basic_block(function, "done");
        self.builder.position_at_end(entry);
        let register = |name: &str| -> Emitted<IntValue<'c>> {
            let declaration = Intrinsic::find(&format!("llvm.nvvm.read.ptx.sreg.{name}.x"))
                .and_then(|intrinsic| intrinsic.get_declaration(module, &[]));
            let declaration = declaration.ok_or("no such register")?;
            let value = self
                .builder
                .build_call(declaration, &[], name)?
                .try_as_basic_value();
            let value = value
                .basic()
                .ok_or("a register without a value")?
                .into_int_value();
            Ok(self
                .builder
                .build_int_z_extend(value, self.context.i64_type(), name)?)
        };
        let first = self
            .builder
            .build_int_mul(register("ctaid")?, register("ntid")?, "first")?;
        let index = self.builder.build_int_add(first, register("tid")?, "index")?;
        let elements = parameter(function, 1 + self.kernel.inputs as u32)?.into_int_value();
        let inside = self
            .builder
            .build_int_compare(IntPredicate::ULT, index, elements, "inside")?;
        self.builder.build_conditional_branch(inside, body, done)?;
        self.builder.position_at_end(body);
        let output = parameter(function, 0)?.into_pointer_value();
        let inputs = (0..self.kernel.inputs)
            .map(|number| Ok(parameter(function, 1 + number as u32)?.into_pointer_value()))
            .collect::<Emitted<Vec<_>>>()?;
        self.element(self.context.f32_type().into(), index, output, &inputs)?;
        self.builder.build_unconditional_branch(done)?;
        self.builder.position_at_end(done);
        self.builder.build_return(None)?;
        Ok(())
    }

    /// `for (index = start; index < end; index += step) body(index)`, from the end of `before`; returns the block
    /// after the loop, where the builder stands.
    fn count_loop(
        &self,
        function: FunctionValue<'c>,
        before: BasicBlock<'c>,
        (start, end, step): (IntValue<'c>, IntValue<'c>, u64),
        body: impl Fn(IntValue<'c>) -> Emitted<()>,
    ) -> Emitted<BasicBlock<'c>> {
        let long = self.context.i64_type();
        let turn = self.context.append_basic_block(function, "turn");
        let after = self.context.append_basic_block(function, "after");
        let any = self
            .builder
            .build_int_compare(IntPredicate::ULT, start, end, "any")?;
        self.builder.build_conditional_branch(any, turn, after)?;
        self.builder.position_at_end(turn);
        let index = self.builder.build_phi(long, "index")?;
        let value = index.as_basic_value().into_int_value();
        body(value)?;
        let next = self
            .builder
            .build_int_nuw_add(value, long.const_int(step, false), "next")?;
        index.add_incoming(&[(&start, before), (&next, turn)]);
        let more = self
            .builder
            .build_int_compare(IntPredicate::ULT, next, end, "more")?;
        self.builder.build_conditional_branch(more, turn, after)?;
        self.builder.position_at_end(after);
        Ok(after)
    }

    /// The computation at `index`, for one element or a vector of them.
    fn element(
        &self,
        kind: BasicTypeEnum<'c>,
        index: IntValue<'c>,
        output: PointerValue<'c>,
        inputs: &[PointerValue<'c>],
    ) -> Emitted<()> {
        let builder = &self.builder;
        let mut values: Vec<BasicValueEnum<'c>> = Vec::with_capacity(self.kernel.body.len());
        for instruction in &self.kernel.body {
            let value = match *instruction {
                Instruction::Input(number) => {
                    let place = self.place(inputs[number], index)?;
                    let value = builder.build_load(kind, place, "value")?;
                    align(&value)?;
                    value
                }
                Instruction::Constant(constant) => self.constant(kind, constant),
                Instruction::Add(left, right) => self.binary("add", values[left], values[right])?,
                Instruction::Subtract(left, right) => self.binary("subtract", values[left], values[right])?,
                Instruction::Multiply(left, right) => self.binary("multiply", values[left], values[right])?,
                Instruction::Divide(left, right) => self.binary("divide", values[left], values[right])?,
            };
            values.push(value);
        }
        let Some(result) = values.pop() else { return Ok(()) };
        let store = builder.build_store(self.place(output, index)?, result)?;
        Ok(store.set_alignment(4)?)
    }

    fn binary(
        &self,
        name: &str,
        left: BasicValueEnum<'c>,
        right: BasicValueEnum<'c>,
    ) -> Emitted<BasicValueEnum<'c>> {
        Ok(match left {
            BasicValueEnum::VectorValue(left) => {
                self.arithmetic(name, left, right.into_vector_value())?.into()
            }
            _ => self
                .arithmetic(name, left.into_float_value(), right.into_float_value())?
                .into(),
        })
    }

    fn arithmetic<T: FloatMathValue<'c>>(&self, name: &str, left: T, right: T) -> Emitted<T> {
        Ok(match name {
            "add" => self.builder.build_float_add(left, right, name)?,
            "subtract" => self.builder.build_float_sub(left, right, name)?,
            "multiply" => self.builder.build_float_mul(left, right, name)?,
            _ => self.builder.build_float_div(left, right, name)?,
        })
    }

    fn constant(&self, kind: BasicTypeEnum<'c>, constant: f32) -> BasicValueEnum<'c> {
        let scalar = self.context.f32_type().const_float(f64::from(constant));
        match kind {
            BasicTypeEnum::VectorType(vector) => {
                inkwell::types::VectorType::const_vector(&vec![scalar; vector.get_size() as usize]).into()
            }
            _ => scalar.into(),
        }
    }

    fn place(&self, array: PointerValue<'c>, index: IntValue<'c>) -> Emitted<PointerValue<'c>> {
        let element = self.context.f32_type().as_basic_type_enum();
        // SAFETY: the loops keep the index below the number of elements.
        unsafe {
            Ok(self
                .builder
                .build_in_bounds_gep(element, array, &[index], "place")?)
        }
    }
}

/// Arrays are aligned for their elements, not for vectors.
fn align(value: &BasicValueEnum) -> Emitted<()> {
    match inkwell::values::BasicValue::as_instruction_value(value) {
        Some(load) => Ok(load.set_alignment(4)?),
        None => Ok(()),
    }
}

fn parameter<'c>(function: FunctionValue<'c>, number: u32) -> Emitted<BasicValueEnum<'c>> {
    Ok(function.get_nth_param(number).ok_or("no such parameter")?)
}
