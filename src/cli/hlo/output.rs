//! Forms in which a module is printed.

use ff_hlo::buffers::Assignment;
use ff_hlo::fusion::FusionPlan;
use ff_hlo::{Attributes, Module, Opcode, html, print, svg};
use ff_tensor::{Result, bail};

/// The processor of PTX text where none is named.
const NVIDIA: &str = "sm_80";

/// Prints a module.
pub fn emit(module: &Module, what: &str) -> Result<()> {
    let (what, detail) = what.split_once(':').unwrap_or((what, ""));
    match what {
        "none" => {}
        "text" => print!("{}", print(module)),
        "html" => print!("{}", html(module)),
        "svg" => print!("{}", svg(module)),
        "buffers" => {
            let entry = module.entry_computation();
            print!("{}", Assignment::of(module, entry)?.report(entry));
        }
        "llvm" | "asm" | "ptx" | "structure" => {
            for (name, plan) in plans(module)? {
                println!("; {name}: extents {:?}", plan.extents);
                println!("{}", code(what, &name, &plan, detail)?);
            }
        }
        _ => bail!(
            InvalidArgument,
            "{what:?} is not text, html, svg, buffers, llvm, asm, ptx, structure or none"
        ),
    }
    Ok(())
}

fn code(what: &str, name: &str, plan: &FusionPlan, detail: &str) -> Result<String> {
    match what {
        "llvm" => ff_codegen::print_ir(name, plan),
        "asm" => ff_codegen::print_assembly(name, plan),
        "ptx" => ff_codegen::compile_ptx(name, plan, if detail.is_empty() { NVIDIA } else { detail }),
        _ => Ok(plan.structure()),
    }
}

/// The fusions of a module that have plans, with C names.
fn plans(module: &Module) -> Result<Vec<(String, FusionPlan)>> {
    let mut plans = Vec::new();
    let instructions = module
        .computations
        .iter()
        .flat_map(|computation| &computation.instructions);
    for instruction in instructions {
        let (Opcode::Fusion, Attributes::Call(called)) = (instruction.opcode, &instruction.attributes) else {
            continue;
        };
        let computation = module.computation(*called)?;
        if let Ok(plan) = FusionPlan::of(&module.computations, computation) {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let name: String = computation.name.chars().map(plain).collect();
            plans.push((format!("{name}_{}", plans.len()), plan));
        }
    }
    Ok(plans)
}
