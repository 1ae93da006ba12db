//! Objects, IR and PTX text of small plans: what is in them, and what is refused.

use super::*;
use crate::self_test::plan;
use ff_hlo::{Builder, HloShape, Module, Opcode, parse};
use ff_tensor::DataType;

fn halve_difference() -> Module {
    let mut b = Builder::new("halve_difference");
    let shape = || HloShape::array(DataType::FLOAT, &[5, 40]);
    let x = b.parameter(0, shape(), "x").unwrap();
    let y = b.parameter(1, shape(), "y").unwrap();
    let difference = b.subtract(x, y).unwrap();
    let half = b.scalar_like(0.5, x).unwrap();
    let root = b.multiply(difference, half).unwrap();
    b.finish(root).unwrap()
}

const SUM_OF_ROWS: &str = "HloModule rows
%sum () -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}
ENTRY %main () -> f32[6,8] {
  %x = f32[6,8] parameter(0)
  %zero = f32[] constant(0)
  %exp = f32[6,8] exponential(%x)
  %total = f32[6] reduce(%exp, %zero), dimensions={1}, to_apply=%sum
  %totals = f32[6,8] broadcast(%total), dimensions={0}
  ROOT %share = f32[6,8] divide(%exp, %totals)
}";

#[test]
fn host_code_has_explicit_vectors() {
    let text = print_ir("k", &plan(&halve_difference()).unwrap()).unwrap();
    let lanes = Machine::host().unwrap().vector_lanes(4);
    assert!(text.contains(&format!("fsub <{lanes} x float>")), "{text}");
}

#[test]
fn ptx_is_for_the_processor_asked_for() {
    let plan = plan(&halve_difference()).unwrap();
    let text = compile_ptx("halve", &plan, "sm_80").unwrap();
    assert!(
        text.contains(".target sm_80") && text.contains("sub.rn.f32"),
        "{text}"
    );
    assert!(compile_ptx("halve", &plan, "sm_1").is_err());
}

#[test]
fn reductions_of_rows_have_ptx() {
    let plan = plan(&parse(SUM_OF_ROWS).unwrap()).unwrap();
    let text = compile_ptx("rows", &plan, "sm_90").unwrap();
    assert!(
        text.contains(".visible .entry rows") && text.contains("div.rn.f32"),
        "{text}"
    );
}

#[test]
fn functions_of_the_host_have_no_ptx() {
    let mut b = Builder::new("gamma");
    let x = b
        .parameter(0, HloShape::array(DataType::FLOAT, &[8]), "x")
        .unwrap();
    let gamma = b.unary(Opcode::LogGamma, x).unwrap();
    let root = b.add(gamma, x).unwrap();
    let plan = plan(&b.finish(root).unwrap()).unwrap();
    let error = compile_ptx("gamma", &plan, "sm_80").unwrap_err();
    assert_eq!(error.code(), ff_tensor::Code::Unimplemented);
}

#[test]
fn every_listed_nvidia_processor_compiles() {
    let plan = plan(&halve_difference()).unwrap();
    for processor in machine::NVIDIA_PROCESSORS {
        let text = compile_ptx("halve", &plan, processor).unwrap();
        assert!(text.contains(&format!(".target {processor}")), "{processor}");
    }
}

#[test]
fn several_threads_compile_at_once() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| crate::self_test().unwrap());
        }
    });
    assert_eq!(version().map(|release| release.0), Some(22));
}
