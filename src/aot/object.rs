//! The object of a module: text, weights, and code.

use crate::options::Options;
use ff_aot_runtime::{VERSION, WEIGHTS_CALL, hash};
use ff_codegen::{Entry, compile_unit, has_code, structure_hash};
use ff_hlo::fusion::FusionPlan;
use ff_hlo::{Attributes, Module, Opcode, parse, print};
use ff_tensor::{Code, Result, ensure, status};

/// Bytes of the largest constant that stays in the text.
const LARGEST_IN_TEXT: usize = 64;

/// Bytes that weights are aligned to.
const ALIGNMENT: usize = 64;

/// What was made of a module.
pub(crate) struct Made {
    /// The module as the runtime will read it.
    pub text: String,
    pub object: Vec<u8>,
    pub weights: Option<Vec<u8>>,
    pub num_fusions: usize,
}

/// Makes the object of a module that is simplified and fused.
pub(crate) fn make(module: &Module, options: &Options) -> Result<Made> {
    let (module, weights) = split(module)?;
    let text = print(&module);
    // What the runtime finds must be what is compiled here.
    let module = parse(&text).map_err(|error| error.prefixed("The text of a module: "))?;
    let plans = plans(&module, options)?;
    let plans = with_code(plans, options)?;
    let named: Vec<(String, &FusionPlan)> = plans
        .iter()
        .enumerate()
        .map(|(number, (_, plan))| (format!("{}_fusion_{number}", options.name), plan))
        .collect();
    let fusions: Vec<Entry> = plans
        .iter()
        .enumerate()
        .flat_map(|(number, (structure, _))| [Entry::Number(*structure), Entry::Function(number)])
        .collect();
    let name = format!("{}\0", options.name);
    let inside: &[u8] = if options.weights_aside { &[] } else { &weights };
    let table = [
        Entry::Number(VERSION),
        Entry::Number(options.target.level),
        Entry::Bytes(text.as_bytes()),
        Entry::Number(text.len() as u64),
        Entry::Bytes(inside),
        Entry::Number(weights.len() as u64),
        Entry::Number(hash(&weights)),
        Entry::Table(&fusions),
        Entry::Number(plans.len() as u64),
        Entry::Bytes(name.as_bytes()),
    ];
    let symbol = format!("{}_program", options.name);
    Ok(Made {
        object: compile_unit(&options.target, &symbol, &named, &table)?,
        num_fusions: plans.len(),
        weights: options.weights_aside.then_some(weights),
        text,
    })
}

/// The module with places in the weights for large constants, and the weights.
fn split(module: &Module) -> Result<(Module, Vec<u8>)> {
    let mut module = module.clone();
    let mut weights: Vec<u8> = Vec::new();
    for computation in &mut module.computations {
        for instruction in &mut computation.instructions {
            ensure!(
                instruction.opcode != Opcode::CustomCall,
                Unimplemented,
                "{} has no code of its own: a kernel of the library would run it",
                instruction.node.as_deref().unwrap_or("an instruction")
            );
            // Only checks name their nodes when they fail.
            if instruction.opcode != Opcode::Check {
                instruction.node = None;
            }
            let Attributes::Constant(value) = &instruction.attributes else {
                continue;
            };
            let bytes = value.bytes();
            if instruction.opcode != Opcode::Constant || bytes.len() <= LARGEST_IN_TEXT {
                continue;
            }
            ensure!(
                value.dtype() == instruction.array_shape()?.dtype,
                Internal,
                "a constant has another type than its instruction"
            );
            let place = weights.len().next_multiple_of(ALIGNMENT);
            let more = place - weights.len() + bytes.len();
            weights
                .try_reserve(more)
                .map_err(|_| status!(ResourceExhausted, "no memory for {more} bytes of weights"))?;
            weights.resize(place, 0);
            weights.extend_from_slice(bytes);
            instruction.opcode = Opcode::CustomCall;
            instruction.attributes = Attributes::CustomCall {
                target: WEIGHTS_CALL.into(),
                config: place.to_string().into(),
            };
        }
    }
    Ok((module, weights))
}

/// The plans of the fusions that are to have code, each structure once.
fn plans(module: &Module, options: &Options) -> Result<Vec<(u64, FusionPlan)>> {
    let mut plans: Vec<(u64, FusionPlan)> = Vec::new();
    let instructions = module
        .computations
        .iter()
        .flat_map(|computation| &computation.instructions);
    for instruction in instructions {
        let (Opcode::Fusion, Attributes::Call(called)) = (instruction.opcode, &instruction.attributes) else {
            continue;
        };
        let Ok(plan) = FusionPlan::of(&module.computations, module.computation(*called)?) else {
            continue;
        };
        let structure = structure_hash(&plan);
        let known = plans.iter().find(|(other, _)| *other == structure);
        if let Some((_, other)) = known {
            ensure!(
                other.structure() == plan.structure(),
                Internal,
                "two fusions have one number"
            );
        } else if options.target.has_code() && has_code(&plan) {
            plans.push((structure, plan));
        }
    }
    Ok(plans)
}

/// Those plans that the code generator has code for: all of them, as a rule.
fn with_code(plans: Vec<(u64, FusionPlan)>, options: &Options) -> Result<Vec<(u64, FusionPlan)>> {
    let mut kept = Vec::with_capacity(plans.len());
    for (structure, plan) in plans {
        match ff_codegen::check_unit(&options.target, &plan) {
            Ok(()) => kept.push((structure, plan)),
            Err(error) if error.code() == Code::Unimplemented && ff_codegen::version().is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}
