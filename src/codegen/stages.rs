//! Stages: which wide values a pass over a row computes.
//!
//! A value that depends on `n` reductions one after another belongs to stage `n`. A later stage that needs a value of an
//! earlier one computes it again where that is cheap, and reads it from an intermediate row where it is not.

use ff_hlo::Opcode;
use ff_hlo::fusion::{FusionPlan, Level, NodeKind};
use ff_tensor::DataType;

/// One pass over a row.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// The wide nodes to compute, in order.
    pub nodes: Vec<usize>,
    /// Nodes of earlier stages to read from intermediate rows.
    pub read: Vec<usize>,
    /// Nodes to write to intermediate rows.
    pub save: Vec<usize>,
    /// Outputs to write.
    pub outputs: Vec<usize>,
    /// Reductions to make.
    pub reductions: Vec<usize>,
    /// Outputs that sum columns.
    pub columns: Vec<usize>,
}

/// The stages of a plan, and the intermediate row of each node that has one.
pub fn stages(plan: &FusionPlan) -> (Vec<Stage>, Vec<Option<usize>>) {
    let depths = plan.depths();
    let count = depths.iter().copied().max().unwrap_or(0) + 1;
    let mut stages = vec![Stage::default(); count];
    let mut rows: Vec<Option<usize>> = vec![None; plan.nodes.len()];
    let mut saved = 0;
    for (number, node) in plan.nodes.iter().enumerate() {
        if matches!(node.kind, NodeKind::Reduce(_)) {
            stages[depths[number] - 1].reductions.push(number);
        }
    }
    for (number, output) in plan.outputs.iter().enumerate() {
        match output.level {
            Level::Wide => stages[depths[output.node]].outputs.push(number),
            Level::Column => stages[depths[output.node]].columns.push(number),
            _ => {}
        }
    }
    for at in (0..count).rev() {
        let mut needed = vec![false; plan.nodes.len()];
        let mut pending: Vec<usize> = stages[at].save.clone();
        pending.extend(stages[at].outputs.iter().map(|&output| plan.outputs[output].node));
        pending.extend(
            stages[at]
                .reductions
                .iter()
                .map(|&node| plan.nodes[node].operands[0]),
        );
        let mut read = Vec::new();
        let summed = |&output: &usize| plan.nodes[plan.outputs[output].node].operands[0];
        pending.extend(stages[at].columns.iter().map(summed));
        while let Some(number) = pending.pop() {
            let node = &plan.nodes[number];
            if needed[number] || node.level != Level::Wide || read.contains(&number) {
                continue;
            }
            if depths[number] < at && is_expensive(plan, number) {
                read.push(number);
                if rows[number].is_none() {
                    rows[number] = Some(saved);
                    saved += 1;
                    stages[depths[number]].save.push(number);
                }
                continue;
            }
            needed[number] = true;
            pending.extend(&node.operands);
        }
        stages[at].read = read;
        stages[at].nodes = (0..plan.nodes.len()).filter(|&number| needed[number]).collect();
    }
    (stages, rows)
}

/// Whether a node is better read from memory than computed a second time.
fn is_expensive(plan: &FusionPlan, number: usize) -> bool {
    use Opcode::*;
    let node = &plan.nodes[number];
    match &node.kind {
        NodeKind::Map(opcode, _) => {
            is_library(*opcode, node.operand_dtype)
                || matches!(
                    opcode,
                    Divide
                        | Remainder
                        | Exponential
                        | ExponentialMinusOne
                        | Log
                        | LogPlusOne
                        | Logistic
                        | Tanh
                        | Erf
                        | Sine
                        | Cosine
                        | Sqrt
                        | Tan
                        | Asin
                        | Acos
                        | Atan
                        | Atan2
                        | Sinh
                        | Cosh
                        | Asinh
                        | Acosh
                        | Atanh
                        | Power
                        | Rsqrt
                )
        }
        NodeKind::Random(..) => true,
        _ => false,
    }
}

/// Whether an instruction is called rather than emitted.
pub fn is_library(opcode: Opcode, operand: DataType) -> bool {
    use Opcode::*;
    let float = operand.is_floating();
    match opcode {
        Erfc | Cbrt | LogGamma | Digamma | ErfInv | NextAfter | ReducePrecision => true,
        Remainder => float,
        Power => !float,
        _ => false,
    }
}

/// Whether an instruction may call [`Library`] beside its own code.
pub fn may_call(opcode: Opcode, operand: DataType) -> bool {
    is_library(opcode, operand) || matches!(opcode, Opcode::Sine | Opcode::Cosine | Opcode::Tan)
}

/// Nanoseconds for one element of a wide value, on one thread.
pub fn element_cost(plan: &FusionPlan) -> f64 {
    let bytes = |dtype: DataType| dtype.size() as f64;
    let inputs = plan.inputs.iter().filter(|input| input.level == Level::Wide);
    let memory: f64 = inputs
        .map(|input| bytes(input.dtype))
        .chain(plan.outputs.iter().map(|output| bytes(output.dtype)))
        .sum();
    let work: f64 = (0..plan.nodes.len())
        .filter(|&number| plan.nodes[number].level == Level::Wide)
        .map(|number| match &plan.nodes[number].kind {
            NodeKind::Map(opcode, _) if is_library(*opcode, plan.nodes[number].operand_dtype) => 10.0,
            NodeKind::Random(..) => 1.5,
            _ if is_expensive(plan, number) => 0.35,
            _ => 0.03,
        })
        .sum();
    0.03 * memory + work
}
