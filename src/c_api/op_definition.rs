//! `TF_OpDefinitionBuilder`: ops registered at run time.

use crate::TF_Status;
use crate::ffi::{Text, given_box, given_mut};
use crate::guard::{guard, quiet};
use crate::shape_inference::{ShapeInferenceFunction, infer_with};
use ff_op::{DynShapeFn, OpDefBuilder, OpRecord};
use ff_ops::registry;
use ff_proto::OpDeprecation;
use ff_tensor::Result;
use std::ffi::c_int;
use std::sync::Arc;

/// An op under construction. One thread at a time may use it.
pub struct TF_OpDefinitionBuilder {
    builder: OpDefBuilder,
    shape: ShapeInferenceFunction,
}

fn change(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    change: impl FnOnce(&mut TF_OpDefinitionBuilder) -> Result<()>,
) {
    quiet((), || change(given_mut(builder, "builder")?));
}

/// Starts an op of this name, which is written in camel case. `TF_RegisterOpDefinition` or `TF_DeleteOpDefinitionBuilder`
/// frees the builder. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewOpDefinitionBuilder(op_name: Text) -> Option<Box<TF_OpDefinitionBuilder>> {
    quiet(None, || {
        Ok(Some(Box::new(TF_OpDefinitionBuilder {
            builder: OpDefBuilder::new(&op_name.text("op_name")?),
            shape: None,
        })))
    })
}

/// Adds the op to those of this process and frees the builder, also on failure.
///
/// INVALID_ARGUMENT for specifications that are wrong, all of which the message names; ALREADY_EXISTS for a name that is
/// taken.
#[unsafe(no_mangle)]
pub extern "C" fn TF_RegisterOpDefinition(
    builder: Option<Box<TF_OpDefinitionBuilder>>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let builder = *given_box(builder, "builder")?;
        let mut record = OpRecord::schema_only(Arc::new(builder.builder.finish()?));
        record.has_shape_function = builder.shape.is_some();
        if let Some(function) = builder.shape {
            let shape: DynShapeFn = Arc::new(move |context| infer_with(function, context));
            record.shape = shape;
        }
        registry().add(record)
    });
}

/// Frees a builder that is not registered; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteOpDefinitionBuilder(builder: Option<Box<TF_OpDefinitionBuilder>>) {
    quiet((), || {
        drop(builder);
        Ok(())
    });
}

/// Adds an attribute: `name: type`, with a restriction (`int >= 2`, `{float, int32}`, `{'a', 'b'}`, `numbertype`,
/// `list(type) >= 1`) and a default value (`= 3`, `= [1, 2]`) if it has them. Types are `string`, `int`, `float`, `bool`,
/// `type`, `shape`, `tensor`, `func` and `list(..)` of them.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderAddAttr(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    attr_spec: Text,
) {
    change(builder, |builder| {
        builder.builder.attr(&attr_spec.text("attr_spec")?);
        Ok(())
    });
}

/// Adds an input: `name: type`, `name: number * type`, `name: types`, `name: Ref(type)`, where the words after the colon
/// are element types or attributes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderAddInput(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    input_spec: Text,
) {
    change(builder, |builder| {
        builder.builder.input(&input_spec.text("input_spec")?);
        Ok(())
    });
}

/// Adds an output, said as an input is.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderAddOutput(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    output_spec: Text,
) {
    change(builder, |builder| {
        builder.builder.output(&output_spec.text("output_spec")?);
        Ok(())
    });
}

/// Whether the order of the two inputs makes no difference.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderSetIsCommutative(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    is_commutative: bool,
) {
    change(builder, |builder| {
        builder.builder.def.is_commutative = is_commutative;
        Ok(())
    });
}

/// Whether the op combines two or more inputs of one type and shape into one, in any order and grouping.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderSetIsAggregate(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    is_aggregate: bool,
) {
    change(builder, |builder| {
        builder.builder.def.is_aggregate = is_aggregate;
        Ok(())
    });
}

/// Whether the op depends on more than its inputs, or does something that is seen outside: such an op is never merged with
/// another, moved or dropped.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderSetIsStateful(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    is_stateful: bool,
) {
    change(builder, |builder| {
        builder.builder.def.is_stateful = is_stateful;
        Ok(())
    });
}

/// Whether inputs may be variables without a value.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    allows_uninitialized_input: bool,
) {
    change(builder, |builder| {
        builder.builder.def.allows_uninitialized_input = allows_uninitialized_input;
        Ok(())
    });
}

/// Says that graphs from GraphDef version `version` on should not use the op, and what to use instead.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderDeprecated(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    version: c_int,
    explanation: Text,
) {
    change(builder, |builder| {
        builder.builder.def.deprecation = Some(OpDeprecation {
            version,
            explanation: explanation.or_empty().into_owned(),
        });
        Ok(())
    });
}

/// Sets the function that infers the shapes of the outputs; without one graphs take no node of the op, unless
/// `TF_SetRequireShapeInferenceFns` says otherwise. It is called on any thread, when
/// graphs are built and when they run; the context is valid during the call only.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpDefinitionBuilderSetShapeInferenceFunction(
    builder: Option<&mut TF_OpDefinitionBuilder>,
    shape_inference_func: ShapeInferenceFunction,
) {
    change(builder, |builder| {
        builder.shape = shape_inference_func;
        Ok(())
    });
}
